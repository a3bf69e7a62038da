// SPDX-License-Identifier: Apache-2.0
// Kernels of plugins: a Kernel whose prepare and run are C functions, and what prepare may ask.
#include <algorithm>
#include <memory>
#include <utility>

#include "framework/capi/handles.h"
#include "framework/capi/plugin_run.h"
#include "framework/tensor/truth_values.h"

struct tn_prepare_context {
  const treenail::PrepareContext& c;
  size_t scratch_bytes = 0;
  double cost_ns = 0;
};

namespace treenail::capi {
namespace {

constexpr size_t kMostScratch = size_t{1} << 60;  // the allocator's largest block
constexpr double kMostCostNs = 1e18;              // sums of costs stay numbers

class ComputingKernel final : public Kernel {
 public:
  explicit ComputingKernel(const PrepareContext& c, const PluginKernel& kernel)
      : call_(kernel, c.op()) {
    call_.prepare(c, *this);
  }
  void run(RunContext& c) const override {
    tn_run_context context{c, call_};
    tn_status status;
    call_out("run function",
             [&] { call_.kernel().run(&plugin_host(), &context, call_.state(), &status); });
    if (context.failure) std::rethrow_exception(context.failure);
    rethrow(status);
    call_.check_outputs(c);
  }

 private:
  PreparedCall call_;
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
  if (context != nullptr) context->cost_ns = plugin_cost(nanoseconds);
}

}  // namespace

double plugin_cost(double nanoseconds) {
  return nanoseconds > 0 ? std::min(nanoseconds, kMostCostNs) : 0;
}

PreparedCall::~PreparedCall() {
  if (state_ != nullptr && kernel_.destroy != nullptr) kernel_.destroy(&plugin_host(), state_);
}

void PreparedCall::prepare(const PrepareContext& c, Kernel& made) {
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
  made.scratch_bytes = context.scratch_bytes;
  made.cost_ns = context.cost_ns;
}

void PreparedCall::check_outputs(RunContext& c) const {
  for (int i = 0; i < op_.num_outputs(); ++i) {
    Tensor& output = c.output(i);
    if (!output.defined()) throw internal_error("the kernel did not allocate output ", i);
    if (output.dtype() == DType::kBool) make_truth_values(output.raw(), output.bytes());
  }
}

std::unique_ptr<Kernel> plugin_prepare(const PrepareContext& c) {
  const PluginKernel& kernel = plugin_kernel(c.op());
  if (kernel.start != nullptr) return make_waiting_kernel(c, kernel);
  return std::make_unique<ComputingKernel>(c, kernel);
}

void fill_in_kernel_functions(tn_host& host) {
  host.prepare_call = prepare_call;
  host.prepare_input_shape = prepare_input_shape;
  host.prepare_output_shape = prepare_output_shape;
  host.prepare_host_value = prepare_host_value;
  host.prepare_set_scratch = prepare_set_scratch;
  host.prepare_set_cost = prepare_set_cost;
}

}  // namespace treenail::capi
