// SPDX-License-Identifier: Apache-2.0
// How kernels of recurrent layers read and write units.
#pragma once

#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/cuda/recurrent/steps.h"

namespace treenail::gpu {

template <class S>
TN_DEVICE Computed<S> read(const void* from, int64_t at) {
  return Stored<S>::widen(static_cast<const S*>(from)[at]);
}
template <class S>
TN_DEVICE Computed<S> read_if(const void* from, int64_t at) {
  return from == nullptr ? Computed<S>(0) : read<S>(from, at);
}
template <class S>
TN_DEVICE void write(void* to, int64_t at, Computed<S> x) {
  static_cast<S*>(to)[at] = Stored<S>::narrow(x);
}

// Of the step before: in full precision where it was kept so.
template <class S>
TN_DEVICE Computed<S> read_kept(const void* kept, const void* before, int64_t step, int64_t at) {
  if constexpr (!std::is_same_v<S, Computed<S>>) {
    if (step > 0) return static_cast<const Computed<S>*>(kept)[at];
  }
  return read<S>(before, at);
}
template <class S>
TN_DEVICE void write_kept(void* kept, int64_t at, Computed<S> x) {
  if constexpr (!std::is_same_v<S, Computed<S>>) static_cast<Computed<S>*>(kept)[at] = x;
}

TN_DEVICE bool is_computed(const LayerStep& layer, int64_t step) {
  return layer.steps == nullptr || step < *layer.steps;
}
// Is there a step after this one, from which gradients come?
TN_DEVICE bool has_later(const LayerStep& layer) {
  return layer.steps != nullptr && layer.step + 1 < *layer.steps;
}

// Calls body(place in [batch, cell], row, unit) for the units of this thread.
template <class F>
TN_DEVICE void for_units(const LayerStep& layer, F body) {
  for (int64_t i = first(); i < layer.batch * layer.cell; i += stride()) {
    const int64_t row = i / layer.cell;
    body(i, row, i - row * layer.cell);
  }
}

}  // namespace treenail::gpu
