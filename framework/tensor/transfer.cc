// SPDX-License-Identifier: Apache-2.0
#include "framework/tensor/transfer.h"

namespace treenail {

Device& begin_copy(const Tensor& from, Tensor& to) {
  Device* const source = from.device();
  Device* const target = to.device();
  if (target == nullptr) {
    source->copy_out(to.raw(), from.raw(), from.bytes());
    return *source;
  }
  if (source == nullptr) {
    target->copy_in(to.raw(), from.raw(), from.bytes());
  } else {
    target->copy_from_peer(to.raw(), *source, from.raw(), from.bytes());
  }
  return *target;
}

Tensor in_memory_of(const Tensor& tensor, Device* device) {
  Device* const target = device == nullptr || device->is_host() ? nullptr : device;
  Device* const source = tensor.device();
  if (source == target || !is_plain(tensor.dtype())) return tensor;
  if (source != nullptr && target != nullptr && source->kind() != target->kind())
    return in_memory_of(in_memory_of(tensor, nullptr), target);
  Tensor copy(tensor.dtype(), tensor.shape(), target);
  begin_copy(tensor, copy).wait();
  return copy;
}

}  // namespace treenail
