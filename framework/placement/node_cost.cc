// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/node_cost.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/device/device.h"
#include "framework/graph/function_calls.h"
#include "framework/op/flops.h"
#include "framework/tensor/tensor_bytes.h"

namespace treenail {
namespace {

constexpr int kDeepestCall = 64;
constexpr int64_t kMostBytes = int64_t{1} << 50;  // of a value, so that sums stay in range
constexpr double kStringBytes = 32;               // an element with its characters, about

bool reads_state(const OpInstance& op) {
  return op.num_inputs() == 1 && op.input_def(0).access == Access::kRead && op.num_outputs() == 1 &&
         op.output_type(0) != DType::kResource;
}

}  // namespace

bool costs_nothing(const Node& node) {
  const OpDef& def = node.op().def();
  if (def.view_of >= 0 || node.type().starts_with('_') || reads_state(node.op())) return true;
  return node.inputs().empty() && !def.random && !def.asynchronous && !calls_functions(node.op());
}

DeviceSpeed usual_speed(const std::string& kind) {
  if (kind == Device::kHostKind) return {2e10, 1e10, 1e-6};
  return {5e12, 4e11, 5e-6};
}

NodeCosts::NodeCosts(const Graph& graph, FindFunction find, const NodeCostOptions& options)
    : find_(find), options_(options) {
  if (options_.profile != nullptr) {
    read_profile(graph);
    measure_calls(graph);
  }
}

Shape NodeCosts::filled(const PartialShape& shape) const {
  if (!shape.rank_known()) return Shape{options_.unknown_dimension};
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  for (int64_t& dim : dims) dim = dim < 0 ? options_.unknown_dimension : dim;
  return Shape(dims);
}

int64_t NodeCosts::bytes_of(DType dtype, const PartialShape& shape) const {
  if (dtype == DType::kResource || dtype == DType::kInvalid) return 0;
  try {
    const Shape full = filled(shape);
    if (!is_plain(dtype))
      return static_cast<int64_t>(kStringBytes * static_cast<double>(full.num_elements()));
    return std::min(tensor_bytes(dtype, full), kMostBytes);
  } catch (const Error&) {  // more than there are
    return kMostBytes;
  }
}

int64_t NodeCosts::bytes(const Output& value) const {
  return bytes_of(value.node->op().output_type(value.index), value.node->info(value.index).shape);
}

int64_t NodeCosts::state_bytes(const Node& node) const {
  if (!node.inputs().empty() || node.num_outputs() != 1) return 0;
  const auto& handle = node.info(0).handle;
  return handle == nullptr ? 0 : bytes_of(handle->dtype, handle->shape);
}

NodeCosts::Work NodeCosts::work_of(const Node& node, int depth) {
  if (costs_nothing(node)) return {};
  if (calls_functions(node.op())) return work_of_call(node, depth);
  Work work;
  work.nodes = 1;
  std::vector<Shape> inputs, outputs;
  try {
    for (const Output& input : node.inputs()) {
      work.bytes += static_cast<double>(bytes(input));
      inputs.push_back(filled(input.node->info(input.index).shape));
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      const Output output{const_cast<Node*>(&node), i};
      work.bytes += static_cast<double>(bytes(output));
      outputs.push_back(filled(node.info(i).shape));
    }
    work.flops = count_flops(node.op(), inputs, outputs);
  } catch (const Error&) {  // of shapes that do not fit together where unknown ones are filled in
    work.flops = 0;
  }
  return work;
}

NodeCosts::Work NodeCosts::work_of(const Function& function, int depth) {
  const auto [known, fresh] = functions_.try_emplace(&function);
  // Of one that calls itself the calls within count as nothing.
  if (!fresh || depth >= kDeepestCall) return known->second;
  Work sum;
  for (int id = 0; id < function.body->num_nodes(); ++id) {
    const Node* const node = function.body->node(id);
    if (node == nullptr) continue;
    const Work work = work_of(*node, depth + 1);
    sum.flops += work.flops;
    sum.bytes += work.bytes;
    sum.nodes += work.nodes;
  }
  return functions_[&function] = sum;
}

// A loop's functions run as often as it goes round, of several branches one runs.
NodeCosts::Work NodeCosts::work_of_call(const Node& node, int depth) {
  const OpInstance& op = node.op();
  const std::vector<std::string> names = functions_called(op);
  const bool loops = op.def().attr_index("body") >= 0;
  const double times = loops ? options_.trip_count : 1.0 / static_cast<double>(names.size());
  Work sum;
  sum.nodes = 1;
  for (const std::string& name : names) {
    const Function* const function = find_(name);
    if (function == nullptr) continue;
    const Work work = work_of(*function, depth);
    sum.flops += times * work.flops;
    sum.bytes += times * work.bytes;
    sum.nodes += times * work.nodes;
  }
  return sum;
}

double NodeCosts::estimate(const Node& node, const DeviceSpeed& speed) {
  const Work work = work_of(node, 0);
  return work.nodes * speed.seconds_per_node +
         std::max(work.flops / speed.flops_per_second, work.bytes / speed.bytes_per_second);
}

double NodeCosts::seconds(const Node& node, const std::string& kind, const DeviceSpeed& speed) {
  if (const auto of_kind = measured_.find(kind); of_kind != measured_.end()) {
    const auto found = of_kind->second.find(&node);
    if (found != of_kind->second.end()) return found->second.ns / found->second.count / 1e9;
  }
  return estimate(node, speed);
}

bool NodeCosts::measured(const Node& node, const std::string& kind) const {
  const auto of_kind = measured_.find(kind);
  return of_kind != measured_.end() && of_kind->second.contains(&node);
}

// What was fused shares the time as the nodes' estimates say.
void NodeCosts::read_profile(const Graph& graph) {
  std::unordered_map<std::string_view, const Node*> nodes;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (const Node* const node = graph.node(id)) nodes.emplace(node->original_name(), node);
  }
  for (const PlacementProfile::Entry& entry : options_.profile->entries()) {
    std::vector<std::pair<const Node*, double>> members;
    double sum = 0;
    const auto add = [&](const std::string& name) {
      const auto found = nodes.find(name);
      if (found == nodes.end()) return;
      members.emplace_back(found->second, estimate(*found->second, usual_speed(entry.kind)));
      sum += members.back().second;
    };
    for (const std::string& name : entry.fused) add(name);
    add(entry.name);
    for (const auto& [node, estimated] : members) {
      const double share = sum > 0 ? estimated / sum : 1.0 / static_cast<double>(members.size());
      Measured& time = measured_[entry.kind][node];
      time.ns += share * static_cast<double>(entry.total_ns);
      time.count += static_cast<double>(entry.count);
    }
  }
}

// A call takes at least what ran below it, which its own time has or has not in it.
void NodeCosts::measure_calls(const Graph& graph) {
  std::unordered_map<std::string, const Node*> calls;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node* const node = graph.node(id);
    if (node != nullptr && calls_functions(node->op()))
      calls.emplace(concat(node->original_name(), "/"), node);
  }
  if (calls.empty()) return;
  std::map<std::string, std::unordered_map<const Node*, double>> below;  // ns, by kind
  for (const PlacementProfile::Entry& entry : options_.profile->entries()) {
    for (size_t slash = entry.name.find('/'); slash != std::string::npos;
         slash = entry.name.find('/', slash + 1)) {
      const auto call = calls.find(entry.name.substr(0, slash + 1));
      if (call == calls.end()) continue;
      below[entry.kind][call->second] += static_cast<double>(entry.total_ns);
      break;
    }
  }
  for (const auto& [kind, sums] : below) {
    for (const auto& [node, ns] : sums) {
      Measured& time = measured_[kind][node];
      if (time.count == 0) time.count = std::max<double>(1, options_.profile->runs());
      time.ns = std::max(time.ns, ns);
    }
  }
}

}  // namespace treenail
