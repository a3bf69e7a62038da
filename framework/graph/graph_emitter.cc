// SPDX-License-Identifier: Apache-2.0
#include "framework/graph/graph_emitter.h"

#include <utility>

#include "framework/base/text.h"

namespace treenail {

void GraphEmitter::set_place(std::string scope, const Node* origin) {
  scope_ = std::move(scope);
  origin_ = origin;
}

std::vector<Value> GraphEmitter::emit(std::string_view op, std::span<const Value> inputs,
                                      const NamedAttrs& attrs, std::span<const int> arg_sizes) {
  std::vector<Output> outputs;
  outputs.reserve(inputs.size());
  for (Value input : inputs) outputs.push_back(output_of(input));
  const std::string name = concat(scope_, op);
  NodeSpec spec{.op = op, .name = name, .inputs = outputs, .attrs = attrs, .arg_sizes = arg_sizes};
  if (origin_ != nullptr) {
    spec.device = origin_->device();
    spec.creation = origin_->creation();
  }
  const Node& node = graph_.add(spec);
  std::vector<Value> values;
  for (int i = 0; i < node.num_outputs(); ++i) values.push_back({node.id(), i});
  return values;
}

DType GraphEmitter::dtype(Value value) const {
  return graph_.node(static_cast<int>(value.id))->op().output_type(value.output);
}

PartialShape GraphEmitter::shape(Value value) const { return info(value).shape; }

const Tensor* GraphEmitter::constant(Value value) const { return info(value).constant.get(); }

Output GraphEmitter::output_of(Value value) const {
  if (!value.valid()) return {};
  return {graph_.node(static_cast<int>(value.id)), value.output};
}

}  // namespace treenail
