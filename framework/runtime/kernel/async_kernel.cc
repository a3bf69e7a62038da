// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/kernel/async_kernel.h"

#include <atomic>

#include "framework/base/cancellation.h"
#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/base/interrupt.h"
#include "framework/base/spin.h"

namespace treenail {
namespace {

// One end, and a thread that sleeps until it is there.
class Ending final : public Done::Target {
 public:
  void ended(int32_t, std::exception_ptr error) noexcept override {
    error_ = std::move(error);
    ended_.store(1, std::memory_order_release);
    // The sleeper may be gone by now: of the word only the address is used.
    futex_wake(&ended_, 1);
  }

  // `ask`: what brings the end about, where the poll throws.
  template <class Ask>
  void wait(Ask&& ask) {
    const uint32_t born = fork_generation();
    std::exception_ptr interrupted;
    while (ended_.load(std::memory_order_acquire) == 0) {
      futex_wait_for(&ended_, 0, kInterruptPeriodNs);
      if (fork_generation() != born) throw_forked();
      if (interrupted != nullptr) continue;
      try {
        poll_interrupt();
      } catch (...) {
        interrupted = std::current_exception();
        ask();
      }
    }
    if (interrupted != nullptr) std::rethrow_exception(interrupted);
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 private:
  [[noreturn]] static void throw_forked() {
    throw failed_precondition(
        "the process was forked while this operation waited; the child cannot finish it");
  }

  std::atomic<uint32_t> ended_{0};
  std::exception_ptr error_;
};

}  // namespace

void AsyncKernel::run(RunContext& c) const {
  CancellationToken token;
  const TokenLink link(c.token(), token);
  RunContext started = c;
  started.token_ = &token;
  Ending ending;
  start(started, Done(ending, 0));
  ending.wait([&] { token.cancel(Code::kCancelled, "the call was interrupted"); });
}

const AsyncKernel& async_kernel(const Kernel& kernel, const OpInstance& op) {
  if (const auto* async = dynamic_cast<const AsyncKernel*>(&kernel)) return *async;
  throw internal_error("the op ", op.name(),
                       " is declared asynchronous, but its kernel is not an AsyncKernel");
}

}  // namespace treenail
