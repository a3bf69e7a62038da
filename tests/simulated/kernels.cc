// SPDX-License-Identifier: Apache-2.0
#include "tests/simulated/kernels.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/kernel/async_kernel.h"
#include "framework/runtime/kernel/kernel_types.h"
#include "framework/runtime/kernel/queued_kernel.h"
#include "tests/simulated/execution.h"

namespace treenail::simulated {
namespace {

class SimulatedKernel final : public QueuedKernel {
 public:
  SimulatedKernel(SimulatedDevice& device, const OpInstance& op, std::unique_ptr<Kernel> kernel)
      : QueuedKernel(device), device_(device), op_(op), kernel_(std::move(kernel)) {}

  void enqueue(RunContext& c, Failure failure) const override {
    device_.queue().check();
    const HeldVariables variables(device_, op_, c);
    Execution execution(device_, op_, *kernel_, c, variables);
    device_.queue().push(
        make_task([failure, execution = std::move(execution)](const std::exception_ptr& lost) {
          if (lost != nullptr) return failure(lost);
          if (failure.superseded()) return;
          try {
            execution.run();
          } catch (...) {
            failure(std::current_exception());
          }
        }));
  }

 private:
  SimulatedDevice& device_;
  const OpInstance op_;
  const std::unique_ptr<Kernel> kernel_;
};

// Of an op whose outputs have the shapes that its values say: known when the queue gets there.
class AllocatingKernel final : public AsyncKernel {
 public:
  AllocatingKernel(SimulatedDevice& device, const OpInstance& op, std::unique_ptr<Kernel> kernel)
      : device_(device), op_(op), kernel_(std::move(kernel)) {}

  void start(RunContext c, Done done) const override {
    device_.queue().check();
    const HeldVariables variables(device_, op_, c);
    Execution execution(device_, op_, *kernel_, c, variables);
    device_.queue().push(make_task(
        [this, c, done, execution = std::move(execution)](const std::exception_ptr& lost) mutable {
          if (lost != nullptr) return done.fail(lost);
          try {
            if (execution.token() != nullptr) execution.token()->check();
            deliver(c, execution.run());
          } catch (...) {
            return done.fail(std::current_exception());
          }
          done();
        }));
  }

 private:
  void deliver(RunContext& c, const std::vector<Tensor>& outputs) const {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor& from = outputs[i];
      const bool host = op_.output_def(static_cast<int>(i)).host;
      Tensor to(from.dtype(), from.shape(), host ? nullptr : &device_);
      void* const bytes = host ? to.raw() : Memory::view(to.raw());
      if (from.bytes() != 0) std::memcpy(bytes, from.raw(), from.bytes());
      c.set_output(static_cast<int>(i), std::move(to));
    }
  }

  SimulatedDevice& device_;
  const OpInstance op_;
  const std::unique_ptr<Kernel> kernel_;
};

template <class K>
std::unique_ptr<Kernel> prepare(const PrepareContext& p) {
  std::unique_ptr<Kernel> host = KernelRegistry::instance().find(p.op(), Device::kHostKind)(p);
  const size_t scratch_bytes = host->scratch_bytes;
  auto& device = static_cast<SimulatedDevice&>(p.device());
  auto kernel = std::make_unique<K>(device, p.op(), std::move(host));
  kernel->scratch_bytes = scratch_bytes;
  kernel->cost_ns = 1000;
  return kernel;
}

// --- Which ops -----------------------------------------------------------------------------------

// What these do happens in the process or in files, whatever their dtypes are.
constexpr std::string_view kHostFamilies[] = {"io", "logging", "summary", "image_codecs",
                                              "py_func"};

std::string problem_of(const ArgDef& arg, bool output, bool allocated) {
  if (arg.dtype == DType::kString || arg.dtype == DType::kVariant)
    return concat(arg.name, " is ", arg.dtype);
  if (arg.dtype == DType::kResource && output) return concat("makes the state ", arg.name);
  if (arg.dtype == DType::kResource && arg.access != Access::kRead && arg.access != Access::kWrite)
    return concat("the state ", arg.name, " is no variable");
  if (output && arg.host && !allocated)
    return concat(arg.name, " is to be in host memory, where a queue would write it late");
  return "";
}

// Empty: there is a kernel for it.
std::string problem_of(const OpDef& def) {
  if (def.asynchronous) return "waits for what others do";
  if (def.any_device) return "the host's kernel serves every device";
  if (std::ranges::find(kHostFamilies, def.family) != std::end(kHostFamilies))
    return concat("works for the host: ", def.family);
  for (const ArgDef& arg : def.inputs) {
    if (std::string problem = problem_of(arg, false, false); !problem.empty()) return problem;
  }
  for (const ArgDef& arg : def.outputs) {
    std::string problem = problem_of(arg, true, def.allocates_outputs);
    if (!problem.empty()) return problem;
  }
  return "";
}

// Calls found(registration, problem, constraints) for what the host has.
template <class F>
void for_each_kernel(F found) {
  for (const KernelRegistration& host : KernelRegistry::instance().registered(Device::kHostKind)) {
    const OpDef* const def = OpRegistry::instance().find(host.op);
    if (def == nullptr) continue;
    std::string problem = problem_of(*def);
    auto constraints = plain_constraints(*def, host.constraints);
    if (problem.empty() && !constraints) problem = "the kernel for strings is the host's";
    found(*def, problem, std::move(constraints));
  }
}

}  // namespace

std::vector<KernelRegistration> make_kernels() {
  std::vector<KernelRegistration> kernels;
  for_each_kernel([&](const OpDef& def, const std::string& problem, auto constraints) {
    if (!problem.empty()) return;
    const PrepareFn fn =
        def.allocates_outputs ? prepare<AllocatingKernel> : prepare<SimulatedKernel>;
    kernels.push_back({def.name, std::move(*constraints), fn, kKind});
  });
  return kernels;
}

std::string left_out() {
  std::map<std::string, std::string> reasons;
  for_each_kernel([&](const OpDef& def, const std::string& problem, const auto&) {
    reasons.emplace(def.name, problem);
    if (problem.empty()) reasons[def.name] = "";
  });
  std::string list;
  for (const auto& [op, reason] : reasons) {
    if (!reason.empty()) list += concat(op, ": ", reason, "\n");
  }
  return list;
}

}  // namespace treenail::simulated
