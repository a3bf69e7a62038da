// SPDX-License-Identifier: Apache-2.0
// Kernels of plugins: a Kernel whose prepare and run are C functions.
#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "framework/capi/handles.h"
#include "framework/capi/plugin_registration.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/truth_values.h"

struct tn_prepare_context {
  const treenail::PrepareContext& c;
  size_t scratch_bytes = 0;
  double cost_ns = 0;
};

namespace treenail::capi {
namespace {
class PluginKernelState;
}
}  // namespace treenail::capi

struct tn_run_context {
  treenail::RunContext& c;
  const treenail::capi::PluginKernelState& kernel;
  std::exception_ptr
      failure;  // what ended a parallel loop: leaves the run, whatever the plugin makes of it
};

namespace treenail::capi {
namespace {

constexpr size_t kMostScratch = size_t{1} << 60;  // the allocator's largest block
constexpr double kMostCostNs = 1e18;              // sums of costs stay numbers

double cost_from(double nanoseconds) {  // 0 for what is no cost, NaN too
  return nanoseconds > 0 ? std::min(nanoseconds, kMostCostNs) : 0;
}

class PluginKernelState final : public Kernel {
 public:
  PluginKernelState(const PluginKernel& kernel, const OpInstance& op)
      : kernel_(kernel),
        num_inputs_(op.num_inputs()),
        output_types_(op.output_types().begin(), op.output_types().end()),
        allocates_outputs_(op.def().allocates_outputs) {}

  ~PluginKernelState() override {
    if (state_ != nullptr && kernel_.destroy != nullptr) kernel_.destroy(&plugin_host(), state_);
  }

  void prepare(const PrepareContext& c) {
    if (kernel_.prepare == nullptr) return;
    tn_prepare_context context{c};
    tn_status status;
    state_ = call_out("prepare function", [&] {
      return kernel_.prepare(&plugin_host(), &context, kernel_.data, &status);
    });
    rethrow(status);
    if (context.scratch_bytes > kMostScratch) {
      throw invalid_argument("the kernel asks for ", context.scratch_bytes,
                             " bytes of scratch memory, more than memory can hold");
    }
    scratch_bytes = context.scratch_bytes;
    cost_ns = context.cost_ns;
  }

  void run(RunContext& c) const override {
    tn_run_context context{c, *this, nullptr};
    tn_status status;
    call_out("run function", [&] { kernel_.run(&plugin_host(), &context, state_, &status); });
    if (context.failure) std::rethrow_exception(context.failure);
    rethrow(status);
    for (size_t i = 0; i < output_types_.size(); ++i) {
      if (output_types_[i] != DType::kBool) continue;
      Tensor& output = c.output(static_cast<int>(i));
      if (output.defined()) make_truth_values(output.raw(), output.bytes());
    }
  }

  bool has_input(int32_t input) const { return input >= 0 && input < num_inputs_; }
  bool has_output(int32_t output) const {
    return output >= 0 && static_cast<size_t>(output) < output_types_.size();
  }
  DType output_type(int32_t output) const { return output_types_[static_cast<size_t>(output)]; }
  bool allocates_outputs() const { return allocates_outputs_; }

 private:
  const PluginKernel& kernel_;
  void* state_ = nullptr;
  int num_inputs_;
  std::vector<DType> output_types_;
  bool allocates_outputs_;
};

const tn_call* prepare_call(const tn_prepare_context* context) noexcept {
  return context == nullptr ? nullptr : handle(context->c.op());
}

int32_t give_shape(const Shape& shape, const int64_t** dims) {
  if (dims != nullptr) *dims = shape.dims().data();
  return shape.rank();
}

int32_t prepare_input_shape(const tn_prepare_context* context, int32_t input,
                            const int64_t** dims) noexcept {
  if (dims != nullptr) *dims = nullptr;
  if (context == nullptr || input < 0 || input >= context->c.num_inputs()) return -1;
  return give_shape(context->c.input_shape(input), dims);
}

int32_t prepare_output_shape(const tn_prepare_context* context, int32_t output,
                             const int64_t** dims) noexcept {
  if (dims != nullptr) *dims = nullptr;
  if (context == nullptr) return -1;
  const OpInstance& op = context->c.op();
  if (output < 0 || output >= op.num_outputs() || op.def().allocates_outputs) return -1;
  return give_shape(context->c.output_shape(output), dims);
}

const tn_tensor* prepare_host_value(const tn_prepare_context* context, int32_t input,
                                    tn_status* status) noexcept {
  return guarded(status, [&] {
    const OpInstance& op = required(context, "context").c.op();
    if (input < 0 || input >= op.num_inputs()) {
      throw out_of_range("input ", input, " is not in [0, ", op.num_inputs(), ")");
    }
    if (!op.input_def(input).host) {
      throw invalid_argument("input \"", op.input_def(input).name,
                             "\" is not listed in host_inputs");
    }
    return handle(context->c.host_value(input));
  });
}

void prepare_set_scratch(tn_prepare_context* context, size_t bytes) noexcept {
  if (context != nullptr) context->scratch_bytes = bytes;
}

void prepare_set_cost(tn_prepare_context* context, double nanoseconds) noexcept {
  if (context != nullptr) context->cost_ns = cost_from(nanoseconds);
}

const tn_tensor* run_input(const tn_run_context* context, int32_t input) noexcept {
  if (context == nullptr || !context->kernel.has_input(input)) return nullptr;
  return handle(context->c.input(input));
}

void* run_output(tn_run_context* context, int32_t output) noexcept {
  if (context == nullptr || !context->kernel.has_output(output)) return nullptr;
  Tensor& tensor = context->c.output(output);
  return tensor.defined() && is_plain(tensor.dtype()) ? tensor.raw() : nullptr;
}

const tn_tensor* run_output_tensor(const tn_run_context* context, int32_t output) noexcept {
  if (context == nullptr || !context->kernel.has_output(output)) return nullptr;
  return handle(context->c.output(output));
}

Tensor& checked_output(tn_run_context* context, int32_t output) {
  if (!required(context, "context").kernel.has_output(output))
    throw out_of_range("there is no output ", output);
  return context->c.output(output);
}

void run_set_string(tn_run_context* context, int32_t output, int64_t element, const char* bytes,
                    size_t length, tn_status* status) noexcept {
  guarded(status, [&] {
    Tensor& tensor = checked_output(context, output);
    if (tensor.dtype() != DType::kString || element < 0 || element >= tensor.num_elements()) {
      throw invalid_argument("output ", output, " is ", tensor, ": it has no string ", element);
    }
    const auto given = array(bytes, length, "bytes");
    tensor.data<StringElement>()[element] =
        StringElement(std::string_view(given.data(), given.size()));
  });
}

void* run_allocate_output(tn_run_context* context, int32_t output, const int64_t* dims,
                          int32_t rank, tn_status* status) noexcept {
  return guarded(status, [&]() -> void* {
    checked_output(context, output);
    if (!context->kernel.allocates_outputs()) {
      throw failed_precondition("output ", output,
                                " is provided: the op is not flagged TN_OP_ALLOCATES_OUTPUTS");
    }
    context->c.set_output(output,
                          Tensor(context->kernel.output_type(output), shape_from(dims, rank)));
    return run_output(context, output);
  });
}

void* run_scratch(tn_run_context* context) noexcept {
  return context == nullptr ? nullptr : context->c.scratch();
}

// Besides Errors, an interrupt may pass through here as an exception of its own: it is kept, for C
// has no way to carry it.
void run_parallel_for(tn_run_context* context, int64_t total, int64_t grain, double cost_ns,
                      tn_parallel_body body, void* argument, tn_status* status) noexcept {
  guarded(status, [&] {
    required(context, "context");
    required(body, "body");
    try {
      context->c.parallel_for(total, grain, cost_from(cost_ns), [&](int64_t begin, int64_t end) {
        tn_status piece;
        call_out("parallel body", [&] { body(argument, begin, end, &piece); });
        rethrow(piece);
      });
    } catch (...) {
      context->failure = std::current_exception();
      throw;
    }
  });
}

int32_t run_cancelled(const tn_run_context* context) noexcept {
  const CancellationToken* token = context == nullptr ? nullptr : context->c.token();
  return token != nullptr && token->cancelled() ? 1 : 0;
}

}  // namespace

std::unique_ptr<Kernel> plugin_prepare(const PrepareContext& c) {
  auto kernel = std::make_unique<PluginKernelState>(plugin_kernel(c.op()), c.op());
  kernel->prepare(c);
  return kernel;
}

void fill_in_kernel_functions(tn_host& host) {
  host.prepare_call = prepare_call;
  host.prepare_input_shape = prepare_input_shape;
  host.prepare_output_shape = prepare_output_shape;
  host.prepare_host_value = prepare_host_value;
  host.prepare_set_scratch = prepare_set_scratch;
  host.prepare_set_cost = prepare_set_cost;
  host.run_input = run_input;
  host.run_output = run_output;
  host.run_output_tensor = run_output_tensor;
  host.run_set_string = run_set_string;
  host.run_allocate_output = run_allocate_output;
  host.run_scratch = run_scratch;
  host.run_parallel_for = run_parallel_for;
  host.run_cancelled = run_cancelled;
}

}  // namespace treenail::capi
