// SPDX-License-Identifier: Apache-2.0
#include "framework/eager/execute.h"

#include "framework/base/error.h"
#include "framework/base/fp_environment.h"
#include "framework/eager/placed_call.h"
#include "framework/eager/prepared_call.h"
#include "framework/graph/graph.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/run/immediate.h"
#include "framework/runtime/state/resource_manager.h"

namespace treenail {
namespace {

void check_inputs(const OpInstance& op, std::span<const Tensor> inputs) {
  if (inputs.size() != op.input_types().size())
    throw invalid_argument("expects ", op.num_inputs(), " inputs, got ", inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DType wanted = op.input_type(static_cast<int>(i));
    if (inputs[i].dtype() == wanted) continue;
    throw invalid_argument("input \"", op.input_name(static_cast<int>(i)), "\" has dtype ",
                           inputs[i].dtype(), ", needed is ", wanted);
  }
}

// What f() gives; what it throws is an error of the op.
template <class F>
auto naming(std::string_view op, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw error.with_prefix(error_prefix(op, ""));
  }
}

std::vector<Tensor> run_prepared(const ImmediateCall& given, const CancellationToken* token,
                                 OpInstance* ran) {
  const auto call = prepare_call(given);
  if (ran != nullptr) *ran = call->op();
  CallRun run(*call, given.inputs, token);
  run.run();
  std::vector<Tensor> outputs;
  outputs.reserve(run.num_outputs());
  for (size_t i = 0; i < run.num_outputs(); ++i) outputs.push_back(std::move(run.output(i)));
  return outputs;
}

}  // namespace

std::vector<Tensor> execute(const OpInstance& op, std::span<const Tensor> inputs,
                            ResourceManager* resources, const CancellationToken* token) {
  const FpEnvironment environment;
  return naming(op.name(), [&] {
    check_inputs(op, inputs);
    const std::string counter = op.def().random ? immediate_counter_name(op) : std::string();
    const NodeServices services{resources != nullptr ? resources : &ResourceManager::process(), "",
                                counter};
    return run_immediately(op, inputs, services, token);
  });
}

std::vector<Tensor> execute(const OpDef& op, std::span<const Tensor> inputs,
                            const NamedAttrs& attrs, std::span<const int> arg_sizes,
                            ResourceManager* resources, const CancellationToken* token,
                            OpInstance* ran) {
  std::vector<const Tensor*> pointers;
  pointers.reserve(inputs.size());
  for (const Tensor& input : inputs) pointers.push_back(&input);
  return naming(op.name, [&] {
    const ImmediateCall given{op, pointers, attrs, arg_sizes, resources};
    if (!may_leave_host("")) return run_prepared(given, token, ran);
    PlacedCall placed(given, "");
    placed.bring_inputs();
    return run_prepared(placed.call(), token, ran);
  });
}

std::vector<Tensor> execute(std::string_view op, std::span<const Tensor> inputs,
                            const NamedAttrs& attrs, std::span<const int> arg_sizes,
                            ResourceManager* resources, const CancellationToken* token) {
  return execute(OpRegistry::instance().get(op), inputs, attrs, arg_sizes, resources, token);
}

}  // namespace treenail
