// SPDX-License-Identifier: Apache-2.0
// What shape rules may know about a resource handle that exists already.
#pragma once

#include <memory>

#include "framework/op/shape_context.h"
#include "framework/tensor/tensor.h"

namespace treenail {

// dtype and shape of the variable behind a scalar handle: its current value's shape where it is
// initialised, else the declared one; null when the handle is empty or not a variable's.
std::shared_ptr<const HandleInfo> handle_info_of(const Tensor& handle);

}  // namespace treenail
