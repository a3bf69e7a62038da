// SPDX-License-Identifier: Apache-2.0
// Feature detection: cpuid and xgetbv on x86-64 (a feature counts only when the system saves its
// registers), the kernel's hardware capability bits on AArch64. One table per architecture says
// which level needs what.
#include "framework/base/cpu_features.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/adapter.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace treenail {
namespace {

struct Feature {
  std::string_view name;
  int level;  // index into isa_levels() of the lowest level that needs it; -1: none does
  bool present;
  bool above = true;  // the levels above need it as well
};

#if defined(__x86_64__)

constexpr std::string_view kLevels[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  if (!__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d)) return Registers();
  return r;
}

// XCR0: which register files the operating system saves. Written as bytes: no -mxsave at the
// baseline.
uint64_t saved_register_files(bool osxsave) {
  if (!osxsave) return 0;
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

std::vector<Feature> detect() {
  const Registers one = cpuid(1);
  const Registers seven = cpuid(7);
  const Registers extended = cpuid(0x80000001u);
  const auto bit = [](unsigned word, int position) { return ((word >> position) & 1u) != 0; };
  const bool osxsave = bit(one.c, 27);
  const uint64_t saved = saved_register_files(osxsave);
  const bool ymm = (saved & 0x6) == 0x6;
  const bool zmm = (saved & 0xe6) == 0xe6;
  return {
      {"cx16", 1, bit(one.c, 13)},
      {"lahf_lm", 1, bit(extended.c, 0)},
      {"popcnt", 1, bit(one.c, 23)},
      {"pni", 1, bit(one.c, 0)},
      {"ssse3", 1, bit(one.c, 9)},
      {"sse4_1", 1, bit(one.c, 19)},
      {"sse4_2", 1, bit(one.c, 20)},
      {"avx", 2, ymm && bit(one.c, 28)},
      {"avx2", 2, ymm && bit(seven.b, 5)},
      {"bmi1", 2, bit(seven.b, 3)},
      {"bmi2", 2, bit(seven.b, 8)},
      {"f16c", 2, ymm && bit(one.c, 29)},
      {"fma", 2, ymm && bit(one.c, 12)},
      {"abm", 2, bit(extended.c, 5)},
      {"movbe", 2, bit(one.c, 22)},
      {"xsave", 2, osxsave},
      {"avx512f", 3, zmm && bit(seven.b, 16)},
      {"avx512dq", 3, zmm && bit(seven.b, 17)},
      {"avx512cd", 3, zmm && bit(seven.b, 28)},
      {"avx512bw", 3, zmm && bit(seven.b, 30)},
      {"avx512vl", 3, zmm && bit(seven.b, 31)},
  };
}

// Vendor "AuthenticAMD", family 19h: Zen 3, which has none, and Zen 4.
bool takes_512_bits_in_halves() {
  const Registers vendor = cpuid(0);
  const unsigned version = cpuid(1).a;
  const unsigned family = (version >> 8 & 0xf) + (version >> 20 & 0xff);
  return vendor.b == 0x68747541 && vendor.d == 0x69746e65 && vendor.c == 0x444d4163 &&
         family == 0x19;
}

#elif defined(__aarch64__)

constexpr std::string_view kLevels[] = {"armv8-a", "armv8.2-a", "sve"};

// Positions of the Linux ABI (AT_HWCAP); older headers do not name all of them.
std::vector<Feature> detect() {
  const unsigned long capabilities = getauxval(AT_HWCAP);
  const auto bit = [capabilities](int position) { return ((capabilities >> position) & 1u) != 0; };
  return {
      {"fp", 0, bit(0)},        {"asimd", 0, bit(1)},
      {"crc32", 1, bit(7)},     {"atomics", 1, bit(8)},
      {"fphp", 1, bit(9)},      {"asimdhp", 1, bit(10)},
      {"asimdrdm", 1, bit(12)}, {"asimddp", 1, bit(20), false},
      {"sve", 2, bit(22)},
  };
}

#else

constexpr std::string_view kLevels[] = {"generic"};

std::vector<Feature> detect() { return {}; }

#endif

const std::vector<Feature>& features() {
  static const std::vector<Feature>* found = new std::vector<Feature>(detect());
  return *found;
}

int level_index(std::string_view level) {
  const auto at = std::find(std::begin(kLevels), std::end(kLevels), level);
  return at == std::end(kLevels) ? -1 : static_cast<int>(at - std::begin(kLevels));
}

std::string join(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

}  // namespace

std::span<const std::string_view> isa_levels() { return kLevels; }

std::string missing_features(std::string_view level) {
  const int wanted = level_index(level);
  if (wanted < 0) {
    throw invalid_argument("\"", level, "\" is no ISA level of this architecture; they are ",
                           join(kLevels));
  }
  std::vector<std::string_view> missing;
  for (const Feature& feature : features()) {
    const bool needed = feature.level == wanted || (feature.above && feature.level < wanted);
    if (feature.level >= 0 && needed && !feature.present) missing.push_back(feature.name);
  }
  return join(missing);
}

bool cpu_runs(std::string_view level) {
  return level_index(level) >= 0 && missing_features(level).empty();
}

bool full_width_avx512() {
#if defined(__x86_64__)
  return cpu_runs("x86-64-v4") && !takes_512_bits_in_halves();
#else
  return false;
#endif
}

std::string_view best_level() {
  std::string_view best = kLevels[0];
  for (const std::string_view level : kLevels) {
    if (cpu_runs(level)) best = level;
  }
  return best;
}

std::vector<std::string> cpu_features() {
  std::vector<std::string> names;
  for (const Feature& feature : features()) {
    if (feature.present) names.emplace_back(feature.name);
  }
  return names;
}

std::string_view choose_level(std::span<const std::string_view> installed) {
  const auto is_installed = [installed](std::string_view level) {
    return std::find(installed.begin(), installed.end(), level) != installed.end();
  };
  if (const auto choice = env_choice("TREENAIL_CPU_ISA", kLevels)) {
    const std::string_view level = kLevels[*choice];
    if (const std::string missing = missing_features(level); !missing.empty()) {
      throw failed_precondition("TREENAIL_CPU_ISA is \"", level,
                                "\", but this CPU or system lacks ", missing,
                                "; the highest level it runs is ", best_level());
    }
    if (!is_installed(level)) {
      throw not_found("TREENAIL_CPU_ISA is \"", level,
                      "\", but no kernel library of that level is ", "installed; installed are ",
                      join(installed));
    }
    return level;
  }
  for (int i = static_cast<int>(std::size(kLevels)) - 1; i >= 0; --i) {
    if (is_installed(kLevels[i]) && cpu_runs(kLevels[i])) return kLevels[i];
  }
  throw failed_precondition(
      "this CPU runs ISA level ", best_level(),
      "; installed kernel libraries: ", installed.empty() ? "none" : join(installed),
      "; install Treenail's again, ", version_and_package());
}

}  // namespace treenail
