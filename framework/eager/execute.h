// SPDX-License-Identifier: Apache-2.0
// Immediate execution: one op on tensors, now, on the caller's thread. No graph, no tape. The same
// kernels and shape rules as in a session (runtime/run/immediate.h); where ops become nodes
// instead: graph/graph.h.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "framework/base/cancellation.h"
#include "framework/op/op_def.h"
#include "framework/tensor/tensor.h"

namespace treenail {

class ResourceManager;

// The outputs of `op` on `inputs` (flat; arg_sizes as in resolve_op). State (variables, random
// counters) lives in `resources`, by default the process's own. A stateful random op takes the next
// numbers of the stream that its op type, dtype and seeds name. Errors begin "[MatMul] ":
// InvalidArgument (types, attributes, shapes, values), Unimplemented (no kernel), and whatever the
// kernel raises; Cancelled when `token` is cancelled. `ran` is given what was run. Where inputs or
// state lie in the memory of an accelerator: as PlacedCall says, with no request.
std::vector<Tensor> execute(const OpDef& op, std::span<const Tensor> inputs,
                            const NamedAttrs& attrs = {}, std::span<const int> arg_sizes = {},
                            ResourceManager* resources = nullptr,
                            const CancellationToken* token = nullptr, OpInstance* ran = nullptr);
// The same by name. Errors: also NotFound.
std::vector<Tensor> execute(std::string_view op, std::span<const Tensor> inputs,
                            const NamedAttrs& attrs = {}, std::span<const int> arg_sizes = {},
                            ResourceManager* resources = nullptr,
                            const CancellationToken* token = nullptr);

// An op resolved already: what a caller that repeats itself keeps. On the CPU, and on what lies
// there.
std::vector<Tensor> execute(const OpInstance& op, std::span<const Tensor> inputs,
                            ResourceManager* resources = nullptr,
                            const CancellationToken* token = nullptr);

}  // namespace treenail
