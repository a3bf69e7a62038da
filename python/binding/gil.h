// SPDX-License-Identifier: Apache-2.0
// Giving up the GIL and taking it back, safe while Python ends: then a thread that asks for the GIL
// never gets it, and is parked (python_api.h says why).
#pragma once

#include "python/binding/python_api.h"

namespace treenail::python {

// PyEval_RestoreThread() and PyGILState_Ensure().
void take_gil_back(PyThreadState* thread);
PyGILState_STATE ensure_gil();

// For the scope's life the GIL is given up.
class GilRelease {
 public:
  GilRelease() : thread_(PyEval_SaveThread()) {}
  ~GilRelease() { take_gil_back(thread_); }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* thread_;
};

// Takes the GIL again inside a GilRelease scope.
class GilRetake {
 public:
  GilRetake() : state_(ensure_gil()) {}
  ~GilRetake() {
    if (PyGILState_Check() == 0) park_thread();  // the thread is being ended in here
    PyGILState_Release(state_);
  }
  GilRetake(const GilRetake&) = delete;
  GilRetake& operator=(const GilRetake&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace treenail::python
