// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_sim/driver/device.h"

#include <utility>

#include "framework/base/error.h"
#include "tests/cuda_sim/driver/driver.h"

namespace treenail::cuda_sim {
namespace {

constexpr size_t kAlignment = 256;  // as cuMemAlloc's

}  // namespace

Device::Device(int index)
    : index_(index), memory_(concat("CUDA:", index), {.alignment = kAlignment, .fence = true}) {}

bool Device::begin_operation() {
  if (lost_.load()) return false;
  if (until_lost_.load() > 0 && until_lost_.fetch_sub(1) == 1) lost_ = true;
  return true;
}

void Device::lose(int64_t after) {
  until_lost_ = after > 0 ? after : 0;
  if (after <= 0) lost_ = true;
}

void Device::restore() {
  wait();
  until_lost_ = 0;
  lost_ = false;
}

bool Device::enable_peer(const Device& peer) {
  const uint32_t bit = uint32_t{1} << peer.index();
  return (peers_.fetch_or(bit) & bit) == 0;
}

bool Device::reaches(const Device& other) const {
  return &other == this || (peers_.load() >> other.index() & 1) != 0;
}

Stream& Device::add_stream() {
  const std::lock_guard lock(mutex_);
  const auto number = static_cast<int>(streams_.size());
  Stream& made = *streams_.emplace_back(std::make_unique<Stream>(*this, number));
  if (held_) made.hold(true);
  return made;
}

std::vector<Stream*> Device::streams() const {
  const std::lock_guard lock(mutex_);
  std::vector<Stream*> all;
  for (const auto& stream : streams_) all.push_back(stream.get());
  return all;
}

void Device::hold(bool on) {
  {
    const std::lock_guard lock(mutex_);
    held_ = on;
  }
  for (Stream* const stream : streams()) stream->hold(on);
}

void Device::wait() {
  std::vector<std::shared_ptr<simulated::Event>> events;
  for (Stream* const stream : streams()) {
    if (!stream->used()) continue;
    const auto event = events.emplace_back(std::make_shared<simulated::Event>());
    stream->push_always([event] { event->set(nullptr); });
  }
  for (const auto& event : events) event->wait();
}

Stream::Stream(Device& device, int number)
    : device_(device),
      number_(number),
      queue_(concat("CUDA:", device.index()), 16 * device.index() + number),
      engine_(warp_size_from_environment(), 0) {
  seed(driver().seed());
  queue_.set_delays(driver().delays());
}

void Stream::push(std::function<void(bool lost)> work) {
  push_always([this, work = std::move(work)] { work(!device_.begin_operation()); });
}

void Stream::push_always(std::function<void()> work) {
  used_ = true;
  queue_.push_always(
      simulated::make_task([work = std::move(work)](const std::exception_ptr&) { work(); }));
}

// The engine belongs to the stream's thread, which there may not be yet.
void Stream::seed(uint64_t seed) {
  queue_.seed(seed);
  const uint64_t own = seed + 1000003 * static_cast<uint64_t>(number_);
  if (!used_) return engine_.seed(own);
  push_always([this, own] { engine_.seed(own); });
}

void Event::record(Stream& stream) {
  const std::lock_guard lock(mutex_);
  last_ = std::make_shared<simulated::Event>();
  stream.push_always([event = last_] { event->set(nullptr); });
}

std::shared_ptr<simulated::Event> Event::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

}  // namespace treenail::cuda_sim
