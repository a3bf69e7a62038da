/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin that goes wrong in the way the environment variable BROKEN_PLUGIN names, after it has
 * registered the op BrokenFresh and a kernel for it: nothing of it may stay.
 */
#include <stdlib.h>
#include <string.h>

#include "treenail/plugin.h"

static const char* const x_of_t[] = {"x: T", NULL};
static const char* const x_of_u[] = {"x: U", NULL};
static const char* const x_resource[] = {"x: resource", NULL};
static const char* const y_of_t[] = {"y: T", NULL};
static const char* const only_x[] = {"x", NULL};
static const char* const floats[] = {"T: {float, double}", NULL};
static const char* const only_float[] = {"T: {float}", NULL};
static const char* const unclosed[] = {"T: {float, double", NULL};
static const char* const other_attr[] = {"S: {float}", NULL};
static const char* const any_type[] = {"T: type", NULL};

static void copy_run(const tn_host* host, tn_run_context* context, const void* state,
                     tn_status* status) {
  const tn_tensor* x = host->run_input(context, 0);
  (void)state;
  (void)status;
  memcpy(host->run_output(context, 0), host->tensor_data(x), host->tensor_bytes(x));
}

static void break_op(const tn_host* host, tn_plugin* plugin, const char* how) {
  tn_op_spec op = {
      .struct_size = sizeof(tn_op_spec),
      .name = "BrokenOp",
      .inputs = x_of_t,
      .outputs = y_of_t,
      .attrs = floats,
      .flags = TN_OP_NOT_DIFFERENTIABLE,
      .shape = tn_shape_unchanged,
  };
  if (strcmp(how, "declaration") == 0) op.inputs = x_of_u;
  if (strcmp(how, "grammar") == 0) op.attrs = unclosed;
  if (strcmp(how, "no shape rule") == 0) op.shape = NULL;
  if (strcmp(how, "no gradient") == 0) op.flags = 0;
  if (strcmp(how, "flag") == 0) op.flags |= 1u << 30;
  if (strcmp(how, "struct size") == 0) op.struct_size = 3;
  if (strcmp(how, "in place") == 0) op.in_place = only_x;
  if (strcmp(how, "reads") == 0) op.gradient_reads = only_x;
  if (strcmp(how, "resource") == 0) op.inputs = x_resource;
  if (strcmp(how, "no name") == 0) op.name = NULL;
  host->register_op(plugin, &op);
}

static void break_kernel(const tn_host* host, tn_plugin* plugin, const char* how) {
  tn_kernel_spec kernel = {
      .struct_size = sizeof(tn_kernel_spec),
      .op = "BrokenOp",
      .types = only_float,
      .run = copy_run,
  };
  if (strcmp(how, "two kernels") == 0) host->register_kernel(plugin, &kernel);
  if (strcmp(how, "unknown op") == 0) kernel.op = "NoSuchOpAnywhere";
  if (strcmp(how, "not a type") == 0) kernel.types = other_attr;
  if (strcmp(how, "no types") == 0) kernel.types = any_type;
  if (strcmp(how, "no run") == 0) kernel.run = NULL;
  if (strcmp(how, "taken kernel") == 0) {
    kernel.op = "Add";
    kernel.types = only_float;
  }
  host->register_kernel(plugin, &kernel);
}

static const tn_op_spec fresh = {
    .struct_size = sizeof(tn_op_spec),
    .name = "BrokenFresh",
    .inputs = (const char* const[]){"x: float", NULL},
    .outputs = (const char* const[]){"y: float", NULL},
    .flags = TN_OP_NOT_DIFFERENTIABLE,
    .shape = tn_shape_unchanged,
};

static const tn_kernel_spec fresh_kernel = {
    .struct_size = sizeof(tn_kernel_spec),
    .op = "BrokenFresh",
    .run = copy_run,
};

void tn_plugin_init(const tn_host* host, tn_plugin* plugin) {
  const char* how = getenv("BROKEN_PLUGIN");
  if (how == NULL) how = "";
  if (strcmp(how, "silent") == 0) return;
  if (!tn_plugin_begin(host, plugin, "broken", "1.0")) return;
  host->register_op(plugin, &fresh);
  host->register_kernel(plugin, &fresh_kernel);
  if (strcmp(how, "abi") == 0) plugin->abi_version = 99;
  if (strcmp(how, "host") == 0) plugin->host_size = sizeof(tn_host) + 8;
  if (strcmp(how, "plugin name") == 0) plugin->name = NULL;
  if (strcmp(how, "own failure") == 0) {
    host->status_set(plugin->status, TN_UNAVAILABLE, "the licence server is down");
  }
  break_op(host, plugin, how);
  break_kernel(host, plugin, how);
}
