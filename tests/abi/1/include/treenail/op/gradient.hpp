// SPDX-License-Identifier: Apache-2.0
// Gradient rules: functions Status(GradientContext*) that set the gradient of every input that is
// needed, by emitting ops. In a graph these become nodes; they must have gradients themselves.
#ifndef TREENAIL_OP_GRADIENT_HPP_
#define TREENAIL_OP_GRADIENT_HPP_

#include <cstdint>
#include <string>
#include <vector>

#include "treenail/op/attributes.hpp"

namespace tn {
namespace op {

// What a rule computes with. Valid until the rule returns.
class Value {
 public:
  Value() = default;
  explicit Value(const tn_value* value) : value_(value) {}
  const tn_value* get() const { return value_; }
  explicit operator bool() const { return value_ != nullptr; }
  DataType dtype() const { return static_cast<DataType>(host()->value_dtype(value_)); }
  PartialTensorShape shape() const {
    std::vector<int64_t> dims(64);
    const int32_t rank = host()->value_shape(value_, dims.data(), 64);
    return PartialTensorShape(dims.data(), rank);
  }

 private:
  const tn_value* value_ = nullptr;
};

// All of these throw an Error when they fail, which becomes that of the gradient.
class GradientContext : public CallReader {
 public:
  explicit GradientContext(tn_gradient_context* context)
      : CallReader(host()->gradient_call(context)), context_(context) {}

  int num_inputs() const { return host()->call_num_inputs(call()); }
  int num_outputs() const { return host()->call_num_outputs(call()); }
  // Values that the op's declaration says its gradient reads.
  Value input(int index) {
    return Checked([&](tn_status* s) { return host()->gradient_input(context_, index, s); });
  }
  Value output(int index) {
    return Checked([&](tn_status* s) { return host()->gradient_output(context_, index, s); });
  }
  // The gradient that comes in at an output: zeros where none does.
  Value grad(int output) {
    return Checked([&](tn_status* s) { return host()->gradient_of(context_, output, s); });
  }
  bool has_grad(int output) const { return host()->gradient_exists(context_, output) != 0; }
  // Whether anybody asks for the gradient of an input.
  bool needed(int input) const { return host()->gradient_needed(context_, input) != 0; }

  // The outputs of a new op. list_sizes: the number of inputs per declared input, where the op has
  // several lists of inputs.
  std::vector<Value> EmitAll(const char* op, const std::vector<Value>& inputs,
                             const Attrs& attrs = Attrs(),
                             const std::vector<int32_t>& list_sizes = {}) {
    std::vector<const tn_value*> given;
    for (const Value& input : inputs) given.push_back(input.get());
    std::vector<const tn_value*> outputs(64);
    detail::Held status;
    const size_t count = host()->gradient_emit(context_, op, given.data(), given.size(),
                                               attrs.get(), list_sizes.data(), list_sizes.size(),
                                               outputs.data(), outputs.size(), status);
    status.check();
    if (count > outputs.size())
      throw Error(
          errors::Unimplemented(op, " has ", count, " outputs, more than ", outputs.size()));
    return std::vector<Value>(outputs.begin(),
                              outputs.begin() + static_cast<std::ptrdiff_t>(count));
  }
  // Output 0 of a new op.
  Value Emit(const char* op, const std::vector<Value>& inputs, const Attrs& attrs = Attrs()) {
    const std::vector<Value> outputs = EmitAll(op, inputs, attrs);
    if (outputs.empty()) throw Error(errors::InvalidArgument(op, " has no output"));
    return outputs[0];
  }

  Value Scalar(DataType dtype, double value) {
    return Checked(
        [&](tn_status* s) { return host()->gradient_scalar(context_, dtype, value, s); });
  }
  template <class T>
  Value Constant(const std::vector<T>& values, const TensorShape& shape) {
    detail::Held made;
    tn_tensor* tensor =
        host()->tensor_new_from(DataTypeToEnum<T>::value, shape.data(), shape.dims(), values.data(),
                                values.size() * sizeof(T), made);
    made.check();
    detail::Held status;
    const Value value(host()->gradient_constant(context_, tensor, status));
    host()->tensor_delete(tensor);
    status.check();
    return value;
  }
  // The shape of an input as a vector; the op's declaration need not say that it is read.
  Value InputShape(int input, DataType dtype = DT_INT32) {
    return Checked(
        [&](tn_status* s) { return host()->gradient_input_shape(context_, input, dtype, s); });
  }
  // Sums a gradient of a broadcast result down to the shape of an input.
  Value SumToInput(Value value, int input) {
    return Checked([&](tn_status* s) {
      return host()->gradient_sum_to_input(context_, value.get(), input, s);
    });
  }

  void set(int input, Value value) {
    detail::Held status;
    host()->gradient_set(context_, input, value.get(), status);
    status.check();
  }
  // Rows `indices` of a tensor of shape `dense_shape`.
  void set_slices(int input, Value values, Value indices, Value dense_shape) {
    detail::Held status;
    host()->gradient_set_slices(context_, input, values.get(), indices.get(), dense_shape.get(),
                                status);
    status.check();
  }

 private:
  template <class Call>
  Value Checked(const Call& call) {
    detail::Held status;
    const Value value(call(static_cast<tn_status*>(status)));
    status.check();
    return value;
  }

  tn_gradient_context* context_;
};

using GradientFn = Status (*)(GradientContext*);

}  // namespace op
}  // namespace tn

#endif  // TREENAIL_OP_GRADIENT_HPP_
