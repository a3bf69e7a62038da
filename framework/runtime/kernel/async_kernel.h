// SPDX-License-Identifier: Apache-2.0
// Kernels that wait: for an element of a queue, a message, a Python function. They are started, and
// whoever has what they wait for ends them; nobody in the pool waits. For ops declared
// asynchronous().
#pragma once

#include <cstdint>
#include <exception>

#include "framework/runtime/kernel/kernel.h"

namespace treenail {

// What a started kernel ends with: one call of it, from any thread, also from inside start(), with
// no lock held. The call only makes ready what comes next: it runs no kernel, waits for nothing,
// and takes locks of the run alone.
class Done {
 public:
  class Target {
   public:
    // `error`: null where the outputs are set.
    virtual void ended(int32_t node, std::exception_ptr error) noexcept = 0;

   protected:
    ~Target() = default;
  };
  Done(Target& target, int32_t node) : target_(&target), node_(node) {}

  void operator()() const { target_->ended(node_, nullptr); }
  void fail(std::exception_ptr error) const { target_->ended(node_, std::move(error)); }

 private:
  Target* target_;
  int32_t node_;
};

class AsyncKernel : public Kernel {
 public:
  // Inputs and outputs in `c` stay where they are until `done` is called; the token, which is
  // there always, as well. When that is cancelled `done` is called soon, with whatever error. May
  // throw instead of calling `done`.
  virtual void start(RunContext c, Done done) const = 0;
  // For a caller that may sleep (immediate execution): starts, and waits for the end; meanwhile it
  // polls (base/interrupt.h), and what that throws cancels.
  void run(RunContext& c) const override;

  // Memory in which its inputs had best be computed, where a plan chooses theirs; null: any.
  Tensor (*input_memory)(DType dtype, const Shape& shape) = nullptr;
};

// The kernel as what the op is declared to have. Errors: Internal.
const AsyncKernel& async_kernel(const Kernel& kernel, const OpInstance& op);

}  // namespace treenail
