// SPDX-License-Identifier: Apache-2.0
// Waiting for a device, the CPUs, and which devices a process has.
#include "framework/device/device.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/base/spin.h"
#include "framework/device/accelerators.h"

namespace treenail {

std::atomic<bool> accelerators_there{false};

namespace {

constexpr int64_t kLookNs = 50'000'000;  // how often a sleeper looks whether it is in a fork

class Sleeper final : public Device::Waiter {
 public:
  void reached(std::exception_ptr error) noexcept override {
    error_ = std::move(error);
    reached_.store(1, std::memory_order_release);
    // The sleeper may be gone by now: of the word only the address is used.
    futex_wake(&reached_, 1);
  }

  // False in the child of a fork, where nobody will come.
  bool sleep() {
    const uint32_t born = fork_generation();
    while (reached_.load(std::memory_order_acquire) == 0) {
      futex_wait_for(&reached_, 0, kLookNs);
      if (fork_generation() != born) return false;
    }
    if (error_ != nullptr) std::rethrow_exception(error_);
    return true;
  }

 private:
  std::atomic<uint32_t> reached_{0};
  std::exception_ptr error_;
};

// Computes when it is called, so that nothing is ever queued.
class Cpu final : public Device {
 public:
  explicit Cpu(int index) : Device({"localhost", 0, 0, kHostKind, index}) {}
  bool folds() const override { return true; }
  void* allocate(size_t bytes) override { return Allocator::host().allocate(bytes); }
  void deallocate(void* memory, size_t bytes) noexcept override {
    Allocator::host().deallocate(memory, bytes);
  }
  AllocatorStats stats() const override { return Allocator::host().stats(); }
  void copy_in(void* to, const void* from, size_t bytes) override { copy(to, from, bytes); }
  void copy_out(void* to, const void* from, size_t bytes) override { copy(to, from, bytes); }
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
  void copy_from_peer(void* to, Device&, const void* from, size_t bytes) override {
    copy(to, from, bytes);
  }
  void notify(Waiter& waiter) noexcept override { waiter.reached(nullptr); }
};

// Of the process; never destroyed, for buffers name their devices to the last.
struct Devices {
  ForkSharedMutex mutex;
  std::vector<std::unique_ptr<Device>> cpus, others;
  std::map<std::string, std::string, std::less<>> missing;  // by kind

  static Devices& instance() {
    static std::atomic<Devices*> devices{nullptr};
    return made_once(devices, [] { return new Devices; });
  }

  // The caller holds the mutex.
  void check_new(const std::vector<std::unique_ptr<Device>>& added) const {
    for (const auto& device : added) {
      const DeviceName& name = device->name();
      if (device->is_host() || name.job.empty() || !name.task || name.type.empty() || !name.index) {
        throw invalid_argument("\"", to_text(name),
                               "\" is no full name of a device beside the CPUs");
      }
      const auto there = [&](const auto& other) { return other->name() == name; };
      if (std::ranges::any_of(others, there))
        throw already_exists("the device ", to_text(name), " is there already");
    }
  }
};

}  // namespace

Device::Device(DeviceName name) : name_(std::move(name)), is_host_(name_.type == kHostKind) {}
Device::~Device() = default;

void Device::wait() {
  // On the heap: in the child of a fork nobody knows who still writes to it.
  auto sleeper = std::make_unique<Sleeper>();
  notify(*sleeper);
  if (sleeper->sleep()) return;
  static_cast<void>(sleeper.release());
  throw failed_precondition("the process was forked while it waited for ", to_text(name()),
                            ", which the child does not have");
}

Device& cpu_device(int index) {
  Devices& devices = Devices::instance();
  const std::unique_lock lock(devices.mutex);
  while (static_cast<int>(devices.cpus.size()) <= index)
    devices.cpus.push_back(std::make_unique<Cpu>(static_cast<int>(devices.cpus.size())));
  return *devices.cpus[static_cast<size_t>(index)];
}

std::vector<Device*> accelerators() {
  Devices& devices = Devices::instance();
  const std::shared_lock lock(devices.mutex);
  std::vector<Device*> all;
  for (const auto& device : devices.others) all.push_back(device.get());
  return all;
}

std::vector<Device*> session_devices(const std::map<std::string, int>& most) {
  std::vector<Device*> devices;
  const auto cpus = most.find(Device::kHostKind);
  for (int i = 0; i < std::max(1, cpus == most.end() ? 1 : cpus->second); ++i)
    devices.push_back(&cpu_device(i));
  std::map<std::string, int> taken;
  for (Device* device : accelerators()) {
    const auto limit = most.find(device->kind());
    if (limit == most.end() || taken[device->kind()]++ < limit->second) devices.push_back(device);
  }
  return devices;
}

std::string why_missing(std::string_view kind) {
  Devices& devices = Devices::instance();
  const std::shared_lock lock(devices.mutex);
  const auto found = devices.missing.find(kind);
  return found == devices.missing.end() ? "" : found->second;
}

void note_missing(std::string_view kind, std::string why) {
  Devices& devices = Devices::instance();
  const std::unique_lock lock(devices.mutex);
  devices.missing.insert_or_assign(std::string(kind), std::move(why));
}

void check_new_accelerators(const std::vector<std::unique_ptr<Device>>& devices) {
  const std::shared_lock lock(Devices::instance().mutex);
  Devices::instance().check_new(devices);
}

void add_accelerators(std::vector<std::unique_ptr<Device>> added) {
  Devices& devices = Devices::instance();
  const std::unique_lock lock(devices.mutex);
  devices.check_new(added);
  for (auto& device : added) devices.others.push_back(std::move(device));
  accelerators_there.store(!devices.others.empty(), std::memory_order_release);
}

}  // namespace treenail
