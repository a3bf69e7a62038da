// SPDX-License-Identifier: Apache-2.0
// The kernels of TensorProduct, for both element types. The coefficients are computed once per
// kernel object: for one choice of degrees.
#include <cstdint>
#include <vector>

#include <treenail/op.hpp>

#include "clebsch_gordan.h"

using namespace tn::op;

namespace {

template <class T>
class TensorProductOp : public OpKernel {
 public:
  explicit TensorProductOp(OpKernelConstruction* context) : OpKernel(context) {
    int l1 = 0, l2 = 0, l = 0;
    TREENAIL_OP_REQUIRES_OK(context, context->GetAttr("l1", &l1));
    TREENAIL_OP_REQUIRES_OK(context, context->GetAttr("l2", &l2));
    TREENAIL_OP_REQUIRES_OK(context, context->GetAttr("L", &l));
    terms_ = so3::tensor_product_terms(l1, l2, l);
    width_ = 2 * l + 1;
  }

  void Compute(OpKernelContext* context) override {
    const Tensor x = context->input(0), y = context->input(1);
    TensorShape shape = x.shape();
    shape.set_dim(shape.dims() - 1, width_);
    Tensor* z = nullptr;
    TREENAIL_OP_REQUIRES_OK(context, context->allocate_output(0, shape, &z));
    const int64_t nx = x.dim_size(x.dims() - 1), ny = y.dim_size(y.dims() - 1), nz = width_;
    const T *xs = x.data<T>(), *ys = y.data<T>();
    T* zs = z->data<T>();
    const auto rows = [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t c = 0; c < nz; ++c) zs[row * nz + c] = 0;
        for (const so3::Term& term : terms_)
          zs[row * nz + term.c] +=
              static_cast<T>(term.coefficient) * xs[row * nx + term.a] * ys[row * ny + term.b];
      }
    };
    const auto cost = static_cast<double>(terms_.size());
    TREENAIL_OP_REQUIRES_OK(context, context->ParallelFor(z->NumElements() / nz, 256, cost, rows));
  }

 private:
  std::vector<so3::Term> terms_;
  int64_t width_ = 0;
};

}  // namespace

TREENAIL_REGISTER_KERNELS("TensorProduct", "T", TensorProductOp, float, double);
