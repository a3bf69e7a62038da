// SPDX-License-Identifier: Apache-2.0
// Arrays of float16 and bfloat16 to float and back, rounding to nearest even. The scalar reference
// is framework/tensor/half.h; the case tests compare all 65,536 values.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/tensor/dtype.h"
#include "framework/tensor/half.h"

namespace treenail::cpu {

void widen(const BFloat16* from, float* to, int64_t n);
void widen(const Float16* from, float* to, int64_t n);
void narrow(const float* from, BFloat16* to, int64_t n);
void narrow(const float* from, Float16* to, int64_t n);

constexpr bool is_half(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}
// The same for elements from `at` on of an array of either dtype, told apart at run time.
void widen(DType dtype, const void* from, int64_t at, int64_t n, float* to);
void narrow(DType dtype, const float* from, int64_t n, void* to, int64_t at);

// The dtypes that are computed in C, float or double.
template <class C>
std::vector<DType> stored_types() {
  if constexpr (sizeof(C) == sizeof(float)) {
    return {DType::kFloat32, DType::kFloat16, DType::kBFloat16};
  } else {
    return {DType::kFloat64};
  }
}

}  // namespace treenail::cpu
