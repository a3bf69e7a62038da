// SPDX-License-Identifier: Apache-2.0
// What kernels that call functions (functional.cc, loop.cc) have in common.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_functions.h"

namespace treenail::host {

// Of a call before its body was seen: more than keeps the interpreter's lock.
inline constexpr double kCallNs = 50'000;

// `role`: which of the functions that the node calls; "" where there is one. Errors:
// InvalidArgument where its results are of other dtypes; as FunctionCaller::body().
FunctionBody& body_of(const PrepareContext& p, std::string_view role, const FunctionAttr& function,
                      const std::vector<bool>& wanted, std::span<const DType> types);

// The node's inputs [first, end), taken.
std::vector<Tensor> inputs_from(RunContext& c, int first, int end);
void set_outputs(RunContext& c, std::vector<Tensor>& values);

// As `if` takes a value in TensorFlow 1.
bool is_true(const Tensor& value);

std::unique_ptr<Kernel> prepare_while(const PrepareContext& p);

}  // namespace treenail::host
