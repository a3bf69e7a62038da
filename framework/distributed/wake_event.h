// SPDX-License-Identifier: Apache-2.0
// Wakes a thread that polls descriptors.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "framework/base/error.h"

namespace treenail {

class WakeEvent {
 public:
  WakeEvent() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ < 0) throw resource_exhausted("no descriptor is left for an event");
  }
  ~WakeEvent() { ::close(fd_); }
  WakeEvent(const WakeEvent&) = delete;
  WakeEvent& operator=(const WakeEvent&) = delete;

  int fd() const { return fd_; }
  void wake() const {
    const uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof one);
  }
  // By the thread that was woken.
  void clear() const {
    uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(fd_, &count, sizeof count);
  }

 private:
  const int fd_;
};

}  // namespace treenail
