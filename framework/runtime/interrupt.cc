// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/interrupt.h"

#include <chrono>

namespace treenail {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

namespace interrupt_detail {

State& state() {
  thread_local State state;
  return state;
}

void poll_slow(State& state) {
  const int64_t now = now_ns();
  if (now < state.next_ns) return;
  state.next_ns = now + kInterruptPeriodNs;
  state.poll();
}

}  // namespace interrupt_detail

InterruptScope::InterruptScope(void (*poll)()) : saved_(interrupt_detail::state()) {
  if (poll != nullptr) interrupt_detail::state() = {poll, now_ns() + kInterruptPeriodNs};
}

InterruptScope::~InterruptScope() { interrupt_detail::state() = saved_; }

}  // namespace treenail
