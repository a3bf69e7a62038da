// SPDX-License-Identifier: Apache-2.0
// One pass in topological order: when a node is looked at its inputs are merged already, so equal
// nodes have equal inputs. A reader of state carries the number of writes before it as part of its
// key: reads with a write between them differ. The order is the canonical one that also orders
// accesses which the graph leaves free (runtime/plan/variable_order.h).
#include "framework/graph/passes/cse.h"

#include <algorithm>
#include <bit>
#include <unordered_set>
#include <vector>

#include "framework/base/hash.h"
#include "framework/base/interrupt.h"
#include "framework/base/small_vector.h"

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

// Commutative to the bit: not where the result is a floating point or complex number. Which of two
// NaNs goes on, and which zero is the larger, depends on the order.
bool may_swap_inputs(const OpInstance& op) {
  if (!op.def().commutative || op.num_inputs() != 2 || op.num_outputs() != 1) return false;
  const DType result = op.output_type(0);
  return result == DType::kBool || is_integer(result);
}

bool same_infos(const Node& a, const Node& b) {
  for (int i = 0; i < a.num_outputs(); ++i) {
    if (!(a.info(i).shape == b.info(i).shape)) return false;
  }
  return true;
}

class Merger {
 public:
  explicit Merger(Graph& graph)
      : graph_(graph),
        into_(static_cast<size_t>(graph.num_nodes())),
        seen_(std::bit_ceil(2 * into_.size() + 1)) {}

  int run(std::span<Node* const> keep) {
    const std::unordered_set<const Node*> kept(keep.begin(), keep.end());
    int writes = 0;
    int merged = 0;
    for (Node* node : topological_order(graph_)) {
      poll_interrupt();
      const StateUse use = state_use(*node);
      if (use.writes) ++writes;
      if (!mergeable(*node, use)) continue;
      Node* const first = first_like({node, use.reads ? writes : 0, 0});
      if (first == node || kept.contains(node)) continue;
      into_[static_cast<size_t>(node->id())] = first;
      ++merged;
    }
    if (merged > 0) graph_.merge(into_);
    return merged;
  }

 private:
  // A node's identity for merging.
  struct Key {
    Node* node = nullptr;
    int writes_before = 0;  // 0 for nodes that read no state
    uint64_t hash = 0;
  };
  using Edges = SmallVector<int64_t, 6>;

  int64_t id_now(const Node& node) const {
    const Node* const other = into_[static_cast<size_t>(node.id())];
    return other == nullptr ? node.id() : other->id();
  }

  // Inputs, then control inputs, as merged so far.
  Edges edges_of(const Node& node) const {
    Edges edges;
    for (const Output& input : node.inputs())
      edges.push_back((id_now(*input.node) << 32) | input.index);
    if (may_swap_inputs(node.op())) std::sort(edges.begin(), edges.end());
    const size_t inputs = edges.size();
    for (const Node* before : node.control_inputs()) edges.push_back(id_now(*before));
    std::sort(edges.begin() + inputs, edges.end());
    const int64_t* const end = std::unique(edges.begin() + inputs, edges.end());
    edges.resize(static_cast<size_t>(end - edges.begin()));
    return edges;
  }

  static bool same(const Key& a, const Key& b) {
    const OpInstance& x = a.node->op();
    const OpInstance& y = b.node->op();
    return &x.def() == &y.def() && a.writes_before == b.writes_before &&
           a.node->device() == b.node->device() && std::ranges::equal(x.attrs(), y.attrs()) &&
           std::ranges::equal(x.output_types(), y.output_types()) && same_infos(*a.node, *b.node);
  }

  // The first of its kind, which may be itself.
  Node* first_like(Key key) {
    const Edges edges = edges_of(*key.node);
    const OpInstance& op = key.node->op();
    key.hash = hash_bytes(edges.begin(), edges.size() * sizeof(int64_t),
                          static_cast<uint64_t>(key.writes_before));
    key.hash = hash_combine(key.hash, reinterpret_cast<uintptr_t>(&op.def()));
    for (const AttrValue& attr : op.attrs()) key.hash = hash_combine(key.hash, attr.hash());
    size_t i = key.hash;
    for (;; ++i) {
      Key& other = seen_[i & (seen_.size() - 1)];
      if (other.node == nullptr) {
        other = key;
        return key.node;
      }
      if (other.hash == key.hash && same(other, key) && edges_of(*other.node) == edges)
        return other.node;
    }
  }

  Graph& graph_;
  std::vector<Node*> into_;  // by id: the twin that a node gives way to
  std::vector<Key> seen_;    // by hash, at most half full
};

}  // namespace

int merge_common_subexpressions(Graph& graph, std::span<Node* const> keep) {
  return Merger(graph).run(keep);
}

}  // namespace treenail
