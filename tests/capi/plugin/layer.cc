// SPDX-License-Identifier: Apache-2.0
// Ops by the C++ layer (treenail/op.hpp): between them they use all that it offers that
// examples/tensor_product does not. layer_test.cc says what each must do; layer_waiting.cc has the
// asynchronous ones.
#include <stdexcept>
#include <string>
#include <vector>

#include "treenail/op.hpp"

namespace {

using namespace tn::op;  // NOLINT(google-build-using-namespace): as plugins are written

// ---- LayerWeightedSum: a list of inputs, its weights an attribute; and one output per input ----

Status weighted_shape(InferenceContext* c) {
  std::vector<ShapeHandle> shapes;
  TREENAIL_RETURN_IF_ERROR(c->input("values", &shapes));
  ShapeHandle all;
  for (const ShapeHandle& shape : shapes) TREENAIL_RETURN_IF_ERROR(c->Merge(all, shape, &all));
  c->set_output(0, all);
  return c->set_output("parts", std::vector<ShapeHandle>(shapes.size(), all));
}

// d(sum of w_i x_i) + d(w_i x_i): both outputs lead to input i.
Status weighted_gradient(GradientContext* c) {
  const auto weights = c->attr<std::vector<double>>("weights");
  for (int i = 0; i < c->num_inputs(); ++i) {
    const Value dy = c->Emit("Add", {c->grad(0), c->grad(1 + i)});
    const Value weight = c->Scalar(dy.dtype(), weights[static_cast<size_t>(i)]);
    c->set(i, c->Emit("Mul", {dy, weight}));
  }
  return Status::OK();
}

template <class T>
class WeightedSumOp : public OpKernel {
 public:
  explicit WeightedSumOp(OpKernelConstruction* context) : OpKernel(context) {
    TREENAIL_OP_REQUIRES_OK(context, context->GetAttr("weights", &weights_));
    TREENAIL_OP_REQUIRES(context, weights_.size() == static_cast<size_t>(context->num_inputs()),
                         errors::InvalidArgument(weights_.size(), " weights for ",
                                                 context->num_inputs(), " values"));
  }
  void Compute(OpKernelContext* context) override {
    OpInputList values;
    TREENAIL_OP_REQUIRES_OK(context, context->input_list("values", &values));
    Tensor* sum = nullptr;
    TREENAIL_OP_REQUIRES_OK(context, context->allocate_output("sum", values[0].shape(), &sum));
    for (T& element : sum->flat<T>()) element = 0;
    for (int k = 0; k < values.size(); ++k) {
      Tensor* part = context->mutable_output(1 + k);
      for (int64_t i = 0; i < values[k].NumElements(); ++i) {
        part->flat<T>()(i) =
            static_cast<T>(weights_[static_cast<size_t>(k)]) * values[k].flat<T>()(i);
        sum->flat<T>()(i) += part->flat<T>()(i);
      }
    }
  }

 private:
  std::vector<float> weights_;
};

TREENAIL_REGISTER_OP("LayerWeightedSum")
    .Input("values: N * T")
    .Output("sum: T")
    .Output("parts: N * T")
    .Attr("N: int >= 1")
    .Attr("weights: list(float)")
    .Attr("T: {float, double}")
    .SetShapeFn(weighted_shape)
    .SetGradientFn(weighted_gradient)
    .Doc("Sum of values[i] * weights[i], and each of these.");
TREENAIL_REGISTER_KERNELS("LayerWeightedSum", "T", WeightedSumOp, float, double);

// ---- LayerDescribe: attributes of every kind, told in a string ----

class DescribeOp : public OpKernel {
 public:
  explicit DescribeOp(OpKernelConstruction* context) : OpKernel(context) {
    const auto size = context->attr<PartialTensorShape>("size");
    const auto kinds = context->attr<std::vector<DataType>>("kinds");
    const auto names = context->attr<std::vector<std::string>>("names");
    const auto flags = context->attr<std::vector<bool>>("flags");
    const auto value = context->attr<Tensor>("value");
    text_ = StrCat(context->attr<std::string>("word"), " ", context->attr<bool>("flag"), " ",
                   context->attr<int16_t>("small"), " ", size);
    for (const DataType kind : kinds) text_ += StrCat(" ", kind);
    for (const std::string& name : names) text_ += " " + name;
    for (const bool flag : flags) text_ += flag ? " yes" : " no";
    text_ += StrCat(" ", value.dtype(), value.shape(), " ", context->HasAttr("absent"));
  }
  void Compute(OpKernelContext* context) override {
    const std::string before(context->input(0).string(0));
    Tensor* text = nullptr;
    TREENAIL_OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape(), &text));
    text->set_string(0, before + text_);
  }

 private:
  std::string text_;
};

TREENAIL_REGISTER_OP("LayerDescribe")
    .Input("before: string")
    .Output("text: string")
    .Attr("word: string = 'none'")
    .Attr("flag: bool = true")
    .Attr("small: int = 7")
    .Attr("size: shape")
    .Attr("kinds: list(type)")
    .Attr("names: list(string)")
    .Attr("flags: list(bool)")
    .Attr("value: tensor")
    .NotDifferentiable()
    .SetShapeFn(shape_fn::ScalarShape);
TREENAIL_REGISTER_KERNEL_BUILDER(Name("LayerDescribe").Device(DEVICE_CPU), DescribeOp);

// ---- LayerRepeat: a shape that follows from a value; in parallel; a rule with slices ----

Status repeat_shape(InferenceContext* c) {
  ShapeHandle out;
  TREENAIL_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &out));
  const Tensor times = c->input_tensor(1);
  const bool known = times.IsInitialized() && InferenceContext::ValueKnown(out.dim_size(0));
  const int64_t rows =
      known ? out.dim_size(0) * static_cast<const Tensor&>(times).scalar<int32_t>()() : -1;
  if (known && rows < 0) return errors::InvalidArgument("times is negative");
  TREENAIL_RETURN_IF_ERROR(c->ReplaceDim(out, 0, rows, &out));
  c->set_output(0, out);
  return Status::OK();
}

class RepeatOp : public OpKernel {
 public:
  explicit RepeatOp(OpKernelConstruction* context) : OpKernel(context) {
    Tensor times;
    TREENAIL_OP_REQUIRES_OK(context, context->host_value(1, &times));
    times_ = static_cast<const Tensor&>(times).scalar<int32_t>()();
    rows_ = context->input_shape(0).dim_size(0);
    context->set_cost(static_cast<double>(rows_ * times_));
  }
  void Compute(OpKernelContext* context) override {
    const Tensor x = context->input(0);
    Tensor* y = nullptr;
    TREENAIL_OP_REQUIRES_OK(context, context->allocate_output(0, {rows_ * times_}, &y));
    const float* in = x.data<float>();
    float* out = y->data<float>();
    TREENAIL_OP_REQUIRES_OK(
        context, context->ParallelFor(rows_ * times_, 64, 1.0, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) out[i] = in[i / times_];
        }));
  }

 private:
  int64_t times_ = 0, rows_ = 0;
};

TREENAIL_REGISTER_OP("LayerRepeat")
    .Input("x: float")
    .Input("times: int32")
    .Output("y: float")
    .HostInput("times")
    .NotDifferentiable()
    .SetShapeFn(repeat_shape);
TREENAIL_REGISTER_KERNEL_BUILDER(Name("LayerRepeat"), RepeatOp);

// ---- LayerPositive: the kernel makes outputs and temporaries of its own ----

template <class T>
class PositiveOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor x;
    TREENAIL_OP_REQUIRES_OK(context, context->input("x", &x));
    const Tensor& given = x;
    Tensor kept;
    TREENAIL_OP_REQUIRES_OK(context, context->allocate_temp(x.dtype(), given.shape(), &kept));
    int64_t count = 0;
    for (const T element : given.flat<T>()) {
      if (element > 0) kept.flat<T>()(count++) = element;
    }
    Tensor* y = nullptr;
    TREENAIL_OP_REQUIRES_OK(context, context->allocate_output(0, {count}, &y));
    for (int64_t i = 0; i < count; ++i) y->vec<T>()(i) = kept.flat<T>()(i);
  }
};

Status vector_of_unknown_size(InferenceContext* c) {
  c->set_output(0, c->Vector(c->UnknownDim()));
  return Status::OK();
}

TREENAIL_REGISTER_OP("LayerPositive")
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {float, int32}")
    .DataDependentShape()
    .NotDifferentiable()
    .SetShapeFn(vector_of_unknown_size);
TREENAIL_REGISTER_KERNELS("LayerPositive", "T", PositiveOp, float, int32_t);

// ---- LayerFails: whatever user code throws, and wherever ----

[[noreturn]] void throw_as(const std::string& what) {
  if (what == "bad_alloc") throw std::bad_alloc();
  if (what == "out_of_range") throw std::out_of_range("there is no row 7");
  if (what == "invalid_argument") throw std::invalid_argument("that is no number");
  if (what == "int") throw 7;  // NOLINT: what is no std::exception
  if (what == "error") throw Error(errors::Unavailable("the server is down"));
  throw std::runtime_error("it broke");
}

Status failing_shape(InferenceContext* c) {
  if (c->attr<std::string>("where") == "shape") throw_as(c->attr<std::string>("what"));
  return shape_fn::UnchangedShape(c);
}
Status failing_gradient(GradientContext* c) { throw_as(c->attr<std::string>("what")); }

class FailsOp : public OpKernel {
 public:
  explicit FailsOp(OpKernelConstruction* context) : OpKernel(context) {
    where_ = context->attr<std::string>("where");
    what_ = context->attr<std::string>("what");
    if (where_ == "constructor") throw_as(what_);
    TREENAIL_OP_REQUIRES(context, where_ != "construction",
                         errors::FailedPrecondition("refused while constructing"));
  }
  void Compute(OpKernelContext* context) override {
    if (where_ == "compute") throw_as(what_);
    const Tensor x = context->input(0);
    Tensor* y = nullptr;
    if (where_ == "other shape") {
      TREENAIL_OP_REQUIRES_OK(context, context->allocate_output(0, {3, 4}, &y));
    }
    if (where_ == "other type") (void)x.data<double>();
    if (where_ == "other rank") (void)x.matrix<float>();
    if (where_ == "other input") (void)context->input(5);
    if (where_ == "other name") {
      OpInputList list;
      TREENAIL_OP_REQUIRES_OK(context, context->input_list("z", &list));
    }
    if (where_ == "input written") {
      Tensor copy = x;
      copy.flat<float>()(0) = 1;
    }
    if (where_ == "parallel") {
      TREENAIL_OP_REQUIRES_OK(
          context, context->ParallelFor(100, 1, 1.0, [&](int64_t, int64_t) { throw_as(what_); }));
    }
    context->SetStatus(errors::Aborted("nothing failed where it should: ", where_));
  }

 private:
  std::string where_, what_;
};

TREENAIL_REGISTER_OP("LayerFails")
    .Input("x: float")
    .Output("y: float")
    .Attr("where: string")
    .Attr("what: string = 'runtime_error'")
    .SetShapeFn(failing_shape)
    .SetGradientFn(failing_gradient);
TREENAIL_REGISTER_KERNEL_BUILDER(Name("LayerFails"), FailsOp);

}  // namespace

TREENAIL_PLUGIN("layer", "1.0");
