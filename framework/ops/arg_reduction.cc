// SPDX-License-Identifier: Apache-2.0
// Where the extrema along one axis are. The extrema themselves: reduction.cc. Kernels:
// kernels/host/reductions/arg_reduction.cc.
#include <string>

#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"

namespace treenail {
namespace {

void arg_shape(ShapeContext& c) {
  const PartialShape input = c.with_rank_at_least(0, 1);
  c.with_rank(1, 0);
  if (!input.rank_known()) return c.set_output(0, PartialShape());
  const PartialValue* axis = c.value(1);
  if (axis == nullptr || !axis->fully_known()) {
    return c.set_output(0, PartialShape::unknown_with_rank(input.rank() - 1));
  }
  const int i =
      static_cast<int>(ShapeContext::checked_axis(*axis->elements[0], input.rank(), "dimension"));
  const PartialShape output = input.removed(i);
  if (input.dim(i) == 0 && output.num_elements() != 0) {
    throw invalid_argument("dimension ", i, " of ", input, " has no elements to choose from");
  }
  check_positions_fit(c.op().output_type(0), input.dim(i), "the axis to choose along");
  c.set_output(0, output);
}

void arg_op(OpRegistry& r, const char* name, const std::string& which) {
  r.op(name, HostAccess::kNone)
      .input("input: T")
      .input("dimension: Tidx")
      .output("output: output_type")
      .attr("T: {realnumbertype, bool}")
      .attr("Tidx: {int32, int64} = int32")
      .attr("output_type: {int32, int64} = int64")
      .host("dimension")
      .shape(arg_shape)
      .not_differentiable()
      .doc("Index of the " + which +
           " element along one axis, the first one of equals; of the first NaN where there is "
           "one.\n\n"
           "dimension: a scalar in [-rank, rank); that axis is removed from the shape. Errors: "
           "InvalidArgument for an axis out "
           "of range, without elements, or of more than output_type can number.");
}

}  // namespace

void register_arg_reduction_ops(OpRegistry& r) {
  arg_op(r, "ArgMax", "largest");
  arg_op(r, "ArgMin", "smallest");
  r.finish("arg_reduction");
}

}  // namespace treenail
