// SPDX-License-Identifier: Apache-2.0
// Gradients of a graph, with rules written in Python (RegisterGradient, gradient_override_map) in
// place of, or beside, the ops' own. The walk runs without the GIL under the graph's mutex; for a
// Python rule both are exchanged.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
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

// Python objects that stand for the copies of bodies under way. They end with the call, when the
// GIL is held again.
using Bodies = std::vector<Ref>;

// The rules for nodes of a graph, or of the copy of a body that one of its nodes calls. That has a
// Python object only once a rule is called there.
class PythonOverrides final : public GradientOverrides {
 public:
  PythonOverrides(GraphObject* graph, GraphLocks& locks, Bodies& bodies, std::string scope)
      : graph_(graph),
        locks_(locks),
        bodies_(bodies),
        scope_(std::move(scope)),
        names_(graph->state->gradient_overrides) {}

  PythonOverrides(PythonOverrides& around, const Function& function, std::shared_ptr<Graph> copy,
                  std::span<const Output> arguments)
      : locks_(around.locks_),
        bodies_(around.bodies_),
        scope_("gradients"),
        around_(&around),
        copy_(std::move(copy)),
        rules_(std::make_shared<BodyRules>()),
        arguments_(arguments.begin(), arguments.end()) {
    if (function.rules != nullptr) *rules_ = *function.rules;
    rules_->copy_of.push_back(function.body);
    for (const auto& [node, name] : rules_->names) {
      if (const Node* const found = copy_->find(node)) names_.emplace(found, name);
    }
    for (const std::string& input : function.input_nodes)
      given_.push_back(copy_->find_output(input));
  }

  bool has(const Node& node) const override {
    return names_.contains(&node) || find_rule(node.type()) != nullptr;
  }

  std::vector<GraphGradient> gradients(Node& node,
                                       std::span<const GraphGradient> output_gradients) override {
    locks_.unlock();
    std::vector<GraphGradient> result;
    try {
      const GilRetake gil;
      result = call(node, output_gradients);
      for (PythonOverrides* each = this; each->around_ != nullptr; each = each->around_)
        each->look_again();
    } catch (...) {
      park_if_thread_ends();
      locks_.lock();
      throw;
    }
    locks_.lock();
    return result;
  }

  std::unique_ptr<GradientOverrides> in_body(const Function& function,
                                             const std::shared_ptr<Graph>& copy,
                                             std::span<const Output> around) override {
    return std::make_unique<PythonOverrides>(*this, function, copy, around);
  }
  std::vector<CapturedValue> captured() const override { return captured_; }
  std::shared_ptr<const BodyRules> body_rules() const override { return rules_; }

 private:
  PyObject* rule_of(const Node& node) const {
    const auto it = names_.find(&node);
    return find_rule(it == names_.end() ? node.type() : it->second);
  }
  PyObject* needed_rule_of(const Node& node) const {
    PyObject* const rule = rule_of(node);
    if (rule != nullptr) return rule;
    throw_python(PyExc_LookupError,
                 concat("No gradient defined for operation '", node.name(), "' (op type: ",
                        node.type(), "): no function is registered as '", names_.at(&node), "'"));
  }

  GraphObject* object() {
    if (graph_ != nullptr) return graph_;
    PyObject* arguments[] = {as_object(around_->object())};
    Ref made = checked(
        parking([&] { return PyObject_Vectorcall(state().gradient_body, arguments, 1, nullptr); }));
    graph_ = graph_from(made.get());
    bodies_.push_back(std::move(made));
    GraphState& s = *graph_->state;
    s.graph = copy_;
    s.gradient_overrides = names_;
    s.copy_of = rules_->copy_of;
    s.given = given_;
    Ref known = attribute("_stand_ins");
    for (size_t i = 0; i < given_.size(); ++i) {
      if (arguments_[i].node == nullptr) continue;
      const Ref outer = tensor_view(around_->graph_, arguments_[i]);
      const Ref inner = tensor_view(graph_, given_[i]);
      checked(PyDict_SetItem(known.get(), outer.get(), inner.get()));
    }
    return graph_;
  }

  // What Python code may have added to a body.
  void look_again() {
    if (graph_ == nullptr) return;
    for (const auto& [node, name] : graph_->state->gradient_overrides)
      rules_->names.emplace(node->name(), name);
    const Ref inside = attribute("arguments"), around = attribute("captured");
    for (auto i = static_cast<Py_ssize_t>(captured_.size()); i < PyList_GET_SIZE(inside.get());
         ++i) {
      captured_.push_back({output_from(PyList_GET_ITEM(inside.get(), i), graph_),
                           output_from(PyList_GET_ITEM(around.get(), i), around_->graph_)});
    }
  }
  Ref attribute(const char* name) const {
    return checked(PyObject_GetAttrString(as_object(graph_), name));
  }

  std::vector<GraphGradient> call(Node& node, std::span<const GraphGradient> output_gradients) {
    GraphObject* const graph = object();
    Ref gradients = checked(PyList_New(0));
    for (const GraphGradient& gradient : output_gradients) {
      checked(PyList_Append(gradients.get(), gradient_object(graph, gradient).get()));
    }
    Ref operation = operation_view(graph, &node);
    Ref scope = text_object(concat(scope_, "/", node.name(), "_grad/"));
    PyObject* arguments[] = {needed_rule_of(node), operation.get(), gradients.get(), scope.get()};
    Ref result = checked(
        parking([&] { return PyObject_Vectorcall(state().call_gradient, arguments, 4, nullptr); }));
    Ref list = checked(PySequence_Fast(result.get(), "a gradient function must give a list"));
    std::vector<GraphGradient> out;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
      out.push_back(gradient_from(PySequence_Fast_GET_ITEM(list.get(), i), graph));
    }
    if (out.size() != node.inputs().size()) {
      throw_value_error("Num gradients ", out.size(), " generated for op ", node.name(),
                        " do not match num inputs ", node.inputs().size());
    }
    return out;
  }

  GraphObject* graph_ = nullptr;
  GraphLocks& locks_;
  Bodies& bodies_;
  std::string scope_;
  std::unordered_map<const Node*, std::string> names_;  // a copy: the walk reads it without the GIL
  // Of a body.
  PythonOverrides* const around_ = nullptr;
  const std::shared_ptr<Graph> copy_;
  const std::shared_ptr<BodyRules> rules_;
  std::vector<Output> given_, arguments_;  // inside, around
  std::vector<CapturedValue> captured_;
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

// gradients(graph, ys, xs, grad_ys or None, stop_gradients or None, name, gate) -> [None, Tensor or
// (values, indices, dense_shape)]
PyObject* gradients(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded(
      [&] {
        if (nargs != 7)
          throw_type_error(
              "gradients() takes graph, ys, xs, grad_ys, stop_gradients, name and gate");
        GraphObject* graph = graph_from(args[0]);
        const std::vector<Output> ys = outputs_of(args[1], graph, false);
        const std::vector<Output> xs = outputs_of(args[2], graph, false);
        const std::vector<Output> grad_ys = outputs_of(args[3], graph, true);
        const std::vector<Output> stops = outputs_of(args[4], graph, false);
        const std::string name = concat(graph->state->context().scope, text_of(args[5], "name"));
        const bool gate = checked(PyObject_IsTrue(args[6])) == 1;
        Ref around = checked(PyObject_GetAttrString(args[0], "_library"));
        Graph& library = *graph_from(around.get())->state->graph;
        std::vector<GraphGradient> result;
        Bodies bodies;
        {
          const GilRelease release;
          GraphLocks locks(*graph->state->graph, library);
          PythonOverrides overrides(graph, locks, bodies, name);
          GradientOptions options;
          options.grad_ys = grad_ys;
          options.stop_gradients = stops;
          options.name = name;
          options.overrides = &overrides;
          options.library = &library;
          options.gate = gate;
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

// register_gradient(name, function, instead): `instead` of the rule that the op has.
PyObject* register_gradient(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs < 2 || nargs > 3)
      throw_type_error("register_gradient() takes a name, a function and optionally instead");
    const bool instead = nargs == 3 && checked(PyObject_IsTrue(args[2])) == 1;
    const std::string name(text_of(args[0], "an op type"));
    const OpDef* def = OpRegistry::instance().find(name);
    const std::lock_guard lock(rules().mutex);
    const bool taken =
        rules().by_name.contains(name) || (def != nullptr && def->gradient_fn != nullptr);
    if (taken && !instead) {
      throw_python(PyExc_KeyError, concat("Registering two gradient with name '", name, "'!"));
    }
    rules().by_name.insert_or_assign(name, new_ref(args[1]));
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

bool is_copy_of(const GraphState& copy, const Graph& graph) {
  return std::ranges::any_of(copy.copy_of,
                             [&](const auto& original) { return original.get() == &graph; });
}

// Whether the value can be computed from what the copy of a body is given.
bool can_be_computed(const Output& value, const std::vector<Output>& given) {
  std::vector<Output> stack{value};
  std::unordered_set<const Node*> seen;
  while (!stack.empty()) {
    const Output each = stack.back();
    stack.pop_back();
    if (std::ranges::find(given, each) != given.end() || !seen.insert(each.node).second) continue;
    if (each.node->type() == "Placeholder") return false;
    stack.insert(stack.end(), each.node->inputs().begin(), each.node->inputs().end());
  }
  return true;
}

// counterpart(graph, tensor): what the copy of a body has of a tensor of the graph that it was
// copied from; None for a tensor of another graph. Errors: ValueError where that has no value
// there.
PyObject* counterpart(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 2 || !is_symbolic(args[1])) throw_type_error("counterpart(graph, tensor)");
    GraphObject* const graph = graph_from(args[0]);
    const Output source = output_of(args[1]);
    const GraphState& s = *graph->state;
    if (!is_copy_of(s, source.node->graph())) return none();
    const Output found{s.graph->find(source.node->name()), source.index};
    if (!can_be_computed(found, s.given)) {
      throw_value_error(source, " of a function's body is not kept for gradients of gradients: ",
                        "the function whose gradient reads it must take it as an argument");
    }
    return tensor_view(graph, found).release();
  });
}

// stands_for(graph, other): whether `graph` is a copy of the body `other`.
PyObject* stands_for(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 2) throw_type_error("stands_for(graph, other)");
    return bool_object(is_copy_of(*graph_from(args[0])->state, *graph_from(args[1])->state->graph));
  });
}

PyMethodDef functions[] = {
    {"gradients", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(gradients)), METH_FASTCALL,
     nullptr},
    {"register_gradient", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(register_gradient)),
     METH_FASTCALL, nullptr},
    {"counterpart", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(counterpart)),
     METH_FASTCALL, nullptr},
    {"stands_for", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(stands_for)),
     METH_FASTCALL, nullptr},
    {"set_gradient_map", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(set_gradient_map)),
     METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* registered_rule(const std::string& name) { return find_rule(name); }

void add_gradient_functions(PyObject* module) { add_methods(module, functions); }

}  // namespace treenail::python
