// SPDX-License-Identifier: Apache-2.0
// A plugin by the C++ layer that is wrong in the way the environment variable BROKEN_LAYER names,
// beside an op that is right: nothing of it may stay.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "treenail/op.hpp"

namespace {

using namespace tn::op;  // NOLINT(google-build-using-namespace)

std::string how() {
  const char* text = std::getenv("BROKEN_LAYER");
  return text == nullptr ? "" : text;
}

class NothingOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext*) override {}
};
class WaitingNothingOp : public AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;
  void ComputeAsync(OpKernelContext*, DoneCallback done) override { done(); }
};

OpDefBuilder wrong_op(const char* name = "LayerWrong") {
  OpDefBuilder op(name);
  op.Input("x: T").Output("y: T").Attr(how() == "grammar" ? "T: {float" : "T: {float, double}");
  if (how() != "no shape rule") op.SetShapeFn(shape_fn::UnchangedShape);
  if (how() != "no gradient") op.NotDifferentiable();
  if (how() == "reads what is not there")
    op.SetGradientFn([](GradientContext*) { return Status(); }, {"z"});
  return op;
}

Name wrong_kernel() {
  Name kernel(how() == "unknown op" ? "LayerNowhere" : "LayerWrong");
  if (how() == "constrains no type") kernel.TypeConstraint<float>("S");
  if (how() == "not declared") kernel.TypeConstraint("T", {DT_INVALID});
  return kernel;
}

TREENAIL_REGISTER_OP("LayerRight")
    .Input("x: float")
    .Output("y: float")
    .NotDifferentiable()
    .SetShapeFn(shape_fn::UnchangedShape);
TREENAIL_REGISTER_KERNEL_BUILDER(Name("LayerRight"), NothingOp);
const detail::RegisteredOp registered_op = wrong_op();
const detail::RegisteredKernel<NothingOp> registered_kernel(wrong_kernel());
[[maybe_unused]] const bool more = [] {
  if (how() == "waits and computes")
    (void)detail::RegisteredKernel<WaitingNothingOp>(Name("LayerRight"));
  if (how() == "op twice") (void)detail::RegisteredOp(wrong_op("LayerRight"));
  return true;
}();

}  // namespace

TREENAIL_PLUGIN("layer-broken", "1.0");
