// SPDX-License-Identifier: Apache-2.0
// What the matrices in lanes may be of.
#pragma once

#include <complex>

#include "framework/tensor/dtype.h"

namespace treenail::cpu {

// f.operator()<T>(dtype) for each dtype of matrices and its T.
template <class F>
void for_lane_types(const F& f) {
  f.template operator()<float>(DType::kFloat32);
  f.template operator()<double>(DType::kFloat64);
  f.template operator()<std::complex<float>>(DType::kComplex64);
  f.template operator()<std::complex<double>>(DType::kComplex128);
}

}  // namespace treenail::cpu
