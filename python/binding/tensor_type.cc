// SPDX-License-Identifier: Apache-2.0
#include "python/binding/tensor_type.h"

#include "framework/device/device.h"

#include <vector>

#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/runtime/state/variable.h"
#include "python/binding/attributes.h"
#include "python/binding/dlpack.h"
#include "python/binding/dtypes.h"
#include "python/binding/graph_lock.h"
#include "python/binding/loans.h"
#include "python/binding/numpy.h"
#include "python/binding/operation_type.h"
#include "python/binding/quick_call.h"
#include "python/binding/values.h"

namespace treenail::python {
namespace {

TensorObject* cast(PyObject* self) { return reinterpret_cast<TensorObject*>(self); }

TensorObject* symbolic(PyObject* self, const char* what) {
  if (cast(self)->graph == nullptr) {
    throw_python(PyExc_AttributeError,
                 concat("a concrete tensor has no ", what, ": it belongs to no graph"));
  }
  return cast(self);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->dict);
  Py_VISIT(cast(self)->graph);
  return 0;
}
int clear(PyObject* self) {
  Py_CLEAR(cast(self)->dict);
  Py_CLEAR(cast(self)->graph);
  return 0;
}
// Concrete tensors that ended, for new ones: with their value, which is empty, and without a
// type. Under the GIL.
constexpr size_t kSpares = 64;
TensorObject* spares[kSpares];
size_t spare_count = 0;

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (cast(self)->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  clear(self);
  ImmediateTensor* const value = cast(self)->value;
  if (value != nullptr && spare_count < kSpares) {
    *value = ImmediateTensor();
    spares[spare_count++] = cast(self);
  } else {
    delete value;
    type->tp_free(self);
  }
  if (value != nullptr) release_borrowed();
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

std::string name_of(PyObject* self) {
  return cast(self)->graph == nullptr ? std::string("(concrete)") : to_text(output_of(self));
}
DType dtype_of_tensor(PyObject* self) {
  const TensorObject* t = cast(self);
  if (t->graph == nullptr) return t->value ? t->value->tensor.dtype() : DType::kInvalid;
  return t->node->op().output_type(t->index);
}
PartialShape shape_of_tensor(PyObject* self) {
  const TensorObject* t = cast(self);
  if (t->graph == nullptr)
    return t->value ? PartialShape(t->value->tensor.shape()) : PartialShape();
  return reading(t->node->graph(), [&] { return t->node->info(t->index).shape; });
}

PyObject* get_op(PyObject* self, void*) {
  return guarded([&] {
    TensorObject* t = symbolic(self, "op");
    return operation_view(t->graph, t->node).release();
  });
}
PyObject* get_graph(PyObject* self, void*) {
  return guarded([&] { return new_ref(as_object(symbolic(self, "graph")->graph)); });
}
PyObject* get_name(PyObject* self, void*) {
  return guarded([&] {
    symbolic(self, "name");
    return text_object(name_of(self)).release();
  });
}
PyObject* get_device(PyObject* self, void*) {
  return guarded([&] {
    if (const Tensor* value = concrete_value(self)) {
      Device* const device = value->dtype() == DType::kResource ? home_of(*value) : value->device();
      return text_object(to_text((device != nullptr ? *device : cpu_device()).name())).release();
    }
    const Node& node = *symbolic(self, "device")->node;
    return text_object(reading(node.graph(), [&] { return std::string(node.device()); })).release();
  });
}
PyObject* get_dtype(PyObject* self, void*) {
  return guarded([&] { return dtype_ref(dtype_of_tensor(self)).release(); });
}
PyObject* get_shape(PyObject* self, void*) {
  return guarded([&] { return object_from_shape(shape_of_tensor(self)).release(); });
}
PyObject* get_ndims(PyObject* self, void*) {
  return guarded([&] {
    const PartialShape shape = shape_of_tensor(self);
    return shape.rank_known() ? PyLong_FromLong(shape.rank()) : none();
  });
}
PyObject* get_shape_method(PyObject* self, PyObject*) { return get_shape(self, nullptr); }
PyObject* get_value_index(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromLong(symbolic(self, "value_index")->index); });
}

// The extents of the value this integer vector spells, where building knows it: what shape
// arithmetic gave.
PyObject* get_known_value(PyObject* self, void*) {
  return guarded([&] {
    const TensorObject* t = cast(self);
    if (t->graph == nullptr) return array_from_tensor(Tensor(t->value->tensor), false).release();
    std::shared_ptr<const Tensor> constant;
    reading(t->node->graph(), [&] { constant = t->node->info(t->index).constant; });
    if (!constant || !(is_plain(constant->dtype()) || constant->dtype() == DType::kString))
      return none();
    return array_from_tensor(Tensor(*constant), false).release();
  });
}
PyObject* get_is_concrete(PyObject* self, void*) {
  return bool_object(cast(self)->graph == nullptr);
}
PyObject* get_known_elements(PyObject* self, void*) {
  return guarded([&] {
    const TensorObject* t = cast(self);
    std::shared_ptr<const PartialValue> value;
    if (t->graph == nullptr) {
      value = partial_value_of(on_host(t->value->tensor));
    } else {
      reading(t->node->graph(), [&] { value = t->node->info(t->index).value; });
    }
    if (!value) return none();
    Ref list = checked(PyList_New(static_cast<Py_ssize_t>(value->elements.size())));
    for (size_t i = 0; i < value->elements.size(); ++i) {
      const auto& element = value->elements[i];
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i),
                      element ? PyLong_FromLongLong(*element) : none());
    }
    return list.release();
  });
}

PyObject* set_shape(PyObject* self, PyObject* shape) {
  PyObject* graph = cast(self)->graph ? as_object(cast(self)->graph) : nullptr;
  return guarded(
      [&] {
        const PartialShape wanted = shape_from_object(shape, "shape");
        if (cast(self)->graph == nullptr) {
          if (!wanted.compatible(shape_of_tensor(self))) {
            throw_value_error("a tensor of shape ", shape_of_tensor(self), " cannot take shape ",
                              wanted);
          }
          return none();
        }
        Graph& g = cast(self)->node->graph();
        const Output output = output_of(self);
        writing(g, [&] { g.set_shape(output, wanted); });
        return none();
      },
      graph);
}

PyObject* consumers(PyObject* self, PyObject*) {
  return guarded([&] {
    const TensorObject* t = symbolic(self, "consumers");
    const Output output = output_of(self);
    std::vector<Node*> nodes;
    reading(t->node->graph(), [&] {
      for (Node* consumer : t->node->consumers()) {
        if (!nodes.empty() && nodes.back() == consumer) continue;
        for (const Output& input : consumer->inputs()) {
          if (!(input == output)) continue;
          nodes.push_back(consumer);
          break;
        }
      }
    });
    Ref list = checked(PyList_New(0));
    for (Node* node : nodes) {
      Ref view = operation_view(t->graph, node);
      if (checked(PySequence_Contains(list.get(), view.get())) == 0)
        checked(PyList_Append(list.get(), view.get()));
    }
    return list.release();
  });
}

// --- Concrete values -----------------------------------------------------------------------------

Ref array_of(PyObject* self, bool scalars) {
  if (cast(self)->graph != nullptr) {
    throw_python(PyExc_NotImplementedError, concat("Cannot convert a symbolic Tensor (",
                                                   name_of(self), ") to a numpy array."));
  }
  return array_from_tensor(Tensor(cast(self)->value->tensor), scalars);
}
PyObject* numpy(PyObject* self, PyObject*) {
  return guarded([&] {
    return with_prefix([] { return "Tensor.numpy(): "; }, [&] { return array_of(self, true); })
        .release();
  });
}
PyObject* array(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    Ref result = array_of(self, false);
    PyObject* dtype = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : nullptr;
    if (dtype == nullptr && kwargs != nullptr) dtype = PyDict_GetItemString(kwargs, "dtype");
    if (dtype == nullptr || dtype == Py_None) return result.release();
    return checked(parking([&] { return PyObject_CallMethod(result.get(), "astype", "O", dtype); }))
        .release();
  });
}
const Tensor& exported(PyObject* self) {
  if (cast(self)->graph != nullptr) {
    throw_python(PyExc_BufferError, concat("__dlpack__(): a symbolic Tensor (", name_of(self),
                                           ") has no memory yet: run it in a Session"));
  }
  return cast(self)->value->tensor;
}
PyObject* dlpack(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&] { return dlpack_capsule(exported(self), args, kwargs).release(); });
}
PyObject* dlpack_device_of(PyObject* self, PyObject*) {
  return guarded([&] { return dlpack_device(exported(self)).release(); });
}
// The value in the host's memory; what copies it is seen by tapes.
PyObject* to_cpu(PyObject* self, PyObject*) {
  return guarded([&] {
    if (cast(self)->graph != nullptr) {
      throw_python(PyExc_NotImplementedError,
                   concat("Tensor.cpu(): a symbolic Tensor (", name_of(self),
                          ") lies nowhere yet: tn.identity() under tn.device(\"/cpu:0\") copies "
                          "it when it is run"));
    }
    const ImmediateTensor* const value = cast(self)->value;
    if (value->tensor.device() == nullptr) return new_ref(self);
    static const OpDef& identity = OpRegistry::instance().get("Identity");
    static const auto* const none = new NamedAttrs();
    return quick_call_on("/device:CPU:0", identity, {&value, 1}, *none).release();
  });
}
int truth(PyObject* self) {
  try {
    if (cast(self)->graph != nullptr) {
      throw_type_error(
          "Using a `tn.Tensor` as a Python `bool` is not allowed. Use `if t is not None:` instead "
          "of `if t:` "
          "to test if a tensor is defined, and tn.where to choose by the value of a tensor.");
    }
    return checked(PyObject_IsTrue(array_of(self, true).get()));
  } catch (...) {
    translate_exception();
    return -1;
  }
}
PyObject* iterate(PyObject* self) {
  return guarded([&] {
    if (cast(self)->graph != nullptr) {
      throw_type_error("A symbolic Tensor (", name_of(self),
                       ") cannot be iterated over; use tn.unstack to get its rows.");
    }
    const Tensor& value = cast(self)->value->tensor;
    if (value.rank() == 0) throw_type_error("Cannot iterate over a scalar tensor.");
    Ref rows = checked(PyList_New(0));
    for (int64_t i = 0; i < value.dim(0); ++i) {
      const Ref number = checked(PyLong_FromLongLong(i));
      checked(PyList_Append(rows.get(), checked(PyObject_GetItem(self, number.get())).get()));
    }
    return checked(PyObject_GetIter(rows.get())).release();
  });
}
// Python would iterate, but hide what iterate() says.
int contains(PyObject* self, PyObject* value) {
  try {
    const Ref rows = cast(self)->graph == nullptr ? array_of(self, false) : checked(iterate(self));
    return checked(PySequence_Contains(rows.get(), value));
  } catch (...) {
    translate_exception();
    return -1;
  }
}
Py_ssize_t length(PyObject* self) {
  try {
    if (cast(self)->graph != nullptr) {
      throw_type_error("len() is not defined for a symbolic Tensor (", name_of(self),
                       "); use x.shape[0] or tn.shape(x)[0].");
    }
    const Tensor& value = cast(self)->value->tensor;
    if (value.rank() > 0) return static_cast<Py_ssize_t>(value.dim(0));
    return checked(static_cast<int>(PyObject_Length(array_of(self, false).get())));
  } catch (...) {
    translate_exception();
    return -1;
  }
}
template <PyObject* (*Convert)(PyObject*)>
PyObject* number(PyObject* self) {
  return guarded([&] {
    if (cast(self)->graph != nullptr) {
      throw_type_error("a symbolic Tensor (", name_of(self),
                       ") has no value yet: run it in a Session");
    }
    return checked(Convert(array_of(self, true).get())).release();
  });
}

// The value of a concrete tensor as NumPy writes it.
std::string text_of_value(PyObject* self, bool representation) {
  const Tensor& value = cast(self)->value->tensor;
  if (!is_plain(value.dtype()) && value.dtype() != DType::kString) return "<unprintable>";
  const Ref array = array_of(self, false);
  const bool plain = !representation || value.rank() == 0;
  const Ref text = checked(
      parking([&] { return plain ? PyObject_Str(array.get()) : PyObject_Repr(array.get()); }));
  return std::string(text_of(text.get(), "a text"));
}
// "shape=(2, 3), dtype=float32"
std::string shape_and_dtype(PyObject* self) {
  const Tensor& value = cast(self)->value->tensor;
  std::string shape;
  for (const int64_t extent : value.shape().dims())
    shape += concat(shape.empty() ? "" : ", ", extent);
  if (value.rank() == 1) shape += ',';
  return concat("shape=(", shape, "), dtype=", value.dtype());
}

PyObject* text(PyObject* self) {
  if (cast(self)->graph != nullptr) return PyObject_Repr(self);
  return guarded([&] {
    const std::string value = text_of_value(self, false);
    const bool lines = value.find('\n') != std::string::npos;
    return text_object(
               concat("tn.Tensor(", lines ? "\n" : "", value, ", ", shape_and_dtype(self), ")"))
        .release();
  });
}
PyObject* repr(PyObject* self) {
  return guarded([&] {
    if (cast(self)->graph == nullptr) {
      const std::string value = text_of_value(self, true);
      return text_object(concat("<tn.Tensor: ", shape_and_dtype(self), ", numpy=",
                                value.find('\n') == std::string::npos ? "" : "\n", value, ">"))
          .release();
    }
    return text_object(concat("<tn.Tensor '", name_of(self), "' shape=", shape_of_tensor(self),
                              " dtype=", dtype_of_tensor(self), ">"))
        .release();
  });
}

PyGetSetDef getset[] = {
    {"op", get_op, nullptr, "The Operation that gives this tensor.", nullptr},
    {"graph", get_graph, nullptr, "The Graph that contains this tensor.", nullptr},
    {"name", get_name, nullptr, "'operation:output number'.", nullptr},
    {"device", get_device, nullptr,
     "The requested device of its operation, or ''; of a concrete tensor, where it lies.", nullptr},
    {"dtype", get_dtype, nullptr, "The DType of the elements.", nullptr},
    {"shape", get_shape, nullptr, "What is known of the shape: a TensorShape.", nullptr},
    {"_ndims", get_ndims, nullptr, "shape.ndims, without making a shape.", nullptr},
    {"value_index", get_value_index, nullptr, "Which output of its operation this is.", nullptr},
    {"_is_concrete", get_is_concrete, nullptr, "Whether it is one of immediate execution.",
     nullptr},
    {"_known_value", get_known_value, nullptr,
     "The value as an array where it is a constant, else None.", nullptr},
    {"_known_elements", get_known_elements, nullptr,
     "The elements of a small integer vector, None where unknown; or None.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"get_shape", get_shape_method, METH_NOARGS, "get_shape($self, /)\n--\n\nThe same as `shape`."},
    {"set_shape", set_shape, METH_O,
     "set_shape($self, shape, /)\n--\n\nAdds to what is known of the shape. Raises "
     "InvalidArgumentError (a ValueError) when "
     "both cannot be true."},
    {"consumers", consumers, METH_NOARGS,
     "consumers($self, /)\n--\n\nThe operations that take this tensor."},
    {"cpu", to_cpu, METH_NOARGS,
     "cpu($self, /)\n--\n\nThe value of a concrete tensor in the host's memory: the tensor itself "
     "where it lies there. Raises NotImplementedError for a symbolic one."},
    {"numpy", numpy, METH_NOARGS,
     "numpy($self, /)\n--\n\nThe value of a concrete tensor as an array. Raises "
     "NotImplementedError for a symbolic one."},
    {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(dlpack)),
     METH_VARARGS | METH_KEYWORDS,
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "The value in a DLPack capsule, for numpy.from_dlpack, torch.from_dlpack and the like, "
     "without "
     "a copy where possible; it is not to be written. Raises BufferError for a symbolic tensor, "
     "strings, another device; of a tensor in a device's memory dl_device=(1, 0) gets a copy."},
    {"__dlpack_device__", dlpack_device_of, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\n(1, 0): the host's memory. Raises BufferError where the "
     "tensor lies in a device's, which DLPack has no number for: see cpu()."},
    {"__array__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(array)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot own_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_str, reinterpret_cast<void*>(text)},
    {Py_tp_iter, reinterpret_cast<void*>(iterate)},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_nb_bool, reinterpret_cast<void*>(truth)},
    {Py_nb_int, reinterpret_cast<void*>(number<PyNumber_Long>)},
    {Py_nb_float, reinterpret_cast<void*>(number<PyNumber_Float>)},
    {Py_nb_index, reinterpret_cast<void*>(number<PyNumber_Index>)},
    {Py_sq_contains, reinterpret_cast<void*>(contains)},
    {Py_mp_length, reinterpret_cast<void*>(length)},
    {Py_tp_doc,
     const_cast<char*>("A value of a graph, or a concrete one from immediate execution.")},
};

}  // namespace

Ref new_tensor(GraphObject* graph, Output output) {
  Ref self = checked(PyType_GenericAlloc(state().tensor_type, 0));
  cast(self.get())->graph = reinterpret_cast<GraphObject*>(new_ref(as_object(graph)));
  cast(self.get())->node = output.node;
  cast(self.get())->index = output.index;
  return self;
}

Ref new_concrete_tensor(ImmediateTensor value) {
  if (spare_count > 0) {
    TensorObject* const spare = spares[--spare_count];
    *spare->value = std::move(value);
    Ref self = Ref::steal(PyObject_Init(reinterpret_cast<PyObject*>(spare), state().tensor_type));
    PyObject_GC_Track(self.get());
    return self;
  }
  Ref self = checked(PyType_GenericAlloc(state().tensor_type, 0));
  cast(self.get())->value = new ImmediateTensor(std::move(value));
  return self;
}

Ref tensor_protocol(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyFloat_Type || type == &PyLong_Type || type == &PyList_Type ||
      type == &PyTuple_Type || type == &PyUnicode_Type || type == state().tensor_type) {
    return {};
  }
  if (!PyObject_HasAttr(reinterpret_cast<PyObject*>(type), state().str_tensor)) return {};
  Ref tensor =
      checked(parking([&] { return PyObject_CallMethodNoArgs(object, state().str_tensor); }));
  if (!is_tensor(tensor.get()))
    throw_type_error(repr_of(object), ".__treenail_tensor__() gave no Tensor");
  return tensor;
}

std::string body_of(PyObject* tensor) {
  if (!is_symbolic(tensor) || !graph_of_tensor(tensor)->state->captures) return "";
  Ref name = checked(PyObject_GetAttrString(as_object(graph_of_tensor(tensor)), "_name"));
  return concat(": it belongs to the body of ", repr_of(name.get()), "; return it from there");
}

Output output_from(PyObject* object, GraphObject* graph) {
  if (is_symbolic(object)) {
    if (graph != nullptr && graph_of_tensor(object) != graph) {
      throw_value_error("Tensor ", repr_of(object), " is not an element of this graph",
                        body_of(object), ".");
    }
    return output_of(object);
  }
  if (PyUnicode_Check(object) && graph != nullptr) {
    const std::string name(text_of(object, "a name"));
    Graph& g = *graph->state->graph;
    return reading(g, [&] { return g.find_output(name); });
  }
  if (Ref tensor = tensor_protocol(object)) return output_from(tensor.get(), graph);
  throw_type_error("needed is a Tensor of the graph, not ", repr_of(object), " of type '",
                   type_name_of(object), "'");
}

void add_tensor(PyObject* module) {
  State& s = state();
  if (s.tensor_type == nullptr) {
    std::vector<PyType_Slot> slots(std::begin(own_slots), std::end(own_slots));
    for (const PyType_Slot* slot = tensor_operator_slots; slot->slot != 0; ++slot)
      slots.push_back(*slot);
    slots.push_back({0, nullptr});
    PyType_Spec spec = {"treenail._treenail.Tensor", sizeof(TensorObject), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots.data()};
    s.tensor_type = make_type(spec, false);
    // NumPy leaves `array + tensor` to the tensor; np.add(array, tensor) asks for its __array__.
    Ref priority = checked(PyLong_FromLong(100));
    checked(PyObject_SetAttrString(reinterpret_cast<PyObject*>(s.tensor_type), "__array_priority__",
                                   priority.get()));
  }
  add_type(module, "Tensor", s.tensor_type);
}

}  // namespace treenail::python
