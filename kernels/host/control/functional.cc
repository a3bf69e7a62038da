// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/functional.cc. What runs is the functions' own: calls, branches and
// loops only hand values on.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_functions.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/string_element.h"

namespace treenail::host {
namespace {

// Of a call before its body was seen: more than keeps the interpreter's lock.
constexpr double kCallNs = 50'000;

FunctionBody& body(const PrepareContext& p, const FunctionAttr& function,
                   const std::vector<bool>& wanted, std::span<const DType> types) {
  FunctionBody& found = p.functions().body(function, p.node_name(), wanted);
  if (!std::ranges::equal(found.result_types(), types)) {
    throw invalid_argument("the results of function \"", function.name,
                           "\" are of other dtypes than the operation says");
  }
  return found;
}

// The function as one that gives the operation's outputs, of those that are read.
FunctionBody& giving_outputs(const PrepareContext& p, const FunctionAttr& function) {
  std::vector<bool> wanted;
  for (int i = 0; i < p.op().num_outputs(); ++i) wanted.push_back(p.output_used(i));
  return body(p, function, wanted, p.op().output_types());
}
FunctionBody& giving_outputs(const PrepareContext& p, std::string_view attr) {
  return giving_outputs(p, p.op().get<FunctionAttr>(attr));
}

std::vector<Tensor> inputs_from(RunContext& c, int first, int end) {
  std::vector<Tensor> values;
  values.reserve(static_cast<size_t>(end - first));
  for (int i = first; i < end; ++i) values.push_back(c.take_input(i));
  return values;
}

void set_outputs(RunContext& c, std::vector<Tensor>& values) {
  for (size_t i = 0; i < values.size(); ++i)
    c.set_output(static_cast<int>(i), std::move(values[i]));
}

// A call of `body` with the node's inputs from `first` on.
void call(FunctionBody& body, RunContext& c, int first, int inputs, int outputs) {
  std::vector<Tensor> arguments = inputs_from(c, first, inputs);
  std::vector<Tensor> results(static_cast<size_t>(outputs));
  body.begin_call(c.token())->run(arguments, results);
  set_outputs(c, results);
}

// As `if` takes a value in TensorFlow 1.
bool is_true(const Tensor& value) {
  if (value.shape().rank() != 0) return value.num_elements() != 0;
  if (value.dtype() == DType::kString) return !value.data<StringElement>()->view().empty();
  const auto* const bytes = static_cast<const unsigned char*>(value.raw());
  const auto any = [&](size_t count, unsigned char mask) {
    for (size_t i = 0; i < count; ++i)
      if ((bytes[i] & (i + 1 == count ? mask : 0xff)) != 0) return true;
    return false;
  };
  // A negative zero is false.
  const bool sign = is_floating(value.dtype());
  return any(dtype_size(value.dtype()), sign ? 0x7f : 0xff);
}

std::unique_ptr<Kernel> prepare_call(const PrepareContext& p) {
  FunctionBody& function = giving_outputs(p, "f");
  const int inputs = p.num_inputs(), outputs = p.op().num_outputs();
  return make_kernel(
      [&function, inputs, outputs](RunContext& c) { call(function, c, 0, inputs, outputs); },
      kCallNs);
}

std::unique_ptr<Kernel> prepare_if(const PrepareContext& p) {
  FunctionBody& then_branch = giving_outputs(p, "then_branch");
  FunctionBody& else_branch = giving_outputs(p, "else_branch");
  const int inputs = p.num_inputs(), outputs = p.op().num_outputs();
  return make_kernel(
      [&then_branch, &else_branch, inputs, outputs](RunContext& c) {
        call(is_true(c.input(0)) ? then_branch : else_branch, c, 1, inputs, outputs);
      },
      kCallNs);
}

std::unique_ptr<Kernel> prepare_case(const PrepareContext& p) {
  std::vector<FunctionBody*> branches;
  for (const FunctionAttr& branch : p.op().get<std::vector<FunctionAttr>>("branches"))
    branches.push_back(&giving_outputs(p, branch));
  const int inputs = p.num_inputs(), outputs = p.op().num_outputs();
  return make_kernel(
      [branches = std::move(branches), inputs, outputs](RunContext& c) {
        const auto index = static_cast<size_t>(*c.input(0).data<int32_t>());
        call(index < branches.size() ? *branches[index] : *branches.back(), c, 1, inputs, outputs);
      },
      kCallNs);
}

class WhileKernel final : public Kernel {
 public:
  explicit WhileKernel(const PrepareContext& p)
      : values_(p.num_inputs()), live_(live_values(p)), cond_(cond_of(p)), body_(body_of(p)) {
    cost_ns = kCallNs;
    const auto& shapes = p.op().get<std::vector<PartialShape>>("output_shapes");
    invariants_.assign(shapes.begin(), shapes.end());
  }

  void run(RunContext& c) const override {
    std::vector<Tensor> values = inputs_from(c, 0, values_);
    std::vector<Tensor> results(values.size());
    const std::unique_ptr<FunctionCall> cond = cond_.begin_call(c.token());
    const std::unique_ptr<FunctionCall> body = body_.begin_call(c.token());
    int64_t iteration = 0;
    try {
      for (; holds(*cond, values, results); ++iteration) {
        keep_dead(values, results);
        body->run(values, results);
        check_invariants(results);
        values.swap(results);
      }
    } catch (const Error& error) {
      throw error.with_prefix(concat("iteration ", iteration, ": "));
    }
    set_outputs(c, values);
  }

 private:
  static FunctionBody& cond_of(const PrepareContext& p) {
    return p.functions().body(p.op().get<FunctionAttr>("cond"), p.node_name(), {true});
  }
  static FunctionBody& body_of(const PrepareContext& p) {
    return body(p, p.op().get<FunctionAttr>("body"), live_values(p), p.op().output_types());
  }
  // Those that are read behind the loop, or that such a value or the condition is made of. Others
  // are left as they come in: what is kept for a gradient that this run does not ask for.
  static std::vector<bool> live_values(const PrepareContext& p) {
    const FunctionCaller& functions = p.functions();
    std::vector<bool> live = functions.arguments_read(p.op().get<FunctionAttr>("cond"), {true});
    live.resize(static_cast<size_t>(p.num_inputs()));
    for (int i = 0; i < p.num_inputs(); ++i)
      live[static_cast<size_t>(i)] = live[static_cast<size_t>(i)] || p.output_used(i);
    for (bool grown = true; grown;) {
      std::vector<bool> read = functions.arguments_read(p.op().get<FunctionAttr>("body"), live);
      read.resize(live.size());
      grown = false;
      for (size_t i = 0; i < live.size(); ++i) {
        grown = grown || (read[i] && !live[i]);
        live[i] = live[i] || read[i];
      }
    }
    return live;
  }
  void keep_dead(std::span<const Tensor> values, std::span<Tensor> results) const {
    for (size_t i = 0; i < live_.size(); ++i)
      if (!live_[i]) results[i] = values[i];
  }
  static bool holds(FunctionCall& cond, const std::vector<Tensor>& values,
                    std::vector<Tensor>& arguments) {
    std::copy(values.begin(), values.end(), arguments.begin());
    Tensor result;
    cond.run(arguments, {&result, 1});
    return is_true(result);
  }

  void check_invariants(const std::vector<Tensor>& values) const {
    for (size_t i = 0; i < invariants_.size(); ++i) {
      if (invariants_[i].compatible(values[i].shape())) continue;
      throw invalid_argument("value ", i, " of the loop has shape ", values[i].shape(),
                             " after the iteration, which its invariant ", invariants_[i],
                             " does not allow");
    }
  }

  const int values_;
  const std::vector<bool> live_;
  FunctionBody& cond_;
  FunctionBody& body_;
  std::vector<PartialShape> invariants_;
};

std::unique_ptr<Kernel> prepare_while(const PrepareContext& p) {
  return std::make_unique<WhileKernel>(p);
}

}  // namespace

void register_functional_kernels(KernelRegistry& r) {
  for (const char* op : {"PartitionedCall", "StatefulPartitionedCall"}) r.add(op, {}, prepare_call);
  for (const char* op : {"StatelessIf", "If"}) r.add(op, {}, prepare_if);
  for (const char* op : {"StatelessCase", "Case"}) r.add(op, {}, prepare_case);
  for (const char* op : {"StatelessWhile", "While"}) r.add(op, {}, prepare_while);
}

}  // namespace treenail::host
