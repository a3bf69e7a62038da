// SPDX-License-Identifier: Apache-2.0
// The Python type Tape, and what ties immediate execution to gradients written in Python.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "framework/eager/tape.h"
#include "python/binding/python_api.h"

namespace treenail::python {

// For an op without a gradient of its own: the one that RegisterGradient may give it by the time a
// tape goes back through the call. Null for other ops.
std::shared_ptr<RecordedRule> rule_in_python(const OpDef& def);

// The Python rule of that name, borrowed; null where none is registered.
PyObject* registered_rule(const std::string& name);

// A RunOp.
std::vector<Tensor> run_op_now(const OpDef& def, std::span<const Tensor> inputs,
                               const NamedAttrs& attrs, std::span<const int> arg_sizes,
                               OpInstance& op);

}  // namespace treenail::python
