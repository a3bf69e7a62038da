// SPDX-License-Identifier: Apache-2.0
// How much arithmetic an op's definition says that it does.
#pragma once

#include <span>

#include "framework/op/op_def.h"
#include "framework/tensor/shape.h"

namespace treenail {

// Floating-point operations of one run; an element-wise op without a rule of its own has one per
// element of its output. 0: unknown.
double count_flops(const OpInstance& op, std::span<const Shape> inputs,
                   std::span<const Shape> outputs);

}  // namespace treenail
