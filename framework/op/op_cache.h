// SPDX-License-Identifier: Apache-2.0
// resolve_op() with a memory: calls of an op that are alike, as in an unrolled loop, share one
// result. It is bounded; what does not repeat replaces what was there. One thread at a time.
#pragma once

#include <span>
#include <vector>

#include "framework/op/op_def.h"

namespace treenail {

class OpCache {
 public:
  // As resolve_op(). Errors: the same.
  OpInstance resolve(const OpDef& def, std::span<const DType> input_types,
                     std::span<const NamedAttr> attrs, std::span<const int> arg_sizes);

 private:
  struct Call {
    const OpDef* def = nullptr;
    NamedAttrs attrs;  // as given
    std::vector<int> arg_sizes;
    OpInstance op;
  };
  std::vector<Call> calls_;  // by hash
};

}  // namespace treenail
