// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/kernel/kernel_functions.h"

namespace treenail {

FunctionCall::~FunctionCall() = default;
FunctionBody::~FunctionBody() = default;
FunctionCaller::~FunctionCaller() = default;

}  // namespace treenail
