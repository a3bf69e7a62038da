// SPDX-License-Identifier: Apache-2.0
// What has one kernel where dtypes are added alike.
#pragma once

#include "framework/tensor/dtype.h"

namespace treenail::cuda {

// An element is added as `numbers` ones of `dtype`: integers wrap alike whatever their sign, so
// that unsigned ones stand for them (products of integers as well), complex numbers add as their
// parts do.
struct AddedAs {
  DType dtype;
  int numbers;
};
constexpr AddedAs added_as(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
      return {DType::kUInt8, 1};
    case DType::kInt16:
      return {DType::kUInt16, 1};
    case DType::kInt32:
      return {DType::kUInt32, 1};
    case DType::kInt64:
      return {DType::kUInt64, 1};
    case DType::kComplex64:
      return {DType::kFloat32, 2};
    case DType::kComplex128:
      return {DType::kFloat64, 2};
    default:
      return {dtype, 1};
  }
}

}  // namespace treenail::cuda
