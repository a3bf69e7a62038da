// SPDX-License-Identifier: Apache-2.0
// One pass in topological order: when a node is looked at its inputs are merged already, so equal
// nodes have equal inputs. A reader of state carries the number of writes before it as part of its
// key: reads with a write between them differ. The order is the canonical one that also orders
// accesses which the graph leaves free (runtime/plan/variable_order.h).
#include "framework/graph/passes/cse.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/base/hash.h"
#include "framework/base/interrupt.h"

namespace treenail {
namespace {

// Hashing a large constant costs more than a second copy of it is likely to.
constexpr size_t kMaxConstantBytes = size_t{1} << 20;

struct StateUse {
  bool reads = false;   // declared to read some state
  bool writes = false;  // may change some state
};

StateUse state_use(const Node& node) {
  StateUse use;
  const OpInstance& op = node.op();
  for (int i = 0; i < op.num_inputs(); ++i) {
    if (op.input_type(i) != DType::kResource) continue;
    const Access access = op.input_def(i).access;
    use.reads = use.reads || access == Access::kRead;
    const bool may_write = access == Access::kNone && op.def().stateful;
    use.writes = use.writes || may_write || access == Access::kWrite || access == Access::kOpaque;
  }
  return use;
}

bool mergeable(const Node& node, const StateUse& use) {
  const OpInstance& op = node.op();
  if (op.def().random || use.writes) return false;
  // A declared reader is stateful for what it reads; every other stateful op has effects of its
  // own.
  if (op.def().stateful && !use.reads) return false;
  for (int i = 0; i < op.num_outputs(); ++i) {
    if (op.output_type(i) == DType::kResource) return false;  // may name state after its node
  }
  if (op.num_inputs() > 0) return true;
  // Without inputs only a known value is the same for sure (a placeholder is not).
  if (op.num_outputs() != 1 || !node.info(0).constant) return false;
  return node.info(0).constant->bytes() <= kMaxConstantBytes;
}

std::pair<int, int> key_of(const Output& value) { return {value.node->id(), value.index}; }

// Commutative to the bit: not where the result is a floating point or complex number. Which of two
// NaNs goes on, and which zero is the larger, depends on the order.
bool may_swap_inputs(const OpInstance& op) {
  if (!op.def().commutative || op.num_inputs() != 2 || op.num_outputs() != 1) return false;
  const DType result = op.output_type(0);
  return result == DType::kBool || is_integer(result);
}

// A node's identity for merging.
struct Key {
  const Node* node;
  int writes_before;  // 0 for nodes that read no state
  std::vector<std::pair<int, int>> inputs;
  std::vector<int> control_inputs;
  uint64_t hash;
};

Key make_key(const Node& node, int writes_before) {
  Key key{&node, writes_before, {}, {}, 0};
  for (const Output& input : node.inputs()) key.inputs.push_back(key_of(input));
  if (may_swap_inputs(node.op())) std::sort(key.inputs.begin(), key.inputs.end());
  for (const Node* before : node.control_inputs()) key.control_inputs.push_back(before->id());
  std::sort(key.control_inputs.begin(), key.control_inputs.end());
  uint64_t hash = hash_text(node.type(), static_cast<uint64_t>(writes_before));
  hash = hash_text(node.device(), hash);
  for (const AttrValue& attr : node.op().attrs()) hash = hash_combine(hash, attr.hash());
  for (const auto& [id, index] : key.inputs) {
    hash = hash_combine(hash, (static_cast<uint64_t>(id) << 32) | static_cast<uint32_t>(index));
  }
  for (int id : key.control_inputs) hash = hash_combine(hash, static_cast<uint64_t>(id));
  key.hash = hash;
  return key;
}

bool same_infos(const Node& a, const Node& b) {
  for (int i = 0; i < a.num_outputs(); ++i) {
    if (!(a.info(i).shape == b.info(i).shape)) return false;
  }
  return true;
}

bool same(const Key& a, const Key& b) {
  const OpInstance& x = a.node->op();
  const OpInstance& y = b.node->op();
  return &x.def() == &y.def() && a.writes_before == b.writes_before && a.inputs == b.inputs &&
         a.control_inputs == b.control_inputs && a.node->device() == b.node->device() &&
         std::equal(x.attrs().begin(), x.attrs().end(), y.attrs().begin(), y.attrs().end()) &&
         std::equal(x.output_types().begin(), x.output_types().end(), y.output_types().begin(),
                    y.output_types().end()) &&
         same_infos(*a.node, *b.node);
}

}  // namespace

int merge_common_subexpressions(Graph& graph, std::span<Node* const> keep) {
  const std::unordered_set<const Node*> kept(keep.begin(), keep.end());
  std::unordered_multimap<uint64_t, Key> seen;
  int writes = 0;
  int merged = 0;
  for (Node* node : topological_order(graph)) {
    poll_interrupt();
    const StateUse use = state_use(*node);
    if (use.writes) ++writes;
    if (!mergeable(*node, use)) continue;
    Key key = make_key(*node, use.reads ? writes : 0);
    const auto [begin, end] = seen.equal_range(key.hash);
    const auto twin =
        std::find_if(begin, end, [&key](const auto& entry) { return same(entry.second, key); });
    if (twin == end) {
      seen.emplace(key.hash, std::move(key));
      continue;
    }
    if (kept.contains(node)) continue;
    Node& first = *graph.node(twin->second.node->id());
    for (int i = 0; i < node->num_outputs(); ++i) graph.replace_uses({node, i}, {&first, i});
    graph.move_control_uses(*node, first);
    graph.remove(*node);
    ++merged;
  }
  return merged;
}

}  // namespace treenail
