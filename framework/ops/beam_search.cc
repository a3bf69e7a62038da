// SPDX-License-Identifier: Apache-2.0
// Beam search: the sequences that its steps stand for.
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

void gather_tree_shape(ShapeContext& c) {
  PartialShape steps = ShapeContext::merge(c.with_rank(0, 3), c.with_rank(1, 3),
                                           "shapes of step_ids and parent_ids");
  const PartialShape lengths = c.with_rank(2, 1);
  c.with_rank(3, 0);
  const int64_t batch = ShapeContext::merge_dim(steps[1], lengths[0],
                                                "the batch of step_ids and max_sequence_lengths");
  c.set_output(0, PartialShape{steps[0], batch, steps[2]});
}

}  // namespace

void register_beam_search_ops(OpRegistry& r) {
  r.op("GatherTree", HostAccess::kNone)
      .input("step_ids: T")
      .input("parent_ids: T")
      .input("max_sequence_lengths: int32")
      .input("end_token: T")
      .output("beams: T")
      .attr("T: {int32}")
      .shape(gather_tree_shape)
      .not_differentiable()
      .doc(
          "The sequence of each beam, found from its last step back along its parents.\n\n"
          "step_ids, parent_ids: [time, batch, beam], what each step chose and for which beam of "
          "the step before. max_sequence_lengths: [batch], how many steps count; a beam is "
          "end_token behind them, and behind its first end_token.\n"
          "Errors: InvalidArgument for a parent that is no beam.");
  r.finish("beam_search");
}

}  // namespace treenail
