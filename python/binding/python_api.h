// SPDX-License-Identifier: Apache-2.0
// Python.h with the few helpers every file of the binding uses: an owning reference, the C++
// exception that means "a Python exception is set", and the border where C++ exceptions become
// Python ones. Whatever is called per op or per step speaks CPython's C API directly; what is
// called rarely goes through pybind11 (rare.cc).
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/error.h"

namespace treenail::python {

// CPython before 3.14 ends a thread that asks for the GIL after finalisation has begun (a daemon
// thread coming back from a run, for example) by pthread_exit(), which unwinds the stack: through
// destructors that would touch objects without the GIL, and into functions that let nothing out,
// where the whole process would end by abort(). So the GIL is taken back by functions of gil.cc,
// and whatever may run Python code, which gives the GIL up now and then, is called by parking():
// these stop the unwinding where it begins and park the thread for good; the process ends around
// it. CPython 3.14 parks such threads itself.
[[noreturn]] void park_thread() noexcept;

// Around a call that may end the thread. No catch (...): inside the handling of another exception
// that would be one too many.
class Park {
 public:
  Park() = default;
  ~Park() {
    if (!came_back_) park_thread();
  }
  Park(const Park&) = delete;
  Park& operator=(const Park&) = delete;
  void came_back() { came_back_ = true; }

 private:
  bool came_back_ = false;
};

// call(), a function of CPython's that may run Python code; it throws nothing.
template <class Call>
[[gnu::noinline]] auto parking(const Call& call) {
  Park park;
  const auto result = call();
  park.came_back();
  return result;
}

// In a catch (...): parks the thread if what was caught is that unwinding, no exception. Where the
// border below meets it, or somebody who catches everything.
void park_if_thread_ends() noexcept;
// Gives up the last reference to an object, which may run a __del__.
void drop_last(PyObject* object);

// An owned reference; needs the GIL wherever it is copied or destroyed.
class Ref {
 public:
  Ref() = default;
  Ref(const Ref& other) : object_(other.object_) { Py_XINCREF(object_); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ == nullptr) return;
    if (Py_REFCNT(object_) == 1) {
      drop_last(object_);
    } else {
      Py_DECREF(object_);
    }
  }
  static Ref steal(PyObject* object) {
    Ref r;
    r.object_ = object;
    return r;
  }
  static Ref borrow(PyObject* object) {
    Py_XINCREF(object);
    return steal(object);
  }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Thrown when the Python error indicator is set already.
struct PythonError {};

// The result of a CPython call that gives null on failure.
inline Ref checked(PyObject* object) {
  if (object == nullptr) throw PythonError();
  return Ref::steal(object);
}
// The result of a CPython call that gives a negative number on failure.
inline int checked(int result) {
  if (result < 0) throw PythonError();
  return result;
}
inline PyObject* new_ref(PyObject* object) {
  Py_INCREF(object);
  return object;
}
inline PyObject* none() { return new_ref(Py_None); }
inline PyObject* bool_object(bool value) { return new_ref(value ? Py_True : Py_False); }

// Sets a Python exception of `type` with this text and throws PythonError.
[[noreturn]] void throw_python(PyObject* type, std::string_view text);
template <class... Parts>
[[noreturn]] void throw_type_error(const Parts&... parts) {
  throw_python(PyExc_TypeError, concat(parts...));
}
template <class... Parts>
[[noreturn]] void throw_value_error(const Parts&... parts) {
  throw_python(PyExc_ValueError, concat(parts...));
}

// To be called where a PythonError or an Error was caught: throws it again with `prefix` before its
// text. Of Python's exceptions TypeError, ValueError and NotImplementedError themselves take
// one, others stay as they are.
[[noreturn]] void rethrow_with_prefix(std::string_view prefix);

// What f returns; prefix() comes before what it says of a wrong value: f itself does not know for
// what the value was given.
template <class Prefix, class F>
decltype(auto) with_prefix(Prefix&& prefix, F&& f) {
  try {
    return f();
  } catch (const PythonError&) {
    rethrow_with_prefix(prefix());
  } catch (const Error&) {
    rethrow_with_prefix(prefix());
  }
}

// The exception that is set, taken over; dropped unless it is raised again.
class RaisedException {
 public:
  RaisedException();
  bool is(PyObject* type) const { return PyErr_GivenExceptionMatches(type_.get(), type) != 0; }
  PyObject* type() const { return type_.get(); }
  std::string text() const;  // str(exception)
  [[noreturn]] void raise();

 private:
  Ref type_, value_, traceback_;
};

// Turns the C++ exception in flight into a Python one (errors.cc). `graph`: the graph whose nodes
// the text may name.
void translate_exception(PyObject* graph = nullptr) noexcept;

// Runs `f` and lets no C++ exception out: null, or -1, tells CPython that an exception is set.
template <class F>
PyObject* guarded(F&& f, PyObject* graph = nullptr) noexcept {
  try {
    return f();
  } catch (...) {
    translate_exception(graph);
    return nullptr;
  }
}
template <class F>
int guarded_status(F&& f) noexcept {
  try {
    f();
    return 0;
  } catch (...) {
    translate_exception();
    return -1;
  }
}

// The text of a str (or bytes) object, valid while the object lives. Errors: TypeError naming
// `what`.
std::string_view text_of(PyObject* object, const char* what);
Ref text_object(std::string_view text);
// repr(object), shortened for messages.
std::string repr_of(PyObject* object, size_t limit = 120);
// type(object).__name__
std::string type_name_of(PyObject* object);

}  // namespace treenail::python
