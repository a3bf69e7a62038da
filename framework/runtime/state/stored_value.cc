// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/stored_value.h"

namespace treenail {

Tensor stored_value(const Tensor& value) {
  const Buffer* buffer = value.buffer().get();
  const bool share = buffer != nullptr && buffer->kind() == Buffer::Kind::kOwned &&
                     buffer->bytes() / 2 <= value.bytes();
  return share ? value : value.deep_copy();
}

}  // namespace treenail
