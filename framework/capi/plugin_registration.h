// SPDX-License-Identifier: Apache-2.0
// What plugins registered: kept while tn_plugin_init runs, then made real all at once or not at
// all. Op definitions carry function pointers without context, so the rules of all plugin ops are
// the three functions below, which find their op by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/op/gradient.h"
#include "framework/op/shape_context.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "treenail/plugin.h"

namespace treenail::capi {

struct PluginOp {
  std::string name;
  std::string doc;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> attrs;
  std::vector<std::string> host_inputs;
  std::vector<std::string> gradient_reads;
  std::vector<std::string> in_place;  // pairs
  uint32_t flags = 0;
  tn_shape_rule shape = nullptr;
  tn_gradient_rule gradient = nullptr;
  void* data = nullptr;
};

struct PluginKernel {
  std::string op;
  std::vector<TypeConstraint> constraints;
  tn_kernel_prepare prepare = nullptr;
  tn_kernel_run run = nullptr;
  tn_kernel_start start = nullptr;  // in its place, of an asynchronous op
  tn_kernel_destroy destroy = nullptr;
  void* data = nullptr;
};

struct PluginRegistration {
  std::vector<PluginOp> ops;
  std::vector<PluginKernel> kernels;
};

// The caller's structs, checked and copied. Errors: InvalidArgument.
PluginOp plugin_op_from(const tn_op_spec* spec);
PluginKernel plugin_kernel_from(const tn_kernel_spec* spec);

// Registers everything, as family `plugin`, or nothing. Errors: AlreadyExists, InvalidArgument (a
// declaration, a type constraint), NotFound (a kernel for an op that does not exist). One at a time
// (runtime/kernel/plugin.h sees to it).
void commit(const PluginRegistration& registration, std::string_view plugin);

// Registered ones. They stay until the process ends.
const PluginOp& plugin_op(const OpInstance& op);
const PluginKernel& plugin_kernel(const OpInstance& op);

// What stands in op definitions and in the kernel registry.
void plugin_shape(ShapeContext& c);
void plugin_gradient(GradientContext& c);
std::unique_ptr<Kernel> plugin_prepare(const PrepareContext& c);

// The table plugins are given, and the parts of it, by file.
const tn_host& plugin_host();
void fill_in_shape_functions(tn_host& host);
void fill_in_gradient_functions(tn_host& host);
void fill_in_kernel_functions(tn_host& host);
void fill_in_run_functions(tn_host& host);
void fill_in_waiting_functions(tn_host& host);

// Calls a plugin's function; an exception that it lets out becomes an Error.
template <class F>
auto call_out(const char* what, F&& body) -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    throw internal_error("the plugin let an exception out of its ", what);
  }
}

}  // namespace treenail::capi
