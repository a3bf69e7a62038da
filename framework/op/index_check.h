// SPDX-License-Identifier: Apache-2.0
// Indices are values: kernels check them, all alike, and name the first bad one.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "framework/tensor/shape.h"
#include "framework/tensor/tensor.h"

namespace treenail {

// Errors: InvalidArgument "indices[1,0] = 7 is not in [0, 3)"; `flat` is the place in a tensor of
// that shape.
[[noreturn]] void throw_bad_index(std::string_view name, const Shape& shape, int64_t flat,
                                  int64_t index, int64_t limit);

// Errors: InvalidArgument "indices[1] = [7, 0] does not index into param shape [3,4]"; index number
// `flat` of multi-dimensional ones of that shape.
[[noreturn]] void throw_bad_place(const Shape& indices, int64_t flat,
                                  std::span<const int64_t> index, const Shape& params);

// Errors: as throw_bad_index() for the first index outside [0, limit). `indices`: int32 or int64 of
// any shape.
void check_indices(std::string_view name, const Tensor& indices, int64_t limit);

// Multi-dimensional indices, [..., depth], into the first `depth` axes of `params`: rows[i] is the
// flat number of index i over those axes. Errors: as throw_bad_place().
void flatten_indices(const Tensor& indices, const Shape& params, int64_t* rows);

// Updates of rows: updates.shape = indices.shape + target.shape[1:], or a scalar. Errors:
// InvalidArgument.
void check_row_updates(const Shape& target, const Shape& indices, const Shape& updates);
// Updates at multi-dimensional indices: updates.shape = indices.shape[:-1] +
// target.shape[indices.shape[-1]:]. Errors: InvalidArgument.
void check_nd_updates(const Shape& target, const Shape& indices, const Shape& updates);

}  // namespace treenail
