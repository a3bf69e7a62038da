// SPDX-License-Identifier: Apache-2.0
// The matrix products that matmul_plain.cc prepares and matmul.cc registers.
#pragma once

#include <memory>

#include "framework/runtime/kernel/kernel.h"

namespace treenail::cpu {

// Of any width, signed or not.
std::unique_ptr<Kernel> prepare_matmul_integer(const PrepareContext& c);
std::unique_ptr<Kernel> prepare_matmul_complex64(const PrepareContext& c);
std::unique_ptr<Kernel> prepare_matmul_complex128(const PrepareContext& c);

}  // namespace treenail::cpu
