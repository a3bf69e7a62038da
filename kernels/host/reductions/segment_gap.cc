// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/reductions/segment_gap.h"

#include <bit>
#include <complex>
#include <limits>

namespace treenail::host {
namespace {

template <class T>
T value_of_gap(SegmentReduction what, bool sorted) {
  if (what == SegmentReduction::kProduct) return T(1);
  if (sorted || (what != SegmentReduction::kMaximum && what != SegmentReduction::kMinimum))
    return T(0);
  return what == SegmentReduction::kMaximum ? std::numeric_limits<T>::lowest()
                                            : std::numeric_limits<T>::max();
}

}  // namespace

Tensor segment_gap(SegmentReduction what, bool sorted, DType dtype) {
  switch (dtype) {
    case DType::kComplex64:
      return Tensor::scalar(std::complex<float>(value_of_gap<float>(what, sorted)));
    case DType::kComplex128:
      return Tensor::scalar(std::complex<double>(value_of_gap<double>(what, sorted)));
    case DType::kFloat16: {
      const bool bound =
          !sorted && (what == SegmentReduction::kMaximum || what == SegmentReduction::kMinimum);
      const float finite = what == SegmentReduction::kMaximum ? -65504.0F : 65504.0F;
      return Tensor::scalar(Float16(bound ? finite : value_of_gap<float>(what, sorted)));
    }
    case DType::kBFloat16: {
      Tensor value = Tensor::zeros(dtype, Shape());
      // Cut, not rounded: the largest float would round to infinity.
      value.data<BFloat16>()->bits =
          static_cast<uint16_t>(std::bit_cast<uint32_t>(value_of_gap<float>(what, sorted)) >> 16);
      return value;
    }
    default:
      break;
  }
  return dispatch<float, double, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t,
                  uint64_t>(
      dtype, [&]<class T>() { return Tensor::scalar<T>(value_of_gap<T>(what, sorted)); });
}

}  // namespace treenail::host
