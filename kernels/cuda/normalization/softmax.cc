// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax and the cross entropies.
#include <cstdint>
#include <memory>

#include "framework/base/error.h"
#include "kernels/cuda/driver/fault_word.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"

namespace treenail::cuda {
namespace {

// Rows of n elements along the last axis.
struct Rows {
  int64_t rows, n;
  int lanes;
  explicit Rows(const Shape& shape)
      : rows(shape.sub(0, shape.rank() - 1).num_elements()),
        n(shape.dim(shape.rank() - 1)),
        lanes(lanes_for(n, 4)) {}
  Grid grid(const CudaDevice& device) const { return grid_for(device, rows * lanes); }
};

template <class T>
struct Functions {
  GpuFunction softmax, log_softmax, cross_entropy, sparse_int32, sparse_int64;
};
#define TN_SOFTMAX(T)                                                                             \
  {                                                                                               \
    GpuFunction("softmax_" #T), GpuFunction("log_softmax_" #T), GpuFunction("cross_entropy_" #T), \
        GpuFunction("sparse_cross_entropy_" #T "_int32"),                                         \
        GpuFunction("sparse_cross_entropy_" #T "_int64")                                          \
  }
template <class T>
constinit const Functions<T> kFunctions = TN_SOFTMAX(float);
template <>
constinit const Functions<double> kFunctions<double> = TN_SOFTMAX(double);

template <class T, GpuFunction Functions<T>::*kFunction>
std::unique_ptr<Kernel> prepare_rows(const PrepareContext& p) {
  return make_launching_kernel(p, [r = Rows(p.input_shape(0))](RunContext& c, CudaDevice& device) {
    (kFunctions<T>.*kFunction)
        .launch(device, r.grid(device), r.rows, r.n, r.lanes, c.input(0).data<T>(),
                c.output(0).data<T>());
  });
}

template <class T>
std::unique_ptr<Kernel> prepare_cross_entropy(const PrepareContext& p) {
  return make_launching_kernel(p, [r = Rows(p.input_shape(0))](RunContext& c, CudaDevice& device) {
    kFunctions<T>.cross_entropy.launch(device, r.grid(device), r.rows, r.n, r.lanes,
                                       c.input(0).data<T>(), c.input(1).data<T>(),
                                       c.output(0).data<T>(), c.output(1).data<T>());
  });
}

template <class T>
std::unique_ptr<Kernel> prepare_sparse(const PrepareContext& p) {
  return make_launching_kernel(p, [r = Rows(p.input_shape(0))](RunContext& c, CudaDevice& device,
                                                               Failure failure) {
    if (r.rows == 0) return;
    const FaultWord fault(device);
    const Tensor& labels = c.input(1);
    const auto launch = [&]<class Label>(const GpuFunction& function) {
      function.launch(device, r.grid(device), r.rows, r.n, r.lanes, c.input(0).data<T>(),
                      labels.data<Label>(), c.output(0).data<T>(), c.output(1).data<T>(),
                      fault.word());
    };
    if (labels.dtype() == DType::kInt32) {
      launch.template operator()<int32_t>(kFunctions<T>.sparse_int32);
    } else {
      launch.template operator()<int64_t>(kFunctions<T>.sparse_int64);
    }
    fault.report(labels.raw(), labels.dtype(), failure, [n = r.n](int64_t place, int64_t value) {
      throw invalid_argument("Received a label value of ", value,
                             " which is outside the valid range of [0, ", n, ").  It is labels[",
                             place, "].");
    });
  });
}

template <class T>
void register_type(KernelRegistrations& r, DType dtype) {
  const TypeConstraint type = {"T", {dtype}};
  r.add("Softmax", {type}, prepare_rows<T, &Functions<T>::softmax>);
  r.add("LogSoftmax", {type}, prepare_rows<T, &Functions<T>::log_softmax>);
  r.add("SoftmaxCrossEntropyWithLogits", {type}, prepare_cross_entropy<T>);
  r.add("SparseSoftmaxCrossEntropyWithLogits", {type, {"Tlabels", {DType::kInt32, DType::kInt64}}},
        prepare_sparse<T>);
}

}  // namespace

void register_softmax_kernels(KernelRegistrations& r) {
  register_type<float>(r, DType::kFloat32);
  register_type<double>(r, DType::kFloat64);
}

}  // namespace treenail::cuda
