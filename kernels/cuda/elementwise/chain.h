// SPDX-License-Identifier: Apache-2.0
// A chain of element-wise ops as a program, which one kernel reads: the host makes it when a plan
// is made, and each launch passes it by value. All steps compute in float, four elements at a time;
// each result is rounded to its own type before another step reads it.
#pragma once

#include <cstdint>

#include "kernels/cuda/elementwise/broadcast.h"
#include "kernels/cuda/elementwise/chain_ops.h"

namespace treenail::gpu {

inline constexpr int kMostChainInputs = 16;
inline constexpr int kMostChainSteps = 32;
inline constexpr int kMostChainSlots = 8;  // of results that later steps read, at once
inline constexpr int kChainGroup = 4;      // elements that a thread computes together

// As an operand is read, and as a result is rounded.
enum class ChainType : uint8_t { kFloat32, kFloat16, kBFloat16, kBool };

enum class ChainCode : uint8_t {
  kCopy,
  kIsTrue,  // not equal to zero
  kSelect,
#define TN_CHAIN_ROW(code, ...) k##code,
  TN_CHAIN_OPS
#undef TN_CHAIN_ROW
};

struct ChainInput {
  const void* at;
  ChainType type;
  bool together;  // a group of the result needs neighbours, at an address that fits, or one element
};

// Operands: numbers of inputs; kChainLast, what the step before computed; from kFirstChainSlot on,
// slots.
inline constexpr int kChainLast = kMostChainInputs;
inline constexpr int kFirstChainSlot = kChainLast + 1;
inline constexpr uint8_t kNoChainSlot = 255;

struct ChainStep {
  ChainCode code = ChainCode::kCopy;
  ChainType type = ChainType::kFloat32;
  uint8_t operands = 1;
  uint8_t from[3] = {};
  uint8_t slot = kNoChainSlot;  // where the result is kept besides
  float value = 0;              // the attribute that the definition takes, if it does
};

// The last step's result is the output.
struct Chain {
  int32_t steps = 0;
  bool output_together = false;  // its address fits groups
  BroadcastOf<kMostChainInputs> how;
  ChainInput input[kMostChainInputs] = {};
  ChainStep step[kMostChainSteps] = {};
};

}  // namespace treenail::gpu
