// SPDX-License-Identifier: Apache-2.0
// Where a kernel finds the place of its numbers in a stream.
#pragma once

#include <cstdint>

namespace treenail::gpu {

enum class Seeds : int32_t {
  kNone,  // the launch says the place
  // Two integers on the device, taken modulo 2^64:
  kInt32,
  kUInt32,
  k64Bits,
  kStream  // six words there, as RandomStream gives them
};

}  // namespace treenail::gpu
