// SPDX-License-Identifier: Apache-2.0
// Tapes for Python (eager/tape.h), and rules of gradients that are Python functions.
#include "python/binding/tape_type.h"

#include <string>

#include "python/binding/attributes.h"
#include "python/binding/module.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

struct TapeObject {
  PyObject_HEAD Tape* tape;
};

Tape& tape_of(PyObject* self) { return *reinterpret_cast<TapeObject*>(self)->tape; }

ImmediateTensor& concrete(PyObject* object, const char* what) {
  ImmediateTensor* const value = immediate_value(object);
  if (value == nullptr) {
    throw_type_error(what, " must be a tensor of immediate execution, not ", repr_of(object),
                     " of type '", type_name_of(object), "'");
  }
  return *value;
}

std::vector<ImmediateTensor> concrete_list(PyObject* list, const char* what) {
  std::vector<ImmediateTensor> result;
  if (list == Py_None) return result;
  Ref sequence = checked(PySequence_Fast(list, "needed is a list of tensors"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.get()); ++i) {
    PyObject* const item = PySequence_Fast_GET_ITEM(sequence.get(), i);
    result.push_back(item == Py_None ? ImmediateTensor() : concrete(item, what));
  }
  return result;
}

// None, a tensor, or (values, indices, dense_shape).
Ref gradient_object(const ImmediateGradient& gradient) {
  if (gradient.kind == Gradient::Kind::kNone) return Ref::borrow(Py_None);
  if (gradient.kind == Gradient::Kind::kDense) return new_concrete_tensor(gradient.dense);
  Ref values = new_concrete_tensor(gradient.values);
  Ref indices = new_concrete_tensor(gradient.indices);
  Ref shape = gradient.dense_shape.tensor.defined() ? new_concrete_tensor(gradient.dense_shape)
                                                    : Ref::borrow(Py_None);
  return checked(PyTuple_Pack(3, values.get(), indices.get(), shape.get()));
}

ImmediateGradient gradient_from(PyObject* object) {
  ImmediateGradient gradient;
  if (object == Py_None) return gradient;
  if (!PyTuple_Check(object)) {
    gradient.kind = Gradient::Kind::kDense;
    gradient.dense = concrete(object, "a gradient");
    return gradient;
  }
  gradient.kind = Gradient::Kind::kSlices;
  gradient.values = concrete(PyTuple_GetItem(object, 0), "values of a gradient");
  gradient.indices = concrete(PyTuple_GetItem(object, 1), "indices of a gradient");
  if (PyTuple_GetItem(object, 2) != Py_None)
    gradient.dense_shape = concrete(PyTuple_GetItem(object, 2), "shape of a gradient");
  return gradient;
}

Ref list_of(std::span<const ImmediateGradient> gradients) {
  Ref list = checked(PyList_New(0));
  for (const ImmediateGradient& gradient : gradients)
    checked(PyList_Append(list.get(), gradient_object(gradient).get()));
  return list;
}

std::vector<ImmediateGradient> gradients_from(PyObject* list, size_t wanted,
                                              const std::string& op) {
  Ref sequence = checked(PySequence_Fast(list, "a gradient function must give a list"));
  const auto given = static_cast<size_t>(PySequence_Fast_GET_SIZE(sequence.get()));
  if (given != wanted) {
    throw_value_error("Num gradients ", given, " generated for op ", op,
                      " do not match num inputs ", wanted);
  }
  std::vector<ImmediateGradient> gradients;
  for (size_t i = 0; i < given; ++i)
    gradients.push_back(
        gradient_from(PySequence_Fast_GET_ITEM(sequence.get(), static_cast<Py_ssize_t>(i))));
  return gradients;
}

Ref list_of(std::span<const ImmediateTensor> tensors) {
  Ref list = checked(PyList_New(0));
  for (const ImmediateTensor& tensor : tensors)
    checked(PyList_Append(list.get(), new_concrete_tensor(tensor).get()));
  return list;
}

Ref attributes_of(const OpInstance& op) {
  Ref attributes = checked(PyDict_New());
  for (size_t i = 0; i < op.def().attrs.size(); ++i) {
    checked(PyDict_SetItemString(attributes.get(), op.def().attrs[i].name.c_str(),
                                 object_from_attr(op.attr(static_cast<int>(i))).get()));
  }
  return attributes;
}

// What RegisterGradient gave an op.
class RegisteredRule final : public RecordedRule {
 public:
  std::vector<ImmediateGradient> gradients(const OpInstance& op,
                                           std::span<const ImmediateTensor> values,
                                           std::span<const ImmediateGradient> output_gradients,
                                           std::span<const bool>) override {
    PyObject* const rule = registered_rule(op.name());
    if (rule == nullptr) throw unimplemented("op \"", op.name(), "\" has no gradient");
    const auto inputs = static_cast<size_t>(op.num_inputs());
    Ref name = text_object(op.name());
    Ref given = list_of(values.first(inputs));
    Ref made = list_of(values.subspan(inputs));
    Ref attributes = attributes_of(op);
    Ref arriving = list_of(output_gradients);
    PyObject* arguments[] = {rule,       name.get(),       given.get(),
                             made.get(), attributes.get(), arriving.get()};
    Ref result = checked(parking([&] {
      return PyObject_Vectorcall(state().call_recorded_gradient, arguments, 6, nullptr);
    }));
    return gradients_from(result.get(), inputs, op.name());
  }
};

// A function's own gradient: rule([output gradient, ...], [whether it is needed, ...]) gives those
// of the inputs.
class FunctionRule final : public RecordedRule {
 public:
  explicit FunctionRule(PyObject* function) : function_(new_ref(function)) {}
  ~FunctionRule() override { Py_DECREF(function_); }
  FunctionRule(const FunctionRule&) = delete;
  FunctionRule& operator=(const FunctionRule&) = delete;

  bool reads_values() const override { return false; }
  std::vector<ImmediateGradient> gradients(const OpInstance& op, std::span<const ImmediateTensor>,
                                           std::span<const ImmediateGradient> output_gradients,
                                           std::span<const bool> needed) override {
    Ref arriving = list_of(output_gradients);
    Ref asked = checked(PyList_New(0));
    for (const bool each : needed) checked(PyList_Append(asked.get(), each ? Py_True : Py_False));
    PyObject* arguments[] = {arriving.get(), asked.get()};
    Ref result =
        checked(parking([&] { return PyObject_Vectorcall(function_, arguments, 2, nullptr); }));
    return gradients_from(result.get(), static_cast<size_t>(op.num_inputs()), "a function");
  }

 private:
  PyObject* function_;
};

// --- The type -----------------------------------------------------------------------------------

PyObject* create(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&] {
    int watches_variables = 1;
    if (PyArg_ParseTuple(args, "p", &watches_variables) == 0) throw PythonError();
    Ref self = checked(PyType_GenericAlloc(type, 0));
    reinterpret_cast<TapeObject*>(self.get())->tape = new Tape(watches_variables != 0);
    return self.release();
  });
}

void destroy(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  delete reinterpret_cast<TapeObject*>(self)->tape;
  type->tp_free(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

template <void (Tape::*Method)()>
PyObject* call(PyObject* self, PyObject*) {
  return guarded([&] {
    (tape_of(self).*Method)();
    return none();
  });
}

// An open tape holds itself: its thread knows it by address.
PyObject* open_tape(PyObject* self, PyObject*) {
  return guarded([&] {
    tape_of(self).open();
    Py_INCREF(self);
    return none();
  });
}
PyObject* close_tape(PyObject* self, PyObject*) {
  return guarded([&] {
    tape_of(self).close();
    Py_DECREF(self);
    return none();
  });
}

PyObject* watch(PyObject* self, PyObject* tensor) {
  return guarded([&] {
    tape_of(self).watch(concrete(tensor, "what a tape watches"));
    return none();
  });
}

PyObject* watched_variables(PyObject* self, PyObject*) {
  return guarded([&] {
    Ref list = checked(PyList_New(0));
    for (Tensor& handle : tape_of(self).watched_variables())
      checked(PyList_Append(list.get(), new_concrete_tensor(std::move(handle)).get()));
    return list.release();
  });
}

// gradients(targets, sources, output gradients or None)
PyObject* gradients(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 3) throw_type_error("gradients() takes targets, sources and output gradients");
    const auto targets = concrete_list(args[0], "a target");
    const auto sources = concrete_list(args[1], "a source");
    const auto arriving = concrete_list(args[2], "an output gradient");
    const auto run = [](const OpDef& def, std::span<const Tensor> inputs, const NamedAttrs& attrs,
                        std::span<const int> sizes,
                        OpInstance& op) { return run_op_now(def, inputs, attrs, sizes, op); };
    return list_of(tape_of(self).gradients(targets, sources, arriving, run)).release();
  });
}

PyObject* get_open(PyObject* self, void*) { return bool_object(tape_of(self).is_open()); }

PyMethodDef methods[] = {
    {"open", open_tape, METH_NOARGS, nullptr},
    {"close", close_tape, METH_NOARGS, nullptr},
    {"pause", call<&Tape::pause>, METH_NOARGS, nullptr},
    {"resume", call<&Tape::resume>, METH_NOARGS, nullptr},
    {"reset", call<&Tape::reset>, METH_NOARGS, nullptr},
    {"watch", watch, METH_O, nullptr},
    {"watched_variables", watched_variables, METH_NOARGS, nullptr},
    {"gradients", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(gradients)), METH_FASTCALL,
     nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef getset[] = {
    {"is_open", get_open, nullptr, "Whether it sees what happens, or is paused.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(create)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_doc, const_cast<char*>("The core of treenail.GradientTape.")},
    {0, nullptr},
};
PyType_Spec spec = {"treenail._treenail.Tape", sizeof(TapeObject), 0, Py_TPFLAGS_DEFAULT, slots};

// tapes_record(): whether a tape on this thread sees what happens.
PyObject* record_seen(PyObject*, PyObject*) { return bool_object(tapes_record()); }

// record_call(inputs, outputs, rule): the outputs were computed from the inputs by a function whose
// gradient is rule([output gradient or None, ...], [whether needed, ...]). New tensors for the
// outputs, as tapes know them.
PyObject* record_call(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 3) throw_type_error("record_call() takes inputs, outputs and a rule");
    std::vector<ImmediateTensor> inputs = concrete_list(args[0], "an input");
    std::vector<ImmediateTensor> outputs;
    std::vector<const ImmediateTensor*> pointers;
    std::vector<DType> given, made;
    for (const ImmediateTensor& input : inputs) {
      pointers.push_back(&input);
      given.push_back(input.tensor.dtype());
    }
    for (const ImmediateTensor& output : concrete_list(args[1], "an output")) {
      outputs.push_back({output.tensor});
      made.push_back(output.tensor.dtype());
    }
    if (tapes_record()) {
      record_op(function_op(given, made), pointers, outputs,
                std::make_shared<FunctionRule>(args[2]));
    }
    return list_of(outputs).release();
  });
}

// any_recorded([tensor, ...]): whether tapes that see this thread know one of these.
PyObject* knows_any(PyObject*, PyObject* list) {
  return guarded([&] {
    if (!tapes_record()) return bool_object(false);
    Ref sequence = checked(PySequence_Fast(list, "needed is a list of tensors"));
    std::vector<const ImmediateTensor*> tensors;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.get()); ++i)
      tensors.push_back(&concrete(PySequence_Fast_GET_ITEM(sequence.get(), i), "a value"));
    return bool_object(any_recorded(tensors));
  });
}

PyMethodDef functions[] = {
    {"any_recorded", knows_any, METH_O, nullptr},
    {"tapes_record", record_seen, METH_NOARGS, nullptr},
    {"record_call", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(record_call)),
     METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

std::shared_ptr<RecordedRule> rule_in_python(const OpDef& def) {
  if (def.gradient_fn != nullptr || def.non_differentiable) return nullptr;
  static const auto rule = std::make_shared<RegisteredRule>();
  return rule;
}

void add_tape(PyObject* module) {
  State& s = state();
  if (s.tape_type == nullptr) s.tape_type = make_type(spec, true);
  add_type(module, "Tape", s.tape_type);
  add_methods(module, functions);
}

}  // namespace treenail::python
