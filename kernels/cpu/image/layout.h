// SPDX-License-Identifier: Apache-2.0
// Images between the layouts [channels, pixels] and [pixels, channels], and between storage dtypes
// and what is computed in: what the image kernels put around their own arithmetic, which knows
// float or double with channels last only.
#pragma once

#include <cstdint>

#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/tensor.h"

namespace treenail::cpu {

// How a tensor of images is brought into the computed form. Plain: used as it stands.
template <class C>
struct ImageLayout {
  int64_t batch = 0, pixels = 0, channels = 0;
  bool channels_second = false;
  bool half = false;  // 16-bit elements, told apart by the tensor's dtype

  bool plain() const { return !channels_second && !half; }
  int64_t elements() const { return batch * pixels * channels; }
  // Elements of scratch that read() and write() need, a multiple of 16.
  int64_t scratch() const;
  // The images as [batch, pixels, channels] of C: those of `from` itself when plain.
  const C* read(const RunContext& c, const Tensor& from, C* scratch) const;
  // Where to compute such images, and afterwards their way into `to`.
  C* target(Tensor& to, C* scratch) const;
  void write(const RunContext& c, const C* computed, Tensor& to, C* scratch) const;
};

}  // namespace treenail::cpu
