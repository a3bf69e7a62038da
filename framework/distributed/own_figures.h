// SPDX-License-Identifier: Apache-2.0
// What this process tells other tasks of what it may use, for placements by cost. Nothing is
// measured for it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "framework/placement/task_figures.h"

namespace treenail {

// Equal in processes of one running kernel and one user. Whether they can share memory they find
// out.
std::string kernel_and_user();

// `devices`: full names. `most_bytes`: that a run may hold (Limits::memory_bytes); 0: any.
TaskFigures own_figures(std::span<const std::string> devices, int64_t most_bytes);

}  // namespace treenail
