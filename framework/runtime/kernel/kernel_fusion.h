// SPDX-License-Identifier: Apache-2.0
// Several nodes as one kernel: what the runtime gives to the kernels' side, and what it gets back.
// Which nodes go together: runtime/plan. How they are computed: kernels/host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/base/small_vector.h"
#include "framework/op/op_def.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/shape.h"

namespace treenail {

// All limits of fused kernels; what runs them has arrays of these sizes. The first three are held
// from the first op on: one of more inputs, as AddN may be, runs alone. The others depend on ops
// and shapes and are held where a program is made: what needs more is computed in another way, or
// op by op.
inline constexpr int kMostFusedOps = 16;
inline constexpr int kMostFusedInputs = 16;    // of a group; of the consumer in a composed kernel
inline constexpr int kMostFusedOperands = 48;  // of all ops together, the same one counted again
// Of a program over tiles: its values, and the tiles alive at once.
inline constexpr int kMostTileValues = 128;
inline constexpr int kMostTiles = 24;
// Of a program in registers: what it reads of memory.
inline constexpr int kMostRegisterArrays = 16;  // inputs that are no single element
inline constexpr int kMostRegisterCopies = 32;  // of single elements
inline constexpr int kMostRegisterSpills = 16;  // values that wait in L1 at once
inline constexpr int kMostRegisterOperands =
    kMostRegisterArrays + kMostRegisterCopies + kMostRegisterSpills;
// Of a chain that runs some rows at a time: its stages, the values read and computed, and the bytes
// of what lies between the stages.
inline constexpr int kMostRowStages = 16;
inline constexpr int kMostRowValues = 32;
inline constexpr int64_t kRowBufferBytes = 128 << 10;

class Device;

// Ops of one output each, in an order that fits their dependencies. Operands and results are
// numbered: first the inputs, then the steps. The last step's result is the output; every step's
// result has its shape, inputs broadcast to it.
struct ElementwiseGroup {
  struct Step {
    const OpInstance* op = nullptr;
    SmallVector<int, 4> operands;
  };
  std::vector<DType> input_types;
  std::vector<Shape> input_shapes;
  std::vector<Step> steps;
  Shape output_shape;
  Device* device = nullptr;  // where it runs
  int64_t parts = 1;  // the output is one of so many: whether all together pass by the caches
};

// Whether a group of so many ops, operands and inputs is within the limits.
inline bool fits_one_kernel(size_t ops, size_t operands, size_t inputs) {
  return ops <= kMostFusedOps && operands <= kMostFusedOperands && inputs <= kMostFusedInputs;
}

// Fused kernels have the bits of their parts run one by one.
struct Fuser {
  // Can the op be a step of a group?
  bool (*accepts)(const OpInstance& op) = nullptr;
  // The kernel of a group, of one op or more; null where it is too large.
  std::unique_ptr<Kernel> (*prepare)(const ElementwiseGroup& group) = nullptr;
  // The input that the kernel may take from its producer block by block; -1: none.
  int (*streamed_input)(const Kernel& kernel) = nullptr;
  // The kernel of a producer and its consumer, which takes the producer's output 0 as that input;
  // no memory holds it. Inputs: the producer's, then the consumer's others. Null, and both
  // untouched, where the two cannot be one.
  std::unique_ptr<Kernel> (*compose)(std::unique_ptr<Kernel>& producer, int producer_inputs,
                                     std::unique_ptr<Kernel>& consumer,
                                     int consumer_inputs) = nullptr;
};

}  // namespace treenail
