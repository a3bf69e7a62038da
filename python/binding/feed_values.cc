// SPDX-License-Identifier: Apache-2.0
// See feed_values.h. The quick way is that of constants; only what it refuses by a TypeError is
// looked at again, so a plain feed pays nothing.
#include "python/binding/feed_values.h"

#include "python/binding/fetches.h"
#include "python/binding/module.h"
#include "python/binding/numpy.h"
#include "python/binding/tensor_type.h"
#include "python/binding/values.h"

namespace treenail::python {
namespace {

bool is_number(DType dtype) {
  return is_integer(dtype) || is_floating(dtype) || is_complex(dtype) || dtype == DType::kBool;
}

// An array of number objects. They are read as NumPy does, by __float__, __int__ or __bool__.
Tensor from_objects(PyObject* array, DType wanted) {
  const DType read_as = wanted == DType::kBFloat16 ? DType::kFloat32 : wanted;
  check_number_objects(array, wanted);
  const Ref read = cast_array(array, read_as);
  const bool exact = is_integer(wanted) || wanted == DType::kBool;
  if (exact && !same_values(array, read.get())) {
    throw_value_error(repr_of(array), " holds values that do not fit the needed dtype ",
                      dtype_name(wanted));
  }
  return tensor_from_numpy(read.get(), wanted, Casting::kSafeKind, false);
}

Tensor from_numbers(PyObject* value, DType wanted) {
  const Ref array = as_array(value);
  if (is_object_array(array.get())) return from_objects(array.get(), wanted);
  if (wanted != DType::kBool || !is_integer(dtype_of_numpy(array.get())))
    return tensor_from_numpy(array.get(), wanted, Casting::kSafeKind, false);
  const Ref truth = cast_array(array.get(), DType::kBool);
  if (!same_values(array.get(), truth.get())) {
    throw_value_error("integers other than 0 and 1 were given where bool is needed: ",
                      repr_of(value));
  }
  return tensor_from_numpy(truth.get(), DType::kBool, Casting::kSafeKind, false);
}

Tensor converted(PyObject* value, DType dtype) {
  try {
    return tensor_from_object(value, dtype, Casting::kSafeKind, true);
  } catch (const PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError) || !is_number(dtype)) throw;
  }
  RaisedException refusal;
  try {
    return from_numbers(value, dtype);
  } catch (const PythonError&) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
      PyErr_Clear();
      throw_value_error(repr_of(value), " does not fit ", dtype_name(dtype));
    }
    // Of what is no array the first refusal says more than how an array of it fared.
    if (PyErr_ExceptionMatches(PyExc_ValueError) || is_array(value)) throw;
    PyErr_Clear();
  }
  refusal.raise();
}

}  // namespace

Tensor feed_value(PyObject* value, Output target) {
  if (is_symbolic(value)) {
    throw_type_error(
        "The value of a feed cannot be a symbolic Tensor (given for ", to_text(target),
        "). Acceptable feed values include Python scalars, strings, lists, and numpy ndarrays.");
  }
  const DType dtype = target.node->op().output_type(target.index);
  const auto prefix = [&] {
    return concat("Cannot feed value for tensor '", to_text(target), "', which has dtype ",
                  dtype_name(dtype), ": ");
  };
  try {
    return converted(value, dtype);
  } catch (const Error& error) {
    throw error.with_prefix(prefix());
  } catch (const PythonError&) {
    const bool type_error = PyErr_ExceptionMatches(PyExc_TypeError) != 0;
    if (!type_error && !PyErr_ExceptionMatches(PyExc_ValueError)) throw;
    const RaisedException raised;
    throw_python(type_error ? PyExc_TypeError : PyExc_ValueError, concat(prefix(), raised.text()));
  }
}

Output feed_target(PyObject* key, GraphObject* graph) {
  if (is_symbolic(key) && graph_of_tensor(key) == graph) return output_of(key);
  try {
    return output_from(key, graph);
  } catch (const PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError))
      throw;
    const bool value = PyErr_ExceptionMatches(PyExc_ValueError) != 0;
    PyErr_Clear();
    if (value) {
      throw_python(PyExc_TypeError,
                   concat("Cannot interpret feed_dict key as Tensor: Tensor ", repr_of(key),
                          " is not an element of this graph", body_of(key), "."));
    }
    throw_type_error("Cannot interpret feed_dict key as Tensor: ", repr_of(key), " of type '",
                     type_name_of(key), "'; needed is a Tensor of the session's graph or its name");
  } catch (const Error& error) {
    throw_type_error("Cannot interpret feed_dict key as Tensor: The name ", repr_of(key),
                     " refers to a Tensor which does not exist. (", error.message(), ")");
  }
}

namespace {

void collect_feed(PyObject* key, PyObject* value, GraphObject* graph, Feeds& feeds) {
  Output target = feed_target(key, graph);
  if (target.node->op().output_type(target.index) == DType::kResource)
    target = value_of_handle(target, graph);
  feeds.outputs.push_back(target);
  feeds.values.push_back(feed_value(value, target));
}

// A key of several tensors says which of them get what, a list of pairs: a SparseTensor and its
// like in __treenail_feed__(value), a tuple by the hook flat_feed. False for any other key.
bool collect_composite_feed(PyObject* key, PyObject* value, GraphObject* graph, Feeds& feeds) {
  constexpr const char* kMethod = "__treenail_feed__";
  if (is_symbolic(key)) return false;
  const bool tuple = PyTuple_Check(key);
  if (!tuple && PyObject_HasAttrString(key, kMethod) == 0) return false;
  const Ref name = checked(PyUnicode_InternFromString(kMethod));
  const Ref pairs =
      checked(tuple ? parking([&] {
        return PyObject_CallFunctionObjArgs(state().flat_feed, key, value, nullptr);
      })
                    : parking([&] { return PyObject_CallMethodOneArg(key, name.get(), value); }));
  if (!PyList_Check(pairs.get())) {
    throw_type_error(repr_of(key), ".", kMethod, "() must give a list of pairs");
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs.get()); ++i) {
    const Ref pair = Ref::borrow(PyList_GET_ITEM(pairs.get(), i));
    if (!PyTuple_Check(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2) {
      throw_type_error(repr_of(key), ".", kMethod, "() must give a list of pairs");
    }
    collect_feed(PyTuple_GET_ITEM(pair.get(), 0), PyTuple_GET_ITEM(pair.get(), 1), graph, feeds);
  }
  return true;
}

}  // namespace

void collect_feeds(PyObject* feed_dict, GraphObject* graph, Feeds& feeds) {
  if (feed_dict == nullptr || feed_dict == Py_None) return;
  Ref held = Ref::borrow(feed_dict);
  if (!PyDict_Check(feed_dict)) {
    held = Ref::steal(parking(
        [&] { return PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyDict_Type), feed_dict); }));
    if (!held) {
      PyErr_Clear();
      throw_type_error("feed_dict must be a dict from tensors to values, not ", repr_of(feed_dict),
                       " of type '", type_name_of(feed_dict), "'");
    }
  }
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(held.get(), &position, &key, &value) != 0) {
    const Ref held_key = Ref::borrow(key), held_value = Ref::borrow(value);
    if (!collect_composite_feed(key, value, graph, feeds)) collect_feed(key, value, graph, feeds);
  }
}

}  // namespace treenail::python
