// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/py_func.cc: the call itself is the Python module's.
#include <memory>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_py_func.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/state/async_lambda.h"

namespace treenail::host {
namespace {

std::unique_ptr<Kernel> prepare_py_func(const PrepareContext& p) {
  const OpInstance& op = p.op();
  const PyFunction function{op.get_string("token"),
                            op.num_inputs(),
                            {op.output_types().begin(), op.output_types().end()}};
  return make_async_kernel([function](const RunContext& c, const Done& done) {
    const StartPyFunction start = start_py_function();
    if (start == nullptr) {
      throw failed_precondition("the function \"", function.token,
                                "\" belongs to a Python process that made this graph; there is no "
                                "Python in this one");
    }
    start(function, c, done);
  });
}

}  // namespace

void register_py_func_kernels(KernelRegistry& r) {
  r.add("PyFunc", {}, prepare_py_func);
  r.add("PyFuncStateless", {}, prepare_py_func);
}

}  // namespace treenail::host
