// SPDX-License-Identifier: Apache-2.0
// Work on threads of its own, now or later, and how to wait until none is left.
#pragma once

#include <chrono>
#include <functional>

namespace treenail::test {

// On a new thread, when the time has come.
void run_after(std::chrono::microseconds delay, std::function<void()> work);
// The same, but threads_end() does not wait for it until it has begun.
void run_if_still_there(std::chrono::microseconds delay, std::function<void()> work);
// Whether all that run_after() was given has ended before the limit.
bool threads_end(std::chrono::milliseconds limit);

}  // namespace treenail::test
