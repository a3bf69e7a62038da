// SPDX-License-Identifier: Apache-2.0
// The geometry of ExtractImagePatches, for every device.
#pragma once

#include <cstdint>

#include "framework/op/window.h"
#include "framework/tensor/shape.h"

namespace treenail::host {

struct Patches {
  int64_t batch, channels;
  WindowAxis rows, columns;

  Patches(const OpInstance& op, const Shape& images) {
    const WindowAttrs w = WindowAttrs::of(op);
    batch = images.dim(0);
    channels = images.dim(3);
    rows = w.axis(0, images.dim(1), w.size[0]);
    columns = w.axis(1, images.dim(2), w.size[1]);
  }
  int64_t patch() const { return rows.taps * columns.taps * channels; }
};

}  // namespace treenail::host
