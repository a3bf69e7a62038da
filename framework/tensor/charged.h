// SPDX-License-Identifier: Apache-2.0
// What was allocated for nobody and is from now on for one of those whom a process serves
// (device/memory_account.h): values that came in a message.
#pragma once

#include "framework/device/memory_account.h"
#include "framework/tensor/tensor.h"

namespace treenail {

// The same value in memory that counts for `account`: its own where that is owned and plain,
// whoever else shares it, else, of strings that count for nobody, a copy. What counts for somebody
// already, or is borrowed, stays as it is: to be kept it is copied, and the copy counts. Errors:
// ResourceExhausted.
Tensor charged(Tensor value, MemoryAccount& account);

}  // namespace treenail
