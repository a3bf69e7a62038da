// SPDX-License-Identifier: Apache-2.0
// Kernels on fibers: what right ones compute, and that each detector finds the kernel that is
// wrong.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "tests/cuda_sim/loaded.h"

namespace treenail::test {
namespace {

std::vector<int> counting(int n) {
  std::vector<int> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

class KernelTest : public CudaTest {
 protected:
  int warp() {
    int size = 0;
    EXPECT_EQ(cuda().cuDeviceGetAttribute(&size, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), CUDA_SUCCESS);
    return size;
  }
};

TEST_F(KernelTest, EachThreadOfTheGridRunsOnceAndKnowsItsPlace) {
  const CUdeviceptr y = block<int64_t>(3 * 2 * 7);
  ASSERT_EQ(launch("sample_place", {3, 7, 0, 2}, y), CUDA_SUCCESS);
  const auto places = values_of<int64_t>(y, 3 * 2 * 7);
  size_t at = 0;
  for (int64_t by = 0; by < 2; ++by) {
    for (int64_t b = 0; b < 3; ++b) {
      for (int64_t t = 0; t < 7; ++t) EXPECT_EQ(places[at++], by * 1000000 + b * 1000 + t);
    }
  }
  free({y});
}

TEST_F(KernelTest, AnyNumberOfThreadsRunsEachOnce) {
  for (const unsigned threads : {1u, 2u, 97u, 194u, 255u, 256u}) {
    const CUdeviceptr y = block_of(std::vector<int>(1000));
    ASSERT_EQ(launch("sample_increment", {5, threads}, int64_t{1000}, y), CUDA_SUCCESS);
    EXPECT_EQ(values_of(y, 1000), std::vector<int>(1000, 1)) << threads;
    free({y});
  }
}

TEST_F(KernelTest, QuotientsByMultiplication) {
  std::vector<int64_t> edges;
  for (int bit = 0; bit < 63; ++bit) {
    for (const int64_t near : {-1, 0, 1}) edges.push_back((int64_t{1} << bit) + near);
  }
  edges.insert(edges.end(), {3, 5, 7, 641, 1000003, 6700417, std::numeric_limits<int64_t>::max()});
  for (const int64_t size : edges) {
    if (size == 0) continue;
    std::vector<int64_t> given = edges, expected;
    for (const int64_t edge : edges) given.push_back(edge / size * size);
    for (const int64_t i : given) expected.push_back(i / size);
    const CUdeviceptr x = block_of(given);
    const auto n = static_cast<int64_t>(given.size());
    ASSERT_EQ(launch("sample_quotients", {1, 128}, n, size, x), CUDA_SUCCESS);
    EXPECT_EQ(values_of<int64_t>(x, given.size()), expected) << size;
    free({x});
  }
}

TEST_F(KernelTest, BarriersAndShufflesSumABlock) {
  const CUdeviceptr x = block_of(std::vector<float>(1000, 1.0f)), y = block_of<float>({0});
  ASSERT_EQ(launch("sample_sum", {3, 128}, int64_t{1000}, x, y), CUDA_SUCCESS);
  EXPECT_EQ(values_of<float>(y, 1), std::vector<float>{1000});
  free({x, y});
}

TEST_F(KernelTest, AShuffleReachesEachLaneOfItsWarp) {
  const CUdeviceptr y = block(128);
  ASSERT_EQ(launch("sample_butterfly", {1, 128}, y), CUDA_SUCCESS);
  const std::vector<int> sums = values_of(y, 128);
  for (int t = 0; t < 128; ++t) {
    const int begin = t / warp() * warp();
    EXPECT_EQ(sums[static_cast<size_t>(t)], warp() * begin + warp() * (warp() - 1) / 2) << t;
  }
  free({y});
}

TEST_F(KernelTest, BarriersOfBlockAndWarpOrderSharedMemory) {
  std::vector<int> expected = counting(128);
  const CUdeviceptr y = block_of(expected);
  ASSERT_EQ(launch("sample_reverse", {1, 128, 128 * sizeof(int)}, y), CUDA_SUCCESS);
  std::reverse(expected.begin(), expected.end());
  EXPECT_EQ(values_of(y, 128), expected);
  ASSERT_EQ(launch("sample_warp_reverse", {1, 128}, y), CUDA_SUCCESS);
  for (auto at = expected.begin(); at != expected.end(); at += warp())
    std::reverse(at, at + warp());
  EXPECT_EQ(values_of(y, 128), expected);
  free({y});
}

TEST_F(KernelTest, AtomicsOfManyBlocks) {
  const CUdeviceptr x = block_of(counting(512)), least = block_of<int>({100}),
                    most = block_of<int>({100}), counts = block_of<unsigned>({0, 0});
  ASSERT_EQ(launch("sample_extremes", {4, 128}, x, least, most, counts), CUDA_SUCCESS);
  EXPECT_EQ(values_of(least, 1), std::vector<int>{0});
  EXPECT_EQ(values_of(most, 1), std::vector<int>{511});
  EXPECT_EQ(values_of<unsigned>(counts, 2), (std::vector<unsigned>{256, 256}));
  free({x, least, most, counts});
}

struct Pair {
  CUdeviceptr to;
  int64_t value;
};

TEST_F(KernelTest, PointersInAStructAreFoundByTheirLooks) {
  const CUdeviceptr y = block(1);
  ASSERT_EQ(launch("sample_struct", {1, 1}, Pair{y, 7}), CUDA_SUCCESS);
  EXPECT_EQ(values_of(y, 1), std::vector<int>{7});
  free({y});
}

TEST_F(KernelTest, AKernelOfNoParametersNeedsNone) {
  EXPECT_EQ(cuda().cuLaunchKernel(kernel("sample_nothing"), 1, 1, 1, 1, 1, 1, 0, stream_, nullptr,
                                  nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuLaunchKernel(kernel("sample_increment"), 1, 1, 1, 1, 1, 1, 0, stream_, nullptr,
                                  nullptr),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(KernelTest, WhatTheGpuCannotLaunchIsRefused) {
  const auto refusal = [&](std::vector<int> shape) {
    const auto at = [&](size_t i) { return static_cast<unsigned>(shape[i]); };
    return cuda().cuLaunchKernel(kernel("sample_nothing"), at(0), at(1), at(2), at(3), at(4), at(5),
                                 at(6), stream_, nullptr, nullptr);
  };
  EXPECT_EQ(refusal({1, 1, 1, 256, 1, 1, 48 << 10}), CUDA_SUCCESS);
  EXPECT_EQ(refusal({0, 1, 1, 32, 1, 1, 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refusal({1, 0, 1, 32, 1, 1, 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refusal({1, 65536, 1, 32, 1, 1, 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refusal({1, 1, 1, 0, 1, 1, 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refusal({1, 1, 1, 257, 1, 1, 0}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refusal({1, 1, 1, 32, 1, 1, (48 << 10) + 1}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refusal({1, 1, 2, 32, 1, 1, 0}), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(refusal({1, 1, 1, 32, 2, 1, 0}), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(KernelTest, LibrariesAndKernelsAreLookedUp) {
  const uint32_t elf[4] = {0x464c457f};
  CUlibrary library = nullptr;
  EXPECT_EQ(cuda().cuLibraryLoadData(&library, elf, nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_ERROR_INVALID_IMAGE);
  const uint32_t image[4] = {0xba55ed50};
  ASSERT_EQ(cuda().cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_SUCCESS);
  CUkernel found = nullptr;
  EXPECT_EQ(cuda().cuLibraryGetKernel(&found, library, "no_such"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuda().cuLibraryGetKernel(&found, library, "sample_sum"), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuLaunchKernel(reinterpret_cast<CUfunction>(&found), 1, 1, 1, 1, 1, 1, 0,
                                  stream_, nullptr, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(KernelTest, AKernelIsFoundInTheImageThatHasIt) {
  struct {
    uint32_t magic = 0xba55ed50;
    uint16_t version = 1, header_bytes = 16;
    uint64_t bytes = 32;
    char names[32] = ".text.sample_sum";
  } const image;
  CUlibrary library = nullptr;
  ASSERT_EQ(cuda().cuLibraryLoadData(&library, &image, nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_SUCCESS);
  CUkernel found = nullptr;
  EXPECT_EQ(cuda().cuLibraryGetKernel(&found, library, "sample_sum"), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuLibraryGetKernel(&found, library, "sample_place"), CUDA_ERROR_NOT_FOUND);
}

TEST_F(KernelTest, StreamsRunKernelsAtTheSameTime) {
  CUstream second = nullptr;
  ASSERT_EQ(cuda().cuStreamCreate(&second, 0), CUDA_SUCCESS);
  const CUdeviceptr y = block_of(std::vector<int>(1000)), z = block_of(std::vector<int>(1000));
  wait();
  for (int i = 0; i < 50; ++i) {
    for (const CUstream stream : {stream_, second}) {
      int64_t n = 1000;
      CUdeviceptr to = stream == second ? z : y;
      void* parameters[] = {&n, &to};
      ASSERT_EQ(cuda().cuLaunchKernel(kernel("sample_increment"), 2, 1, 1, 64, 1, 1, 0, stream,
                                      parameters, nullptr),
                CUDA_SUCCESS);
    }
  }
  wait();
  EXPECT_EQ(values_of(y, 1000), std::vector<int>(1000, 50));
  EXPECT_EQ(values_of(z, 1000), std::vector<int>(1000, 50));
  free({y, z});
}

// Detectors: a violation.

TEST_F(KernelTest, ABarrierThatNotAllReachIsFound) {
  const CUdeviceptr y = block(64);
  ASSERT_EQ(launch("sample_divergent", {2, 64}, y), CUDA_SUCCESS);
  wait();
  expect_violation("kernel sample_divergent: divergent barrier in block");
  ASSERT_EQ(launch("sample_divergent_shuffle", {1, 64}, y), CUDA_SUCCESS);
  wait();
  expect_violation("of 64 threads 0 wait for their block, 0 for their warp, 32 in a shuffle");
  ASSERT_EQ(launch("sample_increment", {1, 64}, int64_t{64}, y), CUDA_SUCCESS) << "goes on";
  wait();
  free({y});
}

TEST_F(KernelTest, MoreSharedMemoryThanThereIsIsFound) {
  ASSERT_EQ(cuda().cuLaunchKernel(kernel("sample_too_much_shared"), 1, 1, 1, 1, 1, 1, 0, stream_,
                                  nullptr, nullptr),
            CUDA_SUCCESS);
  wait();
  expect_violation("sample_too_much_shared wants 49153 bytes of shared memory");
}

TEST_F(KernelTest, AHostPointerIsFound) {
  std::vector<int> host(64);
  EXPECT_EQ(launch("sample_increment", {1, 64}, int64_t{64}, host.data()),
            CUDA_ERROR_INVALID_VALUE);
  expect_violation("parameter 1 is ");
  int* const page_locked = pinned(64);
  EXPECT_EQ(launch("sample_increment", {1, 64}, int64_t{64}, page_locked),
            CUDA_ERROR_INVALID_VALUE);
  expect_violation("no memory of a device");
  EXPECT_EQ(cuda().cuMemFreeHost(page_locked), CUDA_SUCCESS);
}

TEST_F(KernelTest, NullAndTheEndOfABlockArePointersAsGoodAsOthers) {
  const CUdeviceptr y = block(64);
  EXPECT_EQ(launch("sample_increment", {1, 64}, int64_t{0}, CUdeviceptr{0}), CUDA_SUCCESS);
  EXPECT_EQ(launch("sample_increment", {1, 64}, int64_t{0}, y + 256), CUDA_SUCCESS);
  EXPECT_EQ(launch("sample_increment", {1, 64}, int64_t{0}, y + 260), CUDA_ERROR_INVALID_VALUE);
  expect_violation("which is no live block");
  wait();
  free({y});
}

TEST_F(KernelTest, MemoryOfAnotherDeviceNeedsPeerAccess) {
  const CUdeviceptr y = block(1);
  use(1);
  const CUdeviceptr theirs = block(1);
  use(0);
  EXPECT_EQ(launch("sample_read", {1, 1}, theirs, y), CUDA_ERROR_INVALID_VALUE);
  expect_violation("memory of device 1, to which it has no peer access");
  ASSERT_EQ(cuda().cuCtxEnablePeerAccess(contexts_[1], 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuCtxEnablePeerAccess(contexts_[1], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  EXPECT_EQ(launch("sample_read", {1, 1}, theirs, y), CUDA_SUCCESS);
  wait();
  free({theirs, y});
}

// Detectors that are sanitizers: in a process that the test does not end with.

class KernelDeathTest : public KernelTest {
 protected:
  void SetUp() override {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    KernelTest::SetUp();
  }
  void run(const char* name, Shape shape, size_t n = 256) {
    const CUdeviceptr y = block_of(std::vector<int>(n));
    const bool number = std::string(name).find("overrun") != std::string::npos;
    EXPECT_EQ(number ? launch(name, shape, 17) : launch(name, shape, y), CUDA_SUCCESS);
    wait();
    std::exit(0);
  }
};

bool failed(int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; }

TEST_F(KernelDeathTest, RacesAreFound) {
#ifndef TREENAIL_TSAN
  GTEST_SKIP() << "needs ThreadSanitizer";
#endif
  for (const char* const name :
       {"sample_race_of_threads", "sample_no_barrier", "sample_one_barrier",
        "sample_shuffle_as_fence", "sample_warp_as_block"})
    EXPECT_EXIT(run(name, {1, 128}), failed, concat("data race[^$]*", name)) << name;
  for (const char* const name : {"sample_race_of_blocks", "sample_race_of_blocks_that_sync"})
    EXPECT_EXIT(run(name, {2, 32}), failed, concat("data race[^$]*", name)) << name;
}

TEST_F(KernelDeathTest, OverrunsOfSharedMemoryAreFound) {
#ifndef TREENAIL_ASAN
  GTEST_SKIP() << "needs AddressSanitizer";
#endif
  EXPECT_EXIT(run("sample_overrun", {1, 32}), failed, "heap-buffer-overflow|out of bounds");
  EXPECT_EXIT(run("sample_dynamic_overrun", {1, 32, 64}), failed, "heap-buffer-overflow");
}

TEST_F(KernelDeathTest, OverrunsOfABlockOfMemoryAreFound) {
#ifndef TREENAIL_ASAN
  GTEST_SKIP() << "needs AddressSanitizer";
#endif
  const auto overrun = [&] {
    const CUdeviceptr y = block(63);
    EXPECT_EQ(launch("sample_increment", {1, 64}, int64_t{64}, y), CUDA_SUCCESS);
    wait();
    std::exit(0);
  };
  EXPECT_EXIT(overrun(), failed, "use-after-poison");
}

TEST_F(KernelDeathTest, TheHostCannotTouchWhatTheDeviceHas) {
  const CUdeviceptr y = block(1);
  volatile int* const at = reinterpret_cast<int*>(y);
  EXPECT_DEATH(*at = 1, "");
  free({y});
}

TEST_F(KernelDeathTest, AViolationEndsTheProcessUnlessItIsRecorded) {
  EXPECT_DEATH(
      {
        cuda().cusim_record_violations(0);
        run("sample_divergent", {1, 64});
      },
      "divergent barrier");
}

}  // namespace
}  // namespace treenail::test
