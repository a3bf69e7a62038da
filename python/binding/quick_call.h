// SPDX-License-Identifier: Apache-2.0
// Immediate execution of what is called most: ops without list arguments, on concrete tensors and
// plain Python numbers.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "framework/base/error.h"
#include "framework/eager/immediate_tensor.h"
#include "framework/eager/placed_call.h"
#include "framework/eager/prepared_call.h"
#include "framework/op/op_def.h"
#include "python/binding/gil.h"
#include "python/binding/graph_type.h"
#include "python/binding/python_api.h"

namespace treenail::python {

// What call_op() gives; null where the call is of another kind, or inputs may have to be cast
// (precision.h), and nothing has happened. Errors: as call_op().
Ref quick_call(const OpDef& def, std::span<PyObject* const> inputs, const NamedAttrs& attrs);
// The same on at most six tensors, of an op without list arguments.
Ref quick_call(const OpDef& def, std::span<const ImmediateTensor* const> inputs,
               const NamedAttrs& attrs);
// The same, asking for another device than the context does.
Ref quick_call_on(std::string_view device, const OpDef& def,
                  std::span<const ImmediateTensor* const> inputs, const NamedAttrs& attrs);

// tensor[key]; null where the subscript is of another kind.
Ref quick_subscript(PyObject* tensor, PyObject* key);

// What f() gives; what it throws bears the op's name at its end, as TensorFlow has it.
template <class F>
auto naming_op(const OpDef& def, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw Error(error.code(), concat(error.message(), " [Op:", def.name, "]"));
  }
}

// The device that calls ask for in this context, "" for none. Valid until the context changes.
inline std::string_view current_device() {
  if (contexts_with_device == 0) return {};
  return default_graph()->state->context().device;
}

// run(call) with the call where it runs, asking for a device (PlacedCall); copies are made without
// the GIL. Errors: of PlacedCall, with the op's name.
template <class F>
auto at_its_place(const ImmediateCall& call, std::string_view request, F&& run) {
  if (!may_leave_host(request)) return run(call);
  PlacedCall placed = naming_op(call.def, [&] { return PlacedCall(call, request); });
  if (placed.has_copies()) {
    naming_op(call.def, [&] {
      const GilRelease release;
      placed.bring_inputs();
    });
  }
  return run(placed.call());
}

// Runs a call, without the GIL where it may take long or wait. Errors: of the kernel.
void run_call(CallRun& run, const PreparedCall& call);

// What the call of an op gives to Python, of its flat outputs.
Ref concrete_result(const OpDef& def, std::span<ImmediateTensor> outputs);

}  // namespace treenail::python
