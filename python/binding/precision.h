// SPDX-License-Identifier: Apache-2.0
// Mixed precision: within a scope (tn.train.mixed_precision) an op's float inputs are cast to what
// ops of its kind gain from, or need, before it is added to a graph or run. Gradients follow by
// themselves: they are of the ops and casts that were made. Scopes are each thread's own.
#pragma once

#include <span>
#include <vector>

#include "framework/eager/immediate_tensor.h"
#include "python/binding/op_call.h"

namespace treenail::python {

// How many scopes of the process cast, or more, where a thread ended within: as long as there are
// none no call has to look for its own. Under the GIL.
inline int scopes_that_cast = 0;

// The narrow dtype of the thread's innermost scope; kInvalid: nothing is cast.
DType innermost_precision();
inline DType current_precision() {
  return scopes_that_cast == 0 ? DType::kInvalid : innermost_precision();
}

// Casts of immediate execution, held while the call runs.
using HeldCasts = std::vector<Ref>;

// Puts casts in the place of inputs that are to be cast. values: flat; arg_sizes: as of OpInputs.
// In a graph a value is cast once per scope and device. Errors: as Graph::add, as quick_call().
void cast_inputs(GraphObject* graph, const OpCall& call, std::span<const int> arg_sizes,
                 std::vector<Output>& values);
void cast_inputs(const OpCall& call, std::span<const int> arg_sizes,
                 std::vector<const ImmediateTensor*>& values, HeldCasts& held);

}  // namespace treenail::python
