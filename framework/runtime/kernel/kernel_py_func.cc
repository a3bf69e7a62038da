// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/kernel/kernel_py_func.h"

#include <atomic>

namespace treenail {
namespace {
std::atomic<StartPyFunction> starter{nullptr};
}  // namespace

void set_start_py_function(StartPyFunction start) { starter = start; }
StartPyFunction start_py_function() { return starter; }

}  // namespace treenail
