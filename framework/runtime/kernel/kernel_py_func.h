// SPDX-License-Identifier: Apache-2.0
// How the kernel of PyFunc reaches Python, which the core does not know: by a function that the
// Python module sets.
#pragma once

#include <string>
#include <vector>

#include "framework/runtime/kernel/async_kernel.h"

namespace treenail {

// A function of the process's Python, as a node calls it.
struct PyFunction {
  std::string token;
  int num_inputs = 0;
  std::vector<DType> output_types;
};
// As AsyncKernel::start(). `function` is copied where it is needed for longer.
using StartPyFunction = void (*)(const PyFunction& function, RunContext context, Done done);

void set_start_py_function(StartPyFunction start);
// Null in a process without Treenail's Python module.
StartPyFunction start_py_function();

}  // namespace treenail
