// SPDX-License-Identifier: Apache-2.0
#include "framework/eager/called_function.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <numeric>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/base/fp_environment.h"
#include "framework/device/device.h"
#include "framework/eager/immediate_options.h"
#include "framework/graph/function.h"
#include "framework/graph/graph.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/run/immediate.h"
#include "framework/runtime/run/session.h"
#include "framework/runtime/state/resource_manager.h"
#include "framework/tensor/transfer.h"

namespace treenail {
namespace {

// What plans the bodies of called functions: a session, whose calls take their arenas from one pool
// so; another one where the process has got more devices or other options. They are never
// destroyed, for somebody may still call while the process ends.
struct Planner {
  std::shared_ptr<const ImmediateOptions> chosen;
  size_t accelerators;
  std::unique_ptr<Session> session;
};

Session& session_of_calls() {
  static ForkMutex mutex;
  static auto* const planners = new std::deque<Planner>();
  const auto chosen = immediate_options();
  const size_t there = accelerators().size();
  const std::lock_guard lock(mutex);
  for (const Planner& known : *planners)
    if (known.chosen == chosen && known.accelerators == there) return *known.session;
  SessionOptions options;
  options.device_count = chosen->device_count;
  options.allow_soft_placement = chosen->allow_soft_placement;
  options.resources = {std::shared_ptr<void>(), &ResourceManager::process()};
  auto session = std::make_unique<Session>(std::make_shared<Graph>(), std::move(options));
  planners->push_back({chosen, there, std::move(session)});
  return *planners->back().session;
}

OpInstance call_op(const Graph& library, const std::string& name) {
  const auto found = library.functions().find(name);
  if (found == library.functions().end())
    throw not_found("the graph has no function \"", name, "\"");
  std::vector<DType> given, made;
  for (const FunctionArg& input : found->second->inputs) given.push_back(input.dtype);
  for (const FunctionArg& output : found->second->outputs) made.push_back(output.dtype);
  const NamedAttr attrs[] = {{"f", FunctionAttr{name}}, {"Tout", made}};
  const int sizes[] = {static_cast<int>(given.size())};
  return resolve_op(OpRegistry::instance().get("StatefulPartitionedCall"), given, attrs, sizes);
}

}  // namespace

CalledFunction::CalledFunction(const std::shared_ptr<Graph>& library, const std::string& name,
                               std::string site)
    : site_(std::move(site)) {
  {
    const std::lock_guard lock(library->mutex());
    op_ = call_op(*library, name);
  }
  functions_ = session_of_calls().functions(library);
  // The kernel asks for none of the arguments' shapes: bodies are planned when they are called.
  const std::vector<Shape> shapes(static_cast<size_t>(op_.num_inputs()));
  const std::vector<const Tensor*> values(shapes.size());
  NodeServices services;
  services.resources = &ResourceManager::process();
  services.node_name = site_;
  services.functions = functions_.get();
  const ArrayPrepareContext context(op_, shapes, {}, values, services);
  kernel_ = KernelRegistry::instance().find(op_, cpu_device().kind())(context);
}

CalledFunction::~CalledFunction() {
  forget_random_counters(ResourceManager::process(), concat(site_, "/"));
}

std::vector<Tensor> CalledFunction::call(std::vector<Tensor> arguments,
                                         const CancellationToken* token) const {
  if (arguments.size() != static_cast<size_t>(op_.num_inputs()))
    throw invalid_argument("takes ", op_.num_inputs(), " arguments, not ", arguments.size());
  const FpEnvironment environment;
  const size_t inputs = arguments.size();
  std::vector<Tensor> values = std::move(arguments);
  for (Tensor& value : values)
    if (value.device() != nullptr) value = in_memory_of(value, nullptr);
  values.resize(inputs + static_cast<size_t>(op_.num_outputs()));
  std::vector<int32_t> slots(inputs);
  std::iota(slots.begin(), slots.end(), 0);
  const auto uses = std::make_unique<std::atomic<int32_t>[]>(inputs);
  for (size_t i = 0; i < inputs; ++i) uses[i].store(1, std::memory_order_relaxed);
  RunContext context;
  context.values_ = values.data();
  context.input_slots_ = slots.data();
  context.output_slot_ = static_cast<int32_t>(inputs);
  context.token_ = token;
  context.uses_ = uses.get();
  kernel_->run(context);
  values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(inputs));
  return values;
}

}  // namespace treenail
