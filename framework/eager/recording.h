// SPDX-License-Identifier: Apache-2.0
// A recording: ops executed at once and remembered, so that gradients can be computed from them. It
// proves that gradient rules hold without a graph (op cases, C++ tests); it keeps every value. It
// is not the tape of immediate mode.
#pragma once

#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "framework/op/gradient.h"
#include "framework/op/op_def.h"
#include "framework/tensor/tensor.h"

namespace treenail {

class ResourceManager;

class Recording final : public Emitter {
 public:
  // What rules are told of recorded values: everything, or only dtypes and constants, as in a graph
  // of unknown shapes.
  enum class Known { kValues, kConstantsOnly };
  // `resources` as in execute().
  explicit Recording(ResourceManager* resources = nullptr, Known known = Known::kValues)
      : resources_(resources), known_(known) {}

  // A value that no op of the recording computes.
  Value input(const Tensor& tensor);
  std::vector<Value> emit(std::string_view op, std::span<const Value> inputs,
                          const NamedAttrs& attrs, std::span<const int> arg_sizes = {}) override;
  DType dtype(Value value) const override { return tensor(value).dtype(); }
  PartialShape shape(Value value) const override;
  const Tensor* constant(Value value) const override;

  const Tensor& tensor(Value value) const {
    return entries_[static_cast<size_t>(value.id)].outputs[static_cast<size_t>(value.output)];
  }

  // As backpropagate() in op/backprop.h; what it emits is recorded as well: gradients of gradients
  // follow.
  std::vector<Gradient> gradients(std::span<const Value> ys, std::span<const Value> xs,
                                  std::span<const Value> grad_ys = {},
                                  std::span<const Value> stop_gradients = {});

 private:
  friend class RecordedProgram;
  struct Entry {
    OpInstance op;
    std::vector<Value> inputs;
    std::vector<Tensor> outputs;
    bool is_input = false;
  };
  bool is_constant(Value value) const;

  std::deque<Entry> entries_;
  ResourceManager* resources_;
  Known known_;
};

}  // namespace treenail
