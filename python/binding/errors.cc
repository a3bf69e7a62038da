// SPDX-License-Identifier: Apache-2.0
// treenail::Error and other C++ exceptions as Python exceptions. The classes live in
// treenail.errors; the package registers make_error(code, message, graph or None) -> exception,
// which also finds the op that the text names.
#include <new>

#include "python/binding/module.h"
#include "python/binding/python_api.h"

namespace treenail::python {
namespace {

// Messages quote what was given. A zero byte would end the line that a terminal or a log shows.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\0') {
      out += "\\0";
    } else {
      out += c;
    }
  }
  return out;
}

void set_error(const Error& error, PyObject* graph) {
  PyObject* make_error = state().make_error;
  if (make_error == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return;
  }
  // Messages may hold bytes of a hostile file: never fail on what is not UTF-8.
  const std::string message = printable(error.message());
  Ref text = Ref::steal(PyUnicode_DecodeUTF8(
      message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
  Ref code = Ref::steal(PyLong_FromLong(static_cast<long>(error.code())));
  if (!text || !code) return;
  PyObject* arguments[] = {code.get(), text.get(), graph ? graph : Py_None};
  Ref exception =
      Ref::steal(parking([&] { return PyObject_Vectorcall(make_error, arguments, 3, nullptr); }));
  if (!exception) return;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
}

}  // namespace

void translate_exception(PyObject* graph) noexcept {
  park_if_thread_ends();
  try {
    throw;
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "treenail lost a Python exception");
  } catch (const Error& error) {
    set_error(error, graph);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_SystemError, "an unknown C++ exception reached Python");
  }
}

void throw_python(PyObject* type, std::string_view text) {
  Ref message = text_object(printable(text));
  PyErr_SetObject(type, message.get());
  throw PythonError();
}

void rethrow_with_prefix(std::string_view prefix) {
  try {
    throw;
  } catch (const PythonError&) {
    RaisedException raised;
    const bool plain = raised.type() == PyExc_TypeError || raised.type() == PyExc_ValueError ||
                       raised.type() == PyExc_NotImplementedError;
    if (!plain) raised.raise();
    throw_python(raised.type(), concat(prefix, raised.text()));
  } catch (const Error& error) {
    throw error.with_prefix(prefix);
  }
}

RaisedException::RaisedException() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  type_ = Ref::steal(type);
  value_ = Ref::steal(value);
  traceback_ = Ref::steal(traceback);
}

std::string RaisedException::text() const {
  const Ref text = checked(PyObject_Str(value_.get()));
  return std::string(text_of(text.get(), "text"));
}

void RaisedException::raise() {
  PyErr_Restore(type_.release(), value_.release(), traceback_.release());
  throw PythonError();
}

std::string_view text_of(PyObject* object, const char* what) {
  if (PyUnicode_Check(object)) {
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(object, &size);
    if (data == nullptr) {  // a lone surrogate
      if (!PyErr_ExceptionMatches(PyExc_UnicodeError)) throw PythonError();
      PyErr_Clear();
      throw_value_error(what, " ", repr_of(object), " cannot be encoded as UTF-8");
    }
    return {data, static_cast<size_t>(size)};
  }
  if (PyBytes_Check(object)) {
    return {PyBytes_AS_STRING(object), static_cast<size_t>(PyBytes_GET_SIZE(object))};
  }
  throw_type_error(what, " must be a str, not ", repr_of(object), " of type '",
                   type_name_of(object), "'");
}

Ref text_object(std::string_view text) {
  return checked(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

std::string repr_of(PyObject* object, size_t limit) {
  Ref text = Ref::steal(PyObject_Repr(object));
  const char* data = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (data == nullptr) {
    PyErr_Clear();
    return concat("<", type_name_of(object), " object>");
  }
  std::string out(data);
  if (out.size() <= limit) return out;
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xc0u) == 0x80u) --end;
  return out.substr(0, end) + "...";
}

std::string type_name_of(PyObject* object) {
  const std::string_view full = Py_TYPE(object)->tp_name;
  const size_t dot = full.rfind('.');
  return std::string(dot == std::string_view::npos ? full : full.substr(dot + 1));
}

}  // namespace treenail::python
