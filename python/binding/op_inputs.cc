// SPDX-License-Identifier: Apache-2.0
#include "python/binding/op_inputs.h"

#include <algorithm>

#include "framework/op/op_registry.h"
#include "python/binding/dtypes.h"
#include "python/binding/graph_lock.h"
#include "python/binding/tensor_type.h"
#include "python/binding/values.h"

namespace treenail::python {
namespace {

bool is_sequence(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }

// Whether a (nested) list holds a tensor or something that stands for one.
bool contains_tensor(PyObject* object, int depth = 0) {
  if (!is_sequence(object) || depth > kMaxRank) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
    PyObject* element = PySequence_Fast_GET_ITEM(object, i);
    if (is_tensor(element) || contains_tensor(element, depth + 1)) return true;
    if (PyLong_CheckExact(element) || PyFloat_CheckExact(element) || PyUnicode_Check(element))
      continue;
    if (PyObject_HasAttr(reinterpret_cast<PyObject*>(Py_TYPE(element)), state().str_tensor))
      return true;
  }
  return false;
}

DType dtype_of_tensor_object(PyObject* object) {
  if (const Tensor* value = concrete_value(object)) return value->dtype();
  const Output output = output_of(object);
  return output.node->op().output_type(output.index);
}

bool allowed(const AttrDef& attr, DType dtype) {
  return attr.allowed_types.empty() ||
         std::find(attr.allowed_types.begin(), attr.allowed_types.end(), dtype) !=
             attr.allowed_types.end();
}

}  // namespace

OpInputs::OpInputs(const OpCall& call) : call_(call) {
  const OpDef& def = *call.def;
  const bool any_list = std::ranges::any_of(def.inputs, &ArgDef::is_list);
  items_.reserve(def.inputs.size());
  for (size_t arg = 0; arg < def.inputs.size(); ++arg) {
    const size_t before = items_.size();
    if (def.inputs[arg].is_list()) {
      add_list(call.inputs[arg], static_cast<int>(arg));
    } else {
      add(call.inputs[arg], static_cast<int>(arg));
    }
    if (any_list) arg_sizes_.push_back(static_cast<int>(items_.size() - before));
  }
}

void OpInputs::add_list(PyObject* object, int arg) {
  const std::string& name = call_.def->inputs[static_cast<size_t>(arg)].name;
  if (!is_sequence(object)) {
    throw_type_error("Expected list for '", name, "' argument to '", call_.def->name, "' Op, not ",
                     repr_of(object), ".");
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
    add(PySequence_Fast_GET_ITEM(object, i), arg);
}

std::string OpInputs::input_prefix(const ArgDef& def) const {
  return concat("Input '", def.name, "' of '", call_.def->name, "' Op: ");
}

// The tensor that `object` stands for, else itself.
Ref OpInputs::tensor_or_same(PyObject* object, const ArgDef& def) const {
  if (def.dtype == DType::kResource) {
    Ref handle = Ref::steal(PyObject_GetAttrString(object, "handle"));
    if (handle && is_tensor(handle.get())) return handle;
    PyErr_Clear();
    return Ref::borrow(object);
  }
  if (Ref tensor = tensor_protocol(object)) return tensor;
  if (!contains_tensor(object)) return Ref::borrow(object);
  DType dtype = def.dtype;
  if (dtype == DType::kInvalid && def.type_attr >= 0) dtype = given_type(def.type_attr);
  Ref wanted = dtype == DType::kInvalid ? Ref::borrow(Py_None) : dtype_ref(dtype);
  PyObject* arguments[] = {object, wanted.get()};
  return checked(parking([&] { return PyObject_Vectorcall(state().pack, arguments, 2, nullptr); }));
}

// What stands for the tensor in the graph that is built, where that is the body of a function.
Ref OpInputs::captured(Ref tensor) const {
  GraphObject* const building = call_.graph != nullptr ? call_.graph : default_graph();
  GraphObject* const graph = graph_of_tensor(tensor.get());
  if (graph == building) return tensor;
  if (!building->state->captures) {
    if (const std::string body = body_of(tensor.get()); !body.empty())
      throw_value_error(repr_of(tensor.get()), " is of another graph", body, ".");
    return tensor;
  }
  PyObject* arguments[] = {as_object(building), tensor.get()};
  return checked(
      parking([&] { return PyObject_Vectorcall(state().capture, arguments, 2, nullptr); }));
}

void OpInputs::add(PyObject* object, int arg) {
  const ArgDef& def = call_.def->inputs[static_cast<size_t>(arg)];
  Item item{Ref::borrow(object), arg};
  if (!is_tensor(object)) {
    item.object =
        with_prefix([&] { return input_prefix(def); }, [&] { return tensor_or_same(object, def); });
  }
  if (is_symbolic(item.object.get()) && call_.mode == CallMode::kGraph) {
    item.object = captured(std::move(item.object));
    GraphObject* graph = graph_of_tensor(item.object.get());
    if (graph_ != nullptr && graph_ != graph) {
      throw_value_error(repr_of(item.object.get()),
                        " must be from the same graph as the other inputs of '", call_.def->name,
                        "'.");
    }
    if (call_.graph != nullptr && call_.graph != graph) {
      throw_value_error(repr_of(item.object.get()), " is not an element of the graph that '",
                        call_.def->name, "' is added to.");
    }
    graph_ = graph;
  }
  items_.push_back(std::move(item));
}

DType OpInputs::given_type(int attr) const {
  const std::string& name = call_.def->attrs[static_cast<size_t>(attr)].name;
  for (const NamedAttr& given : call_.attrs) {
    if (given.first == name && given.second.kind() == AttrKind::kType)
      return given.second.get<DType>();
  }
  return DType::kInvalid;
}

// What each type attribute is known to be: as given, else the dtype of the first tensor, else of
// the first array.
std::vector<DType> OpInputs::known_types() const {
  const OpDef& def = *call_.def;
  std::vector<DType> types(def.attrs.size(), DType::kInvalid);
  for (size_t i = 0; i < def.attrs.size(); ++i) {
    if (def.attrs[i].kind == AttrKind::kType) types[i] = given_type(static_cast<int>(i));
  }
  for (const bool arrays : {false, true}) {
    for (const Item& item : items_) {
      const int attr = def.inputs[static_cast<size_t>(item.arg)].type_attr;
      PyObject* object = item.object.get();
      if (attr < 0 || types[static_cast<size_t>(attr)] != DType::kInvalid) continue;
      DType& type = types[static_cast<size_t>(attr)];
      if (is_tensor(object)) {
        type = dtype_of_tensor_object(object);
      } else if (arrays && (is_array(object) || is_numpy_scalar(object))) {
        type = dtype_of_numpy(object);
      }
    }
  }
  return types;
}

DType OpInputs::wanted_dtype(const Item& item, const std::vector<DType>& by_attr) const {
  const ArgDef& def = call_.def->inputs[static_cast<size_t>(item.arg)];
  if (def.dtype != DType::kInvalid) return def.dtype;
  return def.type_attr >= 0 ? by_attr[static_cast<size_t>(def.type_attr)] : DType::kInvalid;
}

Tensor OpInputs::convert(const Item& item, std::vector<DType>& by_attr) const {
  const ArgDef& def = call_.def->inputs[static_cast<size_t>(item.arg)];
  const DType wanted = wanted_dtype(item, by_attr);
  PyObject* object = item.object.get();
  return with_prefix(
      [&] { return input_prefix(def); },
      [&] {
        if (wanted != DType::kInvalid || def.type_attr < 0) {
          return tensor_from_object(object, wanted, Casting::kSafeKind, false);
        }
        const AttrDef& attr = call_.def->attrs[static_cast<size_t>(def.type_attr)];
        Tensor value;
        if (attr.has_default && is_weakly_typed(object)) {
          // Untyped Python values take the default dtype where they fit it.
          try {
            value = tensor_from_object(object, attr.default_value.get<DType>(), Casting::kSafeKind,
                                       false);
          } catch (const PythonError&) {
            PyErr_Clear();
          }
        }
        if (!value.defined())
          value = tensor_from_object(object, DType::kInvalid, Casting::kSafeKind, false);
        if (!allowed(attr, value.dtype()) && is_weakly_typed(object)) {
          // int where only floating types are allowed, and the like.
          for (const DType candidate :
               {DType::kFloat32, DType::kInt32, DType::kInt64, DType::kComplex64}) {
            if (!allowed(attr, candidate)) continue;
            try {
              value = tensor_from_object(object, candidate, Casting::kSafeKind, false);
              break;
            } catch (const PythonError&) {
              PyErr_Clear();
            }
          }
        }
        by_attr[static_cast<size_t>(def.type_attr)] = value.dtype();
        return value;
      });
}

std::vector<Output> OpInputs::outputs(GraphObject* graph) const {
  std::vector<Output> result;
  result.reserve(items_.size());
  std::vector<DType> types;
  std::string base;
  for (const Item& item : items_) {
    if (is_symbolic(item.object.get())) {
      result.push_back(output_of(item.object.get()));
      continue;
    }
    if (types.empty()) {
      types = known_types();
      types.resize(std::max<size_t>(types.size(), 1));
      const std::string_view wanted =
          call_.name.empty() ? std::string_view(call_.def->name) : call_.name;
      const bool absolute = wanted.ends_with('/');
      base = absolute ? std::string(wanted.substr(0, wanted.size() - 1))
                      : concat(graph->state->context().scope, wanted);
      Graph& g = *graph->state->graph;
      if (!absolute) base = writing(g, [&] { return g.unique_name(base, false); });
    }
    const ArgDef& def = call_.def->inputs[static_cast<size_t>(item.arg)];
    const std::string name = concat(base, "/", def.name);
    Ref made = concrete_value(item.object.get()) != nullptr
                   ? concrete_in_graph(graph, item.object.get(), name)
                   : constant_tensor(graph, convert(item, types), name, true);
    result.push_back(output_of(made.get()));
  }
  return result;
}

std::vector<const ImmediateTensor*> OpInputs::immediate(std::vector<ImmediateTensor>& made) const {
  std::vector<const ImmediateTensor*> result;
  result.reserve(items_.size());
  made.reserve(items_.size());
  std::vector<DType> types = known_types();
  for (const Item& item : items_) {
    if (is_symbolic(item.object.get())) {
      throw_type_error("'", call_.def->name,
                       "' runs at once, which it cannot on the symbolic tensor ",
                       repr_of(item.object.get()));
    }
    if (const ImmediateTensor* value = immediate_value(item.object.get())) {
      result.push_back(value);
      continue;
    }
    made.push_back({convert(item, types)});
    result.push_back(&made.back());
  }
  return result;
}

}  // namespace treenail::python
