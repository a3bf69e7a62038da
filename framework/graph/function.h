// SPDX-License-Identifier: Apache-2.0
// A function: a named graph with a signature. Attributes of kind function refer to one by name.
// Graph files carry them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/graph/graph.h"

namespace treenail {

struct FunctionArg {
  std::string name;
  DType dtype = DType::kInvalid;
  PartialShape shape;
};

struct Function {
  std::string name;
  std::string doc;
  std::vector<FunctionArg> inputs;
  std::vector<FunctionArg> outputs;
  std::shared_ptr<Graph> body;             // its functions are those of the graph around it
  std::vector<std::string> input_nodes;    // one per input: a value of the body, "node:1", of
                                           // which "node" is the first; a Placeholder as a rule
  std::vector<std::string> output_values;  // "node:0" of the body, one per output
  // A node asks for another gradient than its op's, by a name that the language binding knows; not
  // kept in files.
  bool overrides_gradients = false;
  std::string gradient;  // name of a function that computes the gradient, or ""
};

}  // namespace treenail
