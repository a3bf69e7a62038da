// SPDX-License-Identifier: Apache-2.0
// One call of an op from Python: inputs of any convertible kind become values (constants are added
// to the graph), dtypes of untyped Python values follow the typed ones, and the op is added to a
// graph or run at once: the thread's context decides, never what the inputs are.
#pragma once

#include <string_view>
#include <vector>

#include "framework/op/op_def.h"
#include "framework/tensor/tensor.h"
#include "python/binding/graph_type.h"
#include "python/binding/python_api.h"

namespace treenail::python {

enum class CallMode : uint8_t { kImmediate, kGraph };

// What the thread's innermost context asks for: a graph, or immediate execution.
CallMode current_mode();

struct OpCall {
  const OpDef* def = nullptr;
  std::vector<PyObject*>
      inputs;  // one per declared input, borrowed; a list or tuple for a list argument
  NamedAttrs attrs;
  std::string_view name;
  GraphObject* graph = nullptr;  // null: that of the inputs, else the default graph
  std::vector<Node*> control_inputs;
  CallMode mode = current_mode();
};

// An Operation for an op without outputs; one Tensor (or a list) for one output; a named tuple for
// several. Errors: TypeError and ValueError (values that do not convert, graphs that differ),
// Error.
Ref call_op(const OpCall& call);
Ref call_binary(const OpDef& def, PyObject* a, PyObject* b);
Ref call_unary(const OpDef& def, PyObject* a);

// The Operation, whatever its outputs (Graph.create_op).
Ref create_op(const OpCall& call);
// The outputs of an immediate call, flat.
std::vector<Tensor> execute_op(const OpCall& call);

// What stands for a concrete tensor in a graph: one constant there, however often it is used; in
// the body of a function, what is large is an argument.
Ref concrete_in_graph(GraphObject* graph, PyObject* tensor, std::string_view name);

// A Const node. `name` and `absolute` as in NewNode.
Ref constant_tensor(GraphObject* graph, Tensor value, std::string_view name, bool absolute = false);

}  // namespace treenail::python
