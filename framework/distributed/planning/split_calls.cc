// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/planning/split_calls.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "framework/base/error.h"
#include "framework/graph/function_calls.h"
#include "framework/placement/placer.h"
#include "framework/runtime/plan/cost_placement.h"
#include "framework/runtime/plan/graph_copier.h"

namespace treenail {
namespace {

// Each is some frames of this thread's stack.
constexpr size_t kDeepestCut = 100;

bool is_loop(const Node& node) { return node.type() == "While" || node.type() == "StatelessWhile"; }

std::vector<bool> or_read(std::vector<bool> a, const std::vector<bool>& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) a[i] = a[i] || b[i];
  return a;
}

// Whether a list or another value that stays where it is goes in or out.
bool holds_together(const Node& node) {
  const auto stays = [](DType type) {
    return !is_plain(type) && type != DType::kString && type != DType::kResource;
  };
  return std::ranges::any_of(node.op().input_types(), stays) ||
         std::ranges::any_of(node.op().output_types(), stays);
}

NamedAttrs attrs_of(const OpInstance& op) {
  NamedAttrs attrs;
  for (size_t i = 0; i < op.attrs().size(); ++i)
    attrs.emplace_back(op.def().attrs[i].name, op.attrs()[i]);
  return attrs;
}

}  // namespace

// A node that calls functions, and what it hands them.
struct CallSplitter::Site {
  const Node& node;
  int32_t caller;                      // the task that it runs on
  std::vector<StateSource> arguments;  // those that are handles
  std::vector<bool> remote;            // by argument, whether the state is another task's
  bool any_remote = false;
};

// A function's body as it is cut: a copy, in which calls have given way to what they call.
struct CallSplitter::Body {
  Graph graph{Graph::Names::kAny};
  std::vector<Node*> args;                               // by argument; null where nothing needs it
  std::unordered_map<const Node*, StateSource> handles;  // those of them whose state is known
  std::vector<Output> values;                            // the results that are wanted
  std::vector<int> results;  // by result, the number of the value; -1: it is not wanted
};

void CallSplitter::split(PlacedGraph& whole) { split_calls(whole, "", true); }

void CallSplitter::split_calls(PlacedGraph& placed, const std::string& path, bool whole) {
  const std::unordered_set<const Node*> awaited = placed.awaited();
  const int nodes = placed.graph.num_nodes();
  order_state_accesses(placed, awaited, whole);
  std::vector<bool> stays(static_cast<size_t>(placed.graph.num_nodes()), true);
  bool any = false;
  for (int id = 0; id < nodes; ++id) {
    Node* const node = placed.graph.node(id);
    if (node == nullptr || !calls_functions(node->op())) continue;
    if (!split_call(placed, awaited, *node, path)) continue;
    stays[static_cast<size_t>(id)] = false;
    any = true;
  }
  if (!any) return;
  stays.resize(static_cast<size_t>(placed.graph.num_nodes()), true);
  placed.graph.remove_unless(stays);
}

// Whether another node has taken its place.
bool CallSplitter::split_call(PlacedGraph& placed, const std::unordered_set<const Node*>& awaited,
                              Node& node, const std::string& path) {
  const OpInstance& op = node.op();
  const int first = first_argument(op);
  Site site{node, placed.part_of(node), {}, {}};
  for (int i = first; i < op.num_inputs(); ++i) {
    const StateSource& source = site.arguments.emplace_back(placed.source_of(node.input(i)));
    site.remote.push_back(source.maker != nullptr && source.part != site.caller);
    site.any_remote = site.any_remote || site.remote.back();
  }
  const std::vector<bool> wanted = wanted_of(placed, awaited, node);
  const std::string at = path + node.original_name() + "/";
  NamedAttrs attrs = attrs_of(op);
  bool changed = false;
  const auto change = [&](FunctionAttr& called, const std::string& role) {
    const std::vector<bool> results = role == "cond" ? std::vector<bool>{true} : wanted;
    std::string made =
        function_for(site, called.name, results, role.empty() ? at : concat(at, role, "/"));
    changed = changed || made != called.name;
    called.name = std::move(made);
  };
  for (auto& [name, value] : attrs) {
    if (value.kind() == AttrKind::kFunction) {
      auto called = value.get<FunctionAttr>();
      change(called, op.def().name.ends_with("PartitionedCall") ? "" : name);
      value = AttrValue(called);
    } else if (value.kind() == AttrKind::kFunctionList) {
      auto all = value.get<std::vector<FunctionAttr>>();
      for (size_t i = 0; i < all.size(); ++i) change(all[i], concat(name, "/", i));
      value = AttrValue(all);
    }
  }
  if (changed) replace(placed, node, site, std::move(attrs));
  return changed;
}

// Of a loop, what its kernel computes: what is read afterwards, or in an iteration.
std::vector<bool> CallSplitter::wanted_of(const PlacedGraph& placed,
                                          const std::unordered_set<const Node*>& awaited,
                                          const Node& node) const {
  std::vector<bool> wanted;
  for (int i = 0; i < node.num_outputs(); ++i)
    wanted.push_back(placed.is_wanted({const_cast<Node*>(&node), i}, awaited));
  if (!is_loop(node)) return wanted;
  wanted = or_read(std::move(wanted),
                   facts_.arguments_read(node.op().get<FunctionAttr>("cond"), {true}));
  for (;;) {
    std::vector<bool> more =
        or_read(wanted, facts_.arguments_read(node.op().get<FunctionAttr>("body"), wanted));
    if (more == wanted) return wanted;
    wanted = std::move(more);
  }
}

void CallSplitter::replace(PlacedGraph& placed, Node& node, const Site& site, NamedAttrs attrs) {
  Graph& graph = placed.graph;
  const OpInstance& op = node.op();
  const int first = first_argument(op);
  const auto place = placed.places[static_cast<size_t>(node.id())];
  std::vector<Output> inputs(node.inputs().begin(), node.inputs().end());
  const std::string& list =
      op.def().attrs[static_cast<size_t>(op.def().inputs.back().type_list_attr)].name;
  auto& types = std::ranges::find(attrs, list, &NamedAttr::first)->second;
  auto taken = types.get<std::vector<DType>>();
  for (size_t i = 0; i < site.remote.size(); ++i) {
    if (!site.remote[i]) continue;
    taken[i] = DType::kBool;
    const NamedAttrs sign = {{"value", Tensor::scalar(true)}, {"dtype", DType::kBool}};
    Node& stand_in = graph.add({.op = "Const",
                                .name = concat(node.original_name(), "/_elsewhere"),
                                .inputs = {},
                                .attrs = sign});
    placed.set_part(stand_in, place, site.caller);
    inputs[i + static_cast<size_t>(first)] = {&stand_in, 0};
  }
  types = AttrValue(taken);
  std::vector<int> sizes;
  for (size_t arg = 0; arg < op.def().inputs.size(); ++arg) {
    const auto [begin, end] = op.input_range(static_cast<int>(arg));
    sizes.push_back(end - begin);
  }
  Node& made = graph.add({.op = node.type(),
                          .name = node.name(),
                          .inputs = inputs,
                          .attrs = attrs,
                          .arg_sizes = sizes,
                          .control_inputs = node.control_inputs(),
                          .device = node.device(),
                          .creation = node.creation(),
                          .colocated = node.colocated_with()});
  graph.set_origin(made, node);
  placed.set_part(made, place, site.caller);
  for (int i = 0; i < node.num_outputs(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (is_loop(node) && site.remote[at]) {  // it goes around as it is
      graph.replace_uses({&node, i}, node.input(i));
      continue;
    }
    if (node.info(i).shape.rank_known()) graph.set_shape({&made, i}, node.info(i).shape);
    graph.replace_uses({&node, i}, {&made, i});
  }
  graph.move_control_uses(node, made);
  for (Output& fetch : placed.fetches) {
    if (fetch.node != &node) continue;
    const bool around = is_loop(node) && site.remote[static_cast<size_t>(fetch.index)];
    fetch = around ? node.input(fetch.index) : Output{&made, fetch.index};
  }
  std::ranges::replace(placed.targets, &node, &made);
}

std::string CallSplitter::function_for(const Site& site, const std::string& name,
                                       const std::vector<bool>& wanted, const std::string& path) {
  const Function& function = facts_.function(name);
  if (!site.any_remote && !asks_for_devices(function)) return name;
  if (function.inputs.size() != site.arguments.size() || function.outputs.size() != wanted.size())
    return name;  // the task says so
  const bool again = std::ranges::find(within_, &function) != within_.end();
  if (again || within_.size() == kDeepestCut) {
    throw unimplemented(error_prefix(site.node.type(), site.node.original_name()), "function \"",
                        name, "\" ",
                        again ? "calls itself" : concat("is called at a depth of ", kDeepestCut),
                        ", and has nodes on several tasks: place all of them on one");
  }
  within_.push_back(&function);
  std::string made = cut(site, function, wanted, path);
  within_.pop_back();
  return made;
}

std::string CallSplitter::cut(const Site& site, const Function& function,
                              const std::vector<bool>& wanted, const std::string& path) {
  Body body;
  copy_body(site, function, wanted, body);
  PlacedGraph graph = placed(site, body);
  drop_vain_requests(graph);
  keep_lists(graph, site.caller);
  const size_t functions = library_.functions().size();
  split_calls(graph, path, false);
  const bool whole = functions == library_.functions().size() && !has_others(graph, site.caller);
  if (whole && !site.any_remote) return function.name;
  nodes_ += graph.graph.num_nodes();
  if (nodes_ > tasks_.most_nodes) {
    throw error_of(Code::kResourceExhausted,
                   {"functions that lie across tasks have more than ", tasks_.most_nodes,
                    " nodes at all the places that call them (--max-nodes)"});
  }
  std::string name = concat(function.name, ";", library_.functions().size());
  const BodyToCut to_cut{graph,       library_,     site.caller, function,    body.args,
                         site.remote, body.results, path,        tasks_.names};
  library_.functions()[name] = cut_body(to_cut, name, give_);
  return name;
}

void CallSplitter::copy_body(const Site& site, const Function& function,
                             const std::vector<bool>& wanted, Body& body) const {
  std::vector<Output> feeds;
  for (const std::string& name : function.input_nodes)
    feeds.push_back(function.body->find_output(name));
  body.args.resize(feeds.size());
  const auto feed = [&](size_t i) {
    Node*& arg = body.args[i];
    if (arg != nullptr) return Output{arg, 0};
    const ValueInfo& info = feeds[i].node->info(feeds[i].index);
    const NamedAttrs attrs = {
        {"index", static_cast<int64_t>(i)}, {"T", info.dtype}, {"shape", info.shape}};
    arg = &body.graph.add(
        {.op = "_Arg", .name = feeds[i].node->name(), .inputs = {}, .attrs = attrs});
    body.graph.set_origin(*arg, *feeds[i].node);
    if (info.handle != nullptr) body.graph.set_handle({arg, 0}, *info.handle);
    if (site.arguments[i].maker != nullptr) body.handles[arg] = site.arguments[i];
    return Output{arg, 0};
  };
  GraphCopier::Calls calls{&facts_};
  GraphCopier copier(*function.body, feeds, body.graph, calls, feed);
  for (size_t i = 0; i < wanted.size(); ++i) {
    body.results.push_back(wanted[i] ? static_cast<int>(body.values.size()) : -1);
    if (!wanted[i]) continue;
    body.values.push_back(function.body->find_output(function.output_values[i]));
    copier.need(body.values.back());
  }
  copier.copy_needed();
  for (Output& value : body.values) value = copier.copy_of(value);
}

PlacedGraph CallSplitter::placed(const Site& site, Body& body) const {
  PlacedGraph made{body.graph,  facts_,      places_in(body.graph, site.caller, body.handles),
                   {},          body.values, {},
                   body.handles};
  for (const int32_t place : made.places)
    made.parts.push_back(tasks_.parts[static_cast<size_t>(place)]);
  for (const Node* arg : body.args)
    if (arg != nullptr) made.parts[static_cast<size_t>(arg->id())] = site.caller;
  return made;
}

// As the task that calls it would, whose devices come first.
std::vector<int32_t> CallSplitter::places_in(
    const Graph& body, int32_t caller,
    const std::unordered_map<const Node*, StateSource>& arguments) const {
  std::vector<size_t> order(tasks_.devices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return tasks_.parts[i] != caller; });
  std::vector<DeviceName> names;
  std::vector<int32_t> position(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    names.push_back(tasks_.devices[order[i]].name);
    position[order[i]] = static_cast<int32_t>(i);
  }
  const auto home = [&](const Node& node) {
    const auto found = arguments.find(&node);
    return found == arguments.end() ? kNoHome : position[static_cast<size_t>(found->second.place)];
  };
  std::vector<int32_t> places =
      place(body, placement_devices(names), tasks_.allow_soft_placement, has_kernel_on, home);
  for (int32_t& place : places) place = static_cast<int32_t>(order[static_cast<size_t>(place)]);
  return places;
}

// What works on state is where that is, whatever it asks for: its task is not to ask in vain.
void CallSplitter::drop_vain_requests(PlacedGraph& body) const {
  for (int id = 0; id < body.graph.num_nodes(); ++id) {
    Node* const node = body.graph.node(id);
    if (node == nullptr || node->device().empty()) continue;
    const auto place = static_cast<size_t>(body.places[static_cast<size_t>(id)]);
    if (!satisfies(tasks_.devices[place].name, parse_device_name(node->device())))
      body.graph.set_device(*node, "");
  }
}

// A list stays with the call whose values it is among, whatever its operations ask for.
void CallSplitter::keep_lists(PlacedGraph& body, int32_t caller) const {
  for (int id = 0; id < body.graph.num_nodes(); ++id) {
    Node* const node = body.graph.node(id);
    if (node == nullptr || body.part_of(*node) == caller || !holds_together(*node)) continue;
    const auto at = std::ranges::find(tasks_.parts, caller);
    body.set_part(*node, static_cast<int32_t>(at - tasks_.parts.begin()), caller);
    body.graph.set_device(*node, "");
    body.graph.set_colocated(*node, {});
  }
}

bool CallSplitter::asks_for_devices(const Function& function) {
  if (const auto known = asking_.find(&function); known != asking_.end()) return known->second;
  std::vector<const Function*> open{&function};
  std::unordered_set<const Function*> seen{&function};
  bool asks = false;
  while (!open.empty() && !asks) {
    const Graph& body = *open.back()->body;
    open.pop_back();
    for (int id = 0; id < body.num_nodes() && !asks; ++id) {
      const Node* const node = body.node(id);
      if (node == nullptr) continue;
      asks = !node->device().empty();
      for (const std::string& name : functions_called(node->op())) {
        const Function* const called = facts_.find(name);
        if (called != nullptr && seen.insert(called).second) open.push_back(called);
      }
    }
  }
  return asking_[&function] = asks;
}

bool CallSplitter::has_others(const PlacedGraph& body, int32_t caller) const {
  for (int id = 0; id < body.graph.num_nodes(); ++id) {
    const Node* const node = body.graph.node(id);
    if (node != nullptr && body.part_of(*node) != caller) return true;
  }
  return false;
}

}  // namespace treenail
