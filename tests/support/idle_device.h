// SPDX-License-Identifier: Apache-2.0
// A device of any name that does nothing and is lost, for tests of who has which device.
#pragma once

#include <exception>
#include <utility>

#include "framework/base/error.h"
#include "framework/device/device.h"

namespace treenail::test {

class IdleDevice final : public Device {
 public:
  explicit IdleDevice(DeviceName name) : Device(std::move(name)) {}
  bool folds() const override { return false; }
  void* allocate(size_t) override { return nullptr; }
  void deallocate(void*, size_t) noexcept override {}
  AllocatorStats stats() const override { return {}; }
  void copy_in(void*, const void*, size_t) override {}
  void copy_out(void*, const void*, size_t) override {}
  void copy(void*, const void*, size_t) override {}
  void copy_from_peer(void*, Device&, const void*, size_t) override {}
  void notify(Waiter& waiter) noexcept override {
    waiter.reached(std::make_exception_ptr(Error(Code::kUnavailable, "lost")));
  }
};

}  // namespace treenail::test
