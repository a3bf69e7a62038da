/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that must be refused as a whole: its first op is new, its second is the example's Cube.
 */
#include "treenail/plugin.h"

static const tn_op_spec fresh = {
    .struct_size = sizeof(tn_op_spec),
    .name = "ClashFresh",
    .inputs = (const char* const[]){"x: float", NULL},
    .outputs = (const char* const[]){"y: float", NULL},
    .flags = TN_OP_NOT_DIFFERENTIABLE,
    .shape = tn_shape_unchanged,
};

static const tn_op_spec cube = {
    .struct_size = sizeof(tn_op_spec),
    .name = "Cube",
    .inputs = (const char* const[]){"x: float", NULL},
    .outputs = (const char* const[]){"y: float", NULL},
    .flags = TN_OP_NOT_DIFFERENTIABLE,
    .shape = tn_shape_unchanged,
};

void tn_plugin_init(const tn_host* host, tn_plugin* plugin) {
  if (!tn_plugin_begin(host, plugin, "clash", "1.0")) return;
  host->register_op(plugin, &fresh);
  host->register_op(plugin, &cube);
}
