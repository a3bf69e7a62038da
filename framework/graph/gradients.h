// SPDX-License-Identifier: Apache-2.0
// Gradients in a graph: nodes that compute d(sum of ys)/dx are added beside the graph's own. The
// walk and the sums: op/backprop.h; the rules: each op's, in framework/ops.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "framework/graph/function.h"
#include "framework/graph/graph.h"
#include "framework/op/gradient.h"

namespace treenail {

// As Gradient, with outputs of nodes for values.
struct GraphGradient {
  Gradient::Kind kind = Gradient::Kind::kNone;
  Output dense;        // kDense
  Output values;       // kSlices: [n, ...]
  Output indices;      // kSlices: int32 or int64 [n]
  Output dense_shape;  // kSlices: int32 or int64 [rank]
};

// A value of a body that stands for one of the graph whose node calls it.
struct CapturedValue {
  Output inside, around;
};

// Rules from outside (Python's RegisterGradient), asked before an op's own.
class GradientOverrides {
 public:
  virtual ~GradientOverrides();
  virtual bool has(const Node& node) const = 0;
  // One gradient per input of `node`, as values of its graph. The caller of add_gradients holds the
  // graph's mutex; this may release it meanwhile, and add nodes.
  virtual std::vector<GraphGradient> gradients(Node& node,
                                               std::span<const GraphGradient> output_gradients) = 0;

  // The rules for nodes of `copy`, which has every node of the function's body under its name, and
  // which a node of this one's graph calls; null: the ops' own. around: by input of the function,
  // the value of this graph that it always is, or {nullptr}.
  virtual std::unique_ptr<GradientOverrides> in_body(const Function& function,
                                                     const std::shared_ptr<Graph>& copy,
                                                     std::span<const Output> around);
  // Of a body: what its rules have read of the graph around, so far.
  virtual std::vector<CapturedValue> captured() const { return {}; }
  // Of a body: what functions made of it are to carry.
  virtual std::shared_ptr<const BodyRules> body_rules() const { return nullptr; }
};

struct RowSources;

struct GradientOptions {
  std::span<const Output> grad_ys = {};         // empty, or one per y; {nullptr} stands for ones
  std::span<const Output> stop_gradients = {};  // taken as constants with respect to all xs
  std::string_view name = "gradients";          // scope of the new nodes, made unique
  GradientOverrides* overrides = nullptr;
  // Whose functions the graph's nodes call; null: the graph's own. The caller holds its mutex.
  Graph* library = nullptr;
  // Of which rows are read often: where they are, gradients are slices (row_gradients.h).
  RowSources* rows_of = nullptr;
  bool gate = false;  // no gradient of a node's inputs is there before all of them are
};

class GraphEmitter;
// As one value of the emitter's graph; {nullptr} for none.
Output dense_output(const GraphGradient& gradient, GraphEmitter& emitter);

// One gradient per x; kNone where no differentiable path leads from a y to it. A resource x stands
// for the variable's value. New nodes are called <name>/<node>_grad/<op>, and carry device and
// creation stack of the node they differentiate. The caller holds graph.mutex(). Errors:
// InvalidArgument (a value of another graph, dtypes, grad_ys), Unimplemented (op "X" has no
// gradient), FailedPrecondition (finalized); nodes added before an error stay, unused.
std::vector<GraphGradient> add_gradients(Graph& graph, std::span<const Output> ys,
                                         std::span<const Output> xs,
                                         const GradientOptions& options = {});

}  // namespace treenail
