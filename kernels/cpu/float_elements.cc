// SPDX-License-Identifier: Apache-2.0
// The readers and writers of float_elements.h.
#include "kernels/cpu/float_elements.h"

#include <type_traits>

#include "framework/tensor/tensor.h"
#include "kernels/cpu/half_tiles.h"

namespace treenail::cpu {
namespace {

template <class T>
void read_as_float(const void* from, int64_t at, int64_t n, float* to) {
  const T* elements = static_cast<const T*>(from) + at;
  if constexpr (std::is_arithmetic_v<T>) {
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(elements[i]);
  } else {
    widen(elements, to, n);
  }
}

template <class T>
void write_from_float(const float* from, int64_t n, void* to, int64_t at) {
  T* elements = static_cast<T*>(to) + at;
  if constexpr (std::is_arithmetic_v<T>) {
    for (int64_t i = 0; i < n; ++i) elements[i] = static_cast<T>(from[i]);
  } else {
    narrow(from, elements, n);
  }
}

}  // namespace

FloatReader float_reader(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return read_as_float<int8_t>;
    case DType::kUInt8:
      return read_as_float<uint8_t>;
    case DType::kInt16:
      return read_as_float<int16_t>;
    case DType::kUInt16:
      return read_as_float<uint16_t>;
    case DType::kInt32:
      return read_as_float<int32_t>;
    case DType::kInt64:
      return read_as_float<int64_t>;
    case DType::kFloat16:
      return read_as_float<Float16>;
    case DType::kBFloat16:
      return read_as_float<BFloat16>;
    case DType::kFloat32:
      return read_as_float<float>;
    case DType::kFloat64:
      return read_as_float<double>;
    default:
      throw_dtype_not_handled(dtype);
  }
}

FloatWriter float_writer(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return write_from_float<Float16>;
    case DType::kBFloat16:
      return write_from_float<BFloat16>;
    case DType::kFloat32:
      return write_from_float<float>;
    case DType::kFloat64:
      return write_from_float<double>;
    default:
      throw_dtype_not_handled(dtype);
  }
}

}  // namespace treenail::cpu
