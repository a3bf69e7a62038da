// SPDX-License-Identifier: Apache-2.0
// Windows of images as rows, and the adjoint: each pixel gathers, in the order of the taps, what
// the windows over it hold.
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/cuda/image/patch_space.h"

namespace treenail::gpu {

TN_DEVICE int64_t position(const PatchAxis& a, int64_t window, int64_t tap) {
  return window * a.stride.size - a.pad_before + tap * a.dilation;
}

template <class T>
TN_DEVICE void patches(const PatchSpace& p, const T* images, T* to) {
  const PatchAxis &r = p.rows, &c = p.columns;
  const int64_t patch = r.taps.size * c.taps.size * p.channels.size;
  const int64_t n = p.images * r.output.size * c.output.size * patch;
  for (int64_t i = first(); i < n; i += stride()) {
    const Divided channel = divided(p.channels, i), s = divided(c.taps, channel.quotient);
    const Divided t = divided(r.taps, s.quotient), x = divided(c.output, t.quotient);
    const Divided y = divided(r.output, x.quotient);
    const int64_t row = position(r, y.rest, t.rest), column = position(c, x.rest, s.rest);
    const bool inside = row >= 0 && row < r.input.size && column >= 0 && column < c.input.size;
    const int64_t pixel = (y.quotient * r.input.size + row) * c.input.size + column;
    to[i] = inside ? images[pixel * p.channels.size + channel.rest] : T{};
  }
}

// The window whose tap `tap` is at a position, or -1.
TN_DEVICE int64_t window_at(const PatchAxis& a, int64_t position, int64_t tap) {
  const int64_t begin = position + a.pad_before - tap * a.dilation;
  if (begin < 0) return -1;
  const Divided window = divided(a.stride, begin);
  return window.rest == 0 && window.quotient < a.output.size ? window.quotient : -1;
}

template <class S>
TN_DEVICE void gather_patches(const PatchSpace& p, const S* patches, S* to) {
  const PatchAxis &r = p.rows, &c = p.columns;
  const int64_t n = p.images * r.input.size * c.input.size * p.channels.size;
  for (int64_t i = first(); i < n; i += stride()) {
    const Divided channel = divided(p.channels, i), x = divided(c.input, channel.quotient);
    const Divided y = divided(r.input, x.quotient);
    Computed<S> sum = 0;
    for (int64_t t = 0; t < r.taps.size; ++t) {
      const int64_t row = window_at(r, y.rest, t);
      for (int64_t s = 0; row >= 0 && s < c.taps.size; ++s) {
        const int64_t column = window_at(c, x.rest, s);
        if (column < 0) continue;
        const int64_t window = (y.quotient * r.output.size + row) * c.output.size + column;
        const int64_t tap = (window * r.taps.size + t) * c.taps.size + s;
        sum += Stored<S>::widen(patches[tap * p.channels.size + channel.rest]);
      }
    }
    to[i] = Stored<S>::narrow(sum);
  }
}

TN_KERNEL(patches_1, PatchSpace p, const uint8_t* x, uint8_t* y) { patches(p, x, y); }
TN_KERNEL(patches_2, PatchSpace p, const uint16_t* x, uint16_t* y) { patches(p, x, y); }
TN_KERNEL(patches_4, PatchSpace p, const uint32_t* x, uint32_t* y) { patches(p, x, y); }
TN_KERNEL(patches_8, PatchSpace p, const uint64_t* x, uint64_t* y) { patches(p, x, y); }

#define TN_GATHER_PATCHES(S, type) \
  TN_KERNEL(gather_patches_##type, PatchSpace p, const S* x, S* y) { gather_patches(p, x, y); }
TN_GATHER_PATCHES(float, float32)
TN_GATHER_PATCHES(double, float64)
TN_GATHER_PATCHES(Float16, float16)
TN_GATHER_PATCHES(BFloat16, bfloat16)

}  // namespace treenail::gpu
