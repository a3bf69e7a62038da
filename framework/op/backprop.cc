// SPDX-License-Identifier: Apache-2.0
// Three passes over what ys need: order it (depth first, iterative), mark what depends on an x,
// then walk back, a node once all its consumers have been.
#include "framework/op/backprop.h"

#include <algorithm>
#include <memory>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/hash.h"

namespace treenail {
namespace {

struct ValueHash {
  size_t operator()(const Value& value) const {
    return hash_combine(static_cast<uint64_t>(value.id), static_cast<uint64_t>(value.output));
  }
};
using ValueSet = std::unordered_set<Value, ValueHash>;

struct NodeState {
  std::vector<Value> inputs;
  std::vector<std::vector<Gradient>> received;  // per output
  int64_t waits_for = 0;                        // edges to consumers still to be visited
  bool depends_on_x = false;
};

class Backprop {
 public:
  Backprop(DifferentiableProgram& program, const BackpropRequest& request)
      : p_(program),
        request_(request),
        xs_(request.xs.begin(), request.xs.end()),
        stops_(request.stop_gradients.begin(), request.stop_gradients.end()) {}

  std::vector<Gradient> run() {
    check_request();
    for (const Value& y : request_.ys) collect(y);
    mark();
    for (size_t i = 0; i < request_.ys.size(); ++i) receive(request_.ys[i], Gradient::of(seed(i)));
    walk();
    std::vector<Gradient> result;
    for (const Value& x : request_.xs)
      result.push_back(states_.contains(x.id) ? sum(x) : Gradient());
    return result;
  }

 private:
  void check_request() const;
  void collect(const Value& y);
  void mark();
  Value seed(size_t i);
  void walk();
  void visit(int64_t node);
  Gradient sum(const Value& value);
  Gradient summed(const std::vector<Gradient>& parts);
  Gradient concatenated(const std::vector<Gradient>& parts);
  void check_result(int64_t node, int input, const Gradient& gradient) const;

  NodeState& state(int64_t node) {
    NodeState& s = states_[node];
    if (s.received.empty()) s.received.resize(static_cast<size_t>(p_.op(node).num_outputs()));
    return s;
  }
  void receive(const Value& value, const Gradient& gradient) {
    state(value.id).received[static_cast<size_t>(value.output)].push_back(gradient);
  }
  // Whether anything asks for the gradient of `value`.
  bool needed(const Value& value) const { return xs_.contains(value) || leads_on(value); }
  // Whether the walk goes on through `value`.
  bool leads_on(const Value& value) const {
    if (stops_.contains(value)) return false;
    const auto at = states_.find(value.id);
    return at != states_.end() && at->second.depends_on_x;
  }

  DifferentiableProgram& p_;
  const BackpropRequest& request_;
  ValueSet xs_;
  ValueSet stops_;
  std::unordered_map<int64_t, NodeState> states_;
  std::unordered_set<int64_t> collected_;
  std::vector<int64_t> order_;  // inputs first
};

// Whether a value of shape `from` may have to be repeated to fill `to`, and can be.
bool broadcasts_to(const PartialShape& from, const PartialShape& to) {
  if (!from.rank_known() || !to.rank_known()) return true;
  const int missing = to.rank() - from.rank();
  for (int i = 0; i < from.rank(); ++i) {
    if (missing < 0) return false;
    const int64_t a = from[i], b = to[missing + i];
    if (a != 1 && a != kUnknown && b != kUnknown && a != b) return false;
  }
  return true;
}

// Whether it must be repeated, as far as is known: shapes that only a run tells are taken to agree.
bool needs_broadcast(const PartialShape& from, const PartialShape& to) {
  if (!from.rank_known()) return false;
  if (from.rank() != to.rank()) return true;
  for (int i = 0; i < from.rank(); ++i) {
    if (from[i] == 1 && to[i] != 1) return true;
  }
  return false;
}

void Backprop::check_request() const {
  const Emitter& e = p_.emitter();
  if (!request_.grad_ys.empty() && request_.grad_ys.size() != request_.ys.size()) {
    throw invalid_argument("got ", request_.grad_ys.size(), " grad_ys for ", request_.ys.size(),
                           " ys");
  }
  for (size_t i = 0; i < request_.ys.size(); ++i) {
    const DType dtype = e.dtype(request_.ys[i]);
    const bool given = !request_.grad_ys.empty() && request_.grad_ys[i].valid();
    // The gradient of a list is a list.
    if (!carries_gradient(dtype) || (dtype == DType::kVariant && !given)) {
      throw invalid_argument(p_.error_prefix(request_.ys[i].id), "ys[", i, "] has dtype ", dtype,
                             "; gradients need a floating or complex dtype");
    }
    if (is_complex(dtype) && !given) {
      throw invalid_argument(p_.error_prefix(request_.ys[i].id), "ys[", i, "] has dtype ", dtype,
                             "; gradients of complex values need grad_ys");
    }
    if (!given) continue;
    const DType got = e.dtype(request_.grad_ys[i]);
    const PartialShape shape = e.shape(request_.grad_ys[i]);
    const PartialShape wanted = e.shape(request_.ys[i]);
    if (got != dtype || !broadcasts_to(shape, wanted)) {
      throw invalid_argument(p_.error_prefix(request_.ys[i].id), "grad_ys[", i, "] is ", got, shape,
                             ", ys[", i, "] is ", dtype, wanted, ": they must agree");
    }
  }
}

// Appends what `y` needs to order_, inputs before their consumers.
void Backprop::collect(const Value& y) {
  if (stops_.contains(y)) {
    state(y.id);  // its gradient may be asked for, nothing behind it
    return;
  }
  struct Entry {
    int64_t node;
    size_t next_input = 0;
  };
  std::vector<Entry> stack;
  const auto enter = [&](int64_t node) {
    if (!collected_.insert(node).second) return;
    p_.append_inputs(node, state(node).inputs);
    stack.push_back({node});
  };
  enter(y.id);
  while (!stack.empty()) {
    Entry& top = stack.back();
    const std::vector<Value>& inputs = states_.at(top.node).inputs;
    if (top.next_input == inputs.size()) {
      order_.push_back(top.node);
      stack.pop_back();
      continue;
    }
    const Value input = inputs[top.next_input++];
    if (!stops_.contains(input)) enter(input.id);
  }
}

void Backprop::mark() {
  for (int64_t node : order_) {
    NodeState& s = states_.at(node);
    s.depends_on_x =
        std::any_of(s.inputs.begin(), s.inputs.end(), [this](const Value& v) { return needed(v); });
  }
  for (int64_t node : order_) {
    const NodeState& s = states_.at(node);
    if (!s.depends_on_x) continue;
    for (const Value& input : s.inputs) {
      if (leads_on(input)) ++states_.at(input.id).waits_for;
    }
  }
}

Value Backprop::seed(size_t i) {
  const Value y = request_.ys[i];
  Emitter& e = p_.emitter();
  if (!request_.grad_ys.empty() && request_.grad_ys[i].valid()) {
    const Value given = request_.grad_ys[i];
    if (!needs_broadcast(e.shape(given), e.shape(y))) return given;
    p_.begin_sum(y.id);
    return e.call("BroadcastTo", {given, e.shape_of(y)});
  }
  p_.begin_sum(y.id);
  const Value one = e.const_scalar(e.dtype(y), 1);
  return e.shape(y) == PartialShape(Shape()) ? one : e.call("Fill", {e.shape_of(y), one});
}

void Backprop::walk() {
  std::priority_queue<int64_t> ready;
  for (int64_t node : order_) {
    const NodeState& s = states_.at(node);
    if (s.depends_on_x && s.waits_for == 0) ready.push(node);
  }
  while (!ready.empty()) {
    const int64_t node = ready.top();
    ready.pop();
    visit(node);
    for (const Value& input : std::vector<Value>(states_.at(node).inputs)) {
      if (leads_on(input) && --states_.at(input.id).waits_for == 0) ready.push(input.id);
    }
  }
}

void Backprop::visit(int64_t node) {
  const OpInstance op = p_.op(node);  // which may grow meanwhile, and may have since the walk began
  const size_t num_inputs = states_.at(node).inputs.size();
  const auto num_outputs = static_cast<int>(states_.at(node).received.size());
  std::vector<Value> outputs;
  std::vector<Gradient> output_gradients;
  for (int i = 0; i < num_outputs; ++i) {
    outputs.push_back({node, i});
    output_gradients.push_back(stops_.contains(outputs.back()) ? Gradient() : sum(outputs.back()));
  }
  const bool none = std::all_of(output_gradients.begin(), output_gradients.end(),
                                [](const Gradient& g) { return g.kind == Gradient::Kind::kNone; });
  if (none) return;
  const std::vector<Value> inputs = states_.at(node).inputs;
  const auto is_needed = std::make_unique<bool[]>(num_inputs);
  for (size_t i = 0; i < num_inputs; ++i) is_needed[i] = needed(inputs[i]);
  std::vector<Gradient> result(num_inputs);
  p_.begin_gradient(node);
  try {
    const std::span<const bool> asked(is_needed.get(), num_inputs);
    if (!p_.override_gradient(node, output_gradients, asked, result)) {
      if (op.def().non_differentiable) return;
      if (op.def().gradient_fn == nullptr)
        throw unimplemented("op \"", op.name(), "\" has no gradient");
      GradientContext context(op, p_.emitter(), inputs, outputs, output_gradients, asked, result);
      op.def().gradient_fn(context);
    }
    for (size_t i = 0; i < num_inputs; ++i) {
      if (is_needed[i]) check_result(node, static_cast<int>(i), result[i]);
    }
    p_.end_gradient(node, result);
  } catch (const Error& error) {
    throw error.with_prefix(p_.error_prefix(node) + "in its gradient: ");
  }
  for (size_t i = 0; i < num_inputs; ++i) {
    if (is_needed[i] && result[i].kind != Gradient::Kind::kNone) receive(inputs[i], result[i]);
  }
}

void Backprop::check_result(int64_t node, int input, const Gradient& gradient) const {
  if (gradient.kind == Gradient::Kind::kNone) return;
  const OpInstance& op = p_.op(node);
  const Emitter& e = p_.emitter();
  const DType wanted = op.input_type(input);
  const Value value = gradient.kind == Gradient::Kind::kDense ? gradient.dense : gradient.values;
  const DType got = e.dtype(value);
  const bool state = wanted == DType::kResource && (is_floating(got) || is_complex(got));
  if (!state && got != wanted) {
    throw internal_error("the gradient of input \"", op.input_name(input), "\" has dtype ", got,
                         ", the input has ", wanted);
  }
  if (state || gradient.kind != Gradient::Kind::kDense) return;
  const PartialShape shape = e.shape(states_.at(node).inputs[static_cast<size_t>(input)]);
  if (!shape.compatible(e.shape(value))) {
    throw internal_error("the gradient of input \"", op.input_name(input), "\" has shape ",
                         e.shape(value), ", the input has ", shape);
  }
}

// What `value` received, as one gradient; summed at the first call.
Gradient Backprop::sum(const Value& value) {
  std::vector<Gradient>& received =
      states_.at(value.id).received[static_cast<size_t>(value.output)];
  if (received.empty()) return Gradient();
  if (received.size() > 1) {
    p_.begin_sum(value.id);
    const Gradient total = summed(received);
    received.assign(1, total);
  }
  return received[0];
}

Gradient Backprop::summed(const std::vector<Gradient>& parts) {
  const bool all_slices = std::all_of(parts.begin(), parts.end(), [](const Gradient& g) {
    return g.kind == Gradient::Kind::kSlices;
  });
  if (all_slices) return concatenated(parts);
  std::vector<Value> dense;
  for (const Gradient& part : parts) dense.push_back(p_.emitter().densified(part));
  return Gradient::of(p_.emitter().call("AddN", dense));
}

Gradient Backprop::concatenated(const std::vector<Gradient>& parts) {
  Emitter& e = p_.emitter();
  const bool same_dtype = std::all_of(parts.begin(), parts.end(), [&](const Gradient& part) {
    return e.dtype(part.indices) == e.dtype(parts[0].indices);
  });
  std::vector<Value> values;
  std::vector<Value> indices;
  for (const Gradient& part : parts) {
    values.push_back(part.values);
    indices.push_back(same_dtype ? part.indices : e.cast(part.indices, DType::kInt64));
  }
  const Value axis = e.const_scalar(DType::kInt32, 0);
  values.push_back(axis);
  indices.push_back(axis);
  return Gradient::slices(e.call("Concat", values), e.call("Concat", indices),
                          parts[0].dense_shape);
}

}  // namespace

DifferentiableProgram::~DifferentiableProgram() = default;

bool DifferentiableProgram::override_gradient(int64_t, std::span<const Gradient>,
                                              std::span<const bool>, std::span<Gradient>) {
  return false;
}

void DifferentiableProgram::end_gradient(int64_t, std::span<Gradient>) {}

std::vector<Gradient> backpropagate(DifferentiableProgram& program,
                                    const BackpropRequest& request) {
  return Backprop(program, request).run();
}

}  // namespace treenail
