// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/py_func.cc: the call itself is the Python module's.
#include <memory>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_py_func.h"
#include "framework/runtime/kernel/kernel_registry.h"

namespace treenail::host {
namespace {

class PyFuncKernel final : public AsyncKernel {
 public:
  explicit PyFuncKernel(const OpInstance& op)
      : function_{op.get_string("token"),
                  op.num_inputs(),
                  {op.output_types().begin(), op.output_types().end()}} {}

  void start(RunContext c, Done done) const override {
    const StartPyFunction start = start_py_function();
    if (start == nullptr) {
      throw failed_precondition("the function \"", function_.token,
                                "\" belongs to a Python process that made this graph; there is no "
                                "Python in this one");
    }
    start(function_, c, done);
  }

 private:
  const PyFunction function_;
};

std::unique_ptr<Kernel> prepare_py_func(const PrepareContext& p) {
  return std::make_unique<PyFuncKernel>(p.op());
}

}  // namespace

void register_py_func_kernels(KernelRegistry& r) {
  r.add("PyFunc", {}, prepare_py_func);
  r.add("PyFuncStateless", {}, prepare_py_func);
}

}  // namespace treenail::host
