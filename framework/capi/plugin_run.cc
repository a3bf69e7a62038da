// SPDX-License-Identifier: Apache-2.0
// What a plugin's kernel may do while it runs: host->run_...
#include "framework/capi/plugin_run.h"

#include <exception>
#include <string_view>

#include "framework/base/cancellation.h"
#include "framework/capi/handles.h"
#include "framework/tensor/string_element.h"

namespace treenail::capi {
namespace {

const tn_call* run_call(const tn_run_context* context) noexcept {
  return context == nullptr ? nullptr : handle(context->call.op());
}

const tn_tensor* run_input(const tn_run_context* context, int32_t input) noexcept {
  if (context == nullptr || !context->call.has_input(input)) return nullptr;
  return handle(context->c.input(input));
}

void* run_output(tn_run_context* context, int32_t output) noexcept {
  if (context == nullptr || !context->call.has_output(output)) return nullptr;
  Tensor& tensor = context->c.output(output);
  return tensor.defined() && is_plain(tensor.dtype()) ? tensor.raw() : nullptr;
}

const tn_tensor* run_output_tensor(const tn_run_context* context, int32_t output) noexcept {
  if (context == nullptr || !context->call.has_output(output)) return nullptr;
  return handle(context->c.output(output));
}

Tensor& checked_output(tn_run_context* context, int32_t output) {
  if (!required(context, "context").call.has_output(output))
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
    if (!context->call.op().def().allocates_outputs) {
      throw failed_precondition("output ", output,
                                " is provided: the op is not flagged TN_OP_ALLOCATES_OUTPUTS");
    }
    context->c.set_output(output,
                          Tensor(context->call.op().output_type(output), shape_from(dims, rank)));
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
      context->c.parallel_for(total, grain, plugin_cost(cost_ns), [&](int64_t begin, int64_t end) {
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

void fill_in_run_functions(tn_host& host) {
  host.run_input = run_input;
  host.run_output = run_output;
  host.run_output_tensor = run_output_tensor;
  host.run_set_string = run_set_string;
  host.run_allocate_output = run_allocate_output;
  host.run_scratch = run_scratch;
  host.run_parallel_for = run_parallel_for;
  host.run_cancelled = run_cancelled;
  host.run_call = run_call;
}

}  // namespace treenail::capi
