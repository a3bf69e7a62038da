// SPDX-License-Identifier: Apache-2.0
// Element-wise ops: one kernel for each op and dtype, by the list that the kernels were made of.
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/elementwise/division_errors.h"
#include "kernels/cuda/elementwise/kernel_choice_host.h"
#include "kernels/cuda/elementwise/operands_host.h"
#include "kernels/host/elementwise/arithmetic.h"

namespace treenail::cuda {
namespace {

// Kernels take pointers to elements; here they are addresses alone.
using Address = const void*;

struct Elementwise {
  GpuFunction function;
  int operands;
  double value;
  gpu::Broadcast how;

  explicit Elementwise(const PrepareContext& p, const ElementwiseKernel& kernel)
      : function(kernel.name), operands(kernel.operands), value(value_of(p.op())) {
    std::vector<Shape> shapes;
    for (int i = 0; i < operands; ++i) shapes.push_back(p.input_shape(i));
    how = broadcast_of(p.output_shape(0), shapes);
  }

  template <class... Last>
  void launch(RunContext& c, CudaDevice& device, Last... last) const {
    Tensor& y = c.output(0);
    const int64_t n = y.num_elements();
    const auto put = [&](auto... from) {
      function.launch(device, grid_for(device, n, 4), n, Address(c.input(0).raw()), from...,
                      Address(y.raw()), value, how, last...);
    };
    if (operands == 2) return put(Address(c.input(1).raw()));
    put(Address(c.input(1).raw()), Address(c.input(2).raw()));
  }
  void launch_unary(RunContext& c, CudaDevice& device) const {
    Tensor& y = c.output(0);
    const int64_t n = y.num_elements();
    function.launch(device, grid_for(device, n, 4), n, Address(c.input(0).raw()), Address(y.raw()),
                    value);
  }
};

std::unique_ptr<Kernel> prepare_plain(const PrepareContext& p) {
  return make_launching_kernel(
      p, [e = Elementwise(p, kernel_for(p.op()))](RunContext& c, CudaDevice& device) {
        if (c.output(0).num_elements() == 0) return;
        if (e.operands == 1) return e.launch_unary(c, device);
        e.launch(c, device);
      });
}

// Some elements have no result: the kernel says so in a word that is read afterwards.
std::unique_ptr<Kernel> prepare_checked(const PrepareContext& p) {
  auto kernel = make_launching_kernel(p, [e = Elementwise(p, kernel_for(p.op()))](
                                             RunContext& c, CudaDevice& device, Failure failure) {
    if (c.output(0).num_elements() == 0) return;
    auto* const word = reinterpret_cast<int32_t*>(c.scratch());
    device.zero(word, sizeof *word);
    e.launch(c, device, word);
    auto found = std::make_shared<int32_t>(0);
    device.copy_out(found.get(), word, sizeof *word);
    device.when_done([found, failure](const std::exception_ptr& lost) {
      if (lost != nullptr || *found == 0) return;
      try {
        if (*found == gpu::kNegativePower) host::throw_negative_power();
        host::throw_division_by_zero();
      } catch (...) {
        failure(std::current_exception());
      }
    });
  });
  kernel->scratch_bytes = sizeof(int32_t);
  return kernel;
}

// --- Cast and Select ----------------------------------------------------------------------------

std::unique_ptr<Kernel> prepare_cast(const PrepareContext& p) {
  if (p.input_type(0) == p.output_type(0)) {
    return make_launching_kernel(p, [](RunContext& c, CudaDevice& device) {
      if (c.output(0).raw() != c.input(0).raw())
        device.copy(c.output(0).raw(), c.input(0).raw(), c.input(0).bytes());
    });
  }
  const std::string name =
      concat("Cast_", dtype_name(p.input_type(0)), "_", dtype_name(p.output_type(0)));
  return make_launching_kernel(
      p, [function = GpuFunction(kept_name(name))](RunContext& c, CudaDevice& device) {
        const int64_t n = c.output(0).num_elements();
        function.launch(device, grid_for(device, n, 4), n, Address(c.input(0).raw()),
                        Address(c.output(0).raw()), 0.0);
      });
}

std::unique_ptr<Kernel> prepare_select(const PrepareContext& p) {
  const std::string name = concat("Select_", dtype_size(p.output_type(0)));
  const Shape shapes[] = {p.input_shape(0), p.input_shape(1), p.input_shape(2)};
  return make_launching_kernel(
      p, [function = GpuFunction(kept_name(name)), how = broadcast_of(p.output_shape(0), shapes)](
             RunContext& c, CudaDevice& device) {
        const int64_t n = c.output(0).num_elements();
        function.launch(device, grid_for(device, n, 4), n, Address(c.input(0).raw()),
                        Address(c.input(1).raw()), Address(c.input(2).raw()),
                        Address(c.output(0).raw()), 0.0, how);
      });
}

std::string type_attribute(const OpDef& def) {
  const int attr = def.inputs[0].type_attr;
  return attr < 0 ? "" : def.attrs[static_cast<size_t>(attr)].name;
}

const std::vector<DType>& cast_types() {
  static const auto* const types = new std::vector<DType>{
      DType::kBool,     DType::kInt8,    DType::kUInt8,  DType::kInt16,  DType::kUInt16,
      DType::kInt32,    DType::kUInt32,  DType::kInt64,  DType::kUInt64, DType::kFloat16,
      DType::kBFloat16, DType::kFloat32, DType::kFloat64};
  return *types;
}

}  // namespace

void register_elementwise_kernels(KernelRegistrations& r) {
  for (const ElementwiseKernel& kernel : kElementwiseKernels) {
    const OpDef* const def = OpRegistry::instance().find(kernel.op);
    if (def == nullptr) continue;  // a function that other kernels are made of
    const std::string attribute = type_attribute(*def);
    std::vector<TypeConstraint> constraints;
    if (!attribute.empty()) constraints.push_back({attribute, {kernel.dtype}});
    r.add(kernel.op, std::move(constraints), kernel.has_error ? prepare_checked : prepare_plain);
  }
  r.add("Cast", {{"SrcT", cast_types()}, {"DstT", cast_types()}}, prepare_cast);
  r.add_plain("Select", prepare_select);
}

}  // namespace treenail::cuda
