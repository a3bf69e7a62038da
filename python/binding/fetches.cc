// SPDX-License-Identifier: Apache-2.0
#include "python/binding/fetches.h"

#include <algorithm>

#include "python/binding/graph_lock.h"
#include "python/binding/module.h"
#include "python/binding/numpy.h"
#include "python/binding/operation_type.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

constexpr int kMaxDepth = 200;

bool is_mapping(PyObject* object) {
  return PyDict_Check(object) ||
         (PyMapping_Check(object) && PyObject_HasAttr(object, state().str_items));
}
bool is_named_tuple(PyObject* object) {
  return PyTuple_Check(object) && PyObject_HasAttr(object, state().str_fields);
}

[[noreturn]] void throw_not_in_graph(PyObject* fetch, const std::string& name) {
  throw_value_error("Fetch argument ", repr_of(fetch), " cannot be interpreted as a Tensor. (",
                    name, " is not an element of this graph", body_of(fetch), ".)");
}

// The structure is walked again after the run; Python code that ran meanwhile may have changed it.
[[noreturn]] void throw_changed() {
  throw_value_error("the structure of fetches was changed while it was run");
}

}  // namespace

Output value_of_handle(Output output, GraphObject* graph) {
  if (output.node->type() != "VarHandleOp") return output;
  return reading(*graph->state->graph, [&]() -> Output {
    for (Node* consumer : output.node->consumers()) {
      if (consumer->type() == "ReadVariableOp") return {consumer, 0};
    }
    return output;
  });
}

void Fetches::clear() {
  graph_ = nullptr;
  outputs_.clear();
  targets_.clear();
  leaves_.clear();
  customs_.clear();
  arrays_.clear();
  next_leaf_ = next_custom_ = 0;
}

void Fetches::add_output(Output output) {
  if (output.node->op().output_type(output.index) == DType::kResource) {
    output = value_of_handle(output, graph_);
  }
  const auto it = std::find(outputs_.begin(), outputs_.end(), output);
  leaves_.push_back(static_cast<int>(it - outputs_.begin()));
  if (it == outputs_.end()) outputs_.push_back(output);
}

void Fetches::add_target(Node* node) {
  leaves_.push_back(-1);
  if (std::find(targets_.begin(), targets_.end(), node) == targets_.end()) targets_.push_back(node);
}

void Fetches::collect_name(PyObject* name) {
  const std::string text(text_of(name, "a fetch"));
  Graph& graph = *graph_->state->graph;
  if (text.find(':') == std::string::npos) {
    Node* node = reading(graph, [&] { return graph.find(text); });
    if (node == nullptr) {
      throw_value_error("Fetch argument ", repr_of(name),
                        " cannot be interpreted as a Tensor. (The name ", repr_of(name),
                        " refers to an Operation not in the graph.)");
    }
    return add_target(node);
  }
  Output output;
  try {
    output = reading(graph, [&] { return graph.find_output(text); });
  } catch (const Error& error) {
    throw_value_error("Fetch argument ", repr_of(name), " cannot be interpreted as a Tensor. (",
                      error.message(), ")");
  }
  add_output(output);
}

bool Fetches::collect_leaf(PyObject* object) {
  if (is_symbolic(object)) {
    if (graph_of_tensor(object) != graph_) throw_not_in_graph(object, to_text(output_of(object)));
    add_output(output_of(object));
    return true;
  }
  if (is_operation(object)) {
    auto* operation = reinterpret_cast<OperationObject*>(object);
    if (operation->graph != graph_) throw_not_in_graph(object, operation->node->name());
    add_target(operation->node);
    return true;
  }
  if (PyUnicode_Check(object)) {
    collect_name(object);
    return true;
  }
  return false;
}

void Fetches::collect(PyObject* structure, int depth) {
  if (collect_leaf(structure)) return;
  if (depth > kMaxDepth) throw_value_error("fetches are nested more than ", kMaxDepth, " deep");
  if (PyList_Check(structure) || PyTuple_Check(structure)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(structure); ++i) {
      Ref element = Ref::borrow(PySequence_Fast_GET_ITEM(structure, i));
      collect(element.get(), depth + 1);
    }
    return;
  }
  if (PyObject_HasAttr(structure, state().str_fetch)) {
    Ref pair =
        checked(parking([&] { return PyObject_CallMethodNoArgs(structure, state().str_fetch); }));
    if (!PyTuple_Check(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2) {
      throw_type_error(repr_of(structure), ".__treenail_fetch__() must give (fetches, combine)");
    }
    customs_.push_back({Ref::borrow(PyTuple_GET_ITEM(pair.get(), 0)),
                        Ref::borrow(PyTuple_GET_ITEM(pair.get(), 1))});
    const Ref elements = customs_.back().elements;
    return collect(elements.get(), depth + 1);
  }
  if (Ref tensor = tensor_protocol(structure)) return collect(tensor.get(), depth + 1);
  if (is_mapping(structure)) {
    Ref values = checked(PyMapping_Values(structure));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i)
      collect(PyList_GET_ITEM(values.get(), i), depth + 1);
    return;
  }
  throw_type_error(
      "Fetch argument ", repr_of(structure), " has invalid type '", type_name_of(structure),
      "', must be a string, Tensor, Operation or Variable, or a list, tuple or dict of such.");
}

// NumPy wants the product of the other extents to be addressable even where one is 0.
Ref Fetches::fetched_array(Output output, Tensor tensor) {
  const std::string shape = to_text(tensor.shape());
  try {
    return array_from_tensor(std::move(tensor), true);
  } catch (const PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) throw;
    PyErr_Clear();
    throw invalid_argument("[", output.node->op().name(), " node \"", output.node->name(),
                           "\"] its result of shape ", shape,
                           " is fetched, but an array of NumPy cannot have this shape");
  }
}

Ref Fetches::assemble(PyObject* structure, std::vector<Tensor>& results) {
  arrays_.resize(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    Tensor tensor = std::move(results[i]);
    results[i] = Tensor();
    const bool array = is_plain(tensor.dtype()) || tensor.dtype() == DType::kString;
    arrays_[i] = array ? fetched_array(outputs_[i], std::move(tensor))
                       : new_concrete_tensor(std::move(tensor));
  }
  return build(structure);
}

Ref Fetches::build_leaf() {
  if (next_leaf_ == leaves_.size()) throw_changed();
  const int output = leaves_[next_leaf_++];
  return output < 0 ? Ref::borrow(Py_None) : arrays_[static_cast<size_t>(output)];
}

Ref Fetches::build_sequence(PyObject* structure) {
  Ref list = checked(PyList_New(0));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(structure); ++i) {
    Ref element = Ref::borrow(PySequence_Fast_GET_ITEM(structure, i));
    checked(PyList_Append(list.get(), build(element.get()).get()));
  }
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(structure));
  if (PyList_Check(structure)) return list;
  Ref values = checked(PyList_AsTuple(list.get()));
  if (is_named_tuple(structure))
    return checked(parking([&] { return PyObject_Call(type, values.get(), nullptr); }));
  return values;
}

Ref Fetches::build(PyObject* structure) {
  if (is_tensor(structure) || is_operation(structure) || PyUnicode_Check(structure))
    return build_leaf();
  if (PyList_Check(structure) || PyTuple_Check(structure)) return build_sequence(structure);
  if (PyObject_HasAttr(structure, state().str_fetch)) {
    if (next_custom_ == customs_.size()) throw_changed();
    const Custom custom = customs_[next_custom_++];
    Ref elements = build(custom.elements.get());
    return checked(
        parking([&] { return PyObject_CallOneArg(custom.combine.get(), elements.get()); }));
  }
  if (!is_mapping(structure)) return build_leaf();  // an object that stands for a tensor
  Ref keys = checked(PyMapping_Keys(structure));
  Ref values = checked(PyMapping_Values(structure));
  Ref pairs = checked(PyList_New(0));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i) {
    Ref value = build(PyList_GET_ITEM(values.get(), i));
    Ref pair = checked(PyTuple_Pack(2, PyList_GET_ITEM(keys.get(), i), value.get()));
    checked(PyList_Append(pairs.get(), pair.get()));
  }
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(structure));
  if (PyDict_Check(structure) && type != reinterpret_cast<PyObject*>(&PyDict_Type)) {
    Ref made = Ref::steal(parking(
        [&] { return PyObject_CallOneArg(type, pairs.get()); }));  // OrderedDict and the like
    if (made) return made;
    PyErr_Clear();
  }
  Ref dict = checked(PyDict_New());
  checked(PyDict_MergeFromSeq2(dict.get(), pairs.get(), 1));
  return dict;
}

}  // namespace treenail::python
