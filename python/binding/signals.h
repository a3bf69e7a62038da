// SPDX-License-Identifier: Apache-2.0
// Python's signal handlers while the main thread is in the core (base/interrupt.h).
#pragma once

namespace treenail::python {

// What that thread, with the GIL or without it, calls from time to time: it throws what a handler
// raised (PythonError). Null on other threads, which handle no signals.
using SignalPoll = void (*)();
SignalPoll signal_poll();

// To be called once.
void watch_forks_for_signals();

}  // namespace treenail::python
