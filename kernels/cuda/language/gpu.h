// SPDX-License-Identifier: Apache-2.0
// The language of GPU kernels: the only header of kernels/cuda that a .cu file needs. One source is
// compiled by nvcc, by hipcc and, block by block on fibers, for the host (tests/cuda_sim). Kernels
// keep to what stands here (ninja check-laws): no CUB, Thrust, cooperative groups, textures, wmma,
// inline assembly, no literal width or mask of a warp, and no block waits for another.
//
//   TN_KERNEL(add_float, int64_t n, const float* a, float* y) { ... }
//
// defines the kernel that the host launches by that name (driver/kernels.h), with at most
// kMostThreads threads of one dimension a block, in a grid of x and y.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/language/limits.h"

#define TN_GPU  // definitions shared with the CPU are for scalars here (cpu/simd/vec.h)
#if defined(__CUDACC__) || defined(__HIPCC__)
#if defined(__HIPCC__)
#include <hip/hip_runtime.h>
#endif
#define TN_DEVICE __device__ __forceinline__
#define TN_NO_UNROLL _Pragma("unroll 1")
#define TN_KERNEL(name, ...) \
  extern "C" __global__ __launch_bounds__(treenail::gpu::kMostThreads) void name(__VA_ARGS__)
#define TN_SHARED(T, name, n) __shared__ T name[n]
#define TN_DYNAMIC_SHARED(T, name)                            \
  extern __shared__ __align__(16) unsigned char tn_dynamic[]; \
  T* const name = reinterpret_cast<T*>(tn_dynamic)
#else
#define TN_DEVICE inline
#define TN_NO_UNROLL
#include "tests/cuda_sim/language.h"  // the same names for the host, TN_KERNEL and TN_SHARED too
#endif

namespace treenail::gpu {

#if defined(__CUDACC__) || defined(__HIPCC__)

TN_DEVICE int thread() { return static_cast<int>(threadIdx.x); }
TN_DEVICE int threads() { return static_cast<int>(blockDim.x); }
TN_DEVICE int64_t block() { return blockIdx.x; }
TN_DEVICE int64_t blocks() { return gridDim.x; }
TN_DEVICE int block_y() { return static_cast<int>(blockIdx.y); }
TN_DEVICE int blocks_y() { return static_cast<int>(gridDim.y); }
TN_DEVICE int warp_size() { return warpSize; }

// Of all threads of the block, and of those of the warp; both order memory, nothing else does.
TN_DEVICE void sync() { __syncthreads(); }
TN_DEVICE void sync_warp() {
#if defined(__HIPCC__)
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
#else
  __syncwarp();
#endif
}

// The value of the lane that is `down` further, or whose number differs by `mask`; all lanes call.
template <class T>
TN_DEVICE T shuffle_down(T value, int down) {
#if defined(__HIPCC__)
  return __shfl_down(value, down);
#else
  return __shfl_down_sync(0xffffffffu, value, down);
#endif
}
template <class T>
TN_DEVICE T shuffle_xor(T value, int mask) {
#if defined(__HIPCC__)
  return __shfl_xor(value, mask);
#else
  return __shfl_xor_sync(0xffffffffu, value, mask);
#endif
}

// What was there before. Of T: int, unsigned, unsigned long long, float (add), double (add).
template <class T>
TN_DEVICE T atomic_add(T* at, T value) {
  return atomicAdd(at, value);
}
template <class T>
TN_DEVICE T atomic_min(T* at, T value) {
  return atomicMin(at, value);
}
template <class T>
TN_DEVICE T atomic_max(T* at, T value) {
  return atomicMax(at, value);
}

#endif

// What a thread of a one-dimensional grid works on: for (i = first(); i < n; i += stride()).
TN_DEVICE int64_t first() { return block() * threads() + thread(); }
TN_DEVICE int64_t stride() { return blocks() * threads(); }

}  // namespace treenail::gpu
