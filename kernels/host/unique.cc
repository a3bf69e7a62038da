// SPDX-License-Identifier: Apache-2.0
// Unique and UniqueWithCounts of framework/ops/ordering.cc: an open-addressing table of first
// occurrences. Plain elements are compared by their bits, but floating-point zeros are all one and
// every NaN is different.
#include <algorithm>
#include <bit>

#include "framework/base/error.h"
#include "framework/runtime/kernel_registry.h"
#include "kernels/host/elements.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

// An element as it is compared.
template <class T>
struct Key {
  T value;
  bool nan = false;
};

// One floating-point number of `width` bits, `fraction` of them its fraction, in the low bits of an
// integer.
void canonical_number(uint64_t& bits, int width, int fraction, bool& nan) {
  const uint64_t sign = uint64_t{1} << (width - 1);
  const uint64_t magnitude = bits & (sign - 1);
  const uint64_t infinity = (sign - 1) & ~((uint64_t{1} << fraction) - 1);
  if (magnitude == 0) bits = 0;
  nan = nan || magnitude > infinity;
}

template <class T>
Key<T> key_of(DType dtype, const T& element) {
  Key<T> key{element, false};
  if constexpr (std::is_integral_v<T>) {
    uint64_t bits = element;
    switch (dtype) {
      case DType::kFloat16:
        canonical_number(bits, 16, 10, key.nan);
        break;
      case DType::kBFloat16:
        canonical_number(bits, 16, 7, key.nan);
        break;
      case DType::kFloat32:
        canonical_number(bits, 32, 23, key.nan);
        break;
      case DType::kFloat64:
        canonical_number(bits, 64, 52, key.nan);
        break;
      case DType::kComplex64: {
        uint64_t low = bits & 0xffffffffu;
        uint64_t high = bits >> 32;
        canonical_number(low, 32, 23, key.nan);
        canonical_number(high, 32, 23, key.nan);
        bits = high << 32 | low;
        break;
      }
      default:
        break;
    }
    key.value = static_cast<T>(bits);
  } else if constexpr (std::is_same_v<T, Bits128>) {
    canonical_number(key.value.low, 64, 52, key.nan);
    canonical_number(key.value.high, 64, 52, key.nan);
  }
  return key;
}

uint64_t mixed(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdu;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53u;
  return x ^ (x >> 33);
}
uint64_t hash_of(const Bits128& x) { return mixed(x.low) ^ mixed(x.high + 0x9e3779b97f4a7c15u); }
uint64_t hash_of(const StringElement& x) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char ch : x.view()) hash = (hash ^ static_cast<unsigned char>(ch)) * 0x100000001b3u;
  return mixed(hash);
}
template <class T>
requires std::is_integral_v<T> uint64_t hash_of(T x) { return mixed(x); }

bool same(const Bits128& a, const Bits128& b) { return a.low == b.low && a.high == b.high; }
template <class T>
bool same(const T& a, const T& b) {
  return a == b;
}

// For each element the number of its value, in the order of first occurrences; firsts[number] is
// where that was. The number of different values.
template <class T>
int64_t number_values(const Tensor& x, int64_t* numbers, int64_t* firsts) {
  const int64_t n = x.num_elements();
  const T* values = elements<T>(x);
  const uint64_t capacity = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(2 * n, 2)));
  Tensor table(DType::kInt64, Shape({static_cast<int64_t>(capacity)}));
  int64_t* slots = table.data<int64_t>();
  std::fill(slots, slots + capacity, int64_t{-1});
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Key<T> key = key_of(x.dtype(), values[i]);
    if (key.nan) {
      firsts[count] = i;
      numbers[i] = count++;
      continue;
    }
    uint64_t at = hash_of(key.value) & (capacity - 1);
    while (slots[at] >= 0 && !same(key_of(x.dtype(), values[firsts[slots[at]]]).value, key.value))
      at = (at + 1) & (capacity - 1);
    if (slots[at] < 0) {
      slots[at] = count;
      firsts[count++] = i;
    }
    numbers[i] = slots[at];
  }
  return count;
}

Tensor narrowed(const int64_t* values, int64_t n, DType dtype) {
  Tensor out(dtype, Shape({n}));
  dispatch<int32_t, int64_t>(dtype, [&]<class T>() {
    for (int64_t i = 0; i < n; ++i) out.data<T>()[i] = static_cast<T>(values[i]);
  });
  return out;
}

template <class T>
void unique(RunContext& c, DType index, bool with_counts) {
  const Tensor& x = c.input(0);
  const int64_t n = x.num_elements();
  Tensor scratch(DType::kInt64, Shape({2, n}));
  int64_t* numbers = scratch.data<int64_t>();
  int64_t* firsts = numbers + n;
  const int64_t count = number_values<T>(x, numbers, firsts);
  Tensor y(x.dtype(), Shape({count}));
  for (int64_t i = 0; i < count; ++i) elements<T>(y)[i] = elements<T>(x)[firsts[i]];
  c.set_output(0, std::move(y));
  c.set_output(1, narrowed(numbers, n, index));
  if (!with_counts) return;
  std::fill(firsts, firsts + count, int64_t{0});
  for (int64_t i = 0; i < n; ++i) ++firsts[numbers[i]];
  c.set_output(2, narrowed(firsts, count, index));
}

KernelPtr prepare_unique(const PrepareContext& p) {
  const DType index = p.output_type(1);
  if (index == DType::kInt32 && p.input_shape(0).num_elements() > INT32_MAX) {
    throw invalid_argument("out_idx must be int64 for ", p.input_shape(0).num_elements(),
                           " elements");
  }
  const bool with_counts = p.op().num_outputs() == 3;
  const double cost = 200 + 20.0 * static_cast<double>(p.input_shape(0).num_elements());
  return dispatch_element(p.input_type(0), [&]<class T>() -> KernelPtr {
    if constexpr (std::is_same_v<T, ResourceElement> || std::is_same_v<T, VariantElement>) {
      throw_dtype_not_handled(p.input_type(0));
    } else {
      return make_kernel([index, with_counts](RunContext& c) { unique<T>(c, index, with_counts); },
                         cost);
    }
  });
}

}  // namespace

void register_unique_kernels(KernelRegistry& r) {
  r.add("Unique", {}, prepare_unique);
  r.add("UniqueWithCounts", {}, prepare_unique);
}

}  // namespace treenail::host
