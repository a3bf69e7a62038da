// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax and the cross entropies.
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "kernels/cuda/driver/fault_word.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/normalization/rows_host.h"

namespace treenail::cuda {
namespace {

constexpr int64_t kEach = 4;  // elements of a row for a thread

using Address = const void*;

std::unique_ptr<Kernel> prepare_rows(const PrepareContext& p, const char* what) {
  return make_launching_kernel(
      p, [function = function_for(what, p.input_type(0)), r = Rows(p.input_shape(0), kEach)](
             RunContext& c, CudaDevice& device) {
        function.launch(device, r.grid(device), r.rows, r.n, r.lanes, Address(c.input(0).raw()),
                        Address(c.output(0).raw()));
      });
}
std::unique_ptr<Kernel> prepare_softmax(const PrepareContext& p) {
  return prepare_rows(p, "softmax");
}
std::unique_ptr<Kernel> prepare_log_softmax(const PrepareContext& p) {
  return prepare_rows(p, "log_softmax");
}

std::unique_ptr<Kernel> prepare_cross_entropy(const PrepareContext& p) {
  return make_launching_kernel(
      p, [function = function_for("cross_entropy", p.input_type(0)),
          r = Rows(p.input_shape(0), kEach)](RunContext& c, CudaDevice& device) {
        function.launch(device, r.grid(device), r.rows, r.n, r.lanes, Address(c.input(0).raw()),
                        Address(c.input(1).raw()), Address(c.output(0).raw()),
                        Address(c.output(1).raw()));
      });
}

std::unique_ptr<Kernel> prepare_sparse(const PrepareContext& p) {
  const std::string what = concat("sparse_cross_entropy_", dtype_name(p.input_type(0)));
  return make_launching_kernel(p, [function = function_for(what, p.input_type(1)),
                                   r = Rows(p.input_shape(0), kEach)](
                                      RunContext& c, CudaDevice& device, Failure failure) {
    if (r.rows == 0) return;
    const FaultWord fault(device);
    const Tensor& labels = c.input(1);
    function.launch(device, r.grid(device), r.rows, r.n, r.lanes, Address(c.input(0).raw()),
                    Address(labels.raw()), Address(c.output(0).raw()), Address(c.output(1).raw()),
                    fault.word());
    fault.report(labels.raw(), labels.dtype(), failure, [n = r.n](int64_t place, int64_t value) {
      throw invalid_argument("Received a label value of ", value,
                             " which is outside the valid range of [0, ", n, ").  It is labels[",
                             place, "].");
    });
  });
}

}  // namespace

void register_softmax_kernels(KernelRegistrations& r) {
  const TypeConstraint type = {
      "T", {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}};
  r.add("Softmax", {type}, prepare_softmax);
  r.add("LogSoftmax", {type}, prepare_log_softmax);
  r.add("SoftmaxCrossEntropyWithLogits", {type}, prepare_cross_entropy);
  r.add("SparseSoftmaxCrossEntropyWithLogits", {type, {"Tlabels", {DType::kInt32, DType::kInt64}}},
        prepare_sparse);
}

}  // namespace treenail::cuda
