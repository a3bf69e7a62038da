// SPDX-License-Identifier: Apache-2.0
// The simulated GPUs and what belongs to them: memory that the host cannot touch, streams that are
// late, events. A device is its primary context, for there is no other.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/cuda_sim/driver/engine.h"
#include "tests/cuda_sim/exports.h"
#include "tests/simulated/memory.h"
#include "tests/simulated/queue.h"

namespace treenail::cuda_sim {

using simulated::Memory;
using simulated::Use;

class Stream;

class Device {
 public:
  explicit Device(int index);

  int index() const { return index_; }
  Memory& memory() { return memory_; }

  // Of an operation that a stream comes to: false where it is not done any more.
  bool begin_operation();
  bool lost() const { return lost_.load(); }
  void lose(int64_t after);
  void restore();

  void count(int what, int64_t more = 1) { counters_.at(static_cast<size_t>(what)) += more; }
  int64_t counted(int what) const { return counters_.at(static_cast<size_t>(what)); }

  // False where it was enabled before.
  bool enable_peer(const Device& peer);
  bool reaches(const Device& other) const;

  // Streams live as long as the process.
  Stream& add_stream();
  std::vector<Stream*> streams() const;
  void hold(bool on);
  void wait();

 private:
  const int index_;
  Memory memory_;
  std::atomic<bool> lost_ = false;
  std::atomic<int64_t> until_lost_ = 0;  // operations; 0: never
  std::array<std::atomic<int64_t>, CUSIM_COUNTERS> counters_ = {};
  std::atomic<uint32_t> peers_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Stream>> streams_;
  bool held_ = false;
};

class Stream {
 public:
  Stream(Device& device, int number);

  Device& device() { return device_; }
  Engine& engine() { return engine_; }  // of the stream's thread
  // Whether anything was ever asked for.
  bool used() const { return used_.load(); }

  // work(lost): done or, where the device is lost, only told so.
  void push(std::function<void(bool lost)> work);
  // Of what does not count as an operation, and is done whatever happened to the device.
  void push_always(std::function<void()> work);

  void seed(uint64_t seed);
  void set_delays(bool on) { queue_.set_delays(on); }
  void hold(bool on) { queue_.hold(on); }

 private:
  Device& device_;
  const int number_;
  simulated::Queue queue_;
  Engine engine_;
  std::atomic<bool> used_ = false;
};

// What an event stands for changes with each record; who waits, waits for the record that was the
// last when he asked.
class Event {
 public:
  explicit Event(Device& device) : device_(device) {}
  Device& device() { return device_; }
  void record(Stream& stream);
  std::shared_ptr<simulated::Event> last() const;  // null: never recorded

 private:
  Device& device_;
  mutable std::mutex mutex_;
  std::shared_ptr<simulated::Event> last_;
};

}  // namespace treenail::cuda_sim
