// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_sim/driver/driver.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>

#include "framework/base/fork.h"
#include "tests/simulated/violation.h"

namespace treenail::cuda_sim {
namespace {

constexpr int kMostDevices = 8;

thread_local Device* current_device = nullptr;

int64_t environment(const char* name, int64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoll(text, nullptr, 10);
}

}  // namespace

// Never destroyed: the streams' threads outlive main().
Driver& driver() {
  static auto* const made = new Driver;
  return *made;
}

Driver::Driver()
    : seed_(static_cast<uint64_t>(environment("TREENAIL_CUDA_SIM_SEED", 0))),
      delays_(environment("TREENAIL_CUDA_SIM_DELAYS", 1) != 0) {
  const int64_t count = environment("TREENAIL_CUDA_SIM_DEVICES", 2);
  for (int i = 0; i < std::clamp<int64_t>(count, 0, kMostDevices); ++i)
    devices_.push_back(std::make_unique<Device>(i));
}

CUresult Driver::initialise() {
  if (devices_.empty()) return CUDA_ERROR_NO_DEVICE;
  uint32_t none = 0;
  born_.compare_exchange_strong(none, fork_generation() + 1);
  check_ready();
  return CUDA_SUCCESS;
}

// No lock is touched in a child: a thread that is gone may hold it.
void Driver::check_ready() const {
  require(born_.load() == fork_generation() + 1, CUDA_ERROR_NOT_INITIALIZED);
}

Device& Driver::device(CUdevice index) const {
  require(index >= 0 && index < static_cast<int>(devices_.size()), CUDA_ERROR_INVALID_DEVICE);
  return *devices_[static_cast<size_t>(index)];
}

Device& Driver::context(CUcontext context) const {
  for (const auto& device : devices_) {
    if (device.get() == reinterpret_cast<Device*>(context)) return *device;
  }
  throw Failure{CUDA_ERROR_INVALID_CONTEXT};
}

Device& Driver::current() const {
  require(current_device != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  require(!current_device->lost(), CUDA_ERROR_LAUNCH_FAILED);
  return *current_device;
}

void Driver::set_current(Device* device) { current_device = device; }

Device* Driver::owner(const void* address) const {
  const auto found = std::ranges::find_if(
      devices_, [&](const auto& device) { return device->memory().contains(address); });
  return found == devices_.end() ? nullptr : found->get();
}

Stream& Driver::add_stream(Device& device) {
  Stream& made = device.add_stream();
  const std::lock_guard lock(mutex_);
  streams_.insert(&made);
  return made;
}

// The default stream, which waits for others and makes them wait, is not simulated.
Stream& Driver::stream(CUstream handle) const {
  require(handle != nullptr, CUDA_ERROR_NOT_SUPPORTED);
  const std::lock_guard lock(mutex_);
  require(streams_.contains(handle), CUDA_ERROR_INVALID_HANDLE);
  return *reinterpret_cast<Stream*>(handle);
}

CUevent Driver::add_event(Device& device) {
  const auto made = std::make_shared<Event>(device);
  const auto handle = reinterpret_cast<CUevent>(made.get());
  const std::lock_guard lock(mutex_);
  events_[handle] = made;
  return handle;
}

std::shared_ptr<Event> Driver::event(CUevent handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(handle);
  require(found != events_.end(), CUDA_ERROR_INVALID_HANDLE);
  return found->second;
}

void Driver::remove_event(CUevent handle) {
  const std::lock_guard lock(mutex_);
  require(events_.erase(handle) == 1, CUDA_ERROR_INVALID_HANDLE);
}

const Image* Driver::add_image(const void* code) {
  auto made = std::make_unique<Image>(code);
  const Image* const handle = made.get();
  const std::lock_guard lock(mutex_);
  images_[handle] = std::move(made);
  return handle;
}

const Image& Driver::image(CUlibrary handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = images_.find(handle);
  require(found != images_.end(), CUDA_ERROR_INVALID_HANDLE);
  return *found->second;
}

void Driver::add_kernel(const KernelEntry* kernel) {
  const std::lock_guard lock(mutex_);
  kernels_.insert(kernel);
}

const KernelEntry& Driver::kernel(CUfunction handle) const {
  const std::lock_guard lock(mutex_);
  require(kernels_.contains(handle), CUDA_ERROR_INVALID_HANDLE);
  return *reinterpret_cast<const KernelEntry*>(handle);
}

std::vector<Stream*> Driver::used_streams() const {
  std::vector<Stream*> used;
  for (const auto& device : devices_) {
    std::ranges::copy_if(device->streams(), std::back_inserter(used),
                         [](const Stream* stream) { return stream->used(); });
  }
  return used;
}

void Driver::when_passed(const std::function<void()>& release) {
  const std::vector<Stream*> streams = used_streams();
  if (streams.empty()) return release();
  const auto left = std::make_shared<std::atomic<size_t>>(streams.size());
  for (Stream* const stream : streams) {
    stream->push_always([left, release] {
      if (left->fetch_sub(1) == 1) release();
    });
  }
}

void Driver::set_seed(uint64_t seed) {
  seed_ = seed;
  for (const auto& device : devices_) {
    for (Stream* const stream : device->streams()) stream->seed(seed);
  }
}

void Driver::set_delays(bool on) {
  delays_ = on;
  for (const auto& device : devices_) {
    for (Stream* const stream : device->streams()) stream->set_delays(on);
  }
}

bool usable(Device& device, const char* who, Use use, const void* at, size_t bytes) {
  Device* const owner = driver().owner(at);
  if (owner != nullptr && device.reaches(*owner))
    return owner->memory().usable(who, use, at, bytes);
  const std::string whose = owner == nullptr ? "no memory of a device"
                                             : concat("memory of device ", owner->index(),
                                                      ", to which it has no peer access");
  simulated::violation(concat("simulated CUDA: ", who, " on device ", device.index(), " uses ",
                              simulated::hex(at), ", which is ", whose));
  return false;
}

}  // namespace treenail::cuda_sim
