// SPDX-License-Identifier: Apache-2.0
// What shape rules may know about a resource handle that exists already.
#pragma once

#include <memory>

#include "framework/op/shape_context.h"
#include "framework/tensor/tensor.h"

namespace treenail {

// Of a scalar handle: dtype and shape of the variable behind it, its current value's shape where it
// is initialised, else the declared one; or the components of the queue; or what keys and values of
// the lookup table are. Null when the handle is empty or of something else.
std::shared_ptr<const HandleInfo> handle_info_of(const Tensor& handle);

}  // namespace treenail
