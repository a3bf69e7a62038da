// SPDX-License-Identifier: Apache-2.0
// Unique, UniqueWithCounts and ListDiff of framework/ops/ordering.cc: an open-addressing table of
// first occurrences. Plain elements are compared by their bits, but floating-point zeros are all
// one and every NaN is different.
#include <algorithm>
#include <bit>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/elements.h"

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

// Numbers the different values of a vector in the order of their first occurrences.
template <class T>
class Values {
 public:
  explicit Values(const Tensor& x)
      : dtype_(x.dtype()),
        values_(elements<T>(x)),
        mask_(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(2 * x.num_elements(), 2))) - 1),
        table_(DType::kInt64, Shape({static_cast<int64_t>(mask_ + 1)})),
        firsts_(DType::kInt64, Shape({x.num_elements()})) {
    std::fill(slots(), slots() + mask_ + 1, int64_t{-1});
  }

  int64_t count() const { return count_; }
  // Where value number `number` occurs first.
  int64_t first(int64_t number) const { return firsts_.data<int64_t>()[number]; }

  // The number of element i's value. Elements come in order, each once.
  int64_t add(int64_t i) {
    const Key<T> key = key_of(dtype_, values_[i]);
    int64_t* const firsts = firsts_.data<int64_t>();
    if (key.nan) {
      firsts[count_] = i;
      return count_++;
    }
    int64_t& slot = slot_of(key);
    if (slot < 0) {
      slot = count_;
      firsts[count_++] = i;
    }
    return slot;
  }

  bool contains(const T& element) {
    const Key<T> key = key_of(dtype_, element);
    return !key.nan && slot_of(key) >= 0;
  }

 private:
  int64_t* slots() { return table_.data<int64_t>(); }
  // The slot of the value, or the free one where it belongs.
  int64_t& slot_of(const Key<T>& key) {
    uint64_t at = hash_of(key.value) & mask_;
    while (slots()[at] >= 0 && !same(key_of(dtype_, values_[first(slots()[at])]).value, key.value))
      at = (at + 1) & mask_;
    return slots()[at];
  }

  DType dtype_;
  const T* values_;
  uint64_t mask_;
  Tensor table_;
  Tensor firsts_;
  int64_t count_ = 0;
};

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
  Tensor places(DType::kInt64, Shape({n}));
  int64_t* const numbers = places.data<int64_t>();
  Values<T> values(x);
  for (int64_t i = 0; i < n; ++i) numbers[i] = values.add(i);
  const int64_t count = values.count();
  Tensor y(x.dtype(), Shape({count}));
  for (int64_t i = 0; i < count; ++i) elements<T>(y)[i] = elements<T>(x)[values.first(i)];
  c.set_output(0, std::move(y));
  c.set_output(1, narrowed(numbers, n, index));
  if (!with_counts) return;
  std::vector<int64_t> counts(static_cast<size_t>(count));
  for (int64_t i = 0; i < n; ++i) ++counts[static_cast<size_t>(numbers[i])];
  c.set_output(2, narrowed(counts.data(), count, index));
}

template <class T>
void list_difference(RunContext& c, DType index) {
  const Tensor& x = c.input(0);
  const Tensor& y = c.input(1);
  Values<T> removed(y);
  for (int64_t i = 0; i < y.num_elements(); ++i) removed.add(i);
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    if (!removed.contains(elements<T>(x)[i])) kept.push_back(i);
  }
  const auto count = static_cast<int64_t>(kept.size());
  Tensor out(x.dtype(), Shape({count}));
  for (int64_t i = 0; i < count; ++i)
    elements<T>(out)[i] = elements<T>(x)[kept[static_cast<size_t>(i)]];
  c.set_output(0, std::move(out));
  c.set_output(1, narrowed(kept.data(), count, index));
}

// run.operator()<T>(context) for elements of the type of x.
template <class F>
KernelPtr kernel_over_elements(const PrepareContext& p, const F& run) {
  const int64_t n = p.input_shape(0).num_elements();
  const double cost = 200 + 20.0 * static_cast<double>(n);
  return dispatch_element(p.input_type(0), [&]<class T>() -> KernelPtr {
    if constexpr (std::is_same_v<T, ResourceElement> || std::is_same_v<T, VariantElement>) {
      throw_dtype_not_handled(p.input_type(0));
    } else {
      return make_kernel([run](RunContext& c) { run.template operator()<T>(c); }, cost);
    }
  });
}

KernelPtr prepare_unique(const PrepareContext& p) {
  const DType index = p.output_type(1);
  const bool with_counts = p.op().num_outputs() == 3;
  return kernel_over_elements(p, [=]<class T>(RunContext& c) { unique<T>(c, index, with_counts); });
}

KernelPtr prepare_list_diff(const PrepareContext& p) {
  const DType index = p.output_type(1);
  return kernel_over_elements(p, [=]<class T>(RunContext& c) { list_difference<T>(c, index); });
}

}  // namespace

void register_unique_kernels(KernelRegistry& r) {
  r.add("Unique", {}, prepare_unique);
  r.add("UniqueWithCounts", {}, prepare_unique);
  r.add("ListDiff", {}, prepare_list_diff);
}

}  // namespace treenail::host
