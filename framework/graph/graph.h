// SPDX-License-Identifier: Apache-2.0
// The dataflow graph: nodes in creation order, each an op instance on outputs of earlier nodes.
// This is the truth; Python's Operation and Tensor are views. A session works on a private copy
// (add_copy), so that passes may rewrite freely. Files: serialize.h; gradients: gradients.h; what a
// function body is: function.h. Thread-safety: readers hold lock_shared(), a writer lock(); Session
// and the Python module do so.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/fork.h"
#include "framework/base/function_ref.h"
#include "framework/base/small_vector.h"
#include "framework/graph/name_table.h"
#include "framework/op/op_cache.h"
#include "framework/op/op_def.h"
#include "framework/op/shape_context.h"

namespace treenail {

class Graph;
class Node;

// One output of a node.
struct Output {
  Node* node = nullptr;
  int index = 0;
  friend bool operator==(const Output&, const Output&) = default;
};
// "h1/MatMul:0"
std::string to_text(const Output& output);
// Whether a node of its graph takes it.
bool is_read(const Output& output);

// Where a node was created, as interned (code object, instruction offset) pairs, innermost first;
// the language binding that records them also turns them into text (set_creation_stack_formatter).
struct CreationFrame {
  const void* code = nullptr;
  int32_t instruction = 0;
  friend bool operator==(const CreationFrame&, const CreationFrame&) = default;
};
using CreationStack = std::vector<CreationFrame>;
inline constexpr int kMaxCreationFrames = 16;
using CreationStackFormatter = std::string (*)(std::span<const CreationFrame>);
void set_creation_stack_formatter(CreationStackFormatter formatter);
// "" when there is no formatter or no frame.
std::string creation_text(const Node& node);

// Where a node asks to run.
struct NodeSite {
  std::string device;
  // Names of the nodes that it must run beside, sorted. One that is not there (a pruned one) still
  // holds together all those that name it.
  std::vector<std::string> colocated;
  friend auto operator<=>(const NodeSite&, const NodeSite&) = default;
};

class alignas(64) Node {
 public:
  int id() const { return id_; }  // position in creation order, unique in its graph
  const std::string& name() const { return name_; }
  const OpInstance& op() const { return op_; }
  const std::string& type() const { return op_.name(); }
  std::span<const Output> inputs() const { return {inputs_.data(), inputs_.size()}; }
  const Output& input(int i) const { return inputs_[i]; }
  std::span<Node* const> control_inputs() const {
    return {control_inputs_.data(), control_inputs_.size()};
  }
  const std::string& device() const { return site_->device; }
  std::span<const std::string> colocated_with() const { return site_->colocated; }
  int num_outputs() const { return op_.num_outputs(); }
  const ValueInfo& info(int output) const { return infos_[static_cast<size_t>(output)]; }
  // Nodes that take one of the outputs or a control edge, once per edge.
  std::span<Node* const> consumers() const { return {consumers_.data(), consumers_.size()}; }
  const std::shared_ptr<const CreationStack>& creation() const { return creation_; }
  // In a private copy: the node of the user's graph (or of the file) this one stands for; random
  // counters and errors use its name. In a user's graph: its own name and id.
  const std::string& original_name() const {
    return original_name_ == nullptr ? name_ : *original_name_;
  }
  int original_id() const { return original_id_; }
  Graph& graph() const { return *graph_; }

 private:
  friend class Graph;
  // A cache line of what most walks look at, one of what others need, one for errors and files.
  int id_ = 0;
  int original_id_ = -1;
  OpInstance op_;
  SmallVector<Output, 2> inputs_;

  // By output. Nodes of which the same is known share it, until one learns more.
  std::shared_ptr<const ValueInfo[]> infos_;
  SmallVector<Node*, 1> control_inputs_;
  SmallVector<Node*, 2> consumers_;
  const NodeSite* site_ = nullptr;  // the graph's

  std::string name_;
  std::unique_ptr<const std::string> original_name_;  // where it is another than name_
  Graph* graph_ = nullptr;
  std::shared_ptr<const CreationStack> creation_;
};

struct NodeSpec {
  std::string_view op;
  std::string_view name;  // wanted name; made unique ("x", "x_1"); empty: the op's name
  std::span<const Output> inputs;
  std::span<const NamedAttr> attrs;
  std::span<const int> arg_sizes = {};  // as in resolve_op
  std::span<Node* const> control_inputs = {};
  std::string_view device = {};
  std::shared_ptr<const CreationStack> creation = nullptr;
  bool name_reserved =
      false;  // unique_name gave `name` for this node: it is taken as it is unless a node has it
  std::span<const std::string> colocated = {};  // names of nodes that it must run beside
};

struct Function;  // function.h

class Graph {
 public:
  // A private copy for passes needs no names of its own: find() finds nothing there, and nodes may
  // share a name.
  enum class Names : uint8_t { kUnique, kAny };
  explicit Graph(Names names = Names::kUnique);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Resolves the op, infers shapes and adds the node; nothing changes when it throws. Errors:
  // NotFound (op), InvalidArgument (types, attributes, shapes, an input of another graph, a bad
  // name), all beginning
  // `[MatMul node "h1/MatMul"] `.
  Node& add(const NodeSpec& spec);

  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  // Nodes in creation order; a removed node's place is null.
  Node* node(int id) const { return nodes_[static_cast<size_t>(id)]; }
  Node* find(std::string_view name) const;  // nullptr when absent
  // "name:0" or "name" (output 0). Errors: NotFound naming near ones, InvalidArgument for a
  // malformed name or index.
  Output find_output(std::string_view name) const;
  // `wanted`, or wanted_1, wanted_2, ... (case-insensitive as in TensorFlow 1); marks it used when
  // `mark`.
  std::string unique_name(std::string_view wanted, bool mark = true);

  // Changes of existing nodes: each moves the epoch, which makes sessions compile anew.
  void add_control_input(Node& node,
                         Node& before);  // Errors: InvalidArgument when it would make a cycle
  void set_device(Node& node, std::string_view device);
  // Names of the nodes that it must run beside, in any order.
  void set_colocated(Node& node, std::span<const std::string> names);
  void set_input(Node& node, int i,
                 Output value);  // same dtype; Errors: InvalidArgument (dtype, shape, cycle)
  void set_shape(Output output,
                 const PartialShape& shape);  // merges what is known; Errors: InvalidArgument
  // What the resource value refers to.
  void set_handle(Output output, const HandleInfo& handle);
  // Gives the node another value of an attribute that its inputs do not decide; of its own outputs
  // what is known is inferred anew, nodes behind it keep what they know. Errors: InvalidArgument.
  void set_attr(Node& node, std::string_view name, AttrValue value);
  // Gives the node further inputs, of its last argument, and other values of attributes, which add
  // outputs to it: those that there are stay what they are, so what was made of the node stays
  // good, and the epoch does not move. The caller knows that there is no cycle. Errors:
  // InvalidArgument.
  void grow(Node& node, std::span<const Output> inputs, const NamedAttrs& attrs);
  int64_t epoch() const { return epoch_.load(std::memory_order_acquire); }
  // Bumped by every change, additions included.
  int64_t version() const { return version_; }

  // After this, add() and changes throw FailedPrecondition "the graph is finalized".
  void finalize() { finalized_ = true; }
  // Takes that back: for who finalized a graph of somebody else's for a while.
  void unfinalize() { finalized_ = false; }
  bool finalized() const { return finalized_; }

  // Graph-level random seed; none when has_seed is false.
  bool has_seed = false;
  int64_t seed = 0;

  std::map<std::string, std::shared_ptr<const Function>, std::less<>>& functions() {
    return functions_;
  }
  const std::map<std::string, std::shared_ptr<const Function>, std::less<>>& functions() const {
    return functions_;
  }

  // --- For passes on private copies
  // -------------------------------------------------------------------------------
  void replace_uses(Output old_value, Output new_value);  // in all consumers' data inputs
  // In one pass over the graph, each data input becomes what `source` says of it: a value of its
  // dtype in this graph; the caller knows that there is no cycle.
  void rewire(FunctionRef<Output(const Node& consumer, int input)> source);
  void move_control_uses(Node& from, Node& to);  // control edges out of `from` now leave `to`
  // By id, what a node gives way to, or null: uses of it become uses of that, and it goes. In one
  // pass, for edges taken one by one out of a node with n consumers cost n² steps.
  void merge(std::span<Node* const> into);
  void remove_unless(const std::vector<bool>& needed);  // by id; what these need is needed
  void add_control_edge_unchecked(Node& node,
                                  Node& before);  // the caller knows that there is no cycle
  // Adds a copy of `node` (of another graph) on the given inputs; keeps name, site, creation,
  // original name and id, and what is known of its values, unless something else is known of an
  // input (a constant that is fed is none): then shapes are inferred anew.
  Node& add_copy(const Node& node, std::span<const Output> inputs,
                 std::span<Node* const> control_inputs);
  // A node of this graph that carries another's identity (fused, folded): original name, id and
  // creation.
  void set_origin(Node& node, const Node& origin);
  // A node of a function's body that stands in the place of `call` has the call's place in the
  // order, and goes by `name`.
  void set_place(Node& node, const Node& call, const std::string& name);

  ForkSharedMutex& mutex() const { return mutex_; }

 private:
  Node& insert(Node made);
  void find_consumers();
  // What is known of the node's values, to be filled in: of its own, whoever shared it.
  static std::span<ValueInfo> new_infos(Node& node);
  static ValueInfo& own_info(Output output);
  static std::span<ValueInfo> new_infos_like(Node& node);
  static void set_infos(Node& node, std::span<ValueInfo> found);
  static void infer_anew(Node& node);
  static bool same_knowledge(std::span<const Output> a, std::span<const Output> b);
  static OpInstance with_attrs(const Node& node, const NamedAttrs& changed,
                               std::span<const Output> more_inputs = {});
  const NodeSite* site_of(std::string_view device, std::span<const std::string> colocated);
  static void set_original_name(Node& node, const std::string& name);
  void check_not_finalized() const;
  const Names names_;
  mutable ForkSharedMutex mutex_;
  // One after the other, as they are walked: beyond the caches a walk takes as long as what it
  // misses. Blocks never grow beyond what they have reserved, so that nodes stay where they are.
  std::vector<std::vector<Node>> blocks_;
  std::vector<Node*> nodes_;  // by id; null: removed
  NameTable used_names_;
  std::set<NodeSite> sites_;             // of the nodes
  const NodeSite* last_site_ = nullptr;  // asked for last, and most likely next
  OpCache ops_;
  std::map<std::string, std::shared_ptr<const Function>, std::less<>> functions_;
  std::atomic<int64_t> epoch_{0};  // read by running sessions without the lock
  int64_t version_ = 0;
  bool finalized_ = false;
};

// Whether it has nodes that may not be left out, repeated or merged.
bool is_stateful(const Graph& graph);
// Whether the op has state or effects. A placeholder, which is declared stateful lest it be folded
// or merged, is fed and has none.
bool has_state(const OpInstance& op);

// Nodes of `graph` so that inputs and control inputs come first; among nodes that are free, the
// lowest original id first, those that are `urgent` (by node id) before the others. Requires an
// acyclic graph (always true for graphs built by add()); Errors: InvalidArgument naming a node on a
// cycle.
std::vector<Node*> topological_order(const Graph& graph, const std::vector<bool>& urgent = {});

// "[MatMul node \"h1/MatMul\"] "
std::string error_prefix(std::string_view op, std::string_view node);

}  // namespace treenail
