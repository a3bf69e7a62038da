// SPDX-License-Identifier: Apache-2.0
// Rows of updates into rows of a target, on a GPU. Queued; nothing is done where the order's fault
// word tells of a fault.
#pragma once

#include <string_view>
#include <vector>

#include "framework/tensor/tensor.h"
#include "kernels/cuda/driver/device.h"
#include "kernels/cuda/indexing/row_order_host.h"

namespace treenail::cuda {

// An operation of row_merge.h: "Add", "Subtract", "Multiply", "Minimum", "Maximum"; onto nothing
// also "Mean", and "SqrtN", a sum that is divided by the square root of the number of its rows.
// On which it works.
std::vector<DType> merge_types(std::string_view operation);

// row r of target = itself op the rows of updates that choose it, one after the other, where they
// go `onto` it; else those alone, computed in float where they are half types. Updates of rank 0
// stand for all rows.
void merge_rows(CudaDevice& device, const OrderedRows& order, std::string_view operation, bool onto,
                const Tensor& updates, Tensor& target);
// The last row of updates that chooses it.
void put_rows(CudaDevice& device, const OrderedRows& order, const Tensor& updates, Tensor& target);

}  // namespace treenail::cuda
