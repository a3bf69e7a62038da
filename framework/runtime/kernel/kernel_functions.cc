// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/kernel/kernel_functions.h"

namespace treenail {

FunctionCall::~FunctionCall() = default;
FunctionBody::~FunctionBody() = default;
FunctionCaller::~FunctionCaller() = default;

bool is_of_another(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const BodyError& body) {
    return body.error == nullptr;
  } catch (...) {
    return false;
  }
}

}  // namespace treenail
