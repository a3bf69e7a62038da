// SPDX-License-Identifier: Apache-2.0
// One pass in topological order: when a node is looked at its inputs are merged already, so equal
// nodes have equal inputs. A reader of state carries the number of writes before it as part of its
// key: reads with a write between them differ. The order is the canonical one that also orders
// accesses which the graph leaves free (runtime/plan/variable_order.h).
#include "framework/graph/passes/cse.h"

#include <algorithm>
#include <bit>
#include <string_view>
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
        seen_(std::bit_ceil(2 * into_.size() + 1)) {
    for (int id = 0; id < graph.num_nodes(); ++id) {
      const Node* const node = graph.node(id);
      if (node == nullptr) continue;
      for (const std::string& name : node->colocated_with()) named_.insert(name);
    }
  }

  int run(std::span<Node* const> keep) {
    const std::unordered_set<const Node*> kept(keep.begin(), keep.end());
    const std::vector<Node*> order = topological_order(graph_);
    Candidate ahead[kAhead];
    int merged = 0;
    for (size_t i = 0; i < order.size() + kAhead; ++i) {
      poll_interrupt();
      Candidate& each = ahead[i % kAhead];
      if (each.node != nullptr) {
        Node* const first = first_like(each);
        if (first != each.node && !kept.contains(each.node)) {
          into_[static_cast<size_t>(each.node->id())] = first;
          ++merged;
        }
      }
      each = i < order.size() ? candidate(*order[i]) : Candidate();
    }
    if (merged > 0) graph_.merge(into_);
    return merged;
  }

 private:
  // So many nodes are hashed before the first of them is looked up: their places in the table, each
  // a miss of the caches in a large graph, are fetched meanwhile.
  static constexpr size_t kAhead = 8;
  using Edges = SmallVector<int64_t, 6>;
  // A node's identity for merging.
  struct Key {
    Node* node = nullptr;
    int writes_before = 0;  // 0 for nodes that read no state
    uint64_t hash = 0;
  };
  struct Candidate {
    Node* node = nullptr;  // null: not to be merged
    int writes_before = 0;
    uint64_t kind = 0;  // hash of all but the edges
    Edges edges;
    uint64_t hash = 0;
  };
  // A place of the hash table.
  struct Seen {
    uint32_t tag = 0;  // upper half of the hash
    int32_t key = -1;  // in keys_
  };

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
           a.node->device() == b.node->device() &&
           std::ranges::equal(a.node->colocated_with(), b.node->colocated_with()) &&
           std::ranges::equal(x.attrs(), y.attrs()) &&
           std::ranges::equal(x.output_types(), y.output_types()) && same_infos(*a.node, *b.node);
  }

  // Of the node whose turn it is.
  Candidate candidate(Node& node) {
    const StateUse use = state_use(node);
    if (use.writes) ++writes_;
    if (!mergeable(node, use)) return {};
    // Who must run beside it must find it.
    if (!named_.empty() && named_.contains(node.original_name())) return {};
    Candidate c{&node, use.reads ? writes_ : 0};
    c.kind = hash_combine(static_cast<uint64_t>(c.writes_before),
                          reinterpret_cast<uintptr_t>(&node.op().def()));
    for (const AttrValue& attr : node.op().attrs()) c.kind = hash_combine(c.kind, attr.hash());
    set_edges(c, edges_of(node));
    __builtin_prefetch(&place(c.hash), 1);
    return c;
  }

  static void set_edges(Candidate& c, Edges edges) {
    c.hash = hash_bytes(edges.begin(), edges.size() * sizeof(int64_t), c.kind);
    c.edges = std::move(edges);
  }

  Seen& place(size_t i) { return seen_[i & (seen_.size() - 1)]; }

  // The first of its kind, which may be itself.
  Node* first_like(Candidate& c) {
    // Inputs may have been merged since.
    if (Edges now = edges_of(*c.node); !(now == c.edges)) set_edges(c, std::move(now));
    const Key key{c.node, c.writes_before, c.hash};
    const auto tag = static_cast<uint32_t>(c.hash >> 32);
    for (size_t i = c.hash;; ++i) {
      Seen& seen = place(i);
      if (seen.key < 0) {
        seen = {tag, static_cast<int32_t>(keys_.size())};
        keys_.push_back(key);
        return c.node;
      }
      if (seen.tag != tag) continue;
      const Key& other = keys_[static_cast<size_t>(seen.key)];
      if (other.hash == c.hash && same(other, key) && edges_of(*other.node) == c.edges)
        return other.node;
    }
  }

  Graph& graph_;
  std::vector<Node*> into_;                     // by id: the twin that a node gives way to
  std::vector<Key> keys_;                       // of those that stay
  std::unordered_set<std::string_view> named_;  // nodes that others must run beside
  std::vector<Seen> seen_;                      // by hash, at most half full
  int writes_ = 0;                              // before the node whose turn it is
};

}  // namespace

int merge_common_subexpressions(Graph& graph, std::span<Node* const> keep) {
  return Merger(graph).run(keep);
}

}  // namespace treenail
