// SPDX-License-Identifier: Apache-2.0
// Ops and kernels of one's own in C++17, in TensorFlow's style, over plugin.h: header only, so a
// plugin links nothing of Treenail and nothing of C++ crosses its border. docs/custom-ops.md is the
// guide.
//
//   using namespace tn::op;
//   TREENAIL_REGISTER_OP("Twice").Input("x: T").Output("y: T").Attr("T: {float, double}")
//       .SetShapeFn(shape_fn::UnchangedShape).NotDifferentiable();
//   template <class T>
//   class TwiceOp : public OpKernel {
//    public:
//     using OpKernel::OpKernel;
//     void Compute(OpKernelContext* context) override {
//       const Tensor x = context->input(0);
//       Tensor* y = nullptr;
//       TREENAIL_OP_REQUIRES_OK(context, context->allocate_output(0, x.shape(), &y));
//       for (int64_t i = 0; i < x.NumElements(); ++i) y->flat<T>()(i) = 2 * x.flat<T>()(i);
//     }
//   };
//   TREENAIL_REGISTER_KERNELS("Twice", "T", TwiceOp, float, double);
//   TREENAIL_PLUGIN("twice", "1.0");
#ifndef TREENAIL_OP_HPP_
#define TREENAIL_OP_HPP_

#include "treenail/op/async_kernel.hpp"
#include "treenail/op/attributes.hpp"
#include "treenail/op/gradient.hpp"
#include "treenail/op/kernel.hpp"
#include "treenail/op/registration.hpp"
#include "treenail/op/shape.hpp"
#include "treenail/op/status.hpp"
#include "treenail/op/tensor.hpp"
#include "treenail/op/types.hpp"

#endif  // TREENAIL_OP_HPP_
