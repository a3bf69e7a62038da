// SPDX-License-Identifier: Apache-2.0
// What indices choose, in the order of the rows that are chosen: equal ones are neighbours, in
// their own order, so that a group of threads takes them one after the other and every run, and
// every GPU, gives the CPU's bits.
#pragma once

#include <cstdint>

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

class RowOrder {
 public:
  // Queued. Kernels that are queued afterwards do nothing where the fault word tells of a fault.
  RowOrder(CudaDevice& device, const gpu::Places& places, const Tensor& indices);

  const FaultWord& fault() const { return fault_; }
  gpu::RowRuns runs() const;
  const void* keys() const { return sorted_.keys.raw(); }
  const uint32_t* positions() const { return sorted_.positions.data<uint32_t>(); }

 private:
  gpu::Places places_;
  FaultWord fault_;
  SortedRows sorted_;
};

// Queued, after the kernels: fails the run where an index was at fault, in the CPU's words.
void report_bad_row(const FaultWord& fault, const Tensor& indices, int64_t limit, Failure failure,
                    const char* name = "indices");
void report_bad_place(const FaultWord& fault, const Tensor& indices, const Shape& target,
                      Failure failure);

}  // namespace treenail::cuda
