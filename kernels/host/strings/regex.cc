// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/regex.cc: through the RE2 adapter, on the strings side by side.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "framework/base/adapter.h"
#include "framework/base/error.h"
#include "framework/base/quoted.h"
#include "framework/device/allocator.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/tensor.h"
#include "kernels/adapters/re2/re2_api.h"
#include "kernels/host/strings/string_loops.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

constexpr double kMatchNs = 500;

const Re2Api& re2_api() {
  constexpr AdapterRequest kRequest = {"re2", sizeof(Re2Api), "regular expressions",
                                       "RE2 (Debian: libre2-dev when built, Fedora: re2-devel)"};
  return *static_cast<const Re2Api*>(open_adapter(kRequest));
}

void take_string(void* context, const char* text, size_t length) {
  static_cast<std::string*>(context)->assign(text, length);
}

void take_element(void* context, const char* text, size_t length) {
  *static_cast<StringElement*>(context) = StringElement(std::string_view(text, length));
}

// A compiled pattern.
class Pattern {
 public:
  explicit Pattern(std::string_view text) : api_(re2_api()) {
    std::string why;
    pattern_ = api_.compile(text.data(), text.size(), &why, take_string);
    if (pattern_ == nullptr)
      throw invalid_argument("Invalid pattern: ", quoted(text), ", error: ", why);
  }
  ~Pattern() { api_.release(pattern_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  void check_rewrite(std::string_view rewrite) const {
    std::string why;
    if (api_.check_rewrite(pattern_, rewrite.data(), rewrite.size(), &why, take_string) != kRe2Yes)
      throw invalid_argument("Invalid rewrite: ", quoted(rewrite), ", error: ", why);
  }

  bool matches(std::string_view text) const {
    return api_.full_match(pattern_, text.data(), text.size()) == kRe2Yes;
  }

  // The result is an element, which counts against the limit of memory; the adapter's own copy
  // besides it may take what is left.
  StringElement replace(std::string_view text, std::string_view rewrite, bool global) const {
    const Allocator& memory = Allocator::host();
    const int64_t left = std::max<int64_t>(0, memory.limit() - memory.stats().bytes_in_use) / 2;
    StringElement out;
    std::string_view given = text.data() == nullptr ? std::string_view("") : text;
    const int32_t result =
        api_.replace(pattern_, given.data(), given.size(), rewrite.data(), rewrite.size(),
                     global ? 1 : 0, static_cast<size_t>(left), &out, take_element);
    if (result == kRe2TooLarge || result == kRe2OutOfMemory)
      throw resource_exhausted("the text with all matches replaced has more than ", left,
                               " bytes, half of what memory is left");
    return out;
  }

 private:
  const Re2Api& api_;
  Re2Pattern* pattern_ = nullptr;
};

using PatternPtr = std::shared_ptr<const Pattern>;

void replace_all(RunContext& c, const Pattern& pattern, std::string_view rewrite, bool global) {
  pattern.check_rewrite(rewrite);
  const Tensor& input = c.input(0);
  auto* out = c.output(0).data<StringElement>();
  each_element(c, input.num_elements(), kMatchNs,
               [&](int64_t i) { out[i] = pattern.replace(string_at(input, i), rewrite, global); });
}

void match_all(RunContext& c, const Pattern& pattern) {
  const Tensor& input = c.input(0);
  bool* out = c.output(0).data<bool>();
  each_element(c, input.num_elements(), kMatchNs,
               [&](int64_t i) { out[i] = pattern.matches(string_at(input, i)); });
}

double cost_of(const PrepareContext& p) {
  return 20000 + kMatchNs * static_cast<double>(p.input_shape(0).num_elements());
}

KernelPtr prepare_replace(const PrepareContext& p) {
  return make_kernel(
      [global = p.op().get_bool("replace_global")](RunContext& c) {
        replace_all(c, Pattern(string_at(c.input(1), 0)), string_at(c.input(2), 0), global);
      },
      cost_of(p));
}

KernelPtr prepare_static_replace(const PrepareContext& p) {
  auto pattern = std::make_shared<const Pattern>(p.op().get_string("pattern"));
  pattern->check_rewrite(p.op().get_string("rewrite"));
  return make_kernel(
      [pattern = PatternPtr(std::move(pattern)), rewrite = p.op().get_string("rewrite"),
       global = p.op().get_bool("replace_global")](RunContext& c) {
        replace_all(c, *pattern, rewrite, global);
      },
      cost_of(p));
}

KernelPtr prepare_match(const PrepareContext& p) {
  return make_kernel([](RunContext& c) { match_all(c, Pattern(string_at(c.input(1), 0))); },
                     cost_of(p));
}

KernelPtr prepare_static_match(const PrepareContext& p) {
  auto pattern = std::make_shared<const Pattern>(p.op().get_string("pattern"));
  return make_kernel(
      [pattern = PatternPtr(std::move(pattern))](RunContext& c) { match_all(c, *pattern); },
      cost_of(p));
}

}  // namespace

void register_regex_kernels(KernelRegistry& r) {
  r.add("RegexReplace", {}, prepare_replace);
  r.add("StaticRegexReplace", {}, prepare_static_replace);
  r.add("RegexFullMatch", {}, prepare_match);
  r.add("StaticRegexFullMatch", {}, prepare_static_match);
}

}  // namespace treenail::host
