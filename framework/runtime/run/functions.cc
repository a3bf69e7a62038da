// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/functions.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_set>

#include "framework/base/error.h"
#include "framework/runtime/run/executor.h"
#include "framework/runtime/run/node_run.h"
#include "framework/runtime/run/run_limits.h"

namespace treenail {
namespace {

// Sets of state for which a body keeps its plans.
constexpr size_t kKeptStates = 16;
constexpr int kDeepestCall = 1000;
thread_local int call_depth = 0;
// What a call leaves of its thread's stack: for kernels, some of which keep 128 KiB there.
constexpr size_t kStackLeft = size_t{384} << 10;

// Below this address the calling thread's stack is nearly used up.
uintptr_t lowest_frame() {
  thread_local const uintptr_t lowest = [] {
    pthread_attr_t attributes;
    void* begin = nullptr;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return uintptr_t{0};
    pthread_attr_getstack(&attributes, &begin, &size);
    pthread_attr_destroy(&attributes);
    return reinterpret_cast<uintptr_t>(begin) + std::min(kStackLeft, size / 2);
  }();
  return lowest;
}

// Calls within calls stand on the thread's stack, some 1.5 KiB each.
struct Deeper {
  explicit Deeper(const Function& function) {
    const bool fits = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) > lowest_frame();
    if (!fits || call_depth >= kDeepestCall) {
      throw resource_exhausted("function \"", function.name, "\" is called at a depth of ",
                               call_depth, " calls, ",
                               fits ? "which is the limit" : "where the thread's stack ends",
                               ": does it call itself without an end?");
    }
    ++call_depth;
  }
  ~Deeper() { --call_depth; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
};

// The stronger of two claims on one state.
Access stronger(Access a, Access b) {
  for (const Access access : {Access::kOpaque, Access::kWrite, Access::kRead}) {
    if (a == access || b == access) return access;
  }
  return Access::kNone;
}

void check_arguments(const Function& function, std::span<const Tensor> arguments) {
  if (arguments.size() == function.inputs.size()) return;
  throw invalid_argument("function \"", function.name, "\" takes ", function.inputs.size(),
                         " arguments, not ", arguments.size());
}

const Resource* state_of(const Tensor& argument) {
  return argument.dtype() == DType::kResource ? argument.data<ResourceElement>()->object.get()
                                              : nullptr;
}

}  // namespace

class Session::Functions::Body final : public FunctionBody, public FunctionCaller {
 public:
  Body(Functions& all, Body* caller, const Function& function, std::string path,
       const std::vector<bool>& wanted)
      : all_(all), caller_(caller), function_(function), path_(std::move(path)), wanted_(wanted) {
    for (const std::string& name : function.input_nodes)
      feeds_.push_back(function.body->find_output(name));
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i]) fetches_.push_back(function.body->find_output(function.output_values[i]));
  }

  std::vector<DType> result_types() const override {
    std::vector<DType> types;
    for (const std::string& name : function_.output_values) {
      const Output value = function_.body->find_output(name);
      types.push_back(value.node->op().output_type(value.index));
    }
    return types;
  }
  std::unique_ptr<FunctionCall> begin_call(const CancellationToken* token) override;
  FunctionBody& body(const FunctionAttr& function, std::string_view call_site,
                     const std::vector<bool>& wanted) override {
    return all_.body_within(this, function, call_site, wanted);
  }
  std::vector<bool> arguments_read(const FunctionAttr& function,
                                   const std::vector<bool>& wanted) const override {
    return all_.arguments_read(function, wanted);
  }
  Access argument_access(const OpInstance& op, int argument) const override {
    return all_.argument_access(op, argument);
  }

  const Function& function() const { return function_; }
  const std::string& path() const { return path_; }
  const std::vector<bool>& wanted() const { return wanted_; }
  // This body, or one around it, of the function.
  Body* innermost(const Function& function, const std::vector<bool>& wanted) {
    Body* body = this;
    while (body != nullptr && (&body->function_ != &function || body->wanted_ != wanted))
      body = body->caller_;
    return body;
  }

  // For the state that the arguments name.
  std::shared_ptr<Signature> signature_for(std::span<const Tensor> arguments);
  std::shared_ptr<const Plan> plan_for(Signature& signature, std::span<const Tensor> arguments,
                                       const CancellationToken* token);
  Impl& session() const { return all_.session_; }

 private:
  struct Known {
    std::vector<Tensor> handles;  // by argument; undefined where it is none
    std::shared_ptr<Signature> signature;
  };

  Functions& all_;
  Body* const caller_;
  const Function& function_;
  const std::string path_;
  const std::vector<bool> wanted_;  // by result
  std::vector<Output> feeds_, fetches_;
  ForkMutex mutex_;           // guards what follows
  std::vector<Known> known_;  // most recently used first
};

class Session::Functions::Call final : public FunctionCall {
 public:
  Call(Body& body, const CancellationToken* token) : body_(body), token_(token) {}

  void run(std::span<Tensor> arguments, std::span<Tensor> results) override {
    const Deeper deeper(body_.function());
    if (!fits(arguments)) choose_plan(arguments);
    Frame& frame = **lease_;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const int32_t slot = plan_->arg_slots[i];
      Tensor argument = std::move(arguments[i]);  // also where the body has no use for it
      if (slot >= 0) frame.values[static_cast<size_t>(slot)] = std::move(argument);
    }
    execute(frame);
    size_t next = 0;
    for (size_t i = 0; i < results.size(); ++i) {
      if (body_.wanted()[i])
        results[i] = frame.values[static_cast<size_t>(plan_->fetch_slots[next++])];
    }
    frame.reset(*plan_);
  }

 private:
  bool fits(std::span<const Tensor> arguments) const {
    if (plan_ == nullptr || arguments.size() != shapes_.size()) return false;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].shape() != shapes_[i] || state_of(arguments[i]) != states_[i]) return false;
    }
    return true;
  }

  void choose_plan(std::span<const Tensor> arguments) {
    link_.reset();
    lease_.reset();
    plan_.reset();
    shapes_.clear();
    states_.clear();
    for (const Tensor& argument : arguments) {
      shapes_.push_back(argument.shape());
      states_.push_back(state_of(argument));
    }
    signature_ = body_.signature_for(arguments);
    std::shared_ptr<const Plan> plan = body_.plan_for(*signature_, arguments, token_);
    lease_.emplace(body_.session(), *signature_, *plan);
    link_.emplace(token_, (**lease_).token);
    plan_ = std::move(plan);
  }

  void execute(Frame& frame) {
    if (plan_->in_order()) {
      run_nodes_in_order(*plan_, frame);
    } else {
      Execution(*plan_, frame).run();
    }
  }

  Body& body_;
  const CancellationToken* token_;
  std::vector<Shape> shapes_;
  std::vector<const Resource*> states_;
  std::shared_ptr<Signature> signature_;
  std::shared_ptr<const Plan> plan_;
  std::optional<FrameLease> lease_;
  std::optional<TokenLink> link_;
};

Session::Functions::Functions(Impl& session, Library library)
    : session_(session), library_(std::move(library)) {}
Session::Functions::~Functions() = default;

std::unique_ptr<FunctionCall> Session::Functions::Body::begin_call(const CancellationToken* token) {
  return std::make_unique<Call>(*this, token);
}

std::shared_ptr<Session::Signature> Session::Functions::Body::signature_for(
    std::span<const Tensor> arguments) {
  check_arguments(function_, arguments);
  const std::lock_guard lock(mutex_);
  if (mutex_.abandoned()) begin_anew(known_);
  const auto same = [&](const Known& known) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Tensor& handle = known.handles[i];
      if ((handle.defined() ? state_of(handle) : nullptr) != state_of(arguments[i])) return false;
    }
    return true;
  };
  auto found = std::find_if(known_.begin(), known_.end(), same);
  if (found == known_.end()) {
    if (known_.size() == kKeptStates) known_.pop_back();
    Known made;
    for (const Tensor& argument : arguments)
      made.handles.push_back(argument.dtype() == DType::kResource ? argument : Tensor());
    made.signature = std::make_shared<Signature>(feeds_, fetches_, std::vector<Node*>{});
    found = known_.insert(known_.end(), std::move(made));
  }
  std::rotate(known_.begin(), found, found + 1);
  return known_[0].signature;
}

std::shared_ptr<const Plan> Session::Functions::Body::plan_for(Signature& signature,
                                                               std::span<const Tensor> arguments,
                                                               const CancellationToken* token) {
  RunOptions options;
  options.token = token;
  RunLimits limits(options);
  bool specialized = false;
  std::vector<Tensor> handles;
  for (const Tensor& argument : arguments)
    handles.push_back(argument.dtype() == DType::kResource ? argument : Tensor());
  // Whoever holds a plan of this body holds the functions.
  const CalledBody called{{std::shared_ptr<void>(), this}, path_, handles};
  std::shared_ptr<const Plan> plan = signature.plan_for(
      session().planning(*function_.body, &called), arguments, limits, specialized);
  limits.end_planning();
  return plan;
}

FunctionBody& Session::Functions::body(const FunctionAttr& function, std::string_view call_site,
                                       const std::vector<bool>& wanted) {
  return body_within(nullptr, function, call_site, wanted);
}

Session::Functions::Body& Session::Functions::body_within(Body* caller, const FunctionAttr& attr,
                                                          std::string_view call_site,
                                                          const std::vector<bool>& wanted) {
  const Function& called = function(attr.name);
  if (called.output_values.size() != wanted.size()) {
    throw invalid_argument("function \"", attr.name, "\" gives ", called.output_values.size(),
                           " results, not ", wanted.size());
  }
  Body* const outer = caller != nullptr ? caller->innermost(called, wanted) : nullptr;
  if (outer != nullptr) return *outer;
  std::string path =
      concat(caller != nullptr ? caller->path() : "", call_site, "/", attr.name, "/");
  std::string key = path;
  for (const bool each : wanted) key += each ? '1' : '0';
  const std::lock_guard lock(mutex_);
  if (mutex_.abandoned()) begin_anew(bodies_);
  std::unique_ptr<Body>& body = bodies_[key];
  if (body == nullptr)
    body = std::make_unique<Body>(*this, caller, called, std::move(path), wanted);
  return *body;
}

const Function& Session::Functions::function(std::string_view name) const {
  const auto found = library_.find(name);
  if (found == library_.end() || found->second->body == nullptr)
    throw not_found("the graph has no function \"", name, "\"");
  return *found->second;
}

std::vector<bool> Session::Functions::arguments_read(const FunctionAttr& attr,
                                                     const std::vector<bool>& wanted) const {
  const Function& f = function(attr.name);
  std::vector<Output> inputs;
  for (const std::string& name : f.input_nodes) inputs.push_back(f.body->find_output(name));
  std::vector<bool> read(inputs.size());
  std::vector<Output> stack;
  std::unordered_set<const Node*> seen;
  for (size_t i = 0; i < wanted.size() && i < f.output_values.size(); ++i)
    if (wanted[i]) stack.push_back(f.body->find_output(f.output_values[i]));
  while (!stack.empty()) {
    const Output value = stack.back();
    stack.pop_back();
    if (const auto input = std::ranges::find(inputs, value); input != inputs.end()) {
      read[static_cast<size_t>(input - inputs.begin())] = true;
    } else if (seen.insert(value.node).second) {
      stack.insert(stack.end(), value.node->inputs().begin(), value.node->inputs().end());
      for (Node* before : value.node->control_inputs()) stack.push_back({before, 0});
    }
  }
  return read;
}

Access Session::Functions::argument_access(const OpInstance& op, int argument) const {
  const std::lock_guard lock(access_mutex_);
  if (access_mutex_.abandoned()) begin_anew(accesses_);
  return access_by(op, argument);
}

Access Session::Functions::access_by(const OpInstance& op, int argument) const {
  Access access = Access::kNone;
  for (const AttrValue& attr : op.attrs()) {
    if (attr.kind() == AttrKind::kFunction) {
      access = stronger(access, access_in(function(attr.get<FunctionAttr>().name), argument));
    } else if (attr.kind() == AttrKind::kFunctionList) {
      for (const FunctionAttr& each : attr.get<std::vector<FunctionAttr>>())
        access = stronger(access, access_in(function(each.name), argument));
    }
  }
  return access;
}

Access Session::Functions::access_in(const Function& function, int argument) const {
  if (argument >= static_cast<int>(function.input_nodes.size())) return Access::kNone;
  // Of a function that calls itself with the argument: what it does beside that.
  const auto [known, first] = accesses_.try_emplace({&function, argument}, Access::kNone);
  if (!first) return known->second;
  return known->second = access_behind(
             function.body->find_output(function.input_nodes[static_cast<size_t>(argument)]));
}

Access Session::Functions::access_behind(const Output& value) const {
  Access access = Access::kNone;
  for (const Node* consumer : value.node->consumers()) {
    const OpInstance& op = consumer->op();
    const int first = op.input_range(static_cast<int>(op.def().inputs.size()) - 1).first;
    for (int i = 0; i < op.num_inputs(); ++i) {
      if (!(consumer->input(i) == value)) continue;
      access = stronger(access, op.input_def(i).access);
      if (i >= first) access = stronger(access, access_by(op, i - first));
      if (op.def().view_of == i)
        access = stronger(access, access_behind({const_cast<Node*>(consumer), 0}));
    }
  }
  return access;
}

}  // namespace treenail
