// SPDX-License-Identifier: Apache-2.0
// Copies of tensors from one memory to another.
#pragma once

#include "framework/device/device.h"
#include "framework/tensor/tensor.h"

namespace treenail {

// Asks for the copy of `from` into `to`, of as many bytes in another memory: the device that does
// it, when its queue gets there. Both stay until then. Devices of different kinds know nothing of
// each other. Errors: Unavailable.
Device& begin_copy(const Tensor& from, Tensor& to);

// The tensor where its bytes lie in that memory already or are no plain ones, which always lie in
// the host's; else a copy, which is there when this returns. `device`: null or a CPU: the host's
// memory. Errors: ResourceExhausted, Unavailable.
Tensor in_memory_of(const Tensor& tensor, Device* device);

}  // namespace treenail
