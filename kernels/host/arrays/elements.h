// SPDX-License-Identifier: Apache-2.0
// Elements as data movement sees them: plain ones are 1, 2, 4, 8 or 16 bytes, whatever they mean;
// strings, resources and variants are counted pointers, copied by assignment.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/resource.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/tensor.h"
#include "framework/tensor/variant.h"

namespace treenail::host {

struct Bits128 {
  uint64_t low = 0;
  uint64_t high = 0;
};

// Calls f.template operator()<T>() with the type that stands for an element of `dtype` when it is
// only moved.
template <class F>
decltype(auto) dispatch_element(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kString:
      return f.template operator()<StringElement>();
    case DType::kResource:
      return f.template operator()<ResourceElement>();
    case DType::kVariant:
      return f.template operator()<VariantElement>();
    default:
      break;
  }
  switch (dtype_size(dtype)) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    case 16:
      return f.template operator()<Bits128>();
    default:
      throw_dtype_not_handled(dtype);
  }
}

template <class T>
inline constexpr bool is_plain_element = std::is_trivially_copyable_v<T>;

// Not Tensor::data(): T only has the size of an element.
template <class T>
const T* elements(const Tensor& tensor) {
  return static_cast<const T*>(tensor.raw());
}
template <class T>
T* elements(Tensor& tensor) {
  return static_cast<T*>(tensor.raw());
}

// The number by which an element is compared: halves have no order of their own.
template <class T>
auto comparable(T x) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return static_cast<float>(x);
  } else {
    return x;
  }
}

template <class T>
void copy_elements(T* to, const T* from, int64_t n) {
  if constexpr (is_plain_element<T>) {
    std::memcpy(static_cast<void*>(to), from, static_cast<size_t>(n) * sizeof(T));
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  }
}

template <class T>
void fill_elements(T* to, const T& value, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = value;
}

// Bytes one piece of parallel data movement handles: small enough to share out, large enough to pay
// for a claim.
inline constexpr int64_t kMoveBytes = int64_t{128} << 10;
template <class T>
inline constexpr int64_t kMoveGrain = kMoveBytes / static_cast<int64_t>(sizeof(T));
// About 10 GB/s of one thread; counted elements cost two atomic operations each.
template <class T>
inline constexpr double kMoveCost = is_plain_element<T> ? 0.1 * static_cast<double>(sizeof(T))
                                                        : 10.0;

}  // namespace treenail::host
