// SPDX-License-Identifier: Apache-2.0
#include "tests/simulated/device.h"

#include <cstring>
#include <string>

#include "framework/base/error.h"
#include "framework/base/hash.h"
#include "tests/simulated/violation.h"

namespace treenail::simulated {
namespace {

// What the host sees of a copy out that is not done yet.
constexpr unsigned char kPending = 0x5a;

std::array<SimulatedDevice*, kDevices> devices = {};

bool all_pending(const void* at, size_t bytes) {
  const auto* const first = static_cast<const unsigned char*>(at);
  return *first == kPending && std::memcmp(first, first + 1, bytes - 1) == 0;
}

bool overlap(const void* a, const void* b, size_t bytes) {
  const auto x = reinterpret_cast<uintptr_t>(a);
  const auto y = reinterpret_cast<uintptr_t>(b);
  return x < y + bytes && y < x + bytes;
}

}  // namespace

SimulatedDevice::SimulatedDevice(int index)
    : Device({"localhost", 0, 0, kKind, index}),
      memory_(concat(kKind, ":", index)),
      queue_(to_text(name()), index) {
  devices[static_cast<size_t>(index)] = this;
}

std::string SimulatedDevice::short_name() const { return concat(kind(), ":", *name().index); }

bool SimulatedDevice::is_host_memory(const char* who, const void* at, size_t bytes) const {
  if (!overlaps_device(at, bytes)) return true;
  violation(concat("simulated device ", short_name(), ": ", who, " takes ", hex(at),
                   " for host memory; it is a device's"));
  return false;
}

void SimulatedDevice::count_copy(CopyKind kind, size_t bytes) {
  counts_.copies[static_cast<size_t>(kind)].fetch_add(1, std::memory_order_relaxed);
  counts_.copied_bytes[static_cast<size_t>(kind)].fetch_add(static_cast<int64_t>(bytes),
                                                            std::memory_order_relaxed);
}

void* SimulatedDevice::allocate(size_t bytes) {
  queue_.check();
  return memory_.allocate(bytes);
}

void SimulatedDevice::deallocate(void* memory, size_t bytes) noexcept {
  if (queue_.forked() || !memory_.retire(memory, bytes)) return;
  queue_.push_always(
      make_task([this, memory](const std::exception_ptr&) { memory_.release(memory); }));
}

AllocatorStats SimulatedDevice::stats() const {
  return queue_.forked() ? AllocatorStats() : memory_.stats();
}

void SimulatedDevice::copy_in(void* to, const void* from_host, size_t bytes) {
  queue_.check();
  if (bytes == 0 || !memory_.usable("copy_in", Use::kWrite, to, bytes) ||
      !is_host_memory("copy_in", from_host, bytes))
    return;
  const uint64_t asked = hash_bytes(from_host, bytes);
  queue_.push(make_task([=, this](const std::exception_ptr& lost) {
    if (lost != nullptr) return;
    if (hash_bytes(from_host, bytes) != asked) {
      violation(concat("simulated device ", short_name(), ": copy_in of ", bytes, " bytes at ",
                       hex(from_host), ": host memory changed before the copy was done"));
    }
    std::memcpy(Memory::view(to), from_host, bytes);
    count_copy(CopyKind::kIn, bytes);
  }));
}

void SimulatedDevice::copy_out(void* to_host, const void* from, size_t bytes) {
  queue_.check();
  if (bytes == 0 || !memory_.usable("copy_out", Use::kRead, from, bytes) ||
      !is_host_memory("copy_out", to_host, bytes))
    return;
  std::memset(to_host, kPending, bytes);
  queue_.push(make_task([=, this](const std::exception_ptr& lost) {
    if (lost != nullptr) return;
    if (!all_pending(to_host, bytes)) {
      violation(concat("simulated device ", short_name(), ": copy_out of ", bytes, " bytes to ",
                       hex(to_host), ": host memory was written before the copy was done"));
    }
    std::memcpy(to_host, Memory::view(from), bytes);
    count_copy(CopyKind::kOut, bytes);
  }));
}

void SimulatedDevice::copy(void* to, const void* from, size_t bytes) {
  queue_.check();
  if (bytes == 0 || !memory_.usable("copy", Use::kRead, from, bytes) ||
      !memory_.usable("copy", Use::kWrite, to, bytes))
    return;
  if (overlap(to, from, bytes)) {
    return violation(concat("simulated device ", short_name(), ": copy of ", bytes, " bytes from ",
                            hex(from), " to ", hex(to), ", which overlap"));
  }
  queue_.push(make_task([=, this](const std::exception_ptr& lost) {
    if (lost != nullptr) return;
    std::memcpy(Memory::view(to), Memory::view(from), bytes);
    count_copy(CopyKind::kWithin, bytes);
  }));
}

// Where the other device is lost meanwhile this one is lost, too: its memory misses a value, and
// whoever waits for the copy asks here.
void SimulatedDevice::copy_from_peer(void* to, Device& peer, const void* from, size_t bytes) {
  queue_.check();
  if (peer.kind() != kind() || &peer == this) {
    return violation(concat("simulated device ", short_name(), ": copy_from_peer from ",
                            to_text(peer.name()), ", which is no peer"));
  }
  auto& source = static_cast<SimulatedDevice&>(peer);
  if (bytes == 0 || !source.memory_.usable("copy_from_peer", Use::kRead, from, bytes) ||
      !memory_.usable("copy_from_peer", Use::kWrite, to, bytes))
    return;
  const auto event = std::make_shared<Event>();
  source.queue_.push(make_task([event](const std::exception_ptr& lost) { event->set(lost); }));
  Memory::PeerRead read(source.memory_, from, bytes);
  queue_.push(make_task([=, this, read = std::move(read)](const std::exception_ptr& lost) {
    const std::exception_ptr error = event->wait();
    if (lost != nullptr) return;
    if (error != nullptr) return queue_.lose(error);
    std::memcpy(Memory::view(to), Memory::view(from), bytes);
    count_copy(CopyKind::kPeer, bytes);
  }));
}

// Always by way of the queue, so that nobody gets used to an answer inside the call.
void SimulatedDevice::notify(Waiter& waiter) noexcept {
  const bool queued = queue_.push_always(
      make_task([&waiter](const std::exception_ptr& lost) { waiter.reached(lost); }));
  if (!queued) waiter.reached(queue_.forked_error());
}

std::vector<std::unique_ptr<Device>> make_devices() {
  std::vector<std::unique_ptr<Device>> made;
  for (int i = 0; i < kDevices; ++i) made.push_back(std::make_unique<SimulatedDevice>(i));
  return made;
}

SimulatedDevice& device(int index) { return *devices.at(static_cast<size_t>(index)); }

}  // namespace treenail::simulated
