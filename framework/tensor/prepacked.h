// SPDX-License-Identifier: Apache-2.0
// Prepacked forms of a buffer's bytes, computed from them alone: weights packed for a product,
// transformed filters. Kept with the buffer while its bytes stay. A form is made at its second use,
// so that bytes that change after each use, as weights do in training, never pay for one. In a
// child forked while another thread made or looked for one, they are made again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/base/fork.h"
#include "framework/base/function_ref.h"
#include "framework/base/intrusive_ptr.h"
#include "framework/tensor/buffer.h"

namespace treenail {

// What a form is: the address of something that belongs to the code that makes it, and all that its
// making depends on beside the bytes.
struct PackKey {
  const void* maker = nullptr;
  std::array<int64_t, 4> details = {};
  friend bool operator==(const PackKey&, const PackKey&) = default;
};

class PrepackedForms {
 public:
  // `bytes` bytes, aligned like any buffer, that make(to) has written: now, or at an earlier use.
  // Null at the first use, and when memory is short.
  const std::byte* find(const PackKey& key, size_t bytes, FunctionRef<void(std::byte*)> make);
  // Forgets them all. Room for their keys stays: a training step asks the system for no memory.
  void clear();

 private:
  struct Form {
    PackKey key;
    IntrusivePtr<Buffer> bytes;  // null after the first use
  };
  void begin_anew_if_abandoned();

  ForkMutex mutex_;
  std::vector<Form> forms_;
};

}  // namespace treenail
