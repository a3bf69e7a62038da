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

// A node whose value goes to one group alone, as an array of the group's own size and dtype: if its
// kernel finishes in pieces, the group may follow each of them.
struct FusionProducer {
  const Node* node = nullptr;
  std::vector<const Node*> views;  // between it and the group: the same elements in another shape
  size_t input = 0;                // number of the group's input
};

struct FusionGroup {
  std::vector<const Node*> members;  // in canonical order; the last one's value leaves the group
  std::vector<Output> inputs;        // values from outside, each once, in order of first use
  std::vector<FusionProducer> producers;  // the latest first
  const Node* reader = nullptr;  // alone reads the group's value, as its input 0: if its kernel
                                 // reads in pieces, the group may be computed there
};

struct FusionCandidate {
  bool runs = false;                    // neither folded nor unneeded: it reads its inputs in a run
  const PartialShape* shape = nullptr;  // of output 0; null where it is not fully known
};

// `candidates`: by node id. Groups of at least two nodes, possible producers and readers included,
// by position of their last member, within the limits of kernel_fusion.h. `looked_at`: counts edges
// looked at, linear in those of `order` (tests hold it to that).
std::vector<FusionGroup> find_fusion_groups(std::span<Node* const> order,
                                            std::span<const FusionCandidate> candidates,
                                            const ElementwiseFuser& fuser,
                                            int64_t* looked_at = nullptr);

// The group in the kernels' terms; points into the nodes. `input_shapes`: one per group.inputs.
ElementwiseGroup describe_group(const FusionGroup& group, std::vector<Shape> input_shapes,
                                const Shape& output_shape);

}  // namespace treenail
