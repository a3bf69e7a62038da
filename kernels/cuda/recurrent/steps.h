// SPDX-License-Identifier: Apache-2.0
// What is launched for recurrent layers, as host and device code see it. Addresses of type T, as
// values are stored, or C, as they are computed: float for half types. How many steps are to be
// computed lies on the device: what comes from there on counts for nothing.
#pragma once

#include <cstdint>

namespace treenail::gpu {

struct LayerStep {
  int64_t batch = 0, cell = 0;
  int64_t step = 0;
  const int64_t* steps = nullptr;  // null: all
};

// The values of LstmUnit: i, cs, f, o, ci, co, h.
inline constexpr int kLstmValues = 7;

struct LstmForwardStep {
  LayerStep layer;
  const void* of_x = nullptr;       // C [batch, 4 cell]: of the gates' sums
  const void* of_h = nullptr;       // the same
  const void* cs_before = nullptr;  // T [batch, cell]
  const void* b = nullptr;          // T [4 cell]
  const void* peepholes[3] = {};    // T [cell]: wci, wcf, wco
  void* kept = nullptr;             // C [batch, cell]: cs, where T is narrower; from step 1 on read
  void* values[kLstmValues] = {};   // T [batch, cell]
  double forget_bias = 0, cell_clip = 0;
};

struct LstmGradientStep {
  LayerStep layer;
  const void* values[kLstmValues] = {};    // T [batch, cell]; h is not read
  const void* arriving[kLstmValues] = {};  // T; null: nothing
  const void* cs_before = nullptr;         // T [batch, cell]
  const void* peepholes[3] = {};           // T [cell]
  const void* d_h = nullptr;  // C [batch, cell]: from the step after, where there is one
  void* d_cs = nullptr;       // C [batch, cell]: from the step after; then for the one before
  void* d_cs_prev = nullptr;  // T [batch, cell]: of the first step, else null
  void* d = nullptr;          // T [batch, 4 cell]: at the gates
  void* d_peepholes[3] = {};  // T [batch, cell]: what their gradients are sums of
  double cell_clip = 0;
};

struct GruForwardStep {
  LayerStep layer;
  const void* of_x[2] = {};        // C [batch, 2 cell] of r and u, and [batch, cell] of c
  const void* of_h[2] = {};        // the same
  const void* h_before = nullptr;  // T [batch, cell]
  const void* b[2] = {};           // T [2 cell], [cell]
  void* kept = nullptr;            // C [batch, cell]: h, where T is narrower; from step 1 on read
  void* values[4] = {};            // T [batch, cell]: r, u, c, h
  void* reset = nullptr;           // T [batch, cell]: r h_before
};

struct GruGradientStep {
  LayerStep layer;
  int64_t input = 0;
  const void* values[3] = {};      // T [batch, cell]: r, u, c
  const void* arriving[4] = {};    // T; null: nothing
  const void* h_before = nullptr;  // T [batch, cell]
  const void* through_ru =
      nullptr;  // C [batch, cell]: from r and u of the step after, where there is one
  const void* d_reset = nullptr;  // C [batch, cell]: at r h_before
  void* d_h = nullptr;    // C [batch, cell]: the rest from the step after; then for the one before
  void* d_ru = nullptr;   // T [batch, 2 cell]
  void* d_c = nullptr;    // T [batch, cell]
  void* reset = nullptr;  // T [batch, input + cell]: r h_before in the last columns
};

// [x, h before the step] for each step, zeros where a step is not computed; without h_prev the last
// columns are left alone.
struct BesideRows {
  int64_t time = 0, batch = 0, input = 0, cell = 0;
  const int64_t* steps = nullptr;
  const void* x = nullptr;
  const void* h_prev = nullptr;
  const void* h = nullptr;
  void* to = nullptr;
};

}  // namespace treenail::gpu
