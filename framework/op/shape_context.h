// SPDX-License-Identifier: Apache-2.0
// What a shape rule sees and says. The same rule serves graph building, specialisation, immediate
// execution and the cost model: with fully known inputs it must give exact output shapes unless the
// op is declared data-dependent. A rule throws InvalidArgument; its caller places op type and node
// name before the text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "framework/op/op_def.h"
#include "framework/tensor/shape.h"
#include "framework/tensor/tensor.h"

namespace treenail {

// A known or partly known integer value of rank 0 or 1 (a shape, a size, axes): elements are
// numbers or absent.
struct PartialValue {
  std::vector<std::optional<int64_t>> elements;
  bool scalar = false;
  bool fully_known() const;
};

// What a resource value refers to: a variable of a dtype and shape, or components: of a queue's
// elements, or key and value of a table. Of a list: dtype and shape of its elements.
struct HandleInfo {
  DType dtype = DType::kInvalid;
  PartialShape shape = {};
  std::vector<HandleInfo> components = {};
};

// Everything known about one value before it is computed.
struct ValueInfo {
  DType dtype = DType::kInvalid;
  PartialShape shape;
  std::shared_ptr<const Tensor> constant;  // the whole value, when known
  std::shared_ptr<const PartialValue>
      value;  // known or partly known elements (also set for small integer constants)
  std::shared_ptr<const HandleInfo> handle;  // for resource values and lists
};

// The integer elements of a constant of rank <= 1, or null when it is not such a tensor.
std::shared_ptr<const PartialValue> partial_value_of(const Tensor& constant);

class ShapeContext {
 public:
  ShapeContext(const OpInstance& op, std::span<const ValueInfo* const> inputs,
               std::span<ValueInfo> outputs)
      : op_(op), inputs_(inputs), outputs_(outputs) {}

  const OpInstance& op() const { return op_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const PartialShape& input(int i) const { return inputs_[i]->shape; }
  const Tensor* constant(int i) const { return inputs_[i]->constant.get(); }
  const PartialValue* value(int i) const { return inputs_[i]->value.get(); }
  const HandleInfo* handle(int i) const { return inputs_[i]->handle.get(); }
  const ValueInfo& input_info(int i) const { return *inputs_[i]; }

  void set_output(int i, const PartialShape& shape) { outputs_[i].shape = shape; }
  void set_value(int i, PartialValue value);
  void set_constant(int i, Tensor value);  // also sets value()
  void set_handle(int i, HandleInfo handle);

  // input(i) checked: its rank, if known, is as asked; unknown rank becomes that rank with unknown
  // extents.
  PartialShape with_rank(int i, int rank) const;
  PartialShape with_rank_at_least(int i, int rank) const;
  // The shape that input i's elements spell (unknown elements: unknown extents; -1 counts as
  // unknown too).
  PartialShape shape_from_value(int i) const;
  // An axis given as attribute or value, counted from the end when negative. Errors:
  // InvalidArgument "axis = 3 is not in [-2, 2)".
  static int64_t checked_axis(int64_t axis, int rank, std::string_view what = "axis");
  // Fails unless a shape satisfies both; gives what both know. `what` names the two things in the
  // message.
  static PartialShape merge(const PartialShape& a, const PartialShape& b, std::string_view what);
  static int64_t merge_dim(int64_t a, int64_t b, std::string_view what);
  // NumPy broadcasting. Errors: InvalidArgument "Incompatible shapes: [2,3] vs. [4]".
  static PartialShape broadcast(const PartialShape& a, const PartialShape& b);

 private:
  const OpInstance& op_;
  std::span<const ValueInfo* const> inputs_;
  std::span<ValueInfo> outputs_;
};

// Rules shared by many ops.
void unchanged_shape(ShapeContext& c);         // output 0 has input 0's shape
void identity_shape(ShapeContext& c);          // output i is input i, with all that is known of it
void scalar_shape(ShapeContext& c);            // every output is a scalar
void broadcast_binary_shape(ShapeContext& c);  // inputs 0 and 1 broadcast
void no_outputs_shape(ShapeContext& c);        // for ops without outputs
void unknown_shape(ShapeContext& c);           // data-dependent ranks

// Sets output dtypes, runs the rule, checks what it says. Errors: as the rule throws.
void infer_shapes(const OpInstance& op, std::span<const ValueInfo* const> inputs,
                  std::span<ValueInfo> outputs);

}  // namespace treenail
