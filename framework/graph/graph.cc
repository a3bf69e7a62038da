// SPDX-License-Identifier: Apache-2.0
// Adding, finding and changing nodes. The invariant: inputs_ and control_inputs_ of a node and
// consumers_ of their sources always tell the same edges, once per edge; in a graph built by add()
// every edge leads from a lower id to a higher one unless add_control_input or set_input made
// another (and proved that no cycle arises).
#include "framework/graph/graph.h"

#include <algorithm>
#include <atomic>
#include <unordered_set>
#include <utility>

#include "framework/base/error.h"
#include "framework/graph/function.h"
#include "framework/op/op_registry.h"

namespace treenail {
namespace {

std::atomic<CreationStackFormatter> creation_formatter{nullptr};

bool valid_name(std::string_view name) {
  const auto letter_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (name.empty() || !(letter_or_digit(name[0]) || name[0] == '.' || name[0] == '_')) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return letter_or_digit(c) || c == '.' || c == '_' || c == '-' || c == '/' || c == '\\' ||
           c == '>';
  });
}

void erase_one(SmallVector<Node*, 2>& nodes, Node* node) {
  const auto it = std::find(nodes.begin(), nodes.end(), node);
  if (it == nodes.end()) throw internal_error("an edge of \"", node->name(), "\" has one end");
  std::copy(it + 1, nodes.end(), it);
  nodes.resize(nodes.size() - 1);
}

// Whether `to` can be reached from `from` along edges. Iterative.
bool reaches(const Node& from, const Node& to, int num_nodes) {
  std::vector<bool> seen(static_cast<size_t>(num_nodes));
  std::vector<const Node*> stack{&from};
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (node == &to) return true;
    if (seen[static_cast<size_t>(node->id())]) continue;
    seen[static_cast<size_t>(node->id())] = true;
    for (const Node* consumer : node->consumers()) stack.push_back(consumer);
  }
  return false;
}

bool knows_the_same(const ValueInfo& a, const ValueInfo& b) {
  return a.constant == b.constant && a.value == b.value && a.handle == b.handle &&
         a.shape == b.shape;
}

}  // namespace

bool has_state(const OpInstance& op) { return op.def().stateful && op.name() != "Placeholder"; }

bool is_stateful(const Graph& graph) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node* const node = graph.node(id);
    if (node != nullptr && has_state(node->op())) return true;
  }
  return false;
}

bool is_read(const Output& output) {
  return std::ranges::any_of(output.node->consumers(), [&](const Node* consumer) {
    return std::ranges::find(consumer->inputs(), output) != consumer->inputs().end();
  });
}

std::string to_text(const Output& output) {
  return output.node ? concat(output.node->name(), ":", output.index) : "(no value)";
}

void set_creation_stack_formatter(CreationStackFormatter formatter) {
  creation_formatter = formatter;
}

std::string creation_text(const Node& node) {
  const CreationStackFormatter formatter = creation_formatter;
  if (formatter == nullptr || !node.creation() || node.creation()->empty()) return {};
  return formatter(*node.creation());
}

std::string error_prefix(std::string_view op, std::string_view node) {
  if (node.empty()) return concat("[", op, "] ");
  return concat("[", op, " node \"", node, "\"] ");
}

Graph::Graph(Names names) : names_(names) {}
Graph::~Graph() = default;

std::span<ValueInfo> Graph::new_infos(Node& node) {
  const auto count = static_cast<size_t>(node.num_outputs());
  const std::shared_ptr<ValueInfo[]> infos(new ValueInfo[count]);
  node.infos_ = infos;
  return {infos.get(), count};
}

// Where the rule refuses what it is given nothing is known: it says so when shapes are certain.
void Graph::infer_anew(Node& node) {
  std::vector<const ValueInfo*> known;
  for (const Output& input : node.inputs_) known.push_back(&input.node->info(input.index));
  const std::span<ValueInfo> infos = new_infos(node);
  try {
    infer_shapes(node.op_, known, infos);
  } catch (const Error&) {
    for (size_t i = 0; i < infos.size(); ++i) {
      infos[i] = ValueInfo();
      infos[i].dtype = node.op_.output_type(static_cast<int>(i));
    }
  }
}

// Is of each value known what is known of its counterpart?
bool Graph::same_knowledge(std::span<const Output> a, std::span<const Output> b) {
  return std::ranges::equal(a, b, [](const Output& x, const Output& y) {
    const ValueInfo& known = x.node->info(x.index);
    const ValueInfo& other = y.node->info(y.index);
    return &known == &other || knows_the_same(known, other);
  });
}

// A value of which the same is known as of an input, as in a chain, shares what the input has.
void Graph::set_infos(Node& node, std::span<ValueInfo> found) {
  for (const Output& input : node.inputs_) {
    if (found.size() != 1 || input.node->num_outputs() != 1) continue;
    const ValueInfo& known = input.node->info(0);
    if (known.dtype == found[0].dtype && knows_the_same(known, found[0])) {
      node.infos_ = input.node->infos_;
      return;
    }
  }
  std::ranges::move(found, new_infos(node).begin());
}

const NodeSite* Graph::site_of(std::string_view device, std::span<const std::string> colocated) {
  if (last_site_ != nullptr && last_site_->device == device &&
      std::ranges::equal(last_site_->colocated, colocated))
    return last_site_;
  NodeSite site{std::string(device), {colocated.begin(), colocated.end()}};
  std::ranges::sort(site.colocated);
  site.colocated.erase(std::unique(site.colocated.begin(), site.colocated.end()),
                       site.colocated.end());
  last_site_ = &*sites_.insert(std::move(site)).first;
  return last_site_;
}

void Graph::set_original_name(Node& node, const std::string& name) {
  node.original_name_ = name == node.name_ ? nullptr : std::make_unique<const std::string>(name);
}

void Graph::check_not_finalized() const {
  if (finalized_) throw failed_precondition("the graph is finalized: it can no longer be changed");
}

Node& Graph::add(const NodeSpec& spec) {
  check_not_finalized();
  const OpDef& def = OpRegistry::instance().get(spec.op);
  const std::string_view wanted = spec.name.empty() ? spec.op : spec.name;
  if (!valid_name(wanted)) {
    throw invalid_argument(
        error_prefix(spec.op, wanted),
        "not a valid node name: needed are letters, digits and . _ - / \\ >, beginning with a "
        "letter, a digit, . or _");
  }
  Node node;
  try {
    std::vector<DType> types;
    std::vector<const ValueInfo*> infos;
    types.reserve(spec.inputs.size());
    infos.reserve(spec.inputs.size());
    for (size_t i = 0; i < spec.inputs.size(); ++i) {
      const Output& input = spec.inputs[i];
      if (input.node == nullptr || input.node->graph_ != this) {
        throw invalid_argument("input ", i, " (", input, ") is not a value of this graph");
      }
      if (input.index < 0 || input.index >= input.node->num_outputs()) {
        throw invalid_argument("input ", i, " is ", input, ", but that node has ",
                               input.node->num_outputs(), " outputs");
      }
      types.push_back(input.node->op().output_type(input.index));
      infos.push_back(&input.node->info(input.index));
    }
    for (const Node* before : spec.control_inputs) {
      if (before == nullptr || before->graph_ != this) {
        throw invalid_argument("a control input is not a node of this graph");
      }
    }
    node.op_ = ops_.resolve(def, types, spec.attrs, spec.arg_sizes);
    node.inputs_.assign(spec.inputs);
    std::vector<ValueInfo> found(static_cast<size_t>(node.num_outputs()));
    infer_shapes(node.op_, infos, found);
    set_infos(node, found);
  } catch (const Error& error) {
    throw error.with_prefix(error_prefix(spec.op, wanted));
  }
  std::unordered_set<const Node*> waits;
  for (Node* before : spec.control_inputs) {
    if (waits.insert(before).second) node.control_inputs_.push_back(before);
  }
  if (names_ == Names::kAny) {
    node.name_ = wanted;
  } else if (spec.name_reserved && find(wanted) == nullptr) {
    node.name_ = wanted;
  } else {
    node.name_ = unique_name(wanted);
  }
  node.site_ = site_of(spec.device, spec.colocated);
  node.creation_ = spec.creation;
  return insert(std::move(node));
}

Node& Graph::insert(Node made) {
  constexpr size_t kBlock = 32;
  if (blocks_.empty() || blocks_.back().size() == kBlock) blocks_.emplace_back().reserve(kBlock);
  Node& node = blocks_.back().emplace_back(std::move(made));
  node.graph_ = this;
  node.id_ = num_nodes();
  if (node.original_id_ < 0) node.original_id_ = node.id_;
  for (const Output& input : node.inputs_) input.node->consumers_.push_back(&node);
  for (Node* before : node.control_inputs_) before->consumers_.push_back(&node);
  if (names_ == Names::kUnique) {
    const uint64_t key = NameTable::key(node.name_);
    NameTable::Entry* const used = used_names_.find(key);
    if (used != nullptr && used->node == NameTable::kNobody) {
      used->node = node.id_;
    } else {
      used_names_.add(key, node.id_);
    }
  }
  ++version_;
  nodes_.push_back(&node);
  return node;
}

Node* Graph::find(std::string_view name) const {
  const auto* const found =
      used_names_.find_if(NameTable::key(name), [&](const NameTable::Entry& entry) {
        return entry.node != NameTable::kNobody && node(entry.node) != nullptr &&
               node(entry.node)->name() == name;
      });
  return found == nullptr ? nullptr : node(found->node);
}

Output Graph::find_output(std::string_view name) const {
  std::string_view node_name = name;
  int index = 0;
  if (const size_t colon = name.rfind(':'); colon != std::string_view::npos) {
    node_name = name.substr(0, colon);
    const std::string_view digits = name.substr(colon + 1);
    const bool number =
        !digits.empty() && digits.size() <= 6 &&
        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!number)
      throw invalid_argument("\"", name,
                             "\" is not the name of a value: needed is \"node:output number\"");
    index = std::stoi(std::string(digits));
  }
  Node* node = find(node_name);
  if (node == nullptr) {
    throw not_found("the graph has no node \"", node_name, "\" (looked up as the value \"", name,
                    "\"); it has ", num_nodes(), " nodes");
  }
  if (index >= node->num_outputs()) {
    throw invalid_argument("\"", name, "\": node \"", node_name, "\" (", node->type(), ") has ",
                           node->num_outputs(), " outputs");
  }
  return {node, index};
}

std::string Graph::unique_name(std::string_view wanted, bool mark) {
  const uint64_t key = NameTable::key(wanted);
  NameTable::Entry* const used = used_names_.find(key);
  if (used == nullptr) {
    if (mark) used_names_.add(key);
    return std::string(wanted);
  }
  for (;; ++used->suffix) {  // names are never given back: the next search begins where this ends
    std::string candidate = concat(wanted, "_", used->suffix);
    const uint64_t candidate_key = NameTable::key(candidate);
    if (used_names_.find(candidate_key) != nullptr) continue;
    if (mark) {
      ++used->suffix;
      used_names_.add(candidate_key);
    }
    return candidate;
  }
}

void Graph::add_control_input(Node& node, Node& before) {
  check_not_finalized();
  if (node.graph_ != this || before.graph_ != this) {
    throw invalid_argument(error_prefix(node.type(), node.name()),
                           "a control input must be a node of the same graph");
  }
  if (std::find(node.control_inputs_.begin(), node.control_inputs_.end(), &before) !=
      node.control_inputs_.end())
    return;
  if (reaches(node, before, num_nodes())) {
    throw invalid_argument(error_prefix(node.type(), node.name()), "control input \"",
                           before.name(), "\" depends on this node: the graph would have a cycle");
  }
  add_control_edge_unchecked(node, before);
  ++epoch_;
}

void Graph::add_control_edge_unchecked(Node& node, Node& before) {
  if (std::find(node.control_inputs_.begin(), node.control_inputs_.end(), &before) !=
      node.control_inputs_.end())
    return;
  node.control_inputs_.push_back(&before);
  before.consumers_.push_back(&node);
  ++version_;
}

void Graph::set_device(Node& node, std::string_view device) {
  check_not_finalized();
  node.site_ = site_of(device, node.colocated_with());
  ++epoch_;
  ++version_;
}

void Graph::set_colocated(Node& node, std::span<const std::string> names) {
  check_not_finalized();
  node.site_ = site_of(node.device(), names);
  ++epoch_;
  ++version_;
}

void Graph::set_input(Node& node, int i, Output value) {
  check_not_finalized();
  const std::string prefix = error_prefix(node.type(), node.name());
  if (i < 0 || i >= node.op_.num_inputs()) {
    throw invalid_argument(prefix, "has ", node.op_.num_inputs(), " inputs, asked to change input ",
                           i);
  }
  if (value.node == nullptr || value.node->graph_ != this) {
    throw invalid_argument(prefix, "the new input ", value, " is not a value of this graph");
  }
  const Output old = node.inputs_[static_cast<size_t>(i)];
  const DType wanted = node.op_.input_type(i);
  if (value.node->op_.output_type(value.index) != wanted) {
    throw invalid_argument(prefix, "input ", node.op_.input_name(i), " is ", wanted,
                           ", the new input ", value, " is ",
                           value.node->op_.output_type(value.index));
  }
  if (!value.node->info(value.index).shape.compatible(old.node->info(old.index).shape)) {
    throw invalid_argument(prefix, "input ", node.op_.input_name(i), " has shape ",
                           old.node->info(old.index).shape, ", the new input ", value, " has ",
                           value.node->info(value.index).shape);
  }
  if (reaches(node, *value.node, num_nodes())) {
    throw invalid_argument(prefix, "the new input ", value,
                           " depends on this node: the graph would have a cycle");
  }
  erase_one(old.node->consumers_, &node);
  node.inputs_[static_cast<size_t>(i)] = value;
  value.node->consumers_.push_back(&node);
  ++epoch_;
  ++version_;
}

// Errors: as resolve_op(), naming the node.
OpInstance Graph::with_attrs(const Node& node, const NamedAttrs& changed,
                             std::span<const Output> more_inputs) {
  const OpInstance& op = node.op();
  const OpDef& def = op.def();
  try {
    NamedAttrs attrs;
    for (size_t i = 0; i < def.attrs.size(); ++i)
      attrs.emplace_back(def.attrs[i].name, op.attrs()[i]);
    for (const auto& [name, value] : changed) {
      const int position = def.attr_index(name);
      if (position < 0) throw invalid_argument("the op has no attribute ", name);
      attrs[static_cast<size_t>(position)].second = value;
    }
    std::vector<int> sizes;
    for (size_t i = 0; i < def.inputs.size(); ++i) {
      const auto [begin, end] = op.input_range(static_cast<int>(i));
      sizes.push_back(end - begin);
    }
    std::vector<DType> types(op.input_types().begin(), op.input_types().end());
    for (const Output& input : more_inputs)
      types.push_back(input.node->op().output_type(input.index));
    if (!sizes.empty()) sizes.back() += static_cast<int>(more_inputs.size());
    return resolve_op(def, types, attrs, sizes);
  } catch (const Error& error) {
    throw error.with_prefix(error_prefix(node.type(), node.name()));
  }
}

void Graph::set_attr(Node& node, std::string_view name, AttrValue value) {
  check_not_finalized();
  node.op_ = with_attrs(node, {{std::string(name), std::move(value)}});
  infer_anew(node);
  ++epoch_;
  ++version_;
}

void Graph::grow(Node& node, std::span<const Output> inputs, const NamedAttrs& attrs) {
  check_not_finalized();
  const auto count = static_cast<size_t>(node.num_outputs());
  const std::shared_ptr<const ValueInfo[]> old = node.infos_;
  node.op_ = with_attrs(node, attrs, inputs);
  for (const Output& input : inputs) {
    node.inputs_.push_back(input);
    input.node->consumers_.push_back(&node);
  }
  infer_anew(node);
  std::copy_n(old.get(), count, new_infos_like(node).begin());
  ++version_;
}

void Graph::set_shape(Output output, const PartialShape& shape) {
  Node& node = *output.node;
  try {
    const PartialShape& known = node.info(output.index).shape;
    const PartialShape merged = ShapeContext::merge(known, shape, "known and given shape");
    if (merged == known) return;
    own_info(output).shape = merged;
  } catch (const Error& error) {
    throw error.with_prefix(error_prefix(output.node->type(), output.node->name()));
  }
  ++epoch_;
  ++version_;
}

void Graph::set_handle(Output output, const HandleInfo& handle) {
  own_info(output).handle = std::make_shared<const HandleInfo>(handle);
  ++epoch_;
  ++version_;
}

// Which its node alone has from now on.
ValueInfo& Graph::own_info(Output output) {
  return new_infos_like(*output.node)[static_cast<size_t>(output.index)];
}

// Of the node alone, with what is known now.
std::span<ValueInfo> Graph::new_infos_like(Node& node) {
  const std::shared_ptr<const ValueInfo[]> old = node.infos_;
  const std::span<ValueInfo> infos = new_infos(node);
  std::copy_n(old.get(), infos.size(), infos.begin());
  return infos;
}

}  // namespace treenail
