// SPDX-License-Identifier: Apache-2.0
// Kernels of a device with a queue: they say what is to be done, and the device does it later, in
// the order in which it was said.
#pragma once

#include <cstdint>
#include <exception>
#include <utility>

#include "framework/runtime/kernel/kernel.h"

namespace treenail {

// Where the device says that work which it had taken on could not be done: an index out of range,
// say. Any number of calls, from any thread, with no lock held, until the queue is past that work;
// outputs are then worth nothing.
class Failure {
 public:
  class Target {
   public:
    virtual void failed(int32_t node, std::exception_ptr error) noexcept = 0;
    virtual bool superseded(int32_t node) const noexcept = 0;

   protected:
    ~Target() = default;
  };
  Failure(Target& target, int32_t node) : target_(&target), node_(node) {}
  void operator()(std::exception_ptr error) const { target_->failed(node_, std::move(error)); }
  // The run was cancelled, or has failed at a node before this one: nobody wants the work any more,
  // which would compute with what failed nodes left, and change state so.
  bool superseded() const { return target_->superseded(node_); }

 private:
  Target* target_;
  int32_t node_;
};

class QueuedKernel : public Kernel {
 public:
  // Puts the work on the queue of PrepareContext::device(). Until the queue is past it, the memory
  // of inputs, outputs and scratch is there, and so are the kernel, the token and the target of
  // `failure`; `c` itself and inputs declared `host` are there until this returns. Work that is
  // superseded() when the queue gets there is left out where the device can do so. Errors: as
  // run(), Unavailable.
  virtual void enqueue(RunContext& c, Failure failure) const = 0;
  // For a caller that may sleep.
  void run(RunContext& c) const final;

 protected:
  explicit QueuedKernel(Device& device) : device_(device) {}
  Device& device() const { return device_; }

 private:
  Device& device_;
};

}  // namespace treenail
