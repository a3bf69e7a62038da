// SPDX-License-Identifier: Apache-2.0
// Which nodes of a plan run as one kernel: connected element-wise nodes whose intermediate values
// nobody else reads. They are found when shapes are known, for a value that is broadcast on its way
// is better computed once; bits are the same fused or not, so that a plan for other shapes may
// group otherwise.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/runtime/kernel/kernel_fusion.h"

namespace treenail {

struct FusionGroup {
  std::vector<const Node*> members;  // in canonical order; the last one's value leaves the group
  std::vector<Output> inputs;        // values from outside, each once, in order of first use
};

struct FusionCandidate {
  int32_t device = 0;                   // a group has one
  const Fuser* fuser = nullptr;         // of the device; null: nothing is fused there
  bool runs = false;                    // neither folded nor unneeded: it reads its inputs in a run
  const PartialShape* shape = nullptr;  // of output 0; null where it is not fully known
};

// `candidates`: by node id. Groups of at least two nodes, by position of their last member, within
// the limits of kernel_fusion.h. `looked_at`: counts edges looked at, linear in those of `order`
// (tests hold it to that).
std::vector<FusionGroup> find_fusion_groups(std::span<Node* const> order,
                                            std::span<const FusionCandidate> candidates,
                                            int64_t* looked_at = nullptr);

FusionGroup group_of_one(const Node& node);

// The group in the kernels' terms; points into the nodes. `input_shapes`: one per group.inputs.
ElementwiseGroup describe_group(const FusionGroup& group, std::vector<Shape> input_shapes,
                                const Shape& output_shape, Device& device);

}  // namespace treenail
