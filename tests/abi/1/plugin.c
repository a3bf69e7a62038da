/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin of ABI 1, compiled by a test with the headers beside it and loaded into the library of
 * today. It stays as it is for as long as the major version is 1. Abi1Affine is scale * x + 1, with
 * an attribute, a shape rule, a gradient, memory of its own and a parallel loop.
 */
#include <stdlib.h>

#include "treenail/plugin.h"

struct affine {
  float scale;
};

static void affine_shape(const tn_host* host, tn_shape_context* context, void* data,
                         tn_status* status) {
  (void)data;
  if (host->shape_input_rank(context, 0) == 0) {
    tn_fail(host, status, TN_INVALID_ARGUMENT, "x is a scalar; at least one dimension is needed");
    return;
  }
  host->shape_copy_input(context, 0, 0, status);
}

/* dx = scale * dy */
static void affine_gradient(const tn_host* host, tn_gradient_context* context, void* data,
                            tn_status* status) {
  const tn_value *dy, *scale, *dx;
  const double factor = host->call_attr_float(host->gradient_call(context), "scale", 0, status);
  (void)data;
  if (tn_failed(host, status)) return;
  dy = host->gradient_of(context, 0, status);
  if (tn_failed(host, status)) return;
  scale = host->gradient_scalar(context, host->value_dtype(dy), factor, status);
  if (tn_failed(host, status)) return;
  dx = tn_emit(host, context, "Mul", dy, scale, status);
  if (tn_failed(host, status)) return;
  host->gradient_set(context, 0, dx, status);
}

static void* affine_prepare(const tn_host* host, tn_prepare_context* context, void* data,
                            tn_status* status) {
  struct affine* state = malloc(sizeof(*state));
  (void)data;
  if (state == NULL) {
    tn_fail(host, status, TN_RESOURCE_EXHAUSTED, "no memory for %d bytes", (int)sizeof(*state));
    return NULL;
  }
  state->scale = (float)host->call_attr_float(host->prepare_call(context), "scale", 0, status);
  return state;
}

static void affine_destroy(const tn_host* host, void* state) {
  (void)host;
  free(state);
}

struct piece {
  const float* x;
  float* y;
  float scale;
};

static void affine_piece(void* argument, int64_t begin, int64_t end, tn_status* status) {
  const struct piece* piece = argument;
  int64_t i;
  (void)status;
  for (i = begin; i < end; ++i) piece->y[i] = piece->scale * piece->x[i] + 1.0f;
}

static void affine_run(const tn_host* host, tn_run_context* context, const void* state,
                       tn_status* status) {
  const tn_tensor* x = host->run_input(context, 0);
  struct piece piece;
  piece.x = host->tensor_data(x);
  piece.y = host->run_output(context, 0);
  piece.scale = ((const struct affine*)state)->scale;
  host->run_parallel_for(context, host->tensor_num_elements(x), 1024, 1.0, affine_piece, &piece,
                         status);
}

static const char* const inputs[] = {"x: float", NULL};
static const char* const outputs[] = {"y: float", NULL};
static const char* const attrs[] = {"scale: float = 2.0", NULL};

static const tn_op_spec affine = {
    .struct_size = sizeof(tn_op_spec),
    .name = "Abi1Affine",
    .inputs = inputs,
    .outputs = outputs,
    .attrs = attrs,
    .doc = "scale * x + 1.",
    .shape = affine_shape,
    .gradient = affine_gradient,
};

static const tn_kernel_spec affine_kernel = {
    .struct_size = sizeof(tn_kernel_spec),
    .op = "Abi1Affine",
    .prepare = affine_prepare,
    .run = affine_run,
    .destroy = affine_destroy,
};

void tn_plugin_init(const tn_host* host, tn_plugin* plugin) {
  if (!tn_plugin_begin(host, plugin, "abi1", "1.0")) return;
  host->register_op(plugin, &affine);
  host->register_kernel(plugin, &affine_kernel);
}
