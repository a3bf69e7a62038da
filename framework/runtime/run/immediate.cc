// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/immediate.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <utility>

#include "framework/base/error.h"
#include "framework/device/allocator.h"
#include "framework/graph/graph.h"
#include "framework/runtime/kernel/async_kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/kernel/queued_kernel.h"
#include "framework/runtime/plan/handle_info.h"
#include "framework/runtime/state/resource_manager.h"

namespace treenail {
namespace {

// Everything about the inputs that is known once they are computed; constants only where the op
// wants host values.
std::vector<ValueInfo> concrete_infos(const OpInstance& op, std::span<const Tensor> inputs) {
  std::vector<ValueInfo> infos(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    infos[i].dtype = inputs[i].dtype();
    infos[i].shape = inputs[i].shape();
    if (op.input_def(static_cast<int>(i)).host) {
      infos[i].constant = std::make_shared<const Tensor>(inputs[i]);
      infos[i].value = partial_value_of(inputs[i]);
    } else if (inputs[i].dtype() == DType::kResource && inputs[i].num_elements() == 1) {
      infos[i].handle = handle_info_of(inputs[i]);
    }
  }
  return infos;
}

// Of a plan's node, where what nobody reads may be left out.
bool is_used(const Node* node, size_t output) {
  return node == nullptr || is_read({const_cast<Node*>(node), static_cast<int>(output)});
}

void check_outputs(const OpInstance& op, std::span<const Tensor> outputs,
                   std::span<const ValueInfo> infos, const Node* node) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined() && !is_used(node, i)) continue;
    if (outputs[i].defined() && outputs[i].dtype() == op.output_type(static_cast<int>(i)) &&
        infos[i].shape.compatible(outputs[i].shape())) {
      continue;
    }
    throw internal_error("the kernel gave output ", i, " as ", outputs[i], ", its shape rule says ",
                         op.output_type(static_cast<int>(i)), infos[i].shape);
  }
}

}  // namespace

ImmediateEnd::~ImmediateEnd() = default;

const Shape& ArrayPrepareContext::output_shape(int i) const {
  if (i < 0 || static_cast<size_t>(i) >= outputs_.size()) {
    throw internal_error("the kernel of ", op_.name(), " asks for the shape of output ", i,
                         ", which is not known before it runs");
  }
  return outputs_[static_cast<size_t>(i)];
}

const Tensor& ArrayPrepareContext::host_value(int i) const {
  const Tensor* const value = host_values_[static_cast<size_t>(i)];
  if (value == nullptr) {
    throw internal_error("the kernel of ", op_.name(), " asks for the value of input ", i,
                         ", which is no host input");
  }
  return *value;
}

FunctionCaller& ArrayPrepareContext::functions() const {
  if (services_.functions != nullptr) return *services_.functions;
  throw unimplemented("the operation calls a function of its graph, and runs only there");
}

bool ArrayPrepareContext::output_used(int i) const {
  return services_.awaited || is_used(services_.node, static_cast<size_t>(i));
}

IntrusivePtr<RandomCounter> ArrayPrepareContext::random_counter() const {
  return random_counter_of(*services_.resources, services_.counter_name.empty()
                                                     ? services_.node_name
                                                     : services_.counter_name);
}

Device& ArrayPrepareContext::device() const {
  return services_.device != nullptr ? *services_.device : cpu_device();
}

Tensor view_as(const Tensor& tensor, DType dtype, const Shape& shape) {
  const std::ptrdiff_t offset = static_cast<const std::byte*>(tensor.raw()) -
                                static_cast<const std::byte*>(tensor.buffer()->data());
  return Tensor(dtype, shape, tensor.buffer(), static_cast<size_t>(offset));
}

namespace {

// Where one run of a kernel finds its inputs and leaves its outputs.
class Places {
 public:
  Places(const OpInstance& op, const PreparedKernel& prepared, std::span<const Tensor> inputs,
         const CancellationToken* token)
      : inputs_(inputs.size()),
        values_(inputs.size() + static_cast<size_t>(op.num_outputs())),
        slots_(inputs.size()),
        scratch_(prepared.kernel->scratch_bytes, *prepared.device) {
    std::copy(inputs.begin(), inputs.end(), values_.begin());
    find_places(op, prepared, token);
  }

  // With inputs that the kernel may take.
  Places(const OpInstance& op, const PreparedKernel& prepared, std::vector<Tensor>&& inputs,
         const NodeServices& services, const CancellationToken* token)
      : inputs_(inputs.size()),
        values_(std::move(inputs)),
        slots_(inputs_),
        scratch_(prepared.kernel->scratch_bytes, *prepared.device),
        uses_(std::make_unique<std::atomic<int32_t>[]>(inputs_)) {
    values_.resize(inputs_ + static_cast<size_t>(op.num_outputs()));
    for (size_t i = 0; i < inputs_; ++i) uses_[i].store(1, std::memory_order_relaxed);
    find_places(op, prepared, token);
    context.uses_ = uses_.get();
    context.frame_ = services.frame;
    context.node_ = services.position;
  }

  RunContext context;

  std::vector<Tensor> take_outputs() {
    return {std::make_move_iterator(values_.begin() + static_cast<std::ptrdiff_t>(inputs_)),
            std::make_move_iterator(values_.end())};
  }

 private:
  void find_places(const OpInstance& op, const PreparedKernel& prepared,
                   const CancellationToken* token) {
    std::iota(slots_.begin(), slots_.end(), 0);
    if (!op.def().allocates_outputs) {
      for (size_t i = 0; i < prepared.output_shapes.size(); ++i) {
        const auto output = static_cast<int>(i);
        Device* const memory = op.output_def(output).host ? nullptr : prepared.device;
        values_[inputs_ + i] = Tensor(op.output_type(output), prepared.output_shapes[i], memory);
      }
    }
    context.values_ = values_.data();
    context.input_slots_ = slots_.data();
    context.output_slot_ = static_cast<int32_t>(inputs_);
    context.scratch_ = scratch_.data();
    context.token_ = token;
  }

  size_t inputs_;
  std::vector<Tensor> values_;
  std::vector<int32_t> slots_;
  Scratch scratch_;
  std::unique_ptr<std::atomic<int32_t>[]> uses_;  // null: nothing may be taken
};

// What the inputs are and what the shape rule says to them.
struct Inferred {
  Inferred(const OpInstance& op, std::span<const Tensor> inputs)
      : inputs(concrete_infos(op, inputs)), outputs(static_cast<size_t>(op.num_outputs())) {
    std::vector<const ValueInfo*> pointers;
    for (const ValueInfo& info : this->inputs) pointers.push_back(&info);
    infer_shapes(op, pointers, outputs);
  }
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
};

Tensor view_of(const OpInstance& op, const Inferred& inferred, std::span<const Tensor> inputs) {
  const Tensor& source = inputs[static_cast<size_t>(op.def().view_of)];
  return view_as(source, op.output_type(0), inferred.outputs[0].shape.shape());
}

PreparedKernel prepare(const OpInstance& op, const Inferred& inferred,
                       const NodeServices& services) {
  std::vector<Shape> shapes;
  std::vector<const Tensor*> host_values;
  for (const ValueInfo& info : inferred.inputs) {
    shapes.push_back(info.shape.shape());
    host_values.push_back(info.constant.get());
  }
  const bool all_known =
      std::all_of(inferred.outputs.begin(), inferred.outputs.end(),
                  [](const ValueInfo& info) { return info.shape.fully_known(); });
  if (!all_known && !op.def().allocates_outputs) {
    throw internal_error("the shape rule of ", op.name(),
                         " leaves an output shape unknown with all inputs known");
  }
  PreparedKernel prepared;
  if (all_known) {
    for (const ValueInfo& info : inferred.outputs)
      prepared.output_shapes.push_back(info.shape.shape());
  }
  const ArrayPrepareContext context(op, shapes, prepared.output_shapes, host_values, services);
  prepared.device = &context.device();
  prepared.kernel = KernelRegistry::instance().find(op, prepared.device->kind())(context);
  return prepared;
}

// A run that nobody waits for, until it has ended.
class StartedRun final : public Done::Target,
                         public Failure::Target,
                         public Device::Waiter,
                         public FromAllocator {
 public:
  StartedRun(const OpInstance& op, Inferred inferred, PreparedKernel prepared,
             std::vector<Tensor> inputs, const NodeServices& services,
             const CancellationToken& token, std::unique_ptr<ImmediateEnd> end)
      : op_(op),
        node_(services.node),
        inferred_(std::move(inferred)),
        prepared_(std::move(prepared)),
        places_(op, prepared_, std::move(inputs), services, &token),
        end_(std::move(end)) {}

  // From here on the run frees itself, unless this throws.
  void start() {
    const Kernel& kernel = *prepared_.kernel;
    if (const auto* queued = dynamic_cast<const QueuedKernel*>(&kernel)) {
      queued->enqueue(places_.context, Failure(*this, 0));
      prepared_.device->notify(*this);
    } else if (op_.def().asynchronous || dynamic_cast<const AsyncKernel*>(&kernel) != nullptr) {
      async_kernel(kernel, op_).start(places_.context, Done(*this, 0));
    } else {
      kernel.run(places_.context);
      ended(0, nullptr);
    }
  }

  // Before reached(), and from whoever calls that.
  void failed(int32_t, std::exception_ptr error) noexcept override {
    if (failure_ == nullptr) failure_ = std::move(error);
  }
  bool superseded(int32_t) const noexcept override { return places_.context.token_->cancelled(); }
  // What was left out has no outputs.
  void reached(std::exception_ptr error) noexcept override {
    try {
      if (error != nullptr) std::rethrow_exception(error);
      if (failure_ != nullptr) std::rethrow_exception(failure_);
      places_.context.token_->check();
    } catch (...) {
      error = std::current_exception();
    }
    ended(0, std::move(error));
  }

  void ended(int32_t, std::exception_ptr error) noexcept override {
    const std::unique_ptr<StartedRun> self(this);
    std::vector<Tensor> outputs;
    if (error == nullptr) {
      try {
        outputs = places_.take_outputs();
        check_outputs(op_, outputs, inferred_.outputs, node_);
      } catch (...) {
        error = std::current_exception();
      }
    }
    end_->ended(std::move(outputs), std::move(error));
  }

 private:
  const OpInstance op_;
  const Node* const node_;
  const Inferred inferred_;
  const PreparedKernel prepared_;
  Places places_;
  const std::unique_ptr<ImmediateEnd> end_;
  std::exception_ptr failure_;
};

}  // namespace

PreparedKernel prepare_immediately(const OpInstance& op, std::span<const Tensor> inputs,
                                   const NodeServices& services) {
  const Inferred inferred(op, inputs);
  if (op.def().view_of < 0) return prepare(op, inferred, services);
  PreparedKernel view;
  view.output_shapes.push_back(inferred.outputs[0].shape.shape());
  return view;
}

std::vector<Tensor> run_immediately(const OpInstance& op, std::span<const Tensor> inputs,
                                    const NodeServices& services, const CancellationToken* token) {
  const Inferred inferred(op, inputs);
  if (op.def().view_of >= 0) return {view_of(op, inferred, inputs)};
  const PreparedKernel prepared = prepare(op, inferred, services);
  Places places(op, prepared, inputs, token);
  prepared.kernel->run(places.context);
  std::vector<Tensor> outputs = places.take_outputs();
  if (op.def().allocates_outputs) check_outputs(op, outputs, inferred.outputs, services.node);
  return outputs;
}

std::vector<Tensor> run_taking(const OpInstance& op, std::vector<Tensor> inputs,
                               const NodeServices& services, const CancellationToken* token) {
  const Inferred inferred(op, inputs);
  if (op.def().view_of >= 0) return {view_of(op, inferred, inputs)};
  const PreparedKernel prepared = prepare(op, inferred, services);
  Places places(op, prepared, std::move(inputs), services, token);
  prepared.kernel->run(places.context);
  std::vector<Tensor> outputs = places.take_outputs();
  if (op.def().allocates_outputs) check_outputs(op, outputs, inferred.outputs, services.node);
  return outputs;
}

void start_taking(const OpInstance& op, std::vector<Tensor> inputs, const NodeServices& services,
                  const CancellationToken& token, std::unique_ptr<ImmediateEnd> end) {
  Inferred inferred(op, inputs);
  if (op.def().view_of >= 0) return end->ended({view_of(op, inferred, inputs)}, nullptr);
  PreparedKernel prepared = prepare(op, inferred, services);
  auto run = std::make_unique<StartedRun>(op, std::move(inferred), std::move(prepared),
                                          std::move(inputs), services, token, std::move(end));
  run->start();
  static_cast<void>(run.release());
}

std::vector<Tensor> fold_constant(const OpInstance& op, std::span<const ValueInfo* const> inputs,
                                  std::span<const ValueInfo> outputs) {
  if (op.def().stateful || op.def().asynchronous || outputs.empty()) return {};
  std::vector<Tensor> tensors;
  for (const ValueInfo* info : inputs) {
    if (!info->constant || !is_plain(info->dtype)) return {};
    tensors.push_back(*info->constant);
  }
  for (const ValueInfo& info : outputs) {
    const int64_t elements = info.shape.num_elements();
    if (!is_plain(info.dtype) ||
        elements > kMaxFoldedBytes / static_cast<int64_t>(dtype_size(info.dtype)))
      return {};
  }
  try {
    ResourceManager no_state;
    std::vector<Tensor> result = run_immediately(op, tensors, {&no_state, {}}, nullptr);
    for (const Tensor& tensor : result) {
      if (static_cast<int64_t>(tensor.bytes()) > kMaxFoldedBytes) return {};
    }
    return result;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace treenail
