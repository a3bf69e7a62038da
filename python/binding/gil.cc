// SPDX-License-Identifier: Apache-2.0
// See gil.h and python_api.h. Each function stands for itself, never inlined: in a destructor,
// which lets nothing out, a compiler may leave away what unwinding would have to destroy.
#include "python/binding/gil.h"

#include <unistd.h>

#include <exception>

namespace treenail::python {

void park_thread() noexcept {
  for (;;) ::pause();
}

// No std::exception_ptr stands for an unwinding that is not C++'s own.
void park_if_thread_ends() noexcept {
  if (std::current_exception() == nullptr) park_thread();
}

[[gnu::noinline]] void drop_last(PyObject* object) {
  Park park;
  Py_DECREF(object);
  park.came_back();
}

[[gnu::noinline]] void take_gil_back(PyThreadState* thread) {
  Park park;
  PyEval_RestoreThread(thread);
  park.came_back();
}

[[gnu::noinline]] PyGILState_STATE ensure_gil() {
  Park park;
  const PyGILState_STATE state = PyGILState_Ensure();
  park.came_back();
  return state;
}

}  // namespace treenail::python
