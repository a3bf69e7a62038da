// SPDX-License-Identifier: Apache-2.0
// Python functions as operations. Their kernel comes with the Python module.
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {

void register_py_func_ops(OpRegistry& r) {
  const auto declare = [&](const char* name, bool stateful, const char* doc) {
    OpDeclaration op = r.op(name, HostAccess::kPython);
    op.input("input: Tin")
        .output("output: Tout")
        .attr("token: string")
        .attr("Tin: list(type) >= 0")
        .attr("Tout: list(type) >= 0")
        .asynchronous()
        .stored("input")
        .shape(unknown_shape)
        .not_differentiable()
        .doc(doc);
    if (stateful) op.stateful();
  };
  declare(
      "PyFunc", true,
      R"(Calls a function of this Python process with the inputs as arrays; its results are the outputs.

token: the name under which tn.py_func keeps the function. The call is made on a thread of its own.
Errors: Unknown, or the code that fits the exception, with the traceback, where the function raises;
InvalidArgument where it gives another number of values or other dtypes; NotFound for a token of
another process.)");
  declare("PyFuncStateless", false,
          R"(As PyFunc, of a function whose results depend on its arguments alone.)");
  r.finish("py_func");
}

}  // namespace treenail
