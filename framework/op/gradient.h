// SPDX-License-Identifier: Apache-2.0
// Gradient rules: written once, in C++, against an Emitter ("emit op X on these values"). In a
// graph an Emitter adds nodes, on a recording it executes. A rule may only emit ops that have
// gradients themselves or are declared non-differentiable. Who walks the graph and sums
// contributions: graph/gradients.h. Python's RegisterGradient plugs in at the same place.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "framework/op/op_def.h"
#include "framework/tensor/shape.h"
#include "framework/tensor/tensor.h"

namespace treenail {

// An Emitter's value: an output of a node, or an entry of a recording. Meaningful to the Emitter
// that made it.
struct Value {
  int64_t id = -1;
  int32_t output = 0;
  bool valid() const { return id >= 0; }
  friend bool operator==(const Value&, const Value&) = default;
};

// The gradient with respect to one value: none, dense, or slices (rows `indices` of a tensor of
// shape `dense_shape`).
struct Gradient {
  enum class Kind : uint8_t { kNone, kDense, kSlices };
  Kind kind = Kind::kNone;
  Value dense;        // kDense
  Value values;       // kSlices: [n, ...]
  Value indices;      // kSlices: int32 or int64 [n]
  Value dense_shape;  // kSlices: int32 or int64 [rank]
  static Gradient of(Value dense) { return {Kind::kDense, dense, {}, {}, {}}; }
  static Gradient slices(Value values, Value indices, Value dense_shape) {
    return {Kind::kSlices, {}, values, indices, dense_shape};
  }
};

// Of a value that may have a gradient: a number that varies, or a list.
inline bool carries_gradient(DType t) {
  return is_floating(t) || is_complex(t) || t == DType::kVariant;
}

// float for half and bfloat16, else `t`.
inline DType widened_type(DType t) {
  return t == DType::kFloat16 || t == DType::kBFloat16 ? DType::kFloat32 : t;
}

class Emitter {
 public:
  virtual ~Emitter();
  // Adds or executes an op; type attributes are inferred from the inputs. `arg_sizes`: as in
  // resolve_op.
  virtual std::vector<Value> emit(std::string_view op, std::span<const Value> inputs,
                                  const NamedAttrs& attrs, std::span<const int> arg_sizes = {}) = 0;
  virtual DType dtype(Value value) const = 0;
  virtual PartialShape shape(Value value) const = 0;
  // The whole value where it is known already, else nullptr.
  virtual const Tensor* constant(Value value) const = 0;

  // The first output.
  Value call(std::string_view op, std::initializer_list<Value> inputs,
             const NamedAttrs& attrs = {});
  Value call(std::string_view op, std::span<const Value> inputs, const NamedAttrs& attrs = {},
             std::span<const int> arg_sizes = {});
  Value const_tensor(const Tensor& value);                         // op Const
  Value const_scalar(DType dtype, double value);                   // a scalar of that dtype
  Value const_ints(DType dtype, std::span<const int64_t> values);  // int32 or int64 vector
  // The shape of a value as an int vector: a constant where fully known, else op Shape. The value
  // itself is not read. int32 only where an op asks for it: it holds no extent of 2^31.
  Value shape_of(Value value, DType dtype = DType::kInt64);
  Value zeros_like(Value value);
  Value ones_like(Value value);
  Value neg(Value x) { return call("Neg", {x}); }
  Value add(Value a, Value b) { return call("Add", {a, b}); }
  Value sub(Value a, Value b) { return call("Sub", {a, b}); }
  Value mul(Value a, Value b) { return call("Mul", {a, b}); }
  Value div(Value a, Value b) { return call("RealDiv", {a, b}); }
  // For a gradient g and a factor or divisor that may be infinite or NaN: g * factor and g /
  // divisor, and 0 where g is 0. A rule takes its factors one by one, the running product first,
  // so that no product of factors meets the 0. Why: docs/decisions/poles.md.
  Value times(Value g, Value factor) { return call("MulNoNan", {factor, g}); }
  Value over(Value g, Value divisor);
  Value square(Value x) { return call("Square", {x}); }
  Value conj(Value x);               // x itself for real dtypes
  Value cast(Value x, DType dtype);  // x itself when it has that dtype
  // half and bfloat16 as float, where values on the way to the result could leave their range.
  Value widened(Value x) { return cast(x, widened_type(dtype(x))); }
  Value reshape(Value x, Value shape) { return call("Reshape", {x, shape}); }
  // Sums `gradient` (of a broadcast result) down to the shape of `like`: the adjoint of
  // broadcasting. `others`: the shapes of all else that was broadcast with `like`, where the caller
  // knows them: an axis that none of them can stretch needs no sum, whatever its extent.
  Value sum_to_shape_of(Value gradient, Value like, std::span<const PartialShape> others = {});
  // A gradient that is not none as one dense value: slices are summed into their rows.
  Value densified(const Gradient& gradient);
};

class GradientContext {
 public:
  GradientContext(const OpInstance& op, Emitter& emitter, std::span<const Value> inputs,
                  std::span<const Value> outputs, std::span<const Gradient> output_gradients,
                  std::span<const bool> needed, std::span<Gradient> result)
      : e(emitter),
        op_(op),
        inputs_(inputs),
        outputs_(outputs),
        output_gradients_(output_gradients),
        needed_(needed),
        result_(result) {}

  Emitter& e;
  const OpInstance& op() const { return op_; }
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // The value of an input or output that the OpDef declares as read. Errors: Internal when it is
  // not declared.
  Value input(int i) const;
  Value output(int i) const;
  // dtype, shape and shape_of need no such declaration: they do not read the value.
  DType input_dtype(int i) const { return op_.input_type(i); }
  PartialShape input_shape(int i) const { return e.shape(inputs_[i]); }
  const Tensor* input_constant(int i) const { return e.constant(inputs_[i]); }
  PartialShape output_shape(int i) const { return e.shape(outputs_[i]); }
  Value input_shape_value(int i, DType dtype = DType::kInt64) const {
    return e.shape_of(inputs_[i], dtype);
  }
  // sum_to_shape_of for input i.
  Value sum_to_input(Value gradient, int i) const;

  bool has_gradient(int output) const {
    return output_gradients_[output].kind != Gradient::Kind::kNone;
  }
  // Dense gradient of an output: slices are scattered, none becomes zeros.
  Value gradient(int output = 0);
  const Gradient& raw_gradient(int output) const { return output_gradients_[output]; }

  // Whether anybody asks for the gradient of input i: work for others may be left out.
  bool needed(int i) const { return needed_[i]; }
  void set(int i, Value gradient) { result_[i] = Gradient::of(gradient); }
  void set(int i, const Gradient& gradient) { result_[i] = gradient; }

 private:
  const OpInstance& op_;
  std::span<const Value> inputs_;
  std::span<const Value> outputs_;
  std::span<const Gradient> output_gradients_;
  std::span<const bool> needed_;
  std::span<Gradient> result_;
};

}  // namespace treenail
