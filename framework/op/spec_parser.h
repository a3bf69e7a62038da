// SPDX-License-Identifier: Apache-2.0
// The declaration grammar of TensorFlow, read from text: "x: N * T", "T: {float, double} = float",
// "axes: list(int) >= 1 = [0, 1]". Who binds the names to positions: declaration.cc.
#pragma once

#include <string>
#include <string_view>

#include "framework/op/op_def.h"

namespace treenail {

// "name: [number *] type": `type` is a dtype's name or an attribute's, `number` an attribute's name
// or "".
struct ArgSpec {
  std::string name;
  std::string number;
  std::string type;
};

// Errors: Internal, saying what was met and what was expected; the caller names op and spec.
ArgSpec parse_arg_spec(std::string_view spec);
AttrDef parse_attr_spec(std::string_view spec);

// The dtype a type word of the grammar stands for ("float", "float32", "int32"), or kInvalid.
DType grammar_dtype(std::string_view word);

}  // namespace treenail
