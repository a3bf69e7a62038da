// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/strings.cc.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/quoted.h"
#include "framework/runtime/kernel/kernel_poll.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/tensor.h"
#include "kernels/host/elementwise/tile_space.h"
#include "kernels/host/strings/letter_case.h"
#include "kernels/host/strings/string_loops.h"
#include "kernels/host/strings/utf8.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

constexpr double kStringNs = 60;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// --- Joining ----------------------------------------------------------------------------------

// The pieces part(0) ... part(n - 1) with the separator between them, in one block of the size it
// needs: a result that memory does not hold is refused before anything is copied.
template <class Part>
StringElement joined(int64_t n, std::string_view separator, Part&& part) {
  uint64_t bytes = n > 1 ? static_cast<uint64_t>(n - 1) * separator.size() : 0;
  for (int64_t k = 0; k < n; ++k) {
    if (__builtin_add_overflow(bytes, part(k).size(), &bytes))
      throw resource_exhausted("a string of more than 2^64 bytes");
  }
  if (bytes == 0) return StringElement();
  if (bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / 2)
    throw resource_exhausted("a string of ", bytes, " bytes");
  char* to = nullptr;
  StringElement element = StringElement::of_size(bytes, &to);
  const auto copy = [&to](std::string_view piece) {
    if (!piece.empty()) std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  };
  for (int64_t k = 0; k < n; ++k) {
    if (k > 0) copy(separator);
    copy(part(k));
  }
  return element;
}

KernelPtr prepare_string_join(const PrepareContext& p) {
  const int64_t inputs = p.num_inputs();
  const int64_t n = p.output_shape(0).num_elements();
  std::vector<int64_t> steps;  // 0 for a scalar
  for (int i = 0; i < p.num_inputs(); ++i) steps.push_back(p.input_shape(i).rank() == 0 ? 0 : 1);
  const double each_ns = kStringNs * static_cast<double>(inputs);
  return make_kernel(
      [=, separator = p.op().get_string("separator"), steps = std::move(steps)](RunContext& c) {
        auto* out = c.output(0).data<StringElement>();
        each_element(c, n, each_ns, [&](int64_t i) {
          out[i] = joined(inputs, separator, [&](int64_t k) {
            return string_at(c.input(static_cast<int>(k)), i * steps[static_cast<size_t>(k)]);
          });
        });
      },
      each_ns * static_cast<double>(n));
}

// Axes of one kind, the slowest first, with their extents and strides in the input.
struct Axes {
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;

  void add(int64_t extent, int64_t stride) {
    extents.push_back(extent);
    strides.push_back(stride);
  }
  int64_t count() const {
    return std::accumulate(extents.begin(), extents.end(), int64_t{1},
                           [](int64_t a, int64_t b) { return checked_product(a, b); });
  }
  // The offset of place i among all places of these axes.
  int64_t offset(int64_t i) const {
    int64_t offset = 0;
    for (size_t a = extents.size(); a-- > 0; i /= extents[a]) offset += i % extents[a] * strides[a];
    return offset;
  }
};

KernelPtr prepare_reduce_join(const PrepareContext& p) {
  const Shape& input = p.input_shape(0);
  int64_t storage[kMaxRank] = {};
  std::vector<int64_t> stride(static_cast<size_t>(input.rank()), 1);
  for (int axis = input.rank() - 1; axis > 0; --axis) {
    stride[static_cast<size_t>(axis - 1)] =
        checked_product(stride[static_cast<size_t>(axis)], std::max<int64_t>(input[axis], 1));
  }
  Axes reduced, kept;
  std::vector<bool> is_reduced(static_cast<size_t>(input.rank()));
  // The first axis named is the fastest, so it comes last.
  const std::span<const int64_t> named = as_int64(p.host_value(1), storage);
  for (size_t k = named.size(); k-- > 0;) {
    const int64_t axis = named[k] < 0 ? named[k] + input.rank() : named[k];
    is_reduced[static_cast<size_t>(axis)] = true;
    reduced.add(input[static_cast<int>(axis)], stride[static_cast<size_t>(axis)]);
  }
  for (int axis = 0; axis < input.rank(); ++axis) {
    if (!is_reduced[static_cast<size_t>(axis)])
      kept.add(input[axis], stride[static_cast<size_t>(axis)]);
  }
  const int64_t n = p.output_shape(0).num_elements();
  const int64_t parts = reduced.count();
  const double each_ns = kStringNs * static_cast<double>(parts + 1);
  return make_kernel(
      [=, separator = p.op().get_string("separator")](RunContext& c) {
        auto* out = c.output(0).data<StringElement>();
        c.parallel_for(n, std::max<int64_t>(1, kStringGrain / (parts + 1)), each_ns,
                       [&](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i) {
                           const int64_t base = kept.offset(i);
                           out[i] = joined(parts, separator, [&](int64_t k) {
                             return string_at(c.input(0), base + reduced.offset(k));
                           });
                         }
                       });
      },
      each_ns * static_cast<double>(n));
}

// --- Splitting --------------------------------------------------------------------------------

struct SplitRule {
  std::string_view separator;
  int64_t most;  // splits, or -1
  bool any_of;
  bool skip_empty;
};

template <class Give>
void split_at_whitespace(std::string_view text, int64_t most, Give&& give) {
  size_t at = 0;
  for (int64_t splits = 0;; ++splits) {
    while (at < text.size() && is_space(text[at])) ++at;
    if (at == text.size()) return;
    if (splits == most) return give(text.substr(at));
    const size_t begin = at;
    while (at < text.size() && !is_space(text[at])) ++at;
    give(text.substr(begin, at - begin));
  }
}

template <class Give>
void split(std::string_view text, const SplitRule& rule, Give&& give_any) {
  const auto give = [&](std::string_view part) {
    if (!part.empty() || !rule.skip_empty) give_any(part);
  };
  if (rule.any_of && rule.separator.empty()) {
    for (size_t at = 0; at < text.size(); ++at) give(text.substr(at, 1));
    return;
  }
  if (rule.separator.empty()) return split_at_whitespace(text, rule.most, give);
  const size_t width = rule.any_of ? 1 : rule.separator.size();
  size_t at = 0;
  for (int64_t splits = 0; splits != rule.most; ++splits) {
    const size_t found =
        rule.any_of ? text.find_first_of(rule.separator, at) : text.find(rule.separator, at);
    if (found == std::string_view::npos) break;
    give(text.substr(at, found - at));
    at = found + width;
  }
  give(text.substr(at));
}

void string_split(RunContext& c, int64_t most, bool any_of, bool skip_empty) {
  const Tensor& input = c.input(0);
  const SplitRule rule{string_at(c.input(1), 0), most, any_of, skip_empty};
  const int64_t rows = input.num_elements();
  int64_t total = 0;
  int64_t widest = 0;
  for (int64_t i = 0; i < rows; ++i) {  // counted first: the results have their size at once
    if (i % kStringGrain == 0) poll(c);
    int64_t parts = 0;
    split(string_at(input, i), rule, [&parts](std::string_view) { ++parts; });
    total += parts;
    widest = std::max(widest, parts);
  }
  Tensor indices(DType::kInt64, Shape{total, 2});
  Tensor values(DType::kString, Shape{total});
  int64_t* index = indices.data<int64_t>();
  auto* value = values.data<StringElement>();
  for (int64_t i = 0; i < rows; ++i) {
    if (i % kStringGrain == 0) poll(c);
    int64_t place = 0;
    split(string_at(input, i), rule, [&](std::string_view part) {
      *index++ = i;
      *index++ = place++;
      *value++ = StringElement(part);
    });
  }
  c.set_output(0, std::move(indices));
  c.set_output(1, std::move(values));
  c.set_output(2, Tensor::vector<int64_t>({rows, widest}));
}

KernelPtr prepare_string_split(const PrepareContext& p) {
  return make_kernel([most = p.op().get_int("maxsplit"), any_of = p.op().get_bool("any_of"),
                      skip = p.op().get_bool("skip_empty")](
                         RunContext& c) { string_split(c, most, any_of, skip); },
                     500 + 500 * static_cast<double>(p.input_shape(0).num_elements()));
}

// --- Parts ------------------------------------------------------------------------------------

KernelPtr prepare_string_length(const PrepareContext& p) {
  const int64_t n = p.input_shape(0).num_elements();
  return make_kernel(
      [n, characters = p.op().get_string("unit") == "UTF8_CHAR"](RunContext& c) {
        int32_t* out = c.output(0).data<int32_t>();
        each_element(c, n, 20, [&](int64_t i) {
          const std::string_view text = string_at(c.input(0), i);
          const auto length = static_cast<int64_t>(text.size()) -
                              (characters ? std::count_if(text.begin(), text.end(), continues) : 0);
          if (length > std::numeric_limits<int32_t>::max())
            throw invalid_argument("element ", i, " is ", length,
                                   " long; an int32 ends at 2^31 - 1");
          out[i] = static_cast<int32_t>(length);
        });
      },
      20.0 * static_cast<double>(n));
}

// The byte where character `count` after byte `from` begins, or the end; *count is what is left.
size_t skip_characters(std::string_view text, size_t from, int64_t* count) {
  for (; *count > 0 && from < text.size(); --*count) {
    ++from;
    while (from < text.size() && continues(text[from])) ++from;
  }
  return from;
}

[[noreturn]] void bad_position(int64_t pos, std::string_view text, int64_t element) {
  throw invalid_argument("pos ", pos, " out of range for string ", quoted(text), " at index ",
                         element);
}

std::string_view part_of_bytes(std::string_view text, int64_t pos, int64_t len, int64_t element) {
  const auto size = static_cast<int64_t>(text.size());
  if (pos > size || pos < -size) bad_position(pos, text, element);
  const auto begin = static_cast<size_t>(pos < 0 ? pos + size : pos);
  return text.substr(begin, len < 0 ? std::string_view::npos : static_cast<size_t>(len));
}

std::string_view part_of_characters(std::string_view text, int64_t pos, int64_t len,
                                    int64_t element) {
  size_t begin = 0;
  if (pos >= 0) {
    int64_t left = pos;
    begin = skip_characters(text, 0, &left);
    if (left > 0) bad_position(pos, text, element);
  } else {
    begin = text.size();
    for (int64_t left = pos; left < 0; ++left) {
      if (begin == 0) bad_position(pos, text, element);
      --begin;
      while (begin > 0 && continues(text[begin])) --begin;
    }
  }
  if (len < 0) return text.substr(begin);
  return text.substr(begin, skip_characters(text, begin, &len) - begin);
}

template <class T>
void substr(RunContext& c, const TileSpace& space, bool characters) {
  const auto* in = c.input(0).data<StringElement>();
  const T* positions = c.input(1).data<T>();
  const T* lengths = c.input(2).data<T>();
  auto* out = c.output(0).data<StringElement>();
  const int64_t inner = space.inner();
  const int64_t rows = inner == 0 ? 0 : space.elements / inner;
  const int64_t text_step = space.operands[0].stride[space.rank - 1];
  const int64_t where_step = space.operands[1].stride[space.rank - 1];
  const int64_t grain = std::max<int64_t>(1, kStringGrain / std::max<int64_t>(inner, 1));
  const double row_ns = kStringNs * static_cast<double>(inner);
  c.parallel_for(rows, grain, row_ns, [&](int64_t begin, int64_t end) {
    OuterPosition at(space, begin);
    for (int64_t row = begin; row < end; ++row, at.advance()) {
      for (int64_t k = 0; k < inner; ++k) {
        const int64_t element = row * inner + k;
        const std::string_view text = in[at.offset(0) + k * text_step].view();
        const int64_t where = at.offset(1) + k * where_step;
        const int64_t pos = positions[where];
        const int64_t len = lengths[where];
        out[element] = StringElement(characters ? part_of_characters(text, pos, len, element)
                                                : part_of_bytes(text, pos, len, element));
      }
    }
  });
}

KernelPtr prepare_substr(const PrepareContext& p) {
  const Shape* shapes[] = {&p.input_shape(0), &p.input_shape(1)};
  const TileSpace space = make_tile_space(p.output_shape(0), shapes);
  const bool characters = p.op().get_string("unit") == "UTF8_CHAR";
  return dispatch<int32_t, int64_t>(p.input_type(1), [&]<class T>() -> KernelPtr {
    return make_kernel([space, characters](RunContext& c) { substr<T>(c, space, characters); },
                       kStringNs * static_cast<double>(space.elements));
  });
}

// --- Letters ----------------------------------------------------------------------------------

std::string ascii_case(std::string_view text, char first, char last) {
  std::string out(text);
  for (char& c : out) {
    if (c >= first && c <= last) c = static_cast<char>(c ^ 0x20);
  }
  return out;
}

KernelPtr prepare_string_lower(const PrepareContext& p) {
  if (p.op().get_string("encoding").empty()) {
    return map_strings(p, kStringNs,
                       [](std::string_view text, int64_t) { return ascii_case(text, 'A', 'Z'); });
  }
  return map_strings(p, 500, [](std::string_view text, int64_t) { return to_lower_utf8(text); });
}

KernelPtr prepare_string_upper(const PrepareContext& p) {
  if (p.op().get_string("encoding").empty()) {
    return map_strings(p, kStringNs,
                       [](std::string_view text, int64_t) { return ascii_case(text, 'a', 'z'); });
  }
  return map_strings(p, 500, [](std::string_view text, int64_t) { return to_upper_utf8(text); });
}

KernelPtr prepare_string_strip(const PrepareContext& p) {
  return map_strings(p, kStringNs, [](std::string_view text, int64_t) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
  });
}

}  // namespace

void register_strings_kernels(KernelRegistry& r) {
  r.add("StringJoin", {}, prepare_string_join);
  r.add("ReduceJoin", {}, prepare_reduce_join);
  r.add("StringSplit", {}, prepare_string_split);
  r.add("StringLength", {}, prepare_string_length);
  r.add("Substr", {}, prepare_substr);
  r.add("StringLower", {}, prepare_string_lower);
  r.add("StringUpper", {}, prepare_string_upper);
  r.add("StringStrip", {}, prepare_string_strip);
}

}  // namespace treenail::host
