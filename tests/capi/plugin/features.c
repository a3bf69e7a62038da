/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that use, between them, all that a host offers: each one is a test of a part of plugin.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "treenail/plugin.h"

/* ---- Affine: attributes of several kinds, state, scratch ---- */

struct affine {
  double scale;
  double shifts[4];
  size_t num_shifts;
  int negate;
};

static int live_states = 0; /* read by AffineStates; tests run one session at a time */

static void* affine_prepare(const tn_host* host, tn_prepare_context* context, void* data,
                            tn_status* status) {
  const tn_call* call = host->prepare_call(context);
  struct affine* state;
  size_t i, length = 0;
  const char* mode;
  size_t count = host->call_attr_size(call, "shifts", status);
  (void)data;
  if (tn_failed(host, status)) return NULL;
  if (count > 4) {
    tn_fail(host, status, TN_INVALID_ARGUMENT, "%zu shifts are given, at most 4 are possible",
            count);
    return NULL;
  }
  state = calloc(1, sizeof(*state));
  if (state == NULL) {
    host->status_set(status, TN_RESOURCE_EXHAUSTED, "out of memory");
    return NULL;
  }
  ++live_states;
  state->num_shifts = count;
  for (i = 0; i < count; ++i) {
    state->shifts[i] = host->call_attr_float(call, "shifts", i, status);
  }
  state->scale = host->call_attr_float(call, "scale", 0, status);
  mode = host->call_attr_string(call, "mode", 0, &length, status);
  if (mode != NULL) state->negate = length == 6 && memcmp(mode, "negate", 6) == 0;
  host->prepare_set_scratch(context, sizeof(double));
  /* A failure here still hands the state over: the host destroys it. */
  if (host->call_attr_bool(call, "refuse", 0, status)) {
    host->status_set(status, TN_FAILED_PRECONDITION, "refused while preparing");
  }
  return state;
}

static void affine_run(const tn_host* host, tn_run_context* context, const void* opaque,
                       tn_status* status) {
  const struct affine* state = opaque;
  const tn_tensor* x = host->run_input(context, 0);
  const float* in = host->tensor_data(x);
  float* out = host->run_output(context, 0);
  double* shift = host->run_scratch(context);
  const int64_t n = host->tensor_num_elements(x);
  int64_t i;
  size_t k;
  (void)status;
  *shift = 0;
  for (k = 0; k < state->num_shifts; ++k) *shift += state->shifts[k];
  for (i = 0; i < n; ++i) {
    const double value = in[i] * state->scale + *shift;
    out[i] = (float)(state->negate ? -value : value);
  }
}

static void affine_destroy(const tn_host* host, void* state) {
  (void)host;
  --live_states;
  free(state);
}

static void affine_states_run(const tn_host* host, tn_run_context* context, const void* state,
                              tn_status* status) {
  int32_t* out = host->run_output(context, 0);
  (void)state;
  (void)status;
  *out = live_states;
}

static void scalar_shape(const tn_host* host, tn_shape_context* context, void* data,
                         tn_status* status) {
  (void)data;
  host->shape_set_output(context, 0, NULL, 0, status);
}

/* ---- RepeatRows: a host input that decides the shape ---- */

static void repeat_rows_shape(const tn_host* host, tn_shape_context* context, void* data,
                              tn_status* status) {
  int64_t dims[8];
  const tn_tensor* times;
  const int32_t rank = host->shape_input_rank(context, 0);
  int32_t i;
  (void)data;
  host->shape_need_rank(context, 1, 0, status);
  if (tn_failed(host, status) || rank < 0) return;
  if (rank == 0) {
    host->status_set(status, TN_INVALID_ARGUMENT, "x has no rows: it is a scalar");
    return;
  }
  for (i = 0; i < rank; ++i) dims[i] = host->shape_input_dim(context, 0, i);
  times = host->shape_input_value(context, 1);
  if (times == NULL || dims[0] < 0) {
    dims[0] = -1;
  } else {
    const int32_t count = *(const int32_t*)host->tensor_data(times);
    if (count < 0) {
      tn_fail(host, status, TN_INVALID_ARGUMENT, "times = %d is negative", (int)count);
      return;
    }
    dims[0] *= count;
  }
  host->shape_set_output(context, 0, dims, rank, status);
}

static void* repeat_rows_prepare(const tn_host* host, tn_prepare_context* context, void* data,
                                 tn_status* status) {
  const tn_tensor* times = host->prepare_host_value(context, 1, status);
  int32_t* state;
  (void)data;
  if (tn_failed(host, status)) return NULL;
  state = malloc(sizeof(*state));
  if (state != NULL) *state = *(const int32_t*)host->tensor_data(times);
  return state;
}

static void repeat_rows_run(const tn_host* host, tn_run_context* context, const void* state,
                            tn_status* status) {
  const tn_tensor* x = host->run_input(context, 0);
  const int64_t rows = host->tensor_dims(x)[0];
  const size_t row_bytes = rows == 0 ? 0 : host->tensor_bytes(x) / (size_t)rows;
  const char* in = host->tensor_data(x);
  char* out = host->run_output(context, 0);
  int64_t row;
  int32_t k;
  (void)status;
  for (row = 0; row < rows; ++row) {
    for (k = 0; k < *(const int32_t*)state; ++k) {
      memcpy(out, in + (size_t)row * row_bytes, row_bytes);
      out += row_bytes;
    }
  }
}

static void plain_destroy(const tn_host* host, void* state) {
  (void)host;
  free(state);
}

/* ---- Positive: the output's shape follows from values ---- */

static void positive_shape(const tn_host* host, tn_shape_context* context, void* data,
                           tn_status* status) {
  const int64_t unknown = -1;
  (void)data;
  host->shape_need_rank(context, 0, 1, status);
  if (!tn_failed(host, status)) host->shape_set_output(context, 0, &unknown, 1, status);
}

static void positive_run(const tn_host* host, tn_run_context* context, const void* state,
                         tn_status* status) {
  const tn_tensor* x = host->run_input(context, 0);
  const float* in = host->tensor_data(x);
  const int64_t n = host->tensor_num_elements(x);
  int64_t i, count = 0;
  float* out;
  (void)state;
  for (i = 0; i < n; ++i) count += in[i] > 0;
  out = host->run_allocate_output(context, 0, &count, 1, status);
  if (tn_failed(host, status)) return;
  for (i = 0; i < n; ++i) {
    if (in[i] > 0) *out++ = in[i];
  }
}

/* ---- Shout: strings ---- */

static void shout_run(const tn_host* host, tn_run_context* context, const void* state,
                      tn_status* status) {
  const tn_tensor* x = host->run_input(context, 0);
  const int64_t n = host->tensor_num_elements(x);
  int64_t i;
  (void)state;
  for (i = 0; i < n; ++i) {
    char loud[64];
    size_t length = 0, k;
    const char* text = host->tensor_string(x, i, &length, status);
    if (tn_failed(host, status)) return;
    if (length > sizeof(loud)) {
      tn_fail(host, status, TN_OUT_OF_RANGE, "x[%d] has %zu bytes, at most 64 are possible", (int)i,
              length);
      return;
    }
    for (k = 0; k < length; ++k) loud[k] = (char)toupper((unsigned char)text[k]);
    host->run_set_string(context, 0, i, loud, length, status);
    if (tn_failed(host, status)) return;
  }
}

/* ---- PickRows: a gradient of slices ---- */

static void pick_rows_shape(const tn_host* host, tn_shape_context* context, void* data,
                            tn_status* status) {
  int64_t dims[2];
  (void)data;
  host->shape_need_rank(context, 0, 2, status);
  if (tn_failed(host, status)) return;
  host->shape_need_rank(context, 1, 1, status);
  if (tn_failed(host, status)) return;
  dims[0] = host->shape_input_dim(context, 1, 0);
  dims[1] = host->shape_input_dim(context, 0, 1);
  host->shape_set_output(context, 0, dims, 2, status);
}

static void pick_rows_run(const tn_host* host, tn_run_context* context, const void* state,
                          tn_status* status) {
  const tn_tensor* params = host->run_input(context, 0);
  const tn_tensor* indices = host->run_input(context, 1);
  const int64_t rows = host->tensor_dims(params)[0], columns = host->tensor_dims(params)[1];
  const int64_t n = host->tensor_num_elements(indices);
  const int32_t* index = host->tensor_data(indices);
  const float* in = host->tensor_data(params);
  float* out = host->run_output(context, 0);
  int64_t i;
  (void)state;
  for (i = 0; i < n; ++i) {
    if (index[i] < 0 || index[i] >= rows) {
      tn_fail(host, status, TN_INVALID_ARGUMENT, "indices[%d] = %d is not in [0, %d)", (int)i,
              (int)index[i], (int)rows);
      return;
    }
    memcpy(out + i * columns, in + index[i] * columns, (size_t)columns * sizeof(float));
  }
}

static void pick_rows_gradient(const tn_host* host, tn_gradient_context* context, void* data,
                               tn_status* status) {
  const tn_value *dy, *indices, *shape;
  (void)data;
  if (!host->gradient_needed(context, 0)) return;
  dy = host->gradient_of(context, 0, status);
  if (tn_failed(host, status)) return;
  indices = host->gradient_input(context, 1, status);
  if (tn_failed(host, status)) return;
  shape = host->gradient_input_shape(context, 0, TN_INT32, status);
  if (tn_failed(host, status)) return;
  host->gradient_set_slices(context, 0, dy, indices, shape, status);
}

/* Broadcasting product of two inputs, whose gradient sums back. */
static void scaled_run(const tn_host* host, tn_run_context* context, const void* state,
                       tn_status* status) {
  const tn_tensor* a = host->run_input(context, 0);
  const tn_tensor* b = host->run_input(context, 1);
  const tn_tensor* out = host->run_output_tensor(context, 0);
  const double* x = host->tensor_data(a);
  const double* factor = host->tensor_data(b);
  double* y = host->run_output(context, 0);
  const int64_t n = host->tensor_num_elements(out), columns = host->tensor_num_elements(b);
  int64_t i;
  (void)state;
  if (host->tensor_num_elements(a) != n) {
    host->status_set(status, TN_UNIMPLEMENTED, "only the factor may be broadcast");
    return;
  }
  for (i = 0; i < n; ++i) y[i] = x[i] * factor[i % columns];
}

static void scaled_gradient(const tn_host* host, tn_gradient_context* context, void* data,
                            tn_status* status) {
  int32_t input;
  const tn_value* dy = host->gradient_of(context, 0, status);
  (void)data;
  for (input = 0; input < 2 && !tn_failed(host, status); ++input) {
    const tn_value *other, *product, *sum;
    if (!host->gradient_needed(context, input)) continue;
    other = host->gradient_input(context, 1 - input, status);
    if (tn_failed(host, status)) return;
    product = tn_emit(host, context, "Mul", dy, other, status);
    if (tn_failed(host, status)) return;
    sum = host->gradient_sum_to_input(context, product, input, status);
    if (tn_failed(host, status)) return;
    host->gradient_set(context, input, sum, status);
  }
}

/* ---- Fail: an error from wherever `stage` says ---- */

static int at_stage(const tn_host* host, const tn_call* call, const char* stage,
                    tn_status* status) {
  size_t length = 0;
  const char* value = host->call_attr_string(call, "stage", 0, &length, status);
  return value != NULL && strlen(stage) == length && memcmp(value, stage, length) == 0;
}

static void fail_shape(const tn_host* host, tn_shape_context* context, void* data,
                       tn_status* status) {
  (void)data;
  host->shape_copy_input(context, 0, 0, status);
  if (at_stage(host, host->shape_call(context), "shape", status)) {
    host->status_set(status, TN_INVALID_ARGUMENT, "failed in the shape rule");
  }
}

static void* fail_prepare(const tn_host* host, tn_prepare_context* context, void* data,
                          tn_status* status) {
  const tn_call* call = host->prepare_call(context);
  static char parallel;
  static char nothing;
  (void)data;
  if (at_stage(host, call, "prepare", status)) {
    host->status_set(status, TN_UNIMPLEMENTED, "failed in prepare");
    return NULL;
  }
  return at_stage(host, call, "parallel", status) ? &parallel
         : at_stage(host, call, "run", status)    ? &nothing
                                                  : NULL;
}

static void fail_piece(void* argument, int64_t begin, int64_t end, tn_status* status) {
  const tn_host* host = argument;
  (void)end;
  if (begin >= 3) tn_fail(host, status, TN_DATA_LOSS, "failed in piece %d", (int)begin);
}

/* The status of the loop is looked at by nobody: the host must not lose it. */
static void fail_run(const tn_host* host, tn_run_context* context, const void* state,
                     tn_status* status) {
  const tn_tensor* x = host->run_input(context, 0);
  memcpy(host->run_output(context, 0), host->tensor_data(x), host->tensor_bytes(x));
  if (state == NULL) return;
  host->run_parallel_for(context, 8, 1, 1.0, fail_piece, (void*)(uintptr_t)host, status);
  host->status_set(status, TN_OK, "");
}

static void fail_gradient(const tn_host* host, tn_gradient_context* context, void* data,
                          tn_status* status) {
  (void)data;
  if (at_stage(host, host->gradient_call(context), "gradient", status)) {
    host->status_set(status, TN_UNIMPLEMENTED, "failed in the gradient rule");
    return;
  }
  /* Not declared in gradient_reads: the host refuses. */
  host->gradient_input(context, 0, status);
}

/* ---- Wait: runs until it is cancelled ---- */

static void wait_run(const tn_host* host, tn_run_context* context, const void* state,
                     tn_status* status) {
  (void)state;
  while (!host->run_cancelled(context)) continue;
  host->status_set(status, TN_CANCELLED, "the wait was cancelled");
}

/* ---- Registration ---- */

#define LIST(...) \
  (const char* const[]) { __VA_ARGS__, NULL }
#define OP(...) \
  &(const tn_op_spec) { .struct_size = sizeof(tn_op_spec), __VA_ARGS__ }
#define KERNEL(...) \
  &(const tn_kernel_spec) { .struct_size = sizeof(tn_kernel_spec), __VA_ARGS__ }

static void register_first(const tn_host* host, tn_plugin* plugin) {
  host->register_op(plugin,
                    OP(.name = "Affine", .inputs = LIST("x: float"), .outputs = LIST("y: float"),
                       .attrs = LIST("scale: float = 1.0", "shifts: list(float) = []",
                                     "mode: {'plain', 'negate'} = 'plain'", "refuse: bool = false"),
                       .flags = TN_OP_NOT_DIFFERENTIABLE, .shape = tn_shape_unchanged));
  host->register_kernel(plugin, KERNEL(.op = "Affine", .prepare = affine_prepare, .run = affine_run,
                                       .destroy = affine_destroy));
  host->register_op(plugin,
                    OP(.name = "AffineStates", .outputs = LIST("count: int32"),
                       .flags = TN_OP_NOT_DIFFERENTIABLE | TN_OP_STATEFUL, .shape = scalar_shape));
  host->register_kernel(plugin, KERNEL(.op = "AffineStates", .run = affine_states_run));
  host->register_op(plugin, OP(.name = "RepeatRows", .inputs = LIST("x: T", "times: int32"),
                               .outputs = LIST("y: T"), .attrs = LIST("T: realnumbertype"),
                               .flags = TN_OP_NOT_DIFFERENTIABLE, .host_inputs = LIST("times"),
                               .shape = repeat_rows_shape));
  host->register_kernel(plugin, KERNEL(.op = "RepeatRows", .prepare = repeat_rows_prepare,
                                       .run = repeat_rows_run, .destroy = plain_destroy));
  host->register_op(
      plugin,
      OP(.name = "Positive", .inputs = LIST("x: float"), .outputs = LIST("y: float"),
         .flags = TN_OP_NOT_DIFFERENTIABLE | TN_OP_DATA_DEPENDENT_SHAPE, .shape = positive_shape));
  host->register_kernel(plugin, KERNEL(.op = "Positive", .run = positive_run));
  host->register_op(plugin,
                    OP(.name = "Shout", .inputs = LIST("x: string"), .outputs = LIST("y: string"),
                       .flags = TN_OP_NOT_DIFFERENTIABLE, .shape = tn_shape_unchanged));
  host->register_kernel(plugin, KERNEL(.op = "Shout", .run = shout_run));
}

static void register_second(const tn_host* host, tn_plugin* plugin) {
  host->register_op(plugin,
                    OP(.name = "PickRows", .inputs = LIST("params: float", "indices: int32"),
                       .outputs = LIST("rows: float"), .gradient_reads = LIST("indices"),
                       .shape = pick_rows_shape, .gradient = pick_rows_gradient));
  host->register_kernel(plugin, KERNEL(.op = "PickRows", .run = pick_rows_run));
  host->register_op(plugin, OP(.name = "Scaled", .inputs = LIST("x: double", "factor: double"),
                               .outputs = LIST("y: double"), .gradient_reads = LIST("x", "factor"),
                               .shape = tn_shape_broadcast_binary, .gradient = scaled_gradient));
  host->register_kernel(plugin, KERNEL(.op = "Scaled", .run = scaled_run));
  host->register_op(
      plugin, OP(.name = "Fail", .inputs = LIST("x: float"), .outputs = LIST("y: float"),
                 .attrs = LIST("stage: string"), .shape = fail_shape, .gradient = fail_gradient));
  host->register_kernel(plugin, KERNEL(.op = "Fail", .prepare = fail_prepare, .run = fail_run));
  host->register_op(plugin,
                    OP(.name = "Wait", .outputs = LIST("y: float"),
                       .flags = TN_OP_NOT_DIFFERENTIABLE | TN_OP_STATEFUL, .shape = scalar_shape));
  host->register_kernel(plugin, KERNEL(.op = "Wait", .run = wait_run));
}

void tn_plugin_init(const tn_host* host, tn_plugin* plugin) {
  if (!tn_plugin_begin(host, plugin, "features", "1.0")) return;
  register_first(host, plugin);
  register_second(host, plugin);
}
