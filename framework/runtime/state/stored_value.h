// SPDX-License-Identifier: Apache-2.0
// What state keeps of a value that a run gives it: for inputs declared stored().
#pragma once

#include "framework/tensor/tensor.h"

namespace treenail {

// The value in memory that lasts: its own where that is owned, whoever else shares it; a copy of
// what somebody else may reuse or unmap, and of a small part of a large buffer, which it would keep
// alive. Errors: ResourceExhausted.
Tensor stored_value(const Tensor& value);

}  // namespace treenail
