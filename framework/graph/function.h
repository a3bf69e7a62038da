// SPDX-License-Identifier: Apache-2.0
// A function: a named graph with a signature. Attributes of kind function refer to one by name.
// Graph files carry them.
#pragma once

#include <map>
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

// What a language binding has to know of a body to differentiate it by rules of its own. Not kept
// in files.
struct BodyRules {
  // Of nodes that ask for another gradient than their op's: the name that the binding knows it by.
  std::map<std::string, std::string, std::less<>> names;
  // Graphs whose every node the body has under its name: what a rule of theirs holds on to is found
  // there.
  std::vector<std::shared_ptr<const Graph>> copy_of;
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
  std::shared_ptr<const BodyRules> rules;  // null: none
  std::string gradient;                    // name of a function that computes the gradient, or ""
};

}  // namespace treenail
