// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/indexing/row_order_host.h"

#include <bit>
#include <span>

#include "kernels/cuda/driver/kernels.h"

namespace treenail::cuda {
namespace {

using gpu::Places;

constinit const GpuFunction kNumbers32_32("row_numbers_int32_uint32"),
    kNumbers32_64("row_numbers_int32_uint64"), kNumbers64_32("row_numbers_int64_uint32"),
    kNumbers64_64("row_numbers_int64_uint64");

template <class Index, class Key>
void launch_numbers(CudaDevice& device, const GpuFunction& function, const Places& places,
                    const Tensor& indices, Tensor& numbers, const FaultWord& fault) {
  function.launch(device, grid_for(device, places.n), places, indices.data<Index>(),
                  numbers.data<Key>(), fault.word());
}

Tensor row_numbers(CudaDevice& device, const Places& places, const Tensor& indices,
                   const FaultWord& fault) {
  const bool wide = places.rows > int64_t{0xffffffff},
             long_index = indices.dtype() == DType::kInt64;
  Tensor numbers(wide ? DType::kUInt64 : DType::kUInt32, Shape({1, places.n}), &device);
  if (long_index && wide) {
    launch_numbers<int64_t, uint64_t>(device, kNumbers64_64, places, indices, numbers, fault);
  } else if (long_index) {
    launch_numbers<int64_t, uint32_t>(device, kNumbers64_32, places, indices, numbers, fault);
  } else if (wide) {
    launch_numbers<int32_t, uint64_t>(device, kNumbers32_64, places, indices, numbers, fault);
  } else {
    launch_numbers<int32_t, uint32_t>(device, kNumbers32_32, places, indices, numbers, fault);
  }
  return numbers;
}

}  // namespace

Places places_in(const Shape& target, const Shape& indices) {
  static_assert(gpu::kMaxDepth == kMaxRank);
  const int outer = indices.rank() - 1, depth = static_cast<int>(indices.dim(outer));
  Places places = {
      indices.sub(0, outer).num_elements(), target.sub(0, depth).num_elements(), depth, 0, {}};
  for (int k = 0; k < depth; ++k) places.limits[k] = target.dim(k);
  return places;
}

Places rows_in(int64_t rows, const Shape& indices) {
  return {indices.num_elements(), rows, 1, 0, {rows}};
}

RowOrder::RowOrder(CudaDevice& device, const Places& places, const Tensor& indices)
    : places_(places),
      fault_(device),
      sorted_(sort_rows(device, row_numbers(device, places, indices, fault_),
                        std::bit_width(static_cast<uint64_t>(places.rows)))) {}

gpu::RowRuns RowOrder::runs() const {
  return {places_.n, places_.rows, sorted_.keys.dtype() == DType::kUInt64 ? 1 : 0, 1};
}

void report_bad_place(const FaultWord& fault, const Tensor& indices, const Shape& target,
                      Failure failure) {
  const Shape shape = indices.shape();
  const auto depth = static_cast<size_t>(shape.dim(shape.rank() - 1));
  fault.report_row(indices.raw(), indices.dtype(), static_cast<int>(depth), failure,
                   [shape, depth, target](int64_t place, const int64_t* row) {
                     throw_bad_place(shape, place, std::span(row, depth), target);
                   });
}

}  // namespace treenail::cuda
