// SPDX-License-Identifier: Apache-2.0
// What a GPU gives to who calls its libraries directly: cuBLASLt's products, a copy, a launch.
//
//   nvcc -O2 -o direct bench/gpu/direct.cu -lcublasLt && ./direct > direct.json
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace {

constexpr int kRounds = 15;

void check(int status, const char* what) {
  if (status == 0) return;
  std::fprintf(stderr, "%s: status %d\n", what, status);
  std::exit(1);
}

// Seconds of one of `repeats` runs, each of which ends when the device is done: the median.
double median(const std::function<void()>& run, int repeats) {
  std::vector<double> times;
  for (int round = 0; round <= kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) {
      run();
      check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (round > 0) times.push_back(seconds.count() / repeats);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

__global__ void fill(size_t n, uint16_t* bits, uint32_t seed, bool wide) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n;
       i += size_t{gridDim.x} * blockDim.x) {
    const auto u = static_cast<uint32_t>(i) * 2654435761u + seed;
    const float x = static_cast<float>(u >> 8) / 8388608.0f - 1.0f;
    if (wide) {
      reinterpret_cast<float*>(bits)[i] = x;
    } else {
      bits[i] = static_cast<uint16_t>(__float_as_uint(x) >> 16);
    }
  }
}

struct Product {
  int n;
  bool wide;  // float32, else bfloat16
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t layout;
  cublasLtMatmulHeuristicResult_t found;
  void *a, *b, *c, *workspace;

  Product(int n, bool wide) : n(n), wide(wide) {
    const auto type = wide ? CUDA_R_32F : CUDA_R_16BF;
    const size_t elements = size_t(n) * n, bytes = elements * (wide ? 4 : 2);
    size_t most = size_t{32} << 20;
    check(cudaMalloc(&a, bytes) | cudaMalloc(&b, bytes) | cudaMalloc(&c, bytes) |
              cudaMalloc(&workspace, most),
          "cudaMalloc");
    fill<<<1024, 256>>>(elements, static_cast<uint16_t*>(a), 1, wide);
    fill<<<1024, 256>>>(elements, static_cast<uint16_t*>(b), 2, wide);
    check(cublasLtCreate(&handle), "cublasLtCreate");
    check(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "desc");
    check(cublasLtMatrixLayoutCreate(&layout, type, n, n, n), "layout");
    cublasLtMatmulPreference_t preference;
    check(cublasLtMatmulPreferenceCreate(&preference), "preference");
    check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &most, sizeof most),
          "workspace");
    int count = 0;
    check(cublasLtMatmulAlgoGetHeuristic(handle, operation, layout, layout, layout, layout,
                                         preference, 1, &found, &count),
          "heuristic");
  }
  void run() const {
    const float one = 1, zero = 0;
    check(cublasLtMatmul(handle, operation, &one, a, layout, b, layout, &zero, c, layout, c, layout,
                         &found.algo, workspace, found.workspaceSize, nullptr),
          "cublasLtMatmul");
  }
  ~Product() {
    for (void* memory : {a, b, c, workspace}) cudaFree(memory);
  }
};

__global__ void nothing() {}

}  // namespace

int main() {
  std::printf("{\"framework\": \"direct\", \"figures\": {\n");
  const struct { int n, count; } sizes[] = {{8192, 4}, {2048, 16}, {512, 64}};
  for (const auto& size : sizes) {
    for (const bool wide : {false, true}) {
      const Product product(size.n, wide);
      const double seconds = median(
          [&] {
            for (int i = 0; i < size.count; ++i) product.run();
          },
          4);
      std::printf(" \"product %s %d\": {\"median\": %g},\n", wide ? "float32" : "bfloat16", size.n,
                  seconds);
    }
  }
  const size_t bytes = size_t{256} << 20;
  void *from = nullptr, *to = nullptr;
  check(cudaMalloc(&from, bytes) | cudaMalloc(&to, bytes), "cudaMalloc");
  const double copy = median(
      [&] { check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice), "copy"); }, 20);
  std::printf(" \"add 256 MiB\": {\"median\": %g},\n", copy);
  const double launch = median([] { nothing<<<1, 1>>>(); }, 200);
  std::printf(" \"one operation\": {\"median\": %g}\n}}\n", launch);
  return 0;
}
