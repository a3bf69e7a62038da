// SPDX-License-Identifier: Apache-2.0
// tn_body_*: graphs that will be bodies of functions.
#include "framework/capi/body.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>

#include "framework/graph/linearise.h"

namespace treenail::capi {

Output Body::capture(GraphState& own, GraphState& of, const Output& value) {
  if (&of == outer_.get()) return stand_in(own, value);
  if (outer_->body() == nullptr) {
    throw invalid_argument("the value \"", to_text(value),
                           "\" is of a graph that is none around \"", name_, "\"");
  }
  return stand_in(own, outer_->body()->capture(*outer_, of, value));
}

Output Body::stand_in(GraphState& own, const Output& captured) {
  const auto found = std::find(captured_.begin(), captured_.end(), captured);
  if (found != captured_.end()) return stand_ins_[static_cast<size_t>(found - captured_.begin())];
  const std::shared_lock reading(outer_->graph().mutex());
  const std::unique_lock writing(own.graph().mutex());
  const std::string path(captured.node->name());
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  stand_ins_.push_back(add_placeholder_like(own.graph(), name, captured));
  captured_.push_back(captured);
  return stand_ins_.back();
}

Body& body_of(tn_graph* graph, const char* what) {
  Body* body = required(graph, what).state->body();
  if (body == nullptr) throw invalid_argument(what, " is no body: tn_body_new() makes one");
  return *body;
}

Output value_in(GraphState& state, const tn_output* output, const char* what) {
  const Output value = output_of(output, what);
  GraphState& of = *output->operation->state;
  if (&of == &state || state.body() == nullptr) return value;
  return state.body()->capture(state, of, value);
}

std::vector<Output> values_in(GraphState& state, const tn_output* const* outputs, size_t count,
                              const char* what) {
  std::vector<Output> values;
  outputs_of(outputs, count, what);  // none is NULL
  for (size_t i = 0; i < count; ++i) values.push_back(value_in(state, outputs[i], what));
  return values;
}

}  // namespace treenail::capi

using treenail::Graph;
using treenail::Output;
using treenail::capi::Body;
using treenail::capi::body_of;
using treenail::capi::GraphState;
using treenail::capi::guarded;
using treenail::capi::text;

tn_graph* tn_body_new(tn_graph* outer, const char* name, tn_status* status) noexcept {
  return guarded(status, [&] {
    treenail::capi::state_of(outer);
    const std::string wanted = name == nullptr ? "body" : name;
    return new tn_graph{std::make_shared<GraphState>(std::make_shared<Graph>(),
                                                     std::make_shared<Body>(outer->state, wanted))};
  });
}

const tn_output* tn_body_add_argument(tn_graph* body, const char* name, tn_dtype dtype,
                                      const int64_t* dims, int32_t rank,
                                      tn_status* status) noexcept {
  return guarded(status, [&] {
    Body& b = body_of(body, "body");
    GraphState& state = *body->state;
    const treenail::DType type = treenail::capi::dtype_from(dtype);
    const treenail::PartialShape shape = treenail::capi::partial_shape_from(dims, rank);
    const std::unique_lock lock(state.graph().mutex());
    const Output argument =
        treenail::add_placeholder(state.graph(), name == nullptr ? "argument" : name, type, shape);
    b.arguments.push_back(argument);
    return state.handle(argument);
  });
}

const tn_output* tn_body_capture(tn_graph* body, const tn_output* outer,
                                 tn_status* status) noexcept {
  return guarded(status, [&] {
    body_of(body, "body");
    GraphState& state = *body->state;
    const Output value = treenail::capi::value_in(state, outer, "outer");
    const std::shared_lock lock(state.graph().mutex());
    return state.handle(value);
  });
}

void tn_body_set_results(tn_graph* body, const tn_output* const* results, size_t count,
                         tn_status* status) noexcept {
  guarded(status, [&] {
    body_of(body, "body").results =
        treenail::capi::values_in(*body->state, results, count, "results");
  });
}
