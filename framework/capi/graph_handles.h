// SPDX-License-Identifier: Apache-2.0
// tn_graph, tn_operation, tn_output. A graph's handles of nodes are made when first asked for and
// live as long as the state, which the tn_graph and its sessions share. Graph::mutex() is taken by
// every tn_* function that looks at or changes the graph.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "framework/base/fork.h"
#include "framework/capi/handles.h"
#include "framework/graph/graph.h"

namespace treenail::capi {
class GraphState;
}

struct tn_output {
  tn_operation* operation;
  int32_t index;
};

struct tn_operation {
  treenail::capi::GraphState* state;
  treenail::Node* node;
  std::vector<tn_output> outputs;
};

struct tn_graph {
  std::shared_ptr<treenail::capi::GraphState> state;
};

namespace treenail::capi {

class Body;

class GraphState {
 public:
  explicit GraphState(std::shared_ptr<Graph> graph, std::shared_ptr<Body> body = nullptr)
      : graph_(std::move(graph)), body_(std::move(body)) {}
  // Null: it is no body.
  Body* body() const { return body_.get(); }
  Graph& graph() const { return *graph_; }
  const std::shared_ptr<Graph>& shared() const { return graph_; }

  // The caller holds the graph's mutex, shared at least.
  tn_operation* handle(Node& node);
  const tn_output* handle(const Output& output) {
    return &handle(*output.node)->outputs[static_cast<size_t>(output.index)];
  }

 private:
  std::shared_ptr<Graph> graph_;
  std::shared_ptr<Body> body_;
  ForkSharedMutex mutex_;
  std::vector<std::unique_ptr<tn_operation>> operations_;  // by node id
};

GraphState& state_of(tn_graph* graph);
Output output_of(const tn_output* output, const char* what);
std::vector<Output> outputs_of(const tn_output* const* outputs, size_t count, const char* what);
std::vector<Node*> nodes_of(const tn_operation* const* operations, size_t count, const char* what);

}  // namespace treenail::capi
