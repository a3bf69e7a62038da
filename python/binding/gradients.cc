// SPDX-License-Identifier: Apache-2.0
// Gradients of a graph, with rules written in Python (RegisterGradient, gradient_override_map) in
// place of, or beside, the ops' own. The walk runs without the GIL under the graph's mutex; for a
// Python rule both are exchanged.
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/base/fork.h"
#include "framework/graph/gradients.h"
#include "framework/op/op_registry.h"
#include "python/binding/graph_lock.h"
#include "python/binding/module.h"
#include "python/binding/operation_type.h"
#include "python/binding/tape_type.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

// Python rules by name: an op type, or a name that gradient_override_map refers to. Written under
// the GIL, read by walks without it: guarded by its own mutex.
struct Rules {
  ForkMutex mutex;
  std::unordered_map<std::string, PyObject*> by_name;
};
Rules& rules() {
  static auto* instance = new Rules();
  return *instance;
}

PyObject* find_rule(const std::string& name) {
  const std::lock_guard lock(rules().mutex);
  const auto it = rules().by_name.find(name);
  return it == rules().by_name.end() ? nullptr : it->second;
}

// None, a tensor, or (values, indices, dense_shape).
Ref gradient_object(GraphObject* graph, const GraphGradient& gradient) {
  switch (gradient.kind) {
    case Gradient::Kind::kNone:
      return Ref::borrow(Py_None);
    case Gradient::Kind::kDense:
      return tensor_view(graph, gradient.dense);
    case Gradient::Kind::kSlices:
      break;
  }
  Ref values = tensor_view(graph, gradient.values);
  Ref indices = tensor_view(graph, gradient.indices);
  Ref shape =
      gradient.dense_shape.node ? tensor_view(graph, gradient.dense_shape) : Ref::borrow(Py_None);
  return checked(PyTuple_Pack(3, values.get(), indices.get(), shape.get()));
}

GraphGradient gradient_from(PyObject* object, GraphObject* graph) {
  GraphGradient gradient;
  if (object == Py_None) return gradient;
  if (!PyTuple_Check(object)) {
    gradient.kind = Gradient::Kind::kDense;
    gradient.dense = output_from(object, graph);
    return gradient;
  }
  gradient.kind = Gradient::Kind::kSlices;
  gradient.values = output_from(PyTuple_GetItem(object, 0), graph);
  gradient.indices = output_from(PyTuple_GetItem(object, 1), graph);
  gradient.dense_shape = output_from(PyTuple_GetItem(object, 2), graph);
  return gradient;
}

// Of a graph and of the one whose functions it calls, which may be itself.
class GraphLocks {
 public:
  GraphLocks(Graph& graph, Graph& library) : graph_(graph), library_(library) { lock(); }
  ~GraphLocks() { unlock(); }
  GraphLocks(const GraphLocks&) = delete;
  GraphLocks& operator=(const GraphLocks&) = delete;
  void lock() {
    graph_.mutex().lock();
    if (&library_ != &graph_) library_.mutex().lock();
  }
  void unlock() {
    if (&library_ != &graph_) library_.mutex().unlock();
    graph_.mutex().unlock();
  }

 private:
  Graph& graph_;
  Graph& library_;
};

class PythonOverrides final : public GradientOverrides {
 public:
  PythonOverrides(GraphObject* graph, GraphLocks& locks, std::string scope)
      : graph_(graph),
        locks_(locks),
        scope_(std::move(scope)),
        names_(graph->state->gradient_overrides) {}

  bool has(const Node& node) const override { return rule_of(node) != nullptr; }

  std::vector<GraphGradient> gradients(Node& node,
                                       std::span<const GraphGradient> output_gradients) override {
    locks_.unlock();
    std::vector<GraphGradient> result;
    try {
      const GilRetake gil;
      result = call(node, output_gradients);
    } catch (...) {
      park_if_thread_ends();
      locks_.lock();
      throw;
    }
    locks_.lock();
    return result;
  }

 private:
  PyObject* rule_of(const Node& node) const {
    const auto it = names_.find(&node);
    return find_rule(it == names_.end() ? node.type() : it->second);
  }

  std::vector<GraphGradient> call(Node& node, std::span<const GraphGradient> output_gradients) {
    Ref gradients = checked(PyList_New(0));
    for (const GraphGradient& gradient : output_gradients) {
      checked(PyList_Append(gradients.get(), gradient_object(graph_, gradient).get()));
    }
    Ref operation = operation_view(graph_, &node);
    Ref scope = text_object(concat(scope_, "/", node.name(), "_grad/"));
    PyObject* arguments[] = {rule_of(node), operation.get(), gradients.get(), scope.get()};
    Ref result = checked(
        parking([&] { return PyObject_Vectorcall(state().call_gradient, arguments, 4, nullptr); }));
    Ref list = checked(PySequence_Fast(result.get(), "a gradient function must give a list"));
    std::vector<GraphGradient> out;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
      out.push_back(gradient_from(PySequence_Fast_GET_ITEM(list.get(), i), graph_));
    }
    if (out.size() != node.inputs().size()) {
      throw_value_error("Num gradients ", out.size(), " generated for op ", node.name(),
                        " do not match num inputs ", node.inputs().size());
    }
    return out;
  }

  GraphObject* graph_;
  GraphLocks& locks_;
  std::string scope_;
  const std::unordered_map<const Node*, std::string>
      names_;  // a copy: the walk reads it without the GIL
};

std::vector<Output> outputs_of(PyObject* list, GraphObject* graph, bool none_allowed) {
  std::vector<Output> outputs;
  if (list == Py_None) return outputs;
  Ref sequence = checked(PySequence_Fast(list, "needed is a list of tensors"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(sequence.get(), i);
    outputs.push_back(item == Py_None && none_allowed ? Output{} : output_from(item, graph));
  }
  return outputs;
}

// gradients(graph, ys, xs, grad_ys or None, stop_gradients or None, name) -> [None, Tensor or
// (values, indices, dense_shape)]
PyObject* gradients(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded(
      [&] {
        if (nargs != 6)
          throw_type_error("gradients() takes graph, ys, xs, grad_ys, stop_gradients and name");
        GraphObject* graph = graph_from(args[0]);
        const std::vector<Output> ys = outputs_of(args[1], graph, false);
        const std::vector<Output> xs = outputs_of(args[2], graph, false);
        const std::vector<Output> grad_ys = outputs_of(args[3], graph, true);
        const std::vector<Output> stops = outputs_of(args[4], graph, false);
        const std::string name = concat(graph->state->context().scope, text_of(args[5], "name"));
        Ref root = checked(PyObject_GetAttrString(args[0], "_root"));
        Graph& library = *graph_from(root.get())->state->graph;
        std::vector<GraphGradient> result;
        {
          const GilRelease release;
          GraphLocks locks(*graph->state->graph, library);
          PythonOverrides overrides(graph, locks, name);
          GradientOptions options;
          options.grad_ys = grad_ys;
          options.stop_gradients = stops;
          options.name = name;
          options.overrides = &overrides;
          options.library = &library;
          result = add_gradients(*graph->state->graph, ys, xs, options);
        }
        Ref list = checked(PyList_New(0));
        for (const GraphGradient& gradient : result) {
          checked(PyList_Append(list.get(), gradient_object(graph, gradient).get()));
        }
        return list.release();
      },
      args[0]);
}

PyObject* register_gradient(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 2) throw_type_error("register_gradient() takes a name and a function");
    const std::string name(text_of(args[0], "an op type"));
    const OpDef* def = OpRegistry::instance().find(name);
    const std::lock_guard lock(rules().mutex);
    if (rules().by_name.contains(name) || (def != nullptr && def->gradient_fn != nullptr)) {
      throw_python(PyExc_KeyError, concat("Registering two gradient with name '", name, "'!"));
    }
    rules().by_name.emplace(name, new_ref(args[1]));
    return none();
  });
}

// set_gradient_map(graph, {op type: name}): for the nodes that are added from now on.
PyObject* set_gradient_map(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 2 || !PyDict_Check(args[1]))
      throw_type_error("set_gradient_map() takes a graph and a dict");
    std::map<std::string, std::string> map;
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(args[1], &position, &key, &value) != 0) {
      map.emplace(text_of(key, "an op type"), text_of(value, "a gradient name"));
    }
    graph_from(args[0])->state->context().gradient_map = std::move(map);
    return none();
  });
}

PyMethodDef functions[] = {
    {"gradients", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(gradients)), METH_FASTCALL,
     nullptr},
    {"register_gradient", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(register_gradient)),
     METH_FASTCALL, nullptr},
    {"set_gradient_map", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(set_gradient_map)),
     METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* registered_rule(const std::string& name) { return find_rule(name); }

void add_gradient_functions(PyObject* module) { add_methods(module, functions); }

}  // namespace treenail::python
