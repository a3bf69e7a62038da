// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/driver/device.h"

#include <array>
#include <cstring>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "kernels/cuda/driver/driver.h"

namespace treenail::cuda {
namespace {

CUdeviceptr address(const void* at) { return reinterpret_cast<CUdeviceptr>(at); }

int attribute_of(CUdevice ordinal, CUdevice_attribute attribute) {
  int value = 0;
  treenail::cuda::check(driver().cuDeviceGetAttribute(&value, attribute, ordinal),
                        "cuDeviceGetAttribute");
  return value;
}

std::string model_of(CUdevice ordinal) {
  std::array<char, 256> name = {};
  treenail::cuda::check(driver().cuDeviceGetName(name.data(), name.size(), ordinal),
                        "cuDeviceGetName");
  return name.data();
}

// Of the current context. The driver keeps it as long as a stream waits for it.
class Event {
 public:
  Event() {
    treenail::cuda::check(driver().cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING),
                          "cuEventCreate");
  }
  ~Event() { driver().cuEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  CUevent get() const { return event_; }

 private:
  CUevent event_ = nullptr;
};

}  // namespace

CudaDevice::CudaDevice(int index, CUdevice ordinal)
    : Device({"localhost", 0, 0, kKind, index}),
      ordinal_(ordinal),
      model_(model_of(ordinal)),
      processors_(attribute_of(ordinal, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)),
      major_(attribute_of(ordinal, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)),
      minor_(attribute_of(ordinal, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)),
      memory_(to_text(name()), {&take_region, &give_region_back, this},
              env_bytes("TREENAIL_GPU_MEMORY_LIMIT").value_or(0)),
      completion_(to_text(name())),
      born_(fork_generation()) {}

std::string CudaDevice::capability() const { return concat(major_, ".", minor_); }

// --- Context and stream -------------------------------------------------------------------------

// The driver was initialised before there were devices, and serves no child whatever was used.
bool CudaDevice::forked() const { return born_ != fork_generation(); }

CudaDevice::Home* CudaDevice::make_home() {
  auto home = std::make_unique<Home>();
  check(driver().cuDevicePrimaryCtxRetain(&home->context, ordinal_), "cuDevicePrimaryCtxRetain");
  check(driver().cuCtxSetCurrent(home->context), "cuCtxSetCurrent");
  check(driver().cuStreamCreate(&home->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  check(driver().cuEventCreate(&home->drained, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  return home.release();
}

CudaDevice::Home& CudaDevice::home() {
  return made_once(home_, [this] { return make_home(); });
}

CUstream CudaDevice::enter() {
  if (forked()) {
    throw failed_precondition(
        "the process was forked after it had opened NVIDIA's driver, and "
        "the child cannot use ",
        to_text(name()));
  }
  if (is_lost_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(mutex_);
    std::rethrow_exception(lost_);
  }
  const Home& there = home();
  check(driver().cuCtxSetCurrent(there.context), "cuCtxSetCurrent");
  return there.stream;
}

void CudaDevice::check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  try {
    treenail::cuda::check(result, call);
  } catch (const Error& error) {
    const auto named = std::make_exception_ptr(error.with_prefix(concat(to_text(name()), ": ")));
    if (is_loss(result)) record(named);
    std::rethrow_exception(named);
  }
}

void CudaDevice::record(std::exception_ptr loss) {
  const std::lock_guard lock(mutex_);
  if (lost_ == nullptr) lost_ = std::move(loss);
  is_lost_.store(true, std::memory_order_release);
}

// --- Memory -------------------------------------------------------------------------------------

void* CudaDevice::take_region(void* self, size_t bytes) {
  auto& device = *static_cast<CudaDevice*>(self);
  CUdeviceptr region = 0;
  const CUresult result = driver().cuMemAlloc(&region, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
  device.check(result, "cuMemAlloc");
  return reinterpret_cast<void*>(region);
}

// When the stream is past whatever uses it still.
void CudaDevice::give_region_back(void* self, void* region) {
  auto& device = *static_cast<CudaDevice*>(self);
  device.check(driver().cuEventRecord(device.home().drained, device.home().stream),
               "cuEventRecord");
  device.check(driver().cuEventSynchronize(device.home().drained), "cuEventSynchronize");
  device.check(driver().cuMemFree(address(region)), "cuMemFree");
}

void* CudaDevice::allocate(size_t bytes) {
  enter();
  return memory_.allocate(bytes);
}

void CudaDevice::deallocate(void* memory, size_t) noexcept {
  if (!forked()) memory_.deallocate(memory);
}

AllocatorStats CudaDevice::stats() const { return forked() ? AllocatorStats() : memory_.stats(); }

// --- Copies -------------------------------------------------------------------------------------

// What is not pinned the driver has read when this returns.
void CudaDevice::copy_in(void* to, const void* from_host, size_t bytes) {
  CUstream const stream = enter();
  if (bytes == 0) return;
  check(driver().cuMemcpyHtoDAsync(address(to), from_host, bytes, stream), "cuMemcpyHtoDAsync");
}

// By way of pinned memory, so that the caller does not wait; what is too large for it waits.
void CudaDevice::copy_out(void* to_host, const void* from, size_t bytes) {
  CUstream const stream = enter();
  if (bytes == 0) return;
  void* const piece = staging_.take(bytes);
  void* const to = piece != nullptr ? piece : to_host;
  const CUresult result = driver().cuMemcpyDtoHAsync(to, address(from), bytes, stream);
  if (result != CUDA_SUCCESS && piece != nullptr) staging_.give_back(piece);
  check(result, "cuMemcpyDtoHAsync");
  if (piece == nullptr) return;
  when_done([=, this](const std::exception_ptr& error) {
    if (error == nullptr) std::memcpy(to_host, piece, bytes);
    staging_.give_back(piece);
  });
}

void CudaDevice::copy(void* to, const void* from, size_t bytes) {
  CUstream const stream = enter();
  if (bytes == 0) return;
  check(driver().cuMemcpyDtoDAsync(address(to), address(from), bytes, stream), "cuMemcpyDtoDAsync");
}

void CudaDevice::fill_bytes(void* at, unsigned char value, size_t bytes) {
  CUstream const stream = enter();
  if (bytes == 0) return;
  check(driver().cuMemsetD8Async(address(at), value, bytes, stream), "cuMemsetD8Async");
}

void CudaDevice::queue_then(std::unique_ptr<Completion::Then> then) {
  CUstream const stream = enter();
  completion_.after(home().context, stream, std::move(then));
}

void CudaDevice::copy_from_peer(void* to, Device& peer, const void* from, size_t bytes) {
  auto& source = static_cast<CudaDevice&>(peer);
  if (bytes == 0) return;
  CUstream const there = source.enter();
  const Event ready;
  source.check(driver().cuEventRecord(ready.get(), there), "cuEventRecord");
  CUstream const stream = enter();
  check(driver().cuStreamWaitEvent(stream, ready.get(), 0), "cuStreamWaitEvent");
  check(driver().cuMemcpyPeerAsync(address(to), home().context, address(from),
                                   source.home().context, bytes, stream),
        "cuMemcpyPeerAsync");
}

// --- Waiting ------------------------------------------------------------------------------------

void CudaDevice::notify(Waiter& waiter) noexcept {
  try {
    CUstream const stream = enter();
    completion_.after(home().context, stream,
                      Completion::make_then([&waiter, this](const std::exception_ptr& lost) {
                        if (lost != nullptr) record(lost);
                        waiter.reached(lost);
                      }));
  } catch (...) {
    waiter.reached(std::current_exception());
  }
}

std::vector<std::unique_ptr<Device>> make_devices() {
  int count = 0;
  check(driver().cuDeviceGetCount(&count), "cuDeviceGetCount");
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) {
    CUdevice ordinal = 0;
    check(driver().cuDeviceGet(&ordinal, i), "cuDeviceGet");
    devices.push_back(std::make_unique<CudaDevice>(i, ordinal));
  }
  return devices;
}

}  // namespace treenail::cuda
