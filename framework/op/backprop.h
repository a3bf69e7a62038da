// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation of a program of ops: the walk from ys back to xs, and the sums of
// what it meets. Written against an abstract program, so that a graph (graph/gradients.h) and a
// recording (eager/recording.h) share it. Rules of single ops: gradient.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/op/gradient.h"

namespace treenail {

// Nodes are numbers, values are (node, output). A node's inputs belong to other nodes; there is no
// cycle.
class DifferentiableProgram {
 public:
  virtual ~DifferentiableProgram();
  // Its values are those of the program.
  virtual Emitter& emitter() = 0;
  virtual const OpInstance& op(int64_t node) const = 0;
  virtual void append_inputs(int64_t node, std::vector<Value>& inputs) const = 0;
  // "[MatMul node \"h1/MatMul\"] ": what errors begin with.
  virtual std::string error_prefix(int64_t node) const = 0;
  // What is emitted from now on belongs to the gradient of `node`, or to sums of gradients for its
  // outputs.
  virtual void begin_gradient(int64_t node) = 0;
  virtual void begin_sum(int64_t node) = 0;
  // A rule that takes the place of the op's own: true when it filled `result` (one per input, of
  // which those `needed` count).
  virtual bool override_gradient(int64_t node, std::span<const Gradient> output_gradients,
                                 std::span<const bool> needed, std::span<Gradient> result);
  // The gradients of `node`, before they go on.
  virtual void end_gradient(int64_t node, std::span<Gradient> result);
};

struct BackpropRequest {
  std::span<const Value> ys;
  std::span<const Value> xs;
  std::span<const Value> grad_ys;         // empty, or one per y; an invalid value stands for ones
  std::span<const Value> stop_gradients;  // taken as constants
};

// d(sum of ys)/dx for each x: none where no path leads. A resource x stands for the variable's
// value. Nodes are visited in reverse topological order, the highest number first; what meets in
// one value is summed in the order it came: dense by AddN, slices by concatenation, a mixture
// densely. Errors: InvalidArgument (dtype of a y, or of a grad_y and its shape), Unimplemented `op
// "X" has no gradient`, and what rules raise.
std::vector<Gradient> backpropagate(DifferentiableProgram& program, const BackpropRequest& request);

}  // namespace treenail
