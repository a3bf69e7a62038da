// SPDX-License-Identifier: Apache-2.0
// What declarations of operations on staging areas share, with keys (map_staging.cc) and without
// (staging.cc).
#pragma once

#include <string_view>

#include "framework/op/op_def.h"

namespace treenail {

// Of a tuple; of an operation that gives none.
inline constexpr char kStagedTypes[] = "dtypes: list(type) >= 1";
inline constexpr char kAnyStagedTypes[] = "dtypes: list(type) = []";

// An operation on a staging area, less its inputs and outputs.
inline OpDeclaration& with_area(OpDeclaration& op, std::string_view types) {
  return op.attr("capacity: int >= 0 = 0")
      .attr("memory_limit: int >= 0 = 0")
      .attr(types)
      .attr("container: string = ''")
      .attr("shared_name: string = ''")
      .not_differentiable();
}

}  // namespace treenail
