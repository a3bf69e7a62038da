// SPDX-License-Identifier: Apache-2.0
#include "framework/eager/execute.h"

#include <string>

#include "framework/base/error.h"
#include "framework/base/fp_environment.h"
#include "framework/eager/repeated_calls.h"
#include "framework/graph/graph.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/run/immediate.h"
#include "framework/runtime/state/resource_manager.h"

namespace treenail {
namespace {

// Immediate calls have no node to name a random counter after: op type and seeds stand in.
std::string counter_name(const OpInstance& op) {
  std::string name = concat("immediate/", op.name());
  for (std::string_view seed : {"seed", "seed2"}) {
    const int position = op.def().attr_index(seed);
    if (position >= 0) name += concat("/", op.attr(position));
  }
  return name;
}

void check_inputs(const OpInstance& op, std::span<const Tensor> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DType wanted = op.input_type(static_cast<int>(i));
    if (inputs[i].dtype() == wanted) continue;
    throw invalid_argument("input \"", op.input_name(static_cast<int>(i)), "\" has dtype ",
                           inputs[i].dtype(), ", needed is ", wanted);
  }
}

// What runs of all kinds have in common: the arithmetic's modes, and whose name errors bear.
template <class F>
std::vector<Tensor> run_guarded(const OpInstance& op, F&& f) {
  const FpEnvironment environment;
  try {
    return f();
  } catch (const Error& error) {
    throw error.with_prefix(error_prefix(op.name(), ""));
  }
}

std::vector<Tensor> run(const OpInstance& op, std::span<const Tensor> inputs,
                        ResourceManager* resources, const CancellationToken* token,
                        PreparedKernel* keep) {
  return run_guarded(op, [&] {
    if (inputs.size() != op.input_types().size()) {
      throw invalid_argument("expects ", op.num_inputs(), " inputs, got ", inputs.size());
    }
    check_inputs(op, inputs);
    const std::string name = op.def().random ? counter_name(op) : std::string();
    const NodeServices services{resources != nullptr ? resources : &ResourceManager::process(), "",
                                name};
    return run_immediately(op, inputs, services, token, keep);
  });
}

}  // namespace

std::vector<Tensor> execute(const OpInstance& op, std::span<const Tensor> inputs,
                            ResourceManager* resources, const CancellationToken* token) {
  return run(op, inputs, resources, token, nullptr);
}

std::vector<Tensor> execute(const OpDef& op, std::span<const Tensor> inputs,
                            const NamedAttrs& attrs, std::span<const int> arg_sizes,
                            ResourceManager* resources, const CancellationToken* token) {
  const ImmediateCall call{op, inputs, attrs, arg_sizes};
  const bool kept = RepeatedCalls::may_keep(call);
  const uint64_t hash = kept ? RepeatedCalls::hash(call) : 0;
  RepeatedCalls& calls = RepeatedCalls::of_this_thread();
  if (const auto known = kept ? calls.find(call, hash) : nullptr) {
    return run_guarded(known->op,
                       [&] { return run_prepared(known->op, known->prepared, inputs, token); });
  }
  std::vector<DType> types;
  types.reserve(inputs.size());
  for (const Tensor& input : inputs) types.push_back(input.dtype());
  const auto entry = std::make_shared<RepeatedCalls::Entry>();
  try {
    entry->op = resolve_op(op, types, attrs, arg_sizes);
  } catch (const Error& error) {
    throw error.with_prefix(error_prefix(op.name, ""));
  }
  std::vector<Tensor> outputs =
      run(entry->op, inputs, resources, token, kept ? &entry->prepared : nullptr);
  if (entry->prepared.kernel != nullptr) calls.keep(call, hash, entry);
  return outputs;
}

std::vector<Tensor> execute(std::string_view op, std::span<const Tensor> inputs,
                            const NamedAttrs& attrs, std::span<const int> arg_sizes,
                            ResourceManager* resources, const CancellationToken* token) {
  return execute(OpRegistry::instance().get(op), inputs, attrs, arg_sizes, resources, token);
}

}  // namespace treenail
