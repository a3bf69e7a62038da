// SPDX-License-Identifier: Apache-2.0
// Elements in memory of the floating types that NVIDIA's libraries take.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <library_types.h>

#include <cstdint>

namespace treenail::cuda_sim {

template <class T>
T load(cudaDataType_t type, const void* from, int64_t at) {
  switch (type) {
    case CUDA_R_16F:
      return static_cast<T>(__half2float(static_cast<const __half*>(from)[at]));
    case CUDA_R_16BF:
      return static_cast<T>(__bfloat162float(static_cast<const __nv_bfloat16*>(from)[at]));
    case CUDA_R_32F:
      return static_cast<T>(static_cast<const float*>(from)[at]);
    default:
      return static_cast<T>(static_cast<const double*>(from)[at]);
  }
}

template <class T>
void store(cudaDataType_t type, void* to, int64_t at, T value) {
  switch (type) {
    case CUDA_R_16F:
      static_cast<__half*>(to)[at] = __float2half_rn(static_cast<float>(value));
      return;
    case CUDA_R_16BF:
      static_cast<__nv_bfloat16*>(to)[at] = __float2bfloat16_rn(static_cast<float>(value));
      return;
    case CUDA_R_32F:
      static_cast<float*>(to)[at] = static_cast<float>(value);
      return;
    default:
      static_cast<double*>(to)[at] = static_cast<double>(value);
  }
}

}  // namespace treenail::cuda_sim
