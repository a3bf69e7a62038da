// SPDX-License-Identifier: Apache-2.0
// What a GPU computes of complex numbers, element by element: ROW(op).
#pragma once

#define TN_COMPLEX_BINARY_OPS(ROW) \
  ROW(Add) ROW(Sub) ROW(Mul) ROW(Div) ROW(RealDiv) ROW(DivNoNan) ROW(MulNoNan)
#define TN_COMPLEX_UNARY_OPS(ROW) ROW(Neg) ROW(Conj) ROW(Square) ROW(Reciprocal)
// To real numbers, and to truth values.
#define TN_COMPLEX_PART_OPS(ROW) ROW(Real) ROW(Imag) ROW(ComplexAbs) ROW(Angle)
#define TN_COMPLEX_QUESTION_OPS(ROW) ROW(Equal) ROW(NotEqual)
