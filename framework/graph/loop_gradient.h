// SPDX-License-Identifier: Apache-2.0
// How the gradient of one While is made (loop_gradients.h): what goes through it and the loop that
// keeps what is needed, in loop_gradients.cc; the loop that goes back, in loop_backward.cc.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "framework/graph/function.h"
#include "framework/graph/graph.h"
#include "framework/graph/graph_emitter.h"
#include "framework/graph/linearise.h"
#include "framework/op/gradient.h"

namespace treenail {

class LoopGradient {
 public:
  LoopGradient(Node& node, const BodySetting& setting, GraphEmitter& emitter,
               std::span<const Gradient> output_gradients, std::span<const bool> needed)
      : node_(node),
        setting_(setting),
        library_(setting.library),
        e_(emitter),
        count_(static_cast<size_t>(node.num_outputs())),
        body_name_(node.op().get<FunctionAttr>("body").name),
        cond_name_(node.op().get<FunctionAttr>("cond").name),
        output_gradients_(output_gradients.begin(), output_gradients.end()),
        needed_(needed) {}

  bool run(std::span<Gradient> result) {
    find_differentiated();
    linearise_body();
    if (static_cast<size_t>(node_.num_outputs()) != count_) return false;
    for (size_t i = 0; i < count_; ++i)  // where nothing is added to it
      if (differentiated_[i] && stays_[i]) result[i] = output_gradients_[i];
    if (wants_.empty()) return true;
    const std::string body = add_forward_body();  // before the graph that they share is finished
    add_backward_step();
    grow_node(body, add_forward_cond());
    give(call_backward_loop(), result);
    return true;
  }

 private:
  void find_differentiated();
  void linearise_body();
  void sort_reads();
  std::string add_forward_body();
  void add_backward_step();
  std::string add_forward_cond();
  void grow_node(const std::string& body, const std::string& cond);
  std::string add_backward_body();
  std::string add_backward_cond();
  std::vector<Output> backward_arguments(Graph& graph);
  std::vector<Output> step_results(size_t i) const;
  Value with_slices(GraphEmitter& e, size_t i, Value sum, std::span<const Value> made) const;
  std::vector<Value> call_backward_loop();
  Value first_gradient(size_t i);
  Value value_read(size_t i);
  std::vector<Value> no_rows(size_t i);
  void give(std::span<const Value> gradients, std::span<Gradient> result);
  Gradient joined_rows(size_t i, Value values, Value indices);
  bool stay_rows(size_t i) const;

  static DType dtype_of(const Output& value) { return value.node->op().output_type(value.index); }
  static const ValueInfo& info_of(const Output& value) { return value.node->info(value.index); }

  bool has_rows(size_t i) const { return l_.rows[i].values.node != nullptr; }
  // Whether the gradient comes to a step, which gives another, rather than what is to be added.
  bool is_carried(size_t i) const { return differentiated_[i] && !stays_[i]; }

  Node& node_;
  const BodySetting& setting_;
  Graph& library_;
  GraphEmitter& e_;
  const size_t count_;  // values of the loop before it grew
  const std::string body_name_, cond_name_;
  const std::vector<Gradient> output_gradients_;
  const std::span<const bool> needed_;  // by input
  std::vector<bool> differentiated_;    // values that a gradient goes through
  std::vector<bool> stays_;             // values that are the same in every iteration, but lists
  Linearised l_;
  std::vector<std::vector<const Node*>> slices_;  // by input: of whose gradients a step's consists
  std::vector<size_t> wants_;       // inputs that have a gradient: values, and handles of variables
  std::vector<size_t> invariants_;  // inputs that the backward step reads, the same each time
  std::vector<Output> kept_;        // what it reads of an iteration
  std::string backward_step_;
  bool stateful_ = false;
};

}  // namespace treenail
