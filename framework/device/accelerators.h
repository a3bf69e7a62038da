// SPDX-License-Identifier: Apache-2.0
// Whether there are devices besides the CPUs: what each call of immediate execution asks first.
#pragma once

#include <atomic>

namespace treenail {

// Set by add_accelerators(), for good.
extern std::atomic<bool> accelerators_there;

}  // namespace treenail
