// SPDX-License-Identifier: Apache-2.0
// What RunContext does besides splitting: interrupts and cancellation between chunks.
#include "framework/runtime/kernel/kernel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "framework/base/cancellation.h"
#include "framework/base/error.h"
#include "framework/base/interrupt.h"

namespace treenail {
namespace {

struct Interrupted {};

// A long kernel is left at a chunk's end, not at its own.
TEST(RunContext, ChunksLetTheCallerLookAfterInterrupts) {
  for (const bool as_chunks : {true, false}) {
    const InterruptScope scope([] { throw Interrupted(); });
    std::atomic<int> done{0};
    const RunContext context;
    const auto work = [&](int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++done;
    };
    const auto run = [&] {
      if (as_chunks) return context.run_chunks(200, 4e9, work);
      context.parallel_for(2000, 10, 2e6, [&](int64_t begin, int64_t) { work(begin); });
    };
    EXPECT_THROW(run(), Interrupted);
    EXPECT_LT(done.load(), 200);
  }
}

TEST(RunContext, ChunksStopWhenTheRunIsCancelled) {
  CancellationToken token;
  RunContext context;
  context.token_ = &token;
  std::atomic<int> done{0};
  const auto run = [&] {
    context.run_chunks(200, 4e9, [&](int64_t) {
      ++done;
      token.cancel(Code::kCancelled, "enough");
    });
  };
  EXPECT_THROW(run(), Error);
  EXPECT_LT(done.load(), 200);
}

}  // namespace
}  // namespace treenail
