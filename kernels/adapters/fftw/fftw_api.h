// SPDX-License-Identifier: Apache-2.0
// What the FFTW adapter offers its user (kernels/cpu/fft/fft_fftw.cc): batches of Fourier
// transforms over one to three axes, each call on the calling thread alone. A plan is immutable and
// may run on several threads at once. FFTW is under the GPL, and so is whoever is linked with it:
// this adapter is a file of its own that is opened only where somebody installed it and asks for
// it.
#pragma once

#include <stdint.h>

#include "framework/base/adapter.h"

namespace treenail {

enum FftwKind : int32_t {
  kFftwForward = 0,   // complex to complex
  kFftwBackward = 1,  // complex to complex
  kFftwFromReal = 2,  // to the half spectrum
  kFftwToReal = 3,    // from the half spectrum
};

struct FftwTransforms {
  int32_t kind;
  int32_t wide;  // 0: float, 1: double
  int32_t axes;  // 1 to 3
  int64_t length[3];
  int64_t batch;
};

struct FftwApi {
  AdapterHeader header;
  const char* (*version)(void);
  // Reads wisdom of one precision; 0 on success. Plans made from then on use it.
  int32_t (*import_wisdom)(const char* file, int32_t wide);
  // Null when FFTW has no such plan. Planning takes a lock: FFTW's planner is one per process.
  void* (*create)(const FftwTransforms* transforms);
  void (*destroy)(void* plan);
  // Unscaled. `from` and `to` differ and are aligned to kFftwAlignment; kFftwToReal overwrites
  // `from`.
  void (*run)(const void* plan, void* from, void* to);
};

inline constexpr int64_t kFftwAlignment = 64;

}  // namespace treenail
