// SPDX-License-Identifier: Apache-2.0
// Matrix products: MatMul on matrices, BatchMatMul on stacks of them with broadcasting.
// SparseMatMul is a product of two dtypes. How they are computed: kernels/cpu/products/matmul.cc
// (floating), matmul_plain.cc (integers, complex), sparse_matmul.cc.
#include <cstdint>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/tensor/shape.h"

namespace treenail {
namespace {

constexpr const char* kNumbers =
    "T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
    "complex64, complex128}";

const char* flag_text(bool transposed, const char* word) { return transposed ? word : ""; }

void check_inner(const PartialShape& a, int64_t a_inner, bool trans_a, const PartialShape& b,
                 int64_t b_inner, bool trans_b, const char* name_a, const char* name_b) {
  if (a_inner == kUnknown || b_inner == kUnknown || a_inner == b_inner) return;
  throw invalid_argument("inner dimensions differ: ", name_a, " is ", a,
                         flag_text(trans_a, " (transposed)"), ", ", name_b, " is ", b,
                         flag_text(trans_b, " (transposed)"));
}

void matmul_shape(ShapeContext& c) {
  const PartialShape a = c.with_rank(0, 2), b = c.with_rank(1, 2);
  const bool trans_a = c.op().get_bool("transpose_a"), trans_b = c.op().get_bool("transpose_b");
  check_inner(a, a.dim(trans_a ? 0 : 1), trans_a, b, b.dim(trans_b ? 1 : 0), trans_b, "a", "b");
  c.set_output(0, PartialShape({a.dim(trans_a ? 1 : 0), b.dim(trans_b ? 0 : 1)}));
}

// The four products of a gradient differ in order and flags only. `op` takes x, y and two flags
// named as given.
struct ProductRule {
  Emitter& e;
  const char* op;
  const char* flag_x;
  const char* flag_y;
  Value operator()(Value x, Value y, bool tx, bool ty) const {
    return e.call(op, {x, y}, {{flag_x, tx}, {flag_y, ty}});
  }
};

void product_gradient(GradientContext& c, const ProductRule& product, Value x, Value y, bool tx,
                      bool ty, Value& gx, Value& gy) {
  const Value g = c.gradient();
  if (c.needed(0)) {
    if (tx) {
      gx = product(y, g, ty, true);
    } else {
      gx = product(g, y, false, !ty);
    }
  }
  if (c.needed(1)) {
    if (ty) {
      gy = product(g, x, true, tx);
    } else {
      gy = product(x, g, !tx, false);
    }
  }
}

void matmul_gradient(GradientContext& c) {
  // transpose_* does not conjugate, so the operands are conjugated here; conj() is the identity for
  // real dtypes.
  Value gx, gy;
  product_gradient(c, {c.e, "MatMul", "transpose_a", "transpose_b"},
                   c.needed(1) ? c.e.conj(c.input(0)) : Value(),
                   c.needed(0) ? c.e.conj(c.input(1)) : Value(), c.op().get_bool("transpose_a"),
                   c.op().get_bool("transpose_b"), gx, gy);
  if (c.needed(0)) c.set(0, gx);
  if (c.needed(1)) c.set(1, gy);
}

// As MatMul's, in float.
void sparse_matmul_gradient(GradientContext& c) {
  Value gx, gy;
  const auto wide = [&](int i) { return c.e.cast(c.input(i), DType::kFloat32); };
  product_gradient(c, {c.e, "MatMul", "transpose_a", "transpose_b"},
                   c.needed(1) ? wide(0) : Value(), c.needed(0) ? wide(1) : Value(),
                   c.op().get_bool("transpose_a"), c.op().get_bool("transpose_b"), gx, gy);
  if (c.needed(0)) c.set(0, c.e.cast(gx, c.input_dtype(0)));
  if (c.needed(1)) c.set(1, c.e.cast(gy, c.input_dtype(1)));
}

void batch_matmul_shape(ShapeContext& c) {
  const PartialShape x = c.with_rank_at_least(0, 2), y = c.with_rank_at_least(1, 2);
  if (!x.rank_known() || !y.rank_known()) {
    c.set_output(0, PartialShape());
    return;
  }
  const bool adj_x = c.op().get_bool("adj_x"), adj_y = c.op().get_bool("adj_y");
  const int rx = x.rank(), ry = y.rank();
  check_inner(x, x.dim(rx - (adj_x ? 2 : 1)), adj_x, y, y.dim(ry - (adj_y ? 1 : 2)), adj_y, "x",
              "y");
  const PartialShape batch = ShapeContext::broadcast(x.sub(0, rx - 2), y.sub(0, ry - 2));
  c.set_output(0, batch.concatenated(
                      PartialShape({x.dim(rx - (adj_x ? 1 : 2)), y.dim(ry - (adj_y ? 2 : 1))})));
}

void batch_matmul_gradient(GradientContext& c) {
  Value gx, gy;
  product_gradient(c, {c.e, "BatchMatMul", "adj_x", "adj_y"}, c.input(0), c.input(1),
                   c.op().get_bool("adj_x"), c.op().get_bool("adj_y"), gx, gy);
  if (c.needed(0)) c.set(0, c.sum_to_input(gx, 0));
  if (c.needed(1)) c.set(1, c.sum_to_input(gy, 1));
}

// A product sums `inner` terms for each element of the output.
double product_flops(const OpInstance& op, int64_t inner, const Shape& output) {
  return (is_complex(op.output_type(0)) ? 8.0 : 2.0) * static_cast<double>(inner) *
         static_cast<double>(output.num_elements());
}

double matmul_flops(const OpInstance& op, std::span<const Shape> inputs,
                    std::span<const Shape> outputs) {
  return product_flops(op, inputs[0].dim(op.get_bool("transpose_a") ? 0 : 1), outputs[0]);
}

double batch_matmul_flops(const OpInstance& op, std::span<const Shape> inputs,
                          std::span<const Shape> outputs) {
  const int axis = inputs[0].rank() - (op.get_bool("adj_x") ? 2 : 1);
  return product_flops(op, inputs[0].dim(axis), outputs[0]);
}

}  // namespace

void register_matmul_ops(OpRegistry& r) {
  r.op("MatMul", HostAccess::kNone)
      .input("a: T")
      .input("b: T")
      .output("product: T")
      .attr("transpose_a: bool = false")
      .attr("transpose_b: bool = false")
      .attr(kNumbers)
      .shape(matmul_shape)
      .flops(matmul_flops)
      .gradient(matmul_gradient, {"a", "b"})
      .doc(R"(Multiplies two matrices.

a is [m, k] and b is [k, n]; with transpose_a (transpose_b) the operand is given as [k, m] ([n, k]) and transposed
first, without conjugation. The product is [m, n]; where k is 0 it is zero. float16 and bfloat16 are summed in float32,
integers wrap around.
Errors: InvalidArgument for another rank than 2 or differing inner dimensions.)");

  r.op("SparseMatMul", HostAccess::kNone)
      .input("a: Ta")
      .input("b: Tb")
      .output("product: float")
      .attr("transpose_a: bool = false")
      .attr("transpose_b: bool = false")
      .attr("a_is_sparse: bool = false")
      .attr("b_is_sparse: bool = false")
      .attr("Ta: {float, bfloat16} = float")
      .attr("Tb: {float, bfloat16} = float")
      .shape(matmul_shape)
      .flops(matmul_flops)
      .gradient(sparse_matmul_gradient, {"a", "b"})
      .doc(R"(Multiplies two dense matrices, float or bfloat16 each, in float.

a is [m, k] and b is [k, n]; with transpose_a (transpose_b) the operand is given as [k, m] ([n, k]). The product is [m, n].
a_is_sparse and b_is_sparse say that many elements are zero. The result does not depend on them: here the product of dense
matrices is the faster one until nearly all elements are zero.
Errors: InvalidArgument for another rank than 2 or differing inner dimensions.)");

  r.op("BatchMatMul", HostAccess::kNone)
      .input("x: T")
      .input("y: T")
      .output("output: T")
      .attr("adj_x: bool = false")
      .attr("adj_y: bool = false")
      .attr(kNumbers)
      .shape(batch_matmul_shape)
      .flops(batch_matmul_flops)
      .gradient(batch_matmul_gradient, {"x", "y"})
      .doc(R"(Multiplies stacks of matrices, slice by slice.

x is [..., m, k], y is [..., k, n], the output [..., m, n]; the leading dimensions broadcast. With adj_x (adj_y) each
matrix of that operand is replaced by its adjoint: transposed and, if complex, conjugated. Integers wrap around.
Errors: InvalidArgument for a rank below 2, differing inner dimensions, or leading dimensions that do not broadcast.)");

  r.finish("matmul");
}

}  // namespace treenail
