// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/functional.cc but for loops (loop.cc). What runs is the functions' own:
// calls and branches only hand values on.
#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "framework/runtime/kernel/async_kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/control/calls.h"

namespace treenail::host {
namespace {

// The function as one that gives the operation's outputs, of those that are read.
FunctionBody& giving_outputs(const PrepareContext& p, std::string_view role,
                             const FunctionAttr& function) {
  std::vector<bool> wanted;
  for (int i = 0; i < p.op().num_outputs(); ++i) wanted.push_back(p.output_used(i));
  return body_of(p, role, function, wanted, p.op().output_types());
}
FunctionBody& branch_of(const PrepareContext& p, std::string_view attr) {
  return giving_outputs(p, attr, p.op().get<FunctionAttr>(attr));
}

// A call of a body with the node's inputs from `first` on.
struct Places {
  explicit Places(const PrepareContext& p, int first)
      : first(first), inputs(p.num_inputs()), outputs(p.op().num_outputs()) {}
  int first, inputs, outputs;
};

void call(FunctionBody& body, RunContext& c, const Places& places) {
  std::vector<Tensor> arguments = inputs_from(c, places.first, places.inputs);
  std::vector<Tensor> results(static_cast<size_t>(places.outputs));
  body.begin_call(c)->run(arguments, results);
  set_outputs(c, results);
}

// The same where the body waits: it is there until that has ended.
class StartedCall final : public CallEnd {
 public:
  static void start(FunctionBody& body, RunContext c, Done done, const Places& places) {
    auto call = std::make_unique<StartedCall>(body, c, done, places);
    std::vector<Tensor> arguments = inputs_from(c, places.first, places.inputs);
    StartedCall& started = *call;
    // Where it has not ended who ends it has it in hand, maybe before this returns.
    static_cast<void>(call.release());
    try {
      if (started.call_->start(arguments, started.results_, started)) started.ended(nullptr);
    } catch (...) {
      delete &started;
      throw;
    }
  }

  StartedCall(FunctionBody& body, const RunContext& c, Done done, const Places& places)
      : context_(c),
        done_(done),
        results_(static_cast<size_t>(places.outputs)),
        call_(body.begin_call(c)) {}

  // The frame goes before the run may.
  void ended(std::exception_ptr error) noexcept override {
    const Done done = done_;
    if (error == nullptr) set_outputs(context_, results_);
    delete this;
    if (error != nullptr) return done.fail(std::move(error));
    done();
  }

 private:
  RunContext context_;
  const Done done_;
  std::vector<Tensor> results_;
  const std::unique_ptr<FunctionCall> call_;
};

// A kernel that calls the body that `choose` gives for the inputs.
template <class Choose>
class WaitingCall final : public AsyncKernel {
 public:
  WaitingCall(Choose choose, const Places& places) : choose_(std::move(choose)), places_(places) {}
  void start(RunContext c, Done done) const override {
    StartedCall::start(choose_(c), c, done, places_);
  }
  void run(RunContext& c) const override { call(choose_(c), c, places_); }

 private:
  const Choose choose_;
  const Places places_;
};

template <class Choose>
std::unique_ptr<Kernel> make_call(const Places& places, bool waits, Choose choose) {
  if (!waits) {
    return make_kernel([choose, places](RunContext& c) { call(choose(c), c, places); }, kCallNs);
  }
  auto kernel = std::make_unique<WaitingCall<Choose>>(std::move(choose), places);
  kernel->cost_ns = kCallNs;
  return kernel;
}

std::unique_ptr<Kernel> prepare_call(const PrepareContext& p) {
  FunctionBody& function = giving_outputs(p, "", p.op().get<FunctionAttr>("f"));
  return make_call(Places(p, 0), function.waits(),
                   [&function](const RunContext&) -> FunctionBody& { return function; });
}

std::unique_ptr<Kernel> prepare_if(const PrepareContext& p) {
  FunctionBody& then_branch = branch_of(p, "then_branch");
  FunctionBody& else_branch = branch_of(p, "else_branch");
  return make_call(Places(p, 1), then_branch.waits() || else_branch.waits(),
                   [&then_branch, &else_branch](const RunContext& c) -> FunctionBody& {
                     return is_true(c.input(0)) ? then_branch : else_branch;
                   });
}

std::unique_ptr<Kernel> prepare_case(const PrepareContext& p) {
  std::vector<FunctionBody*> branches;
  for (const FunctionAttr& branch : p.op().get<std::vector<FunctionAttr>>("branches"))
    branches.push_back(&giving_outputs(p, concat("branches/", branches.size()), branch));
  const bool waits =
      std::ranges::any_of(branches, [](const FunctionBody* branch) { return branch->waits(); });
  return make_call(Places(p, 1), waits,
                   [branches = std::move(branches)](const RunContext& c) -> FunctionBody& {
                     const auto index = static_cast<size_t>(*c.input(0).data<int32_t>());
                     return index < branches.size() ? *branches[index] : *branches.back();
                   });
}

}  // namespace

void register_functional_kernels(KernelRegistry& r) {
  for (const char* op : {"PartitionedCall", "StatefulPartitionedCall"}) r.add(op, {}, prepare_call);
  for (const char* op : {"StatelessIf", "If"}) r.add(op, {}, prepare_if);
  for (const char* op : {"StatelessCase", "Case"}) r.add(op, {}, prepare_case);
  for (const char* op : {"StatelessWhile", "While"}) r.add(op, {}, prepare_while);
}

}  // namespace treenail::host
