// SPDX-License-Identifier: Apache-2.0
// OpFunction: an op of the registry as a Python callable, f(input, ..., attribute=..., name=None).
// Parameters: the inputs, the attributes that inputs do not tell, `name`. Made once per op, on
// first use (op_function(name)).
#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/op/op_registry.h"
#include "python/binding/attributes.h"
#include "python/binding/module.h"
#include "python/binding/op_call.h"
#include "python/binding/op_function.h"
#include "python/binding/operation_type.h"

namespace treenail::python {
namespace {

struct Parameter {
  PyObject* name = nullptr;  // interned
  int input = -1;
  int attr = -1;
};

struct Signature {
  const OpDef* def = nullptr;
  std::vector<Parameter> parameters;  // in order; `name` follows
  std::vector<Parameter>
      inferred;  // type and number attributes that inputs tell: accepted by keyword
};

struct FunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  Signature* signature;
  PyObject* python_name;
};

const Signature& signature_of(PyObject* self) {
  return *reinterpret_cast<FunctionObject*>(self)->signature;
}

PyObject* interned(const std::string& text) {
  PyObject* object = PyUnicode_InternFromString(text.c_str());
  if (object == nullptr) throw PythonError();
  return object;
}

bool told_by_inputs(const OpDef& def, int attr) {
  return std::any_of(def.inputs.begin(), def.inputs.end(), [&](const ArgDef& input) {
    return input.type_attr == attr || input.type_list_attr == attr || input.number_attr == attr;
  });
}

Signature* make_signature(const OpDef& def) {
  auto* signature = new Signature{&def, {}, {}};
  for (size_t i = 0; i < def.inputs.size(); ++i) {
    signature->parameters.push_back({interned(def.inputs[i].name), static_cast<int>(i), -1});
  }
  for (const bool with_default : {false, true}) {
    for (size_t i = 0; i < def.attrs.size(); ++i) {
      const int attr = static_cast<int>(i);
      if (def.attrs[i].has_default != with_default) continue;
      (told_by_inputs(def, attr) ? signature->inferred : signature->parameters)
          .push_back({interned(def.attrs[i].name), -1, attr});
    }
  }
  return signature;
}

std::string python_name(PyObject* self) {
  return std::string(text_of(reinterpret_cast<FunctionObject*>(self)->python_name, "a name"));
}

class Arguments {
 public:
  explicit Arguments(PyObject* self) : self_(self), signature_(signature_of(self)) {
    call_.def = signature_.def;
    call_.inputs.resize(signature_.def->inputs.size(), nullptr);
  }

  Ref run(PyObject* const* args, size_t nargs, PyObject* kwnames) {
    const size_t count = signature_.parameters.size();
    if (nargs > count + 1) {
      throw_type_error(python_name(self_), "() takes at most ", count + 1,
                       " positional arguments, ", nargs, " were given");
    }
    for (size_t i = 0; i < nargs; ++i) {
      if (i == count) {
        set_name(args[i]);
      } else {
        set(signature_.parameters[i], args[i]);
      }
    }
    const Py_ssize_t keywords = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
    for (Py_ssize_t k = 0; k < keywords; ++k)
      set_keyword(PyTuple_GET_ITEM(kwnames, k), args[nargs + static_cast<size_t>(k)]);
    for (const Parameter& parameter : signature_.parameters) {
      if (parameter.input >= 0 && call_.inputs[static_cast<size_t>(parameter.input)] == nullptr) {
        throw_type_error(python_name(self_), "() misses the argument '",
                         text_of(parameter.name, "a name"), "'");
      }
    }
    return call_op(call_);
  }

 private:
  // Inputs are named by the op, in OpInputs.
  template <class F>
  void named(F&& convert) {
    with_prefix([&] { return concat(python_name(self_), "(): "); }, convert);
  }

  void set_name(PyObject* value) {
    if (value == Py_None) return;
    named([&] { call_.name = text_of(value, "name"); });
  }

  void set(const Parameter& parameter, PyObject* value) {
    if (parameter.input >= 0) {
      PyObject*& place = call_.inputs[static_cast<size_t>(parameter.input)];
      if (place != nullptr) {
        throw_type_error(python_name(self_), "() got several values for '",
                         text_of(parameter.name, "a name"), "'");
      }
      place = value;
      return;
    }
    const AttrDef& def = signature_.def->attrs[static_cast<size_t>(parameter.attr)];
    if (value == Py_None && def.kind != AttrKind::kShape) return;  // the default
    named([&] { call_.attrs.emplace_back(def.name, attr_from_object(value, def)); });
  }

  const Parameter* find(PyObject* name) const {
    for (const auto* list : {&signature_.parameters, &signature_.inferred}) {
      for (const Parameter& parameter : *list) {
        if (parameter.name == name) return &parameter;
      }
    }
    return nullptr;
  }

  void set_keyword(PyObject* name, PyObject* value) {
    const Parameter* parameter = find(name);
    if (parameter == nullptr) {
      // Keywords of calls are interned nearly always; those of **kwargs need not be.
      Ref copy = Ref::borrow(name);
      PyObject* canonical = copy.release();
      PyUnicode_InternInPlace(&canonical);
      Ref held = Ref::steal(canonical);
      parameter = find(canonical);
      if (parameter == nullptr && canonical == state().str_name) return set_name(value);
    }
    if (parameter == nullptr) {
      throw_type_error(python_name(self_), "() got an unexpected keyword argument '",
                       text_of(name, "a keyword"), "'");
    }
    set(*parameter, value);
  }

  PyObject* self_;
  const Signature& signature_;
  OpCall call_;
};

PyObject* call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  return guarded([&] {
    return Arguments(self)
        .run(args, static_cast<size_t>(PyVectorcall_NARGS(nargsf)), kwnames)
        .release();
  });
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_CLEAR(reinterpret_cast<FunctionObject*>(self)->python_name);
  type->tp_free(self);  // the signature is kept: functions live as long as the process
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyObject* get_name(PyObject* self, void*) {
  return new_ref(reinterpret_cast<FunctionObject*>(self)->python_name);
}
PyObject* get_module(PyObject*, void*) { return PyUnicode_FromString("treenail.raw_ops"); }
PyObject* get_op_name(PyObject* self, void*) {
  return guarded([&] { return text_object(signature_of(self).def->name).release(); });
}
PyObject* get_doc(PyObject* self, void*) {
  return guarded([&] { return text_object(signature_of(self).def->doc).release(); });
}
// [(name, required, default), ...] in order; the last is `name`.
PyObject* get_parameters(PyObject* self, void*) {
  return guarded([&] {
    const Signature& s = signature_of(self);
    Ref list = checked(PyList_New(0));
    const auto add = [&](PyObject* name, bool required, const Ref& value) {
      Ref entry = checked(Py_BuildValue("(OOO)", name, required ? Py_True : Py_False, value.get()));
      checked(PyList_Append(list.get(), entry.get()));
    };
    for (const Parameter& parameter : s.parameters) {
      const AttrDef* attr =
          parameter.attr < 0 ? nullptr : &s.def->attrs[static_cast<size_t>(parameter.attr)];
      const bool required = attr == nullptr || !attr->has_default;
      add(parameter.name, required,
          required ? Ref::borrow(Py_None) : object_from_attr(attr->default_value));
    }
    add(state().str_name, false, Ref::borrow(Py_None));
    return list.release();
  });
}
PyObject* get_signature(PyObject* self, void*) {
  return guarded([&] {
    return checked(parking([&] { return PyObject_CallOneArg(state().make_signature, self); }))
        .release();
  });
}
PyObject* repr(PyObject* self) {
  return guarded(
      [&] { return text_object(concat("<op function ", python_name(self), ">")).release(); });
}

PyGetSetDef getset[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_name, nullptr, nullptr, nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__signature__", get_signature, nullptr, nullptr, nullptr},
    {"parameters", get_parameters, nullptr,
     "(name, required, default) of each parameter, in order.", nullptr},
    {"op_name", get_op_name, nullptr, "The name of the op in the registry.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, nullptr},
};
PyType_Spec spec = {"treenail._treenail.OpFunction", sizeof(FunctionObject), 0,
                    Py_TPFLAGS_DEFAULT | kVectorcallFlag, slots};

PyObject* op_function(PyObject*, PyObject* name) {
  return guarded([&] {
    static auto* functions = new std::unordered_map<const OpDef*, PyObject*>();
    const OpDef& def = OpRegistry::instance().get(text_of(name, "an op name"));
    PyObject*& function = (*functions)[&def];
    if (function == nullptr) {
      Ref made = checked(PyType_GenericAlloc(state().op_function_type, 0));
      auto* object = reinterpret_cast<FunctionObject*>(made.get());
      object->vectorcall = call;
      object->signature = make_signature(def);
      object->python_name = text_object(snake_case(def.name)).release();
      function = made.release();
    }
    return new_ref(function);
  });
}

// {snake_case name: op name} of all registered ops.
PyObject* op_names(PyObject*, PyObject*) {
  return guarded([] {
    Ref dict = checked(PyDict_New());
    for (const OpDef* def : OpRegistry::instance().all()) {
      if (def->name.starts_with('_')) continue;  // of plans, not of graphs
      Ref value = text_object(def->name);
      checked(PyDict_SetItemString(dict.get(), snake_case(def->name).c_str(), value.get()));
    }
    return dict.release();
  });
}

PyMethodDef functions[] = {
    {"op_function", op_function, METH_O,
     "op_function(name, /)\n--\n\nThe op called `name` as a function."},
    {"op_names", op_names, METH_NOARGS,
     "op_names()\n--\n\n{snake_case name: op name} of all registered ops."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

// TensorFlow's rule: a joiner before an upper-case letter that follows, or is followed by, a
// lower-case one. What Python keeps for itself has one behind: assert_, while_.
std::string snake_case(std::string_view name) {
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    if (upper(name[i]) && i > 0 &&
        (lower(name[i - 1]) || (i + 1 < name.size() && lower(name[i + 1]))))
      out += '_';
    out += upper(name[i]) ? static_cast<char>(name[i] - 'A' + 'a') : name[i];
  }
  static constexpr std::string_view kKeywords[] = {
      "and",    "as",   "assert", "async",  "await",  "break",   "class",    "continue",
      "def",    "del",  "elif",   "else",   "except", "finally", "for",      "from",
      "global", "if",   "import", "in",     "is",     "lambda",  "nonlocal", "not",
      "or",     "pass", "raise",  "return", "try",    "while",   "with",     "yield"};
  if (std::ranges::find(kKeywords, out) != std::end(kKeywords)) out += '_';
  return out;
}

void add_op_functions(PyObject* module) {
  State& s = state();
  if (s.op_function_type == nullptr) s.op_function_type = make_type(spec, false);
  add_type(module, "OpFunction", s.op_function_type);
  add_methods(module, functions);
}

}  // namespace treenail::python
