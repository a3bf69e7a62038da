// SPDX-License-Identifier: Apache-2.0
// A device that stands in for a GPU where there is none: memory that the host cannot touch
// (memory.h), a queue that is late (queue.h), and kernels that are the host's (kernels.h). What
// nobody may do between asking for a copy and its end shows: sources are read late and must not
// have changed, destinations hold rubbish until then and must not have been written.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "framework/device/device.h"
#include "tests/simulated/memory.h"
#include "tests/simulated/queue.h"

namespace treenail::simulated {

inline constexpr char kKind[] = "SIM";

enum class CopyKind : uint8_t { kIn, kOut, kWithin, kPeer };

class SimulatedDevice final : public Device {
 public:
  explicit SimulatedDevice(int index);

  bool folds() const override { return false; }
  void* allocate(size_t bytes) override;
  void deallocate(void* memory, size_t bytes) noexcept override;
  AllocatorStats stats() const override;
  void copy_in(void* to, const void* from_host, size_t bytes) override;
  void copy_out(void* to_host, const void* from, size_t bytes) override;
  void copy(void* to, const void* from, size_t bytes) override;
  void copy_from_peer(void* to, Device& peer, const void* from, size_t bytes) override;
  void notify(Waiter& waiter) noexcept override;

  Memory& memory() { return memory_; }
  Queue& queue() { return queue_; }

  // A violation where the host's part is none.
  bool is_host_memory(const char* who, const void* at, size_t bytes) const;
  // Of the text of a violation.
  std::string short_name() const;

  struct Counts {
    std::array<std::atomic<int64_t>, 4> copies = {};  // by CopyKind; those that were done
    std::array<std::atomic<int64_t>, 4> copied_bytes = {};
    std::atomic<int64_t> kernels{0};
  };
  Counts& counts() { return counts_; }

 private:
  void count_copy(CopyKind kind, size_t bytes);

  Memory memory_;
  Queue queue_;
  Counts counts_;
};

// One per index, below kDevices. The devices are the process's for ever once they are registered.
std::vector<std::unique_ptr<Device>> make_devices();
SimulatedDevice& device(int index);

}  // namespace treenail::simulated
