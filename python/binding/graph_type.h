// SPDX-License-Identifier: Apache-2.0
// The Python type GraphBase, which treenail.Graph extends: a share of a C++ graph, the views handed
// out for its nodes, and the key of its building contexts.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "framework/graph/function.h"
#include "framework/graph/graph.h"
#include "python/binding/building_context.h"
#include "python/binding/python_api.h"

namespace treenail::python {

// Owned references; made once, kept for the graph's life.
struct NodeViews {
  PyObject* operation = nullptr;
  PyObject* first = nullptr;   // view of output 0
  PyObject* others = nullptr;  // list: views of outputs 1, 2, ...
};

// Which concrete tensor a constant came from: its bytes, dtype and shape.
using TensorIdentity = std::tuple<const void*, DType, std::string>;

struct GraphState {
  std::shared_ptr<Graph> graph;
  std::vector<NodeViews> views;  // by node id
  // Names of gradient rules of the nodes added under a gradient map.
  std::unordered_map<const Node*, std::string> gradient_overrides;
  std::map<TensorIdentity, Node*> constants;  // of concrete tensors that were used here
  const uint64_t context_id = new_context_id();
  bool immediate = false;  // no graph: what is called with this as the default runs at once
  bool captures = false;   // the body of a function: values of other graphs become arguments
  // Of the copy of a body that is being differentiated: the graphs of which it has every node under
  // its name, and the values that it is given.
  std::vector<std::shared_ptr<const Graph>> copy_of;
  std::vector<Output> given;

  BuildingContext& context() const { return building_context(context_id); }
};

struct GraphObject {
  PyObject_HEAD PyObject* dict;
  PyObject* weakrefs;
  GraphState* state;
};

// What functions made of the graph are to carry; null: nothing.
std::shared_ptr<const BodyRules> body_rules(const GraphState& state);

bool is_graph(PyObject* object);
// Errors: TypeError.
GraphObject* graph_from(PyObject* object);
inline PyObject* as_object(GraphObject* graph) { return reinterpret_cast<PyObject*>(graph); }

// The innermost graph of `with graph.as_default()` on this thread, else the process-wide default
// graph. Borrowed.
GraphObject* default_graph();

// The views; new references.
Ref operation_view(GraphObject* graph, Node* node);
Ref tensor_view(GraphObject* graph, Output output);

struct NewNode {
  const OpDef* def = nullptr;
  std::span<const Output> inputs;
  std::span<const int> arg_sizes;
  std::span<const NamedAttr> attrs;
  // "": the op's. A trailing '/': the name of a scope entered for this node, taken as it is.
  std::string_view name;
  bool absolute = false;  // no scope before the name
  std::span<Node* const> control_inputs;
};
// Adds a node in the building context. Errors: as Graph::add.
Node& add_node(GraphObject* graph, const NewNode& node);

}  // namespace treenail::python
