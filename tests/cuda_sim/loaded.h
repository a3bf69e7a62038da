// SPDX-License-Identifier: Apache-2.0
// The simulated libraries, opened as a plugin opens the real ones, and what tests share.
#pragma once

#include <cublasLt.h>
#include <cuda.h>
#include <cufft.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/cuda_sim/exports.h"
#include "tests/support/plugin_path.h"
#include "tests/support/sanitizers.h"

namespace treenail::test {

template <class F>
F entry(void* library, const char* name) {
  auto* const found = reinterpret_cast<F>(::dlsym(library, name));
  EXPECT_NE(found, nullptr) << name;
  return found;
}

inline void* open_simulated(const char* name) {
  void* const library =
      ::dlopen((test_directory() + "/cuda_sim/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << ::dlerror();
  return library;
}

// The symbol, to which cuda.h may have led the name.
#define TN_SYMBOL_TEXT(symbol) #symbol
#define TN_SYMBOL(name) TN_SYMBOL_TEXT(name)

// Of a library that is there, else the test is skipped.
inline void expect_exported(const char* path, std::initializer_list<const char*> names) {
  void* const library = ::dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) GTEST_SKIP() << ::dlerror();
  for (const char* const name : names) EXPECT_NE(::dlsym(library, name), nullptr) << name;
  ::dlclose(library);  // or the simulated libraries could take it for the driver
}

#ifndef TREENAIL_CUDA_LIBRARIES
#define TREENAIL_CUDA_LIBRARIES "/usr/local/cuda/lib64"
#endif

struct DriverTable {
  void* const library = open_simulated("libcuda.so.1");
#define TN_ENTRY(name) decltype(&::name) name = entry<decltype(&::name)>(library, TN_SYMBOL(name));
#include "kernels/cuda/driver/driver_entries.inc"
  TN_ENTRY(cusim_seed)
  TN_ENTRY(cusim_delays)
  TN_ENTRY(cusim_hold)
  TN_ENTRY(cusim_wait)
  TN_ENTRY(cusim_driver_version)
  TN_ENTRY(cusim_no_binary)
  TN_ENTRY(cusim_live_blocks)
  TN_ENTRY(cusim_live_bytes)
  TN_ENTRY(cusim_pinned_blocks)
  TN_ENTRY(cusim_set_limit)
  TN_ENTRY(cusim_fail_allocation)
  TN_ENTRY(cusim_lose)
  TN_ENTRY(cusim_restore)
  TN_ENTRY(cusim_count)
  TN_ENTRY(cusim_record_violations)
  TN_ENTRY(cusim_violations)
#undef TN_ENTRY
};

inline const DriverTable& cuda() {
  static const auto* const table = new DriverTable;
  return *table;
}

struct BlasTable {
  void* const library = open_simulated("libcublasLt.so.13");
#define TN_ENTRY(name) decltype(&::name) name = entry<decltype(&::name)>(library, TN_SYMBOL(name));
#include "kernels/cuda/driver/blas_entries.inc"
#undef TN_ENTRY
};

struct FftTable {
  void* const library = open_simulated("libcufft.so.12");
#define TN_ENTRY(name) decltype(&::name) name = entry<decltype(&::name)>(library, TN_SYMBOL(name));
#include "kernels/cuda/driver/fft_entries.inc"
#undef TN_ENTRY
};

// The first device, initialised and current, with a stream; the second beside it.
class CudaTest : public ::testing::Test {
 protected:
  static constexpr int kDevices = 2;

  void SetUp() override {
    ASSERT_EQ(cuda().cuInit(0), CUDA_SUCCESS);
    for (int i = 0; i < kDevices; ++i)
      ASSERT_EQ(cuda().cuDevicePrimaryCtxRetain(&contexts_[i], i), CUDA_SUCCESS);
    use(1);
    ASSERT_EQ(cuda().cuStreamCreate(&other_stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    use(0);
    ASSERT_EQ(cuda().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    cuda().cusim_record_violations(1);
  }
  void TearDown() override {
    for (int i = 0; i < kDevices; ++i) {
      cuda().cusim_hold(i, 0);
      cuda().cusim_restore(i);
      cuda().cusim_set_limit(i, 0);
      cuda().cusim_fail_allocation(i, 0);
    }
    EXPECT_EQ(violations(), "0: ");
    cuda().cusim_record_violations(0);
  }

  void use(int device) { ASSERT_EQ(cuda().cuCtxSetCurrent(contexts_[device]), CUDA_SUCCESS); }

  // "1: text of the last one"
  static std::string violations() {
    std::string text(4096, '\0');
    const int count = cuda().cusim_violations(text.data(), static_cast<int>(text.size()));
    return concat(count, ": ", text.c_str());
  }
  // That there was one, which says so.
  static void expect_violation(const std::string& part) {
    const std::string found = violations();
    EXPECT_EQ(found.substr(0, 3), "1: ");
    EXPECT_NE(found.find(part), std::string::npos) << found;
  }

  template <class T = int>
  static CUdeviceptr block(size_t n) {
    CUdeviceptr made = 0;
    EXPECT_EQ(cuda().cuMemAlloc(&made, n * sizeof(T)), CUDA_SUCCESS);
    return made;
  }
  template <class T>
  CUdeviceptr block_of(const std::vector<T>& values) {
    const CUdeviceptr made = block<T>(values.size());
    EXPECT_EQ(cuda().cuMemcpyHtoDAsync(made, values.data(), values.size() * sizeof(T), stream_),
              CUDA_SUCCESS);
    return made;
  }
  template <class T = int>
  std::vector<T> values_of(CUdeviceptr at, size_t n) {
    std::vector<T> values(n);
    EXPECT_EQ(cuda().cuMemcpyDtoHAsync(values.data(), at, n * sizeof(T), stream_), CUDA_SUCCESS);
    return values;
  }
  static void free(std::initializer_list<CUdeviceptr> blocks) {
    for (const CUdeviceptr at : blocks) EXPECT_EQ(cuda().cuMemFree(at), CUDA_SUCCESS);
  }
  template <class T = int>
  static T* pinned(size_t n) {
    void* made = nullptr;
    EXPECT_EQ(cuda().cuMemHostAlloc(&made, n * sizeof(T), 0), CUDA_SUCCESS);
    return static_cast<T*>(made);
  }

  static CUfunction kernel(const char* name) {
    static const uint32_t image[4] = {0xba55ed50};
    CUlibrary library = nullptr;
    EXPECT_EQ(cuda().cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0),
              CUDA_SUCCESS);
    CUkernel found = nullptr;
    EXPECT_EQ(cuda().cuLibraryGetKernel(&found, library, name), CUDA_SUCCESS) << name;
    return reinterpret_cast<CUfunction>(found);
  }
  struct Shape {
    unsigned blocks = 1, threads = 1, shared_bytes = 0, blocks_y = 1;
  };
  template <class... A>
  CUresult launch(const char* name, Shape shape, A... arguments) {
    void* parameters[] = {&arguments..., nullptr};
    return cuda().cuLaunchKernel(kernel(name), shape.blocks, shape.blocks_y, 1, shape.threads, 1, 1,
                                 shape.shared_bytes, stream_, parameters, nullptr);
  }
  void wait() { cuda().cusim_wait(0); }

  CUcontext contexts_[kDevices] = {};
  CUstream stream_ = nullptr, other_stream_ = nullptr;
};

}  // namespace treenail::test
