// SPDX-License-Identifier: Apache-2.0
// Several element-wise ops as one kernel: what the runtime hands to the kernels, and what it gets
// back. Which ops go together: fusion.h. How they are computed: kernels/host.
#pragma once

#include <memory>
#include <vector>

#include "framework/op/op_def.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/shape.h"

namespace treenail {

// How large a group may be, and how many inputs a kernel may have that runs together with one (its
// reader, a taker of what it hands over): what keeps pointers, registers and tiles of one walk in
// the first-level cache. Held where a group or a pair is made; what runs them counts on it for its
// arrays. A node of more inputs, as AddN may be, runs alone.
inline constexpr int kMostFusedOps = 16;
inline constexpr int kMostFusedInputs = 16;
inline constexpr int kMostFusedOperands = 48;  // of all ops together, the same one counted again

// Ops of one output each, in an order that fits their dependencies. Operands and results are
// numbered: first the inputs, then the steps. The last step's result is the output; every step's
// result has its shape, inputs broadcast to it.
struct ElementwiseGroup {
  struct Step {
    const OpInstance* op = nullptr;
    std::vector<int> operands;
  };
  std::vector<DType> input_types;
  std::vector<Shape> input_shapes;
  std::vector<Step> steps;
  Shape output_shape;
};

struct ElementwiseFuser {
  // Can the op be a step?
  bool (*accepts)(const OpInstance& op) = nullptr;
  // The kernel of the whole group: the same bits as its ops one after the other. Null where the
  // group is too large.
  std::unique_ptr<Kernel> (*prepare)(const ElementwiseGroup& group) = nullptr;
  // The kernel that runs `producer`, which finishes in pieces, and takes each piece on through the
  // group at once, in place: the producer's result is the group's input `from`, of the output's
  // dtype and number of elements. Its inputs are the producer's, `producer_inputs` of them, then
  // the group's others. Null, and `producer` untouched, where two kernels do better.
  std::unique_ptr<Kernel> (*prepare_following)(const ElementwiseGroup& group, int from,
                                               std::unique_ptr<Kernel>& producer,
                                               int producer_inputs) = nullptr;
  // The kernel that runs `reader`, which reads in pieces, and computes the group where it asks for
  // elements of its input 0. Its inputs are the group's, then the reader's others. Null, and
  // `reader` untouched, where two kernels do better.
  std::unique_ptr<Kernel> (*prepare_feeding)(const ElementwiseGroup& group,
                                             std::unique_ptr<Kernel>& reader,
                                             int reader_inputs) = nullptr;
};

}  // namespace treenail
