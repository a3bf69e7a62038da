// SPDX-License-Identifier: Apache-2.0
// While: its values go from iteration to iteration, what stays the same is handed on.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/async_kernel.h"
#include "kernels/host/control/calls.h"
#include "kernels/host/control/loop.h"

namespace treenail::host {
namespace {

std::vector<bool> read_by_condition(const PrepareContext& p) {
  std::vector<bool> read = p.functions().arguments_read(p.op().get<FunctionAttr>("cond"), {true});
  read.resize(static_cast<size_t>(p.num_inputs()));
  return read;
}

std::vector<bool> live_values(const PrepareContext& p) {
  std::vector<bool> live = read_by_condition(p);
  for (int i = 0; i < p.num_inputs(); ++i)
    live[static_cast<size_t>(i)] = live[static_cast<size_t>(i)] || p.output_used(i);
  for (bool grown = true; grown;) {
    std::vector<bool> read = p.functions().arguments_read(p.op().get<FunctionAttr>("body"), live);
    read.resize(live.size());
    grown = false;
    for (size_t i = 0; i < live.size(); ++i) {
      grown = grown || (read[i] && !live[i]);
      live[i] = live[i] || read[i];
    }
  }
  return live;
}

// One run of a loop, an iteration after the other: the condition of its values, then the body.
class Iterations {
 public:
  Iterations(const Loop& loop, std::vector<Tensor> values, const RunContext& c)
      : loop_(loop),
        values_(std::move(values)),
        results_(values_.size()),
        calls_{loop.cond.begin_call(c), loop.body.begin_call(c)} {}

  std::vector<Tensor>& values() { return values_; }

  // The condition before the first iteration, on this thread: whether there is one.
  bool begin() {
    try {
      prepare().run(arguments(), results());
      return take_results();
    } catch (const Error& error) {
      throw located(error);
    }
  }
  // Then all the rest.
  void run() {
    try {
      do {
        FunctionCall& next = prepare();
        next.run(arguments(), results());
      } while (take_results());
    } catch (const Error& error) {
      throw located(error);
    }
  }
  // Instead, how many at a time may overlap, and what they begin with.
  int64_t overlaps() const {
    try {
      return loop_.overlaps(*calls_.body, values_);
    } catch (const Error& error) {
      throw located(error);
    }
  }
  LoopCalls take_calls() { return std::move(calls_); }

  // As FunctionCall::start(), of what is next.
  bool start(CallEnd& end) { return prepare().start(arguments(), results(), end); }
  // Of the call that has ended; whether there is one more.
  bool take_results() {
    if (!in_body_) {
      in_body_ = is_true(holds_);
      return in_body_;
    }
    loop_.check_invariants(results_);
    values_.swap(results_);
    in_body_ = false;
    ++iteration_;
    return true;
  }
  Error located(const Error& error) const {
    return error.with_prefix(concat("iteration ", iteration_, ": "));
  }

 private:
  // The body takes the loop's values, the condition shares them.
  std::span<Tensor> arguments() { return in_body_ ? values_ : results_; }
  std::span<Tensor> results() { return in_body_ ? results_ : std::span(&holds_, 1); }
  FunctionCall& prepare() {
    FunctionCall& call = in_body_ ? *calls_.body : *calls_.cond;
    call.iteration = iteration_;
    for (size_t i = 0; i < values_.size(); ++i)
      if (!in_body_ || !loop_.live[i]) results_[i] = values_[i];
    return call;
  }

  const Loop& loop_;
  std::vector<Tensor> values_, results_;
  Tensor holds_;
  LoopCalls calls_;
  int64_t iteration_ = 0;
  bool in_body_ = false;  // the body is next, or under way
};

// A run whose body or condition waits: it is there until that has ended.
class StartedLoop final : public CallEnd {
 public:
  StartedLoop(const Loop& loop, std::vector<Tensor> values, const RunContext& c, Done done)
      : loop_(loop), context_(c), done_(done), iterations_(loop, std::move(values), c) {}

  void begin() noexcept {
    if (!loop_.may_overlap()) return proceed();
    int64_t most = 0;
    try {
      if (!iterations_.begin()) return finish(nullptr);
      most = iterations_.overlaps();
    } catch (...) {
      return finish(std::current_exception());
    }
    if (most == 0) return proceed();
    std::vector<Tensor> values = std::move(iterations_.values());
    LoopCalls calls = iterations_.take_calls();
    const Loop& loop = loop_;
    const RunContext context = context_;
    const Done done = done_;
    delete this;  // as in finish()
    start_overlapping(loop, context, done, std::move(values), std::move(calls), most);
  }
  void ended(std::exception_ptr error) noexcept override {
    if (error != nullptr) return finish(std::move(error));
    bool more = false;
    try {
      more = iterations_.take_results();
    } catch (const Error& found) {
      return finish(std::make_exception_ptr(iterations_.located(found)));
    } catch (...) {
      return finish(std::current_exception());
    }
    if (more) return proceed();
    finish(nullptr);
  }

 private:
  // Goes on until a call is under way, which then has this in hand, or to the end.
  void proceed() noexcept {
    try {
      do {
        if (!iterations_.start(*this)) return;
      } while (iterations_.take_results());
    } catch (const Error& error) {
      return finish(std::make_exception_ptr(iterations_.located(error)));
    } catch (...) {
      return finish(std::current_exception());
    }
    finish(nullptr);
  }

  // The frames go before the run may.
  void finish(std::exception_ptr error) noexcept {
    const Done done = done_;
    if (error == nullptr) set_outputs(context_, iterations_.values());
    delete this;
    if (error != nullptr) return done.fail(std::move(error));
    done();
  }

  const Loop& loop_;
  RunContext context_;
  const Done done_;
  Iterations iterations_;
};

void run_loop(const Loop& loop, RunContext& c) {
  Iterations iterations(loop, inputs_from(c, 0, loop.num_values), c);
  if (iterations.begin()) {
    if (const int64_t most = iterations.overlaps(); most > 0) {
      return run_overlapping(loop, c, std::move(iterations.values()), iterations.take_calls(),
                             most);
    }
    iterations.run();
  }
  set_outputs(c, iterations.values());
}

class LoopKernel final : public Kernel {
 public:
  explicit LoopKernel(const PrepareContext& p) : loop_(p) { cost_ns = kCallNs; }
  void run(RunContext& c) const override { run_loop(loop_, c); }

 private:
  const Loop loop_;
};

class WaitingLoop final : public AsyncKernel {
 public:
  explicit WaitingLoop(const PrepareContext& p) : loop_(p) { cost_ns = kCallNs; }
  void start(RunContext c, Done done) const override {
    (new StartedLoop(loop_, inputs_from(c, 0, loop_.num_values), c, done))->begin();
  }
  void run(RunContext& c) const override { run_loop(loop_, c); }

 private:
  const Loop loop_;
};

}  // namespace

Loop::Loop(const PrepareContext& p)
    : num_values(p.num_inputs()),
      live(live_values(p)),
      decide(read_by_condition(p)),
      cond(p.functions().body(p.op().get<FunctionAttr>("cond"), concat(p.node_name(), "/cond"),
                              {true})),
      body(body_of(p, "body", p.op().get<FunctionAttr>("body"), live, p.op().output_types())),
      parallel_iterations(p.op().get_int("parallel_iterations")),
      fixed_(static_cast<size_t>(num_values)),
      may_overlap_(parallel_iterations > 1 && !cond.waits() && !cond.stateful()) {
  const auto& shapes = p.op().get<std::vector<PartialShape>>("output_shapes");
  invariants_.assign(shapes.begin(), shapes.end());
  for (size_t i = 0; i < invariants_.size(); ++i) fixed_[i] = invariants_[i].fully_known();
}

void Loop::check_invariants(const std::vector<Tensor>& values) const {
  for (size_t i = 0; i < invariants_.size(); ++i) check_invariant(i, values[i]);
}

void Loop::check_invariant(size_t i, const Tensor& value) const {
  if (i >= invariants_.size() || invariants_[i].compatible(value.shape())) return;
  throw invalid_argument("value ", i, " of the loop has shape ", value.shape(),
                         " after the iteration, which its invariant ", invariants_[i],
                         " does not allow");
}

std::unique_ptr<Kernel> prepare_while(const PrepareContext& p) {
  if (p.functions().waits(p.op())) return std::make_unique<WaitingLoop>(p);
  return std::make_unique<LoopKernel>(p);
}

}  // namespace treenail::host
