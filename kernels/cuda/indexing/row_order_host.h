// SPDX-License-Identifier: Apache-2.0
// What indices choose, in the order of the rows that are chosen: equal ones are neighbours, in
// their own order, so that a group of threads takes them one after the other and every run, and
// every GPU, gives the CPU's bits.
#pragma once

#include <cstdint>

#include "framework/op/index_check.h"
#include "framework/runtime/kernel/queued_kernel.h"
#include "framework/tensor/tensor.h"
#include "kernels/cuda/driver/fault_word.h"
#include "kernels/cuda/indexing/places.h"
#include "kernels/cuda/indexing/row_runs.h"
#include "kernels/cuda/sorting/radix_host.h"

namespace treenail::cuda {

// Of indices [..., depth] into the first `depth` axes of `target`.
gpu::Places places_in(const Shape& target, const Shape& indices);
// Of indices of any shape into the first axis.
gpu::Places rows_in(int64_t rows, const Shape& indices);

// Row numbers in ascending order, for kernels.
struct OrderedRows {
  gpu::RowRuns runs;
  const void* keys;                 // the numbers
  const uint32_t* positions;        // the index of each; null: its own place
  const unsigned long long* fault;  // null: there is none
};

class RowOrder {
 public:
  // Queued. Kernels that are queued afterwards do nothing where the fault word tells of a fault.
  RowOrder(CudaDevice& device, const gpu::Places& places, const Tensor& indices);

  const FaultWord& fault() const { return fault_; }
  gpu::RowRuns runs() const;
  OrderedRows rows() const { return {runs(), keys(), positions(), fault_.word()}; }
  const void* keys() const { return sorted_.keys.raw(); }
  const uint32_t* positions() const { return sorted_.positions.data<uint32_t>(); }

 private:
  gpu::Places places_;
  FaultWord fault_;
  SortedRows sorted_;
};

// Queued, after the kernels: fails the run where an index was at fault, in the CPU's words.
template <class Fail>
void report_bad_row(const FaultWord& fault, const Tensor& indices, int64_t limit,
                    const Fail& failure, const char* name = "indices") {
  fault.report(indices.raw(), indices.dtype(), failure,
               [shape = indices.shape(), limit, name](int64_t place, int64_t value) {
                 throw_bad_index(name, shape, place, value, limit);
               });
}
void report_bad_place(const FaultWord& fault, const Tensor& indices, const Shape& target,
                      Failure failure);

}  // namespace treenail::cuda
