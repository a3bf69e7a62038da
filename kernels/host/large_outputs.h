// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace treenail::host {

// Outputs from here on do not go through the caches: they would push out the inputs, after each
// line had been read to be overwritten. A constant, above what a group of cores shares on most
// machines, for sysconf() answers ten times as much on some (glibc 2.36 on AMD).
inline constexpr int64_t kLeastStreamedBytes = int64_t{48} << 20;

}  // namespace treenail::host
