// SPDX-License-Identifier: Apache-2.0
// The readers and writers of float_elements.h.
#include "kernels/cpu/elementwise/float_elements.h"

#include <type_traits>

#include "framework/tensor/tensor.h"
#include "kernels/cpu/elementwise/half_tiles.h"

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
  return dispatch<int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t, Float16, BFloat16, float,
                  double>(dtype, []<class T>() -> FloatReader { return read_as_float<T>; });
}

FloatWriter float_writer(DType dtype) {
  return dispatch<Float16, BFloat16, float, double>(
      dtype, []<class T>() -> FloatWriter { return write_from_float<T>; });
}

}  // namespace treenail::cpu
