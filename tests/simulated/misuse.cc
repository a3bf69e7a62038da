// SPDX-License-Identifier: Apache-2.0
#include "tests/simulated/misuse.h"

#include <cstddef>
#include <vector>

#include "framework/base/error.h"

namespace treenail::simulated {
namespace {

constexpr size_t kBytes = 256;

// A block for a scope.
class Block {
 public:
  explicit Block(Device& device) : device_(device), at_(device.allocate(kBytes)) {}
  ~Block() {
    if (at_ != nullptr) free();
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  void* at() const { return at_; }
  void free() {
    device_.deallocate(at_, kBytes);
    at_ = nullptr;
  }

 private:
  Device& device_;
  void* at_;
};

// The device begins nothing in the scope.
class Held {
 public:
  explicit Held(SimulatedDevice& device) : queue_(device.queue()) { queue_.hold(true); }
  ~Held() { queue_.hold(false); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  Queue& queue_;
};

void copy_from_freed(Device& device) {
  Block from(device), to(device);
  const void* const gone = from.at();
  from.free();
  device.copy(to.at(), gone, kBytes);
}

void change_source(SimulatedDevice& device) {
  std::vector<std::byte> source(kBytes);
  const Block to(device);
  {
    const Held held(device);
    device.copy_in(to.at(), source.data(), kBytes);
    source[kBytes / 2] = std::byte{1};
  }
  device.wait();
}

void write_destination(SimulatedDevice& device) {
  std::vector<std::byte> destination(kBytes);
  const Block from(device);
  {
    const Held held(device);
    device.copy_out(destination.data(), from.at(), kBytes);
    destination[kBytes / 2] = std::byte{1};
  }
  device.wait();
}

void overwrite_peer_source(SimulatedDevice& device, SimulatedDevice& peer) {
  const Block from(device), other(device), to(peer);
  {
    const Held held(peer);
    peer.copy_from_peer(to.at(), device, from.at(), kBytes);
    device.copy(from.at(), other.at(), kBytes);
  }
  peer.wait();
}

void device_address_as_host(Device& device) {
  const Block from(device), to(device);
  device.copy_in(to.at(), from.at(), kBytes);
}

void copy_beyond_end(Device& device) {
  const std::vector<std::byte> source(kBytes + 1);
  const Block to(device);
  device.copy_in(to.at(), source.data(), source.size());
  device.wait();
}

}  // namespace

void commit_misuse(SimulatedDevice& device, SimulatedDevice& peer, int what) {
  switch (what) {
    case 0:
      return copy_from_freed(device);
    case 1:
      return change_source(device);
    case 2:
      return write_destination(device);
    case 3:
      return overwrite_peer_source(device, peer);
    case 4:
      return device_address_as_host(device);
    case 5:
      return copy_beyond_end(device);
    default:
      throw invalid_argument("there is no misuse ", what);
  }
}

}  // namespace treenail::simulated
