/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin of docs/custom-ops.md: ZeroOut keeps the first element and clears the others; Cube is
 * x * x * x, for float and double, computed in parallel, with a gradient.
 */
#include <string.h>

#include "treenail/plugin.h"

/* ---- ZeroOut ---- */

static void zero_out_run(const tn_host* host, tn_run_context* context, const void* state,
                         tn_status* status) {
  const tn_tensor* x = host->run_input(context, 0);
  char* y = host->run_output(context, 0);
  const size_t bytes = host->tensor_bytes(x);
  const size_t first = host->dtype_size(host->tensor_dtype(x));
  (void)state;
  (void)status;
  if (bytes == 0) return;
  memcpy(y, host->tensor_data(x), first);
  memset(y + first, 0, bytes - first);
}

/* ZeroOut is linear and its own adjoint. */
static void zero_out_gradient(const tn_host* host, tn_gradient_context* context, void* data,
                              tn_status* status) {
  const tn_value* dy = host->gradient_of(context, 0, status);
  const tn_value* dx;
  (void)data;
  if (tn_failed(host, status)) return;
  dx = tn_emit(host, context, "ZeroOut", dy, NULL, status);
  if (tn_failed(host, status)) return;
  host->gradient_set(context, 0, dx, status);
}

/* ---- Cube ---- */

/* dx = dy * 3 * x * x */
static void cube_gradient(const tn_host* host, tn_gradient_context* context, void* data,
                          tn_status* status) {
  const tn_value *dy, *x, *three, *square, *slope, *dx;
  (void)data;
  dy = host->gradient_of(context, 0, status);
  if (tn_failed(host, status)) return;
  x = host->gradient_input(context, 0, status);
  if (tn_failed(host, status)) return;
  three = host->gradient_scalar(context, host->value_dtype(x), 3.0, status);
  if (tn_failed(host, status)) return;
  square = tn_emit(host, context, "Square", x, NULL, status);
  if (tn_failed(host, status)) return;
  slope = tn_emit(host, context, "Mul", three, square, status);
  if (tn_failed(host, status)) return;
  dx = tn_emit(host, context, "Mul", dy, slope, status);
  if (tn_failed(host, status)) return;
  host->gradient_set(context, 0, dx, status);
}

static void* cube_prepare(const tn_host* host, tn_prepare_context* context, void* data,
                          tn_status* status) {
  const int64_t* dims = NULL;
  const int32_t rank = host->prepare_input_shape(context, 0, &dims);
  double elements = 1;
  int32_t i;
  (void)data;
  (void)status;
  for (i = 0; i < rank; ++i) elements *= (double)dims[i];
  host->prepare_set_cost(context, elements); /* about a nanosecond each */
  return NULL;
}

/* One kernel per element type. */
#define DEFINE_CUBE(NAME, TYPE)                                                              \
  struct NAME##_arrays {                                                                     \
    const TYPE* x;                                                                           \
    TYPE* y;                                                                                 \
  };                                                                                         \
  static void NAME##_piece(void* argument, int64_t begin, int64_t end, tn_status* status) {  \
    const struct NAME##_arrays* arrays = argument;                                           \
    int64_t i;                                                                               \
    (void)status;                                                                            \
    for (i = begin; i < end; ++i) arrays->y[i] = arrays->x[i] * arrays->x[i] * arrays->x[i]; \
  }                                                                                          \
  static void NAME##_run(const tn_host* host, tn_run_context* context, const void* state,    \
                         tn_status* status) {                                                \
    struct NAME##_arrays arrays;                                                             \
    const tn_tensor* x = host->run_input(context, 0);                                        \
    (void)state;                                                                             \
    arrays.x = host->tensor_data(x);                                                         \
    arrays.y = host->run_output(context, 0);                                                 \
    host->run_parallel_for(context, host->tensor_num_elements(x), 16384, 1.0, NAME##_piece,  \
                           &arrays, status);                                                 \
  }

DEFINE_CUBE(cube_float, float)
DEFINE_CUBE(cube_double, double)

/* ---- Registration ---- */

static const char* const x_of_t[] = {"x: T", NULL};
static const char* const y_of_t[] = {"y: T", NULL};
static const char* const numbers[] = {"T: {float, double, int32, int64}", NULL};
static const char* const floats[] = {"T: {float, double}", NULL};
static const char* const only_float[] = {"T: {float}", NULL};
static const char* const only_double[] = {"T: {double}", NULL};
static const char* const reads_x[] = {"x", NULL};
static const char* const y_over_x[] = {"x", "y", NULL};

static const tn_op_spec zero_out = {
    .struct_size = sizeof(tn_op_spec),
    .name = "ZeroOut",
    .inputs = x_of_t,
    .outputs = y_of_t,
    .attrs = numbers,
    .doc = "Keeps the first element of x; the others become zero.",
    .shape = tn_shape_unchanged,
    .gradient = zero_out_gradient,
};

static const tn_kernel_spec zero_out_kernel = {
    .struct_size = sizeof(tn_kernel_spec),
    .op = "ZeroOut",
    .run = zero_out_run,
};

static const tn_op_spec cube = {
    .struct_size = sizeof(tn_op_spec),
    .name = "Cube",
    .inputs = x_of_t,
    .outputs = y_of_t,
    .attrs = floats,
    .doc = "x * x * x, element by element.",
    .gradient_reads = reads_x,
    .in_place = y_over_x,
    .shape = tn_shape_unchanged,
    .gradient = cube_gradient,
};

static const tn_kernel_spec cube_float_kernel = {
    .struct_size = sizeof(tn_kernel_spec),
    .op = "Cube",
    .types = only_float,
    .prepare = cube_prepare,
    .run = cube_float_run,
};

static const tn_kernel_spec cube_double_kernel = {
    .struct_size = sizeof(tn_kernel_spec),
    .op = "Cube",
    .types = only_double,
    .prepare = cube_prepare,
    .run = cube_double_run,
};

void tn_plugin_init(const tn_host* host, tn_plugin* plugin) {
  if (!tn_plugin_begin(host, plugin, "example", "1.0")) return;
  host->register_op(plugin, &zero_out);
  host->register_kernel(plugin, &zero_out_kernel);
  host->register_op(plugin, &cube);
  host->register_kernel(plugin, &cube_float_kernel);
  host->register_kernel(plugin, &cube_double_kernel);
}
