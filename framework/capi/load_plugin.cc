// SPDX-License-Identifier: Apache-2.0
// Loading a plugin: its init function fills a registration, which is committed when everything
// about the plugin is right. Also the table that plugins call.
#include "framework/capi/load_plugin.h"

#include <atomic>
#include <string>

#include "build_info.h"
#include "framework/base/fork.h"
#include "framework/capi/guard.h"
#include "framework/capi/plugin_registration.h"
#include "framework/runtime/kernel/plugin.h"

namespace treenail {
namespace capi {
namespace {

// Keeps a failure in plugin->status, the first one only, and goes on.
template <class F>
void registering(tn_plugin* plugin, F&& body) noexcept {
  if (plugin == nullptr || plugin->status->code != Code::kOk) return;
  guarded(plugin->status, [&] { body(*static_cast<PluginRegistration*>(plugin->registration)); });
}

void register_op(tn_plugin* plugin, const tn_op_spec* spec) noexcept {
  registering(plugin, [&](PluginRegistration& r) { r.ops.push_back(plugin_op_from(spec)); });
}

void register_kernel(tn_plugin* plugin, const tn_kernel_spec* spec) noexcept {
  registering(plugin,
              [&](PluginRegistration& r) { r.kernels.push_back(plugin_kernel_from(spec)); });
}

void fill_in_general_functions(tn_host& host) {
  host.register_op = register_op;
  host.register_kernel = register_kernel;
  host.status_code = tn_status_code;
  host.status_message = tn_status_message;
  host.status_set = tn_status_set;
  host.status_new = tn_status_new;
  host.status_delete = tn_status_delete;
  host.dtype_size = tn_dtype_size;
  host.dtype_name = tn_dtype_name;
  host.tensor_new = tn_tensor_new;
  host.tensor_new_from = tn_tensor_new_from;
  host.tensor_delete = tn_tensor_delete;
  host.tensor_dtype = tn_tensor_dtype;
  host.tensor_rank = tn_tensor_rank;
  host.tensor_dims = tn_tensor_dims;
  host.tensor_num_elements = tn_tensor_num_elements;
  host.tensor_bytes = tn_tensor_bytes;
  host.tensor_data = tn_tensor_data;
  host.tensor_mutable_data = tn_tensor_mutable_data;
  host.tensor_string = tn_tensor_string;
  host.tensor_set_string = tn_tensor_set_string;
}

void fill_in_attribute_functions(tn_host& host) {
  host.call_op = tn_call_op;
  host.call_num_inputs = tn_call_num_inputs;
  host.call_num_outputs = tn_call_num_outputs;
  host.call_input_dtype = tn_call_input_dtype;
  host.call_output_dtype = tn_call_output_dtype;
  host.call_attr_kind = tn_call_attr_kind;
  host.call_attr_size = tn_call_attr_size;
  host.call_attr_int = tn_call_attr_int;
  host.call_attr_float = tn_call_attr_float;
  host.call_attr_bool = tn_call_attr_bool;
  host.call_attr_string = tn_call_attr_string;
  host.call_attr_type = tn_call_attr_type;
  host.call_attr_shape = tn_call_attr_shape;
  host.call_attr_tensor = tn_call_attr_tensor;
  host.call_attr_function = tn_call_attr_function;
  host.attrs_new = tn_attrs_new;
  host.attrs_delete = tn_attrs_delete;
  host.attrs_set_int = tn_attrs_set_int;
  host.attrs_set_float = tn_attrs_set_float;
  host.attrs_set_bool = tn_attrs_set_bool;
  host.attrs_set_string = tn_attrs_set_string;
  host.attrs_set_type = tn_attrs_set_type;
  host.attrs_set_shape = tn_attrs_set_shape;
  host.attrs_set_tensor = tn_attrs_set_tensor;
  host.attrs_set_ints = tn_attrs_set_ints;
  host.attrs_set_floats = tn_attrs_set_floats;
  host.attrs_set_types = tn_attrs_set_types;
  host.attrs_set_bools = tn_attrs_set_bools;
  host.attrs_set_strings = tn_attrs_set_strings;
  host.attrs_set_shapes = tn_attrs_set_shapes;
  host.call_input_range = tn_call_input_range;
  host.call_output_range = tn_call_output_range;
}

void check_version(const tn_plugin& plugin) {
  if (plugin.abi_version == 0) {
    throw failed_precondition("it does not say its ABI version: tn_plugin_begin() comes first");
  }
  if (plugin.abi_version != TN_PLUGIN_ABI_VERSION) {
    throw failed_precondition("it was built for plugin ABI version ", plugin.abi_version,
                              "; this Treenail (", build_info::kVersion, ") has version ",
                              TN_PLUGIN_ABI_VERSION);
  }
  if (plugin.host_size > sizeof(tn_host)) {
    throw failed_precondition("it was built for a later Treenail: it needs a host table of ",
                              plugin.host_size, " bytes; that of ", build_info::kVersion, " has ",
                              sizeof(tn_host));
  }
}

void initialise(void* symbol) {
  PluginRegistration registration;
  tn_status status;
  tn_plugin plugin = {};
  plugin.struct_size = sizeof(plugin);
  plugin.status = &status;
  plugin.registration = &registration;
  const auto init = reinterpret_cast<decltype(&tn_plugin_init)>(symbol);
  call_out("tn_plugin_init", [&] { init(&plugin_host(), &plugin); });
  check_version(plugin);
  rethrow(status);
  commit(registration, text(plugin.name, "the plugin's name"));
}

}  // namespace

const tn_host& plugin_host() {
  static const tn_host host = [] {
    tn_host made = {};
    made.struct_size = sizeof(made);
    made.abi_version = TN_PLUGIN_ABI_VERSION;
    made.version = build_info::kVersion;
    fill_in_general_functions(made);
    fill_in_attribute_functions(made);
    fill_in_shape_functions(made);
    fill_in_gradient_functions(made);
    fill_in_kernel_functions(made);
    fill_in_run_functions(made);
    fill_in_waiting_functions(made);
    return made;
  }();
  return host;
}

}  // namespace capi

void load_plugin(const std::string& path) {
  open_plugin(path, "tn_plugin_init", [&path](void* symbol) {
    try {
      capi::initialise(symbol);
    } catch (const Error& error) {
      throw error.with_prefix(concat("plugin ", path, ": "));
    }
  });
}

void load_environment_plugins() {
  static std::atomic<bool> loaded{false};
  if (loaded.load(std::memory_order_acquire)) return;
  const ForkBlock block;
  if (loaded.load(std::memory_order_acquire)) return;
  for (const std::string& path : plugins_of_environment()) load_plugin(path);
  loaded.store(true, std::memory_order_release);
}

}  // namespace treenail
