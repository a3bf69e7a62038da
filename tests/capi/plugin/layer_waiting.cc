// SPDX-License-Identifier: Apache-2.0
// Asynchronous ops by the C++ layer. Of what kernel there is the op is: nothing is flagged.
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "treenail/op.hpp"

namespace {

using namespace tn::op;  // NOLINT(google-build-using-namespace)

// Another thread adds one, after some milliseconds.
class LaterOp : public AsyncOpKernel {
 public:
  explicit LaterOp(OpKernelConstruction* context) : AsyncOpKernel(context) {
    TREENAIL_OP_REQUIRES_OK(context, context->GetAttr("how", &how_));
  }
  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    TREENAIL_OP_REQUIRES_ASYNC(context, how_ != "refuse", errors::Unavailable("not today"), done);
    if (how_ == "throw") throw std::runtime_error("it broke while it began");
    if (how_ == "forget") return;
    if (how_ == "until cancelled") {
      const bool kept = context->OnCancel([context, done] {
        context->SetStatus(errors::Cancelled("the wait was cancelled"));
        done();
      });
      TREENAIL_OP_REQUIRES_ASYNC(context, kept, errors::Cancelled("cancelled before"), done);
      return;
    }
    if (how_ == "at once") return Finish(context, done);
    std::thread([this, context, done = std::move(done)] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      Finish(context, done);
    }).detach();
  }

 private:
  void Finish(OpKernelContext* context, const DoneCallback& done) const {
    if (how_ == "nothing") return done();
    const Tensor x = context->input(0);
    Tensor* y = nullptr;
    TREENAIL_OP_REQUIRES_OK_ASYNC(context, context->allocate_output(0, x.shape(), &y), done);
    for (int64_t i = 0; i < x.NumElements(); ++i) y->flat<float>()(i) = x.flat<float>()(i) + 1;
    const bool twice = how_ == "twice";  // after done() the kernel may be gone
    done();
    if (twice) done();
  }
  std::string how_;
};

TREENAIL_REGISTER_OP("LayerLater")
    .Input("x: float")
    .Output("y: float")
    .Attr("how: string = 'later'")
    .NotDifferentiable()
    .SetIsStateful()
    .SetShapeFn(shape_fn::UnchangedShape);
TREENAIL_REGISTER_KERNEL_BUILDER(Name("LayerLater").Device(DEVICE_CPU), LaterOp);

}  // namespace
