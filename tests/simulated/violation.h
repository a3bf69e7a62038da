// SPDX-License-Identifier: Apache-2.0
// A misuse of the simulated device, found. It ends the process, so that no test can pass over it;
// tests of the detectors have it recorded instead.
#pragma once

#include <string>

namespace treenail::simulated {

// Prints `text`; aborts unless violations are recorded. Any thread, with no lock held.
void violation(const std::string& text) noexcept;
void record_violations(bool on) noexcept;
// How many were recorded since the last call, and the text of the last one ("" for none).
int take_violations(std::string& last) noexcept;

// "0x7f..."
std::string hex(const void* address);

}  // namespace treenail::simulated
