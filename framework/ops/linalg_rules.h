// SPDX-License-Identifier: Apache-2.0
// Helpers of the shape rules and gradients of linear algebra, where the last two axes are matrices
// and those before them a batch.
#pragma once

#include <cstdint>

#include "framework/op/gradient.h"
#include "framework/op/shape_context.h"

namespace treenail {

// The attribute of all of linear algebra.
inline constexpr const char* kLinalgTypes = "T: {float, double, complex64, complex128}";

// The shape of input i. Errors: InvalidArgument unless its matrices are square.
PartialShape square_matrices(const ShapeContext& c, int i);

// The axes before the last `count`.
PartialShape batch_of(const PartialShape& shape, int count);

// Floating-point operations of n³ multiply-adds times `each`, for every n × n matrix.
double cubic_flops(const OpInstance& op, const Shape& matrices, double each);

// --- Gradients --------------------------------------------------------------------------------

Value matrix_product(Emitter& e, Value a, Value b, bool adjoint_a = false, bool adjoint_b = false);
Value triangular_solution(Emitter& e, Value matrix, Value rhs, bool lower, bool adjoint);
Value adjoint_of(Emitter& e, Value matrices);
// The diagonal, `below` diagonals below it and `above` above it; -1: all of them.
Value band_of(Emitter& e, Value matrices, int64_t below, int64_t above);
// The lower triangle without the diagonal.
Value strictly_lower(Emitter& e, Value matrices);
// The lower triangle with the diagonal halved: what is left of a Hermitian matrix when it is
// written as a sum of a lower triangle and its adjoint.
Value half_triangle(Emitter& e, Value matrices);
// Columns [begin, end), or all from `begin` on where `end` is invalid; int32 scalars.
Value columns_of(Emitter& e, Value matrices, Value begin, Value end);
// A factor for each column, or for each row.
Value scaled_columns(Emitter& e, Value matrices, Value factors);
Value scaled_rows(Emitter& e, Value matrices, Value factors);
// The last extent, an int32 scalar.
Value last_extent(Emitter& e, Value matrices);
// One factor for each matrix.
Value scaled_matrices(Emitter& e, Value factors, Value matrices);
Value halved(Emitter& e, Value x);
// 1 / (x[j] - x[i]), and 0 for equals: vectors of one eigenvalue, and of one singular value, are no
// function of the matrix. A function of the matrix that is put together of them again, v f(e) v^H,
// loses f'(e) among equal ones by it: such functions have rules of their own.
Value inverse_differences(Emitter& e, Value x);

}  // namespace treenail
