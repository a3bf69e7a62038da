// SPDX-License-Identifier: Apache-2.0
// tn_builder_*: adding one operation. Mistakes on the way are kept; finish throws the first, with
// op and node before the text.
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "framework/capi/attributes.h"
#include "framework/capi/body.h"
#include "framework/capi/graph_handles.h"

using treenail::Node;
using treenail::Output;
using treenail::capi::guarded;
using treenail::capi::text;

struct tn_builder {
  std::shared_ptr<treenail::capi::GraphState> state;
  std::string op;
  std::string name;
  std::string device;
  std::vector<Output> inputs;
  std::vector<int> list_sizes;  // per declared input
  std::vector<Node*> control_inputs;
  tn_attrs attrs;
  tn_status mistake;
};

namespace {

template <class F>
void step(tn_builder* builder, F&& body) noexcept {
  if (builder == nullptr || builder->mistake.code != treenail::Code::kOk) return;
  guarded(&builder->mistake, body);
}

Node& add(const tn_builder& builder) {
  try {
    treenail::capi::rethrow(builder.mistake);
    treenail::capi::attrs_of(&builder.attrs);
  } catch (const treenail::Error& error) {
    throw error.with_prefix(
        treenail::error_prefix(builder.op, builder.name.empty() ? builder.op : builder.name));
  }
  treenail::Graph& graph = builder.state->graph();
  const std::unique_lock lock(graph.mutex());
  return graph.add({.op = builder.op,
                    .name = builder.name,
                    .inputs = builder.inputs,
                    .attrs = builder.attrs.values,
                    .arg_sizes = builder.list_sizes,
                    .control_inputs = builder.control_inputs,
                    .device = builder.device});
}

}  // namespace

tn_builder* tn_builder_new(tn_graph* graph, const char* op, const char* name,
                           tn_status* status) noexcept {
  return guarded(status, [&] {
    treenail::capi::state_of(graph);
    auto builder = std::make_unique<tn_builder>();
    builder->state = graph->state;
    builder->op = text(op, "op");
    if (name != nullptr) builder->name = name;
    return builder.release();
  });
}

void tn_builder_delete(tn_builder* builder) noexcept { delete builder; }

void tn_builder_add_input(tn_builder* builder, const tn_output* input) noexcept {
  step(builder, [&] {
    builder->inputs.push_back(treenail::capi::value_in(*builder->state, input, "an input"));
    builder->list_sizes.push_back(1);
  });
}

void tn_builder_add_input_list(tn_builder* builder, const tn_output* const* inputs,
                               size_t count) noexcept {
  step(builder, [&] {
    if (count > static_cast<size_t>(std::numeric_limits<int>::max())) {
      throw treenail::invalid_argument("the count of an input list is ", count, "; at most ",
                                       std::numeric_limits<int>::max(), " is supported");
    }
    const std::vector<Output> list =
        treenail::capi::values_in(*builder->state, inputs, count, "an input list");
    builder->inputs.insert(builder->inputs.end(), list.begin(), list.end());
    builder->list_sizes.push_back(static_cast<int>(count));
  });
}

void tn_builder_add_control_input(tn_builder* builder, const tn_operation* op) noexcept {
  step(builder, [&] {
    builder->control_inputs.push_back(treenail::capi::required(op, "a control input").node);
  });
}

void tn_builder_set_device(tn_builder* builder, const char* device) noexcept {
  step(builder, [&] { builder->device = text(device, "the device"); });
}

tn_attrs* tn_builder_attrs(tn_builder* builder) noexcept {
  return builder == nullptr ? nullptr : &builder->attrs;
}

void tn_builder_set_attrs(tn_builder* builder, const tn_attrs* attrs) noexcept {
  step(builder, [&] {
    for (const auto& [name, value] : treenail::capi::attrs_of(attrs)) {
      treenail::capi::set_attr(&builder->attrs, name.c_str(), [&value = value] { return value; });
    }
  });
}

tn_operation* tn_builder_finish(tn_builder* builder, tn_status* status) noexcept {
  const std::unique_ptr<tn_builder> owned(builder);
  return guarded(status, [&] {
    treenail::capi::required(builder, "builder");
    Node& node = add(*builder);
    return builder->state->handle(node);
  });
}
