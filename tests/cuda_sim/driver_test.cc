// SPDX-License-Identifier: Apache-2.0
// The simulated driver: late streams, events, memory, what goes wrong when a test wants it to, and
// that each misuse is found.
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "tests/cuda_sim/loaded.h"
#include "tests/support/child.h"

namespace treenail::test {
namespace {

constexpr size_t kMany = 1000;

using DriverTest = CudaTest;

TEST_F(DriverTest, DevicesAreDescribed) {
  int count = 0, major = 0, bus = 0;
  ASSERT_EQ(cuda().cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, kDevices);
  EXPECT_EQ(cuda().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 1),
            CUDA_SUCCESS);
  EXPECT_EQ(major, 9);
  EXPECT_EQ(cuda().cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1), CUDA_SUCCESS);
  EXPECT_EQ(bus, 2);
  EXPECT_EQ(cuda().cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_MAX, 0),
            CUDA_ERROR_INVALID_VALUE);
  CUdevice device = -1;
  EXPECT_EQ(cuda().cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
  std::array<char, 64> text = {};
  EXPECT_EQ(cuda().cuDeviceGetName(text.data(), text.size(), 0), CUDA_SUCCESS);
  EXPECT_STREQ(text.data(), "Simulated CUDA device");
  EXPECT_EQ(cuda().cuDeviceGetPCIBusId(text.data(), 8, 1), CUDA_SUCCESS);
  EXPECT_STREQ(text.data(), "0000:02");
  int can = -1;
  EXPECT_EQ(cuda().cuDeviceCanAccessPeer(&can, 0, 1), CUDA_SUCCESS);
  EXPECT_EQ(can, 1);
}

TEST_F(DriverTest, ErrorsHaveNamesAndTexts) {
  const char* text = nullptr;
  EXPECT_EQ(cuda().cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(cuda().cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "out of memory");
  EXPECT_EQ(cuda().cuGetErrorName(static_cast<CUresult>(998), &text), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(text, nullptr);
}

TEST_F(DriverTest, TheVersionIsTheHeadersUnlessATestSaysOtherwise) {
  int version = 0;
  EXPECT_EQ(cuda().cuDriverGetVersion(&version), CUDA_SUCCESS);
  EXPECT_EQ(version, CUDA_VERSION);
  cuda().cusim_driver_version(11040);
  EXPECT_EQ(cuda().cuDriverGetVersion(&version), CUDA_SUCCESS);
  EXPECT_EQ(version, 11040);
  cuda().cusim_driver_version(0);
}

TEST_F(DriverTest, AThreadWithoutAContextIsRefused) {
  std::thread([&] {
    CUdeviceptr at = 0;
    CUstream stream = nullptr;
    EXPECT_EQ(cuda().cuMemAlloc(&at, 4), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuda().cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuda().cuMemsetD8Async(at, 0, 4, stream_), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuda().cuLaunchKernel(kernel("sample_nothing"), 1, 1, 1, 1, 1, 1, 0, stream_, nullptr,
                                    nullptr),
              CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cuda().cuCtxSetCurrent(contexts_[0]), CUDA_SUCCESS);
    EXPECT_EQ(cuda().cuMemAlloc(&at, 4), CUDA_SUCCESS);
    EXPECT_EQ(cuda().cuMemFree(at), CUDA_SUCCESS);
    EXPECT_EQ(cuda().cuCtxSetCurrent(reinterpret_cast<CUcontext>(&at)), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
}

TEST_F(DriverTest, HandlesThatWereNeverGivenAreRefused) {
  CUevent event = nullptr;
  ASSERT_EQ(cuda().cuEventCreate(&event, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuEventRecord(event, reinterpret_cast<CUstream>(&event)),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuda().cuEventRecord(event, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuda().cuEventRecord(event, other_stream_), CUDA_ERROR_INVALID_HANDLE) << "its device";
  EXPECT_EQ(cuda().cuEventDestroy(event), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuda().cuEventCreate(&event, 64), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverTest, EventsSayHowFarAStreamIs) {
  CUevent event = nullptr;
  ASSERT_EQ(cuda().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuEventQuery(event), CUDA_SUCCESS) << "never recorded";
  EXPECT_EQ(cuda().cuEventSynchronize(event), CUDA_SUCCESS) << "never recorded";
  cuda().cusim_hold(0, 1);
  ASSERT_EQ(cuda().cuEventRecord(event, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuEventQuery(event), CUDA_ERROR_NOT_READY);
  cuda().cusim_hold(0, 0);
  EXPECT_EQ(cuda().cuEventSynchronize(event), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuEventQuery(event), CUDA_SUCCESS);
  cuda().cusim_hold(0, 1);
  ASSERT_EQ(cuda().cuEventRecord(event, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuEventQuery(event), CUDA_ERROR_NOT_READY) << "recorded anew";
  cuda().cusim_hold(0, 0);
  EXPECT_EQ(cuda().cuEventDestroy(event), CUDA_SUCCESS) << "while it is pending";
}

// Each stream of a pair waits for the other's last step, so that a counter comes out whole.
TEST_F(DriverTest, AStreamWaitsForTheEventOfAnother) {
  CUstream second = nullptr;
  ASSERT_EQ(cuda().cuStreamCreate(&second, 0), CUDA_SUCCESS);
  std::array<CUevent, 2> events = {};
  for (CUevent& event : events) ASSERT_EQ(cuda().cuEventCreate(&event, 0), CUDA_SUCCESS);
  CUdeviceptr y = block_of(std::vector<int>(kMany));
  wait();
  for (int i = 0; i < 40; ++i) {
    const CUstream stream = i % 2 == 0 ? stream_ : second;
    ASSERT_EQ(cuda().cuStreamWaitEvent(stream, events[(i + 1) % 2], 0), CUDA_SUCCESS);
    int64_t n = kMany;
    void* parameters[] = {&n, &y};
    ASSERT_EQ(cuda().cuLaunchKernel(kernel("sample_increment"), 1, 1, 1, 32, 1, 1, 0, stream,
                                    parameters, nullptr),
              CUDA_SUCCESS);
    ASSERT_EQ(cuda().cuEventRecord(events[i % 2], stream), CUDA_SUCCESS);
  }
  wait();
  EXPECT_EQ(values_of(y, kMany), std::vector<int>(kMany, 40));
  for (const CUevent event : events) EXPECT_EQ(cuda().cuEventDestroy(event), CUDA_SUCCESS);
  free({y});
}

TEST_F(DriverTest, AStreamWaitsForTheRecordThatThereWasWhenItAsked) {
  CUevent event = nullptr;
  ASSERT_EQ(cuda().cuEventCreate(&event, 0), CUDA_SUCCESS);
  use(1);
  const CUdeviceptr y = block(1);
  cuda().cusim_hold(0, 1);
  ASSERT_EQ(cuda().cuStreamWaitEvent(other_stream_, event, 0), CUDA_SUCCESS);
  use(0);
  ASSERT_EQ(cuda().cuEventRecord(event, stream_), CUDA_SUCCESS);
  use(1);
  ASSERT_EQ(cuda().cuMemsetD32Async(y, 5, 1, other_stream_), CUDA_SUCCESS);
  int value = 0;
  EXPECT_EQ(cuda().cuMemcpyDtoHAsync(&value, y, sizeof(value), other_stream_), CUDA_SUCCESS)
      << "hangs if it waits for the later record";
  EXPECT_EQ(value, 5);
  cuda().cusim_hold(0, 0);
  free({y});
  use(0);
  EXPECT_EQ(cuda().cuEventDestroy(event), CUDA_SUCCESS);
}

TEST_F(DriverTest, CopiesFromPageableMemoryHaveTheirOwn) {
  std::vector<int> source(kMany, 7);
  const CUdeviceptr y = block(kMany);
  cuda().cusim_hold(0, 1);
  ASSERT_EQ(cuda().cuMemcpyHtoDAsync(y, source.data(), kMany * sizeof(int), stream_), CUDA_SUCCESS);
  source.assign(kMany, 8);
  cuda().cusim_hold(0, 0);
  EXPECT_EQ(values_of(y, kMany), std::vector<int>(kMany, 7));
  free({y});
}

TEST_F(DriverTest, CopiesToAndFromPinnedMemoryAreLate) {
  int* const host = pinned(kMany);
  std::fill(host, host + kMany, 3);
  const CUdeviceptr y = block(kMany);
  ASSERT_EQ(cuda().cuMemcpyHtoDAsync(y, host, kMany * sizeof(int), stream_), CUDA_SUCCESS);
  wait();
  cuda().cusim_hold(0, 1);
  ASSERT_EQ(cuda().cuMemcpyDtoHAsync(host, y, kMany * sizeof(int), stream_), CUDA_SUCCESS);
  EXPECT_NE(host[0], 3) << "not done yet";
  cuda().cusim_hold(0, 0);
  wait();
  EXPECT_EQ(std::vector<int>(host, host + kMany), std::vector<int>(kMany, 3));
  EXPECT_EQ(cuda().cusim_pinned_blocks(), 1);
  EXPECT_EQ(cuda().cuMemFreeHost(host), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cusim_pinned_blocks(), 0);
  free({y});
}

TEST_F(DriverTest, MemoryIsSetAndCopiedWithinAndBetweenDevices) {
  const CUdeviceptr x = block(kMany), y = block(kMany);
  use(1);
  const CUdeviceptr theirs = block(kMany);
  use(0);
  ASSERT_EQ(cuda().cuMemsetD32Async(x, 9, kMany, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuda().cuMemsetD8Async(x, 1, 6, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuMemsetD32Async(x + 2, 9, 1, stream_), CUDA_ERROR_INVALID_VALUE);
  const size_t bytes = kMany * sizeof(int);
  ASSERT_EQ(cuda().cuMemcpyPeerAsync(theirs, contexts_[1], x, contexts_[0], bytes, stream_),
            CUDA_SUCCESS);
  ASSERT_EQ(cuda().cuMemcpyPeerAsync(y, contexts_[0], theirs, contexts_[1], bytes, stream_),
            CUDA_SUCCESS);
  ASSERT_EQ(cuda().cuMemcpyDtoDAsync(x, y, bytes, stream_), CUDA_SUCCESS);
  std::vector<int> expected(kMany, 9);
  expected[0] = 0x01010101;
  expected[1] = 0x0101;
  EXPECT_EQ(values_of(x, kMany), expected);
  free({x, y, theirs});
}

TEST_F(DriverTest, CountersTellWhatWasDone) {
  std::map<int, int64_t> before;
  for (int what = 0; what < CUSIM_COUNTERS; ++what) before[what] = cuda().cusim_count(0, what);
  const CUdeviceptr y = block_of(std::vector<int>(kMany)), z = block(kMany);
  ASSERT_EQ(launch("sample_increment", {1, 1}, int64_t{1}, y), CUDA_SUCCESS);
  ASSERT_EQ(cuda().cuMemcpyDtoDAsync(z, y, 8, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuda().cuMemsetD8Async(y, 1, 6, stream_), CUDA_SUCCESS);
  values_of(y, 10);
  std::map<int, int64_t> counted;
  for (int what = 0; what < CUSIM_COUNTERS; ++what) {
    const int64_t more = cuda().cusim_count(0, what) - before[what];
    if (more != 0) counted[what] = more;
  }
  EXPECT_EQ(counted, (std::map<int, int64_t>{{CUSIM_LAUNCHES, 1},
                                             {CUSIM_COPIES_IN, 1},
                                             {CUSIM_COPIES_OUT, 1},
                                             {CUSIM_COPIES_WITHIN, 1},
                                             {CUSIM_BYTES_IN, 4000},
                                             {CUSIM_BYTES_OUT, 40},
                                             {CUSIM_BYTES_WITHIN, 8},
                                             {CUSIM_MEMSETS, 1},
                                             {CUSIM_SYNCHRONISATIONS, 1},
                                             {CUSIM_ALLOCATIONS, 2}}));
  EXPECT_EQ(cuda().cusim_live_blocks(0), 2);
  EXPECT_EQ(cuda().cusim_live_bytes(0), 8000);
  free({y, z});
  EXPECT_EQ(cuda().cusim_live_blocks(0), 0);
}

// What a test wants to go wrong.

TEST_F(DriverTest, MemoryEndsAtTheLimitOrWhereATestSays) {
  cuda().cusim_set_limit(0, 10000);
  size_t free_bytes = 0, total = 0;
  const CUdeviceptr y = block(kMany);
  EXPECT_EQ(cuda().cuMemGetInfo(&free_bytes, &total), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes, 6000u);
  EXPECT_EQ(total, 10000u);
  CUdeviceptr z = 0;
  EXPECT_EQ(cuda().cuMemAlloc(&z, 6001), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuda().cuMemAlloc(&z, 0), CUDA_ERROR_INVALID_VALUE);
  cuda().cusim_set_limit(0, 0);
  cuda().cusim_fail_allocation(0, 2);
  ASSERT_EQ(cuda().cuMemAlloc(&z, 4), CUDA_SUCCESS);
  CUdeviceptr never = 0;
  EXPECT_EQ(cuda().cuMemAlloc(&never, 4), CUDA_ERROR_OUT_OF_MEMORY);
  cuda().cusim_fail_allocation(-1, 1);
  void* host = nullptr;
  EXPECT_EQ(cuda().cuMemHostAlloc(&host, 4, 0), CUDA_ERROR_OUT_OF_MEMORY);
  free({y, z});
}

TEST_F(DriverTest, ALostDeviceFailsForEverAndTheOtherGoesOn) {
  CUevent event = nullptr;
  ASSERT_EQ(cuda().cuEventCreate(&event, 0), CUDA_SUCCESS);
  const CUdeviceptr y = block_of(std::vector<int>(kMany));
  wait();
  cuda().cusim_lose(0, 2);
  int* const host = pinned(1);
  EXPECT_EQ(launch("sample_increment", {1, 1}, int64_t{1}, y), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuMemsetD32Async(y, 5, 1, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuEventRecord(event, stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuEventSynchronize(event), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuda().cuEventQuery(event), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuda().cuMemcpyDtoHAsync(host, y, 4, stream_), CUDA_ERROR_LAUNCH_FAILED);
  CUdeviceptr z = 0;
  EXPECT_EQ(cuda().cuMemAlloc(&z, 4), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuda().cuMemFree(y), CUDA_ERROR_LAUNCH_FAILED);
  use(1);
  EXPECT_EQ(cuda().cuMemAlloc(&z, 4), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuEventQuery(event), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(cuda().cuMemFree(z), CUDA_SUCCESS);
  use(0);
  cuda().cusim_restore(0);
  EXPECT_EQ(cuda().cuEventSynchronize(event), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cusim_live_blocks(0), 0) << "what was freed, is";
  EXPECT_EQ(cuda().cuMemFreeHost(host), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuEventDestroy(event), CUDA_SUCCESS);
}

TEST_F(DriverTest, AGpuForWhichThereIsNoCodeIsSaidAtTheLaunch) {
  cuda().cusim_no_binary(1);
  EXPECT_EQ(cuda().cuLaunchKernel(kernel("sample_nothing"), 1, 1, 1, 1, 1, 1, 0, stream_, nullptr,
                                  nullptr),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  cuda().cusim_no_binary(0);
}

TEST_F(DriverTest, AForkedChildHasNoDevice) {
  const auto child = [] {
    int count = 0;
    CUdeviceptr y = 0;
    const bool refused = cuda().cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                         cuda().cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                         cuda().cuMemAlloc(&y, 4) == CUDA_ERROR_NOT_INITIALIZED &&
                         cuda().cuMemFree(y) == CUDA_ERROR_NOT_INITIALIZED;
    return refused ? 0 : 1;
  };
  EXPECT_EQ(in_child(child), 0);
}

// What is found.

TEST_F(DriverTest, UseAfterFreeIsFoundWhereTheStreamGetsToIt) {
  const CUdeviceptr y = block(kMany);
  cuda().cusim_hold(0, 1);
  ASSERT_EQ(launch("sample_increment", {1, 1}, int64_t{1}, y), CUDA_SUCCESS);
  free({y});
  cuda().cusim_hold(0, 0);
  wait();
  expect_violation("use after free");
  EXPECT_EQ(launch("sample_increment", {1, 1}, int64_t{1}, y), CUDA_ERROR_INVALID_VALUE);
  expect_violation("use after free");
  EXPECT_EQ(cuda().cuMemsetD8Async(y, 0, 4, stream_), CUDA_ERROR_INVALID_VALUE);
  expect_violation("cuMemsetD8Async writes 4 bytes at ");
}

TEST_F(DriverTest, DoubleFreesAreFound) {
  const CUdeviceptr y = block(kMany);
  free({y});
  EXPECT_EQ(cuda().cuMemFree(y), CUDA_ERROR_INVALID_VALUE);
  expect_violation("use after free");
  const CUdeviceptr z = block(kMany);
  EXPECT_EQ(cuda().cuMemFree(z + 4), CUDA_ERROR_INVALID_VALUE);
  violations();
  free({z, 0});
  int* const host = pinned(1);
  EXPECT_EQ(cuda().cuMemFreeHost(host), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
  expect_violation("which is no block of pinned memory, or was freed before");
  int local = 0;
  EXPECT_EQ(cuda().cuMemFree(reinterpret_cast<CUdeviceptr>(&local)), CUDA_ERROR_INVALID_VALUE);
  expect_violation("cuMemFree frees ");
}

TEST_F(DriverTest, APinnedSourceThatChangesIsFound) {
#ifdef TREENAIL_TSAN
  GTEST_SKIP() << "the misuse is a race, which ThreadSanitizer finds first";
#endif
  int* const host = pinned(kMany);
  const CUdeviceptr y = block(kMany);
  cuda().cusim_hold(0, 1);
  ASSERT_EQ(cuda().cuMemcpyHtoDAsync(y, host, kMany * sizeof(int), stream_), CUDA_SUCCESS);
  ++host[kMany / 2];
  cuda().cusim_hold(0, 0);
  wait();
  expect_violation("pinned memory changed before the copy was done");
  cuda().cusim_hold(0, 1);
  ASSERT_EQ(cuda().cuMemcpyDtoHAsync(host, y, kMany * sizeof(int), stream_), CUDA_SUCCESS);
  ++host[kMany / 2];
  cuda().cusim_hold(0, 0);
  wait();
  expect_violation("pinned memory was written before the copy was done");
  EXPECT_EQ(cuda().cuMemFreeHost(host), CUDA_SUCCESS);
  free({y});
}

TEST_F(DriverTest, PinnedMemoryThatIsFreedTooEarlyIsFound) {
  int* const host = pinned(kMany);
  const CUdeviceptr y = block(kMany);
  cuda().cusim_hold(0, 1);
  ASSERT_EQ(cuda().cuMemcpyHtoDAsync(y, host, kMany * sizeof(int), stream_), CUDA_SUCCESS);
  EXPECT_EQ(cuda().cuMemFreeHost(host), CUDA_SUCCESS);
  cuda().cusim_hold(0, 0);
  wait();
  expect_violation("was freed before the copy was done");
  free({y});
}

TEST_F(DriverTest, AddressesOfTheWrongSideAreFound) {
  std::vector<int> host(kMany);
  const size_t bytes = kMany * sizeof(int);
  const CUdeviceptr y = block(kMany), z = block(kMany);
  const auto device_as_host = reinterpret_cast<void*>(z);
  const auto host_as_device = reinterpret_cast<CUdeviceptr>(host.data());
  EXPECT_EQ(cuda().cuMemcpyHtoDAsync(y, device_as_host, bytes, stream_), CUDA_ERROR_INVALID_VALUE);
  expect_violation("for host memory; it is a device's");
  EXPECT_EQ(cuda().cuMemcpyDtoDAsync(y, host_as_device, bytes, stream_), CUDA_ERROR_INVALID_VALUE);
  expect_violation("which is no memory of a device");
  EXPECT_EQ(cuda().cuMemcpyHtoDAsync(y, host.data(), bytes + 1, stream_), CUDA_ERROR_INVALID_VALUE);
  expect_violation("beyond the end of its block");
  EXPECT_EQ(cuda().cuMemcpyDtoDAsync(y, y + 4, 8, stream_), CUDA_ERROR_INVALID_VALUE);
  expect_violation("which overlap");
  int* const page_locked = pinned(1);
  EXPECT_EQ(cuda().cuMemcpyHtoDAsync(y, page_locked, 8, stream_), CUDA_ERROR_INVALID_VALUE);
  expect_violation("which go beyond a block of pinned memory");
  EXPECT_EQ(cuda().cuMemFreeHost(page_locked), CUDA_SUCCESS);
  free({y, z});
}

TEST_F(DriverTest, AViewIsNoAddressEither) {
  const CUdeviceptr y = block(1);
  const CUdeviceptr view = y + (CUdeviceptr{8} << 30);
  EXPECT_EQ(cuda().cuMemsetD8Async(view, 0, 4, stream_), CUDA_ERROR_INVALID_VALUE);
  expect_violation("which is no memory of a device");
  free({y});
}

// In a process of its own, for the driver looks at its environment once.
class NoDeviceDeathTest : public ::testing::Test {};

TEST_F(NoDeviceDeathTest, TheEnvironmentSaysHowManyDevicesThereAre) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto body = [](const char* devices) {
    ::setenv("TREENAIL_CUDA_SIM_DEVICES", devices, 1);
    int count = -1;
    const CUresult result = cuda().cuInit(0);
    cuda().cuDeviceGetCount(&count);
    std::_Exit(result == CUDA_ERROR_NO_DEVICE ? 100 : count);
  };
  EXPECT_EXIT(body("0"), ::testing::ExitedWithCode(100), "");
  EXPECT_EXIT(body("5"), ::testing::ExitedWithCode(5), "");
}

// The simulation has what there is, under the names that there are.

TEST(RealLibrariesTest, ExportWhatThePluginUsesOfTheDriver) {
  expect_exported(TREENAIL_CUDA_LIBRARIES "/stubs/libcuda.so", {
#define TN_ENTRY(name) TN_SYMBOL(name),
#include "kernels/cuda/driver/driver_entries.inc"
#undef TN_ENTRY
                                                               });
}

TEST(RealLibrariesTest, ExportWhatThePluginUsesOfCublasLt) {
  expect_exported(TREENAIL_CUDA_LIBRARIES "/libcublasLt.so.13", {
#define TN_ENTRY(name) TN_SYMBOL(name),
#include "kernels/cuda/driver/blas_entries.inc"
#undef TN_ENTRY
                                                                });
}

}  // namespace
}  // namespace treenail::test
