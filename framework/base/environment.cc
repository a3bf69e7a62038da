// SPDX-License-Identifier: Apache-2.0
// Parsing of environment variables.
#include "framework/base/environment.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "framework/base/error.h"

namespace treenail {
namespace {

std::optional<int64_t> parse_int(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::string> env_text(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::optional<int64_t> env_int(const char* name, int64_t low, int64_t high) {
  const std::optional<std::string> text = env_text(name);
  if (!text) return std::nullopt;
  const std::optional<int64_t> value = parse_int(*text);
  if (!value || *value < low || *value > high) {
    throw invalid_argument("environment variable ", name, " is \"", *text,
                           "\"; needed is an integer from ", low, " to ", high);
  }
  return value;
}

std::optional<int64_t> parse_bytes(std::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  const std::optional<int64_t> count = parse_int(text.substr(0, digits));
  if (!count || *count <= 0) return std::nullopt;
  std::string_view suffix = text.substr(digits);
  int shift = 0;
  if (!suffix.empty()) {
    constexpr std::string_view kUnits = "kmgt";
    const char unit =
        suffix[0] >= 'A' && suffix[0] <= 'Z' ? static_cast<char>(suffix[0] - 'A' + 'a') : suffix[0];
    const size_t position = kUnits.find(unit);
    if (position == std::string_view::npos) return std::nullopt;
    suffix.remove_prefix(1);
    if (!suffix.empty() && suffix != "B" && suffix != "iB") return std::nullopt;
    shift = 10 * (static_cast<int>(position) + 1);
  }
  if (*count > (std::numeric_limits<int64_t>::max() >> shift)) return std::nullopt;
  return *count << shift;
}

std::optional<int64_t> env_bytes(const char* name) {
  const std::optional<std::string> text = env_text(name);
  if (!text) return std::nullopt;
  const std::optional<int64_t> value = parse_bytes(*text);
  if (!value) {
    throw invalid_argument("environment variable ", name, " is \"", *text,
                           "\"; needed is a positive number of bytes, with K, M, G or T behind it "
                           "for powers of 1024, like \"16G\"");
  }
  return value;
}

std::optional<int> env_choice(const char* name, std::span<const std::string_view> choices) {
  const std::optional<std::string> text = env_text(name);
  if (!text) return std::nullopt;
  std::string known;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] == *text) return static_cast<int>(i);
    known += i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ";
    known += choices[i];
  }
  throw invalid_argument("environment variable ", name, " is \"", *text, "\"; needed is ", known);
}

}  // namespace treenail
