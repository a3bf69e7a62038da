// SPDX-License-Identifier: Apache-2.0
// The side that a definition is compiled for: the CPU, once per level, or a GPU. Its namespace is
// treenail::TN_SIDE, so that both may be in one program.
#pragma once

// kernels/cuda/language/gpu.h, which came before, defines TN_GPU.
#if defined(TN_GPU)
#define TN_SIDE gpu
#define TN_INLINE TN_DEVICE
#define TN_RARELY_CALLED TN_DEVICE
#else
#define TN_SIDE cpu
#define TN_INLINE inline __attribute__((always_inline))
#define TN_RARELY_CALLED inline __attribute__((noinline))
#endif
