// SPDX-License-Identifier: Apache-2.0
// Kernels: classes that derive from OpKernel and compute, or from AsyncOpKernel and wait.
//
// One object is made for each call with given attributes, dtypes and shapes, and may compute for
// several runs at once: it changes nothing of its own in Compute, or guards it.
#ifndef TREENAIL_OP_KERNEL_HPP_
#define TREENAIL_OP_KERNEL_HPP_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "treenail/op/attributes.hpp"

namespace tn {
namespace op {

namespace detail {

// Where a context keeps the first failure.
class Failing {
 public:
  void SetStatus(const Status& status) { status_.Update(status); }
  void CtxFailure(const Status& status) { SetStatus(status); }
  const Status& status() const { return status_; }

 private:
  Status status_;
};

}  // namespace detail

// What a kernel's constructor may ask.
class OpKernelConstruction : public CallReader, public detail::Failing {
 public:
  explicit OpKernelConstruction(tn_prepare_context* context)
      : CallReader(host()->prepare_call(context)), context_(context) {}
  int num_inputs() const { return host()->call_num_inputs(call()); }
  int num_outputs() const { return host()->call_num_outputs(call()); }
  DataType input_type(int index) const {
    return static_cast<DataType>(host()->call_input_dtype(call(), index));
  }
  DataType output_type(int index) const {
    return static_cast<DataType>(host()->call_output_dtype(call(), index));
  }
  TensorShape input_shape(int index) const {
    const int64_t* dims = nullptr;
    const int32_t rank = host()->prepare_input_shape(context_, index, &dims);
    return TensorShape(dims, rank);
  }
  // The value of an input that the op declares by HostInput().
  Status host_value(int index, Tensor* value) const {
    detail::Held status;
    *value = Tensor(host()->prepare_host_value(context_, index, status));
    return status.get();
  }
  // Memory that each run has for itself: OpKernelContext::scratch().
  void set_scratch(size_t bytes) { host()->prepare_set_scratch(context_, bytes); }
  // What one run takes on one thread, roughly.
  void set_cost(double nanoseconds) { host()->prepare_set_cost(context_, nanoseconds); }

 private:
  tn_prepare_context* context_;
};

class OpKernelContext;

// The inputs or outputs that one declared as a list stands for.
template <class Element>
class OpList {
 public:
  OpList() = default;
  explicit OpList(std::vector<Element> elements) : elements_(std::move(elements)) {}
  int size() const { return static_cast<int>(elements_.size()); }
  const Element operator[](int index) const { return elements_.at(static_cast<size_t>(index)); }
  auto begin() const { return elements_.begin(); }
  auto end() const { return elements_.end(); }

 private:
  std::vector<Element> elements_;
};
using OpInputList = OpList<Tensor>;

class OpKernelContext : public detail::Failing {
 public:
  explicit OpKernelContext(tn_run_context* context)
      : context_(context), call_(host()->run_call(context)) {
    outputs_.resize(static_cast<size_t>(num_outputs()));
  }
  OpKernelContext(const OpKernelContext&) = delete;
  OpKernelContext& operator=(const OpKernelContext&) = delete;

  int num_inputs() const { return host()->call_num_inputs(call_); }
  int num_outputs() const { return host()->call_num_outputs(call_); }
  DataType input_dtype(int index) const {
    return static_cast<DataType>(host()->call_input_dtype(call_, index));
  }
  DataType expected_output_dtype(int index) const {
    return static_cast<DataType>(host()->call_output_dtype(call_, index));
  }

  const Tensor input(int index) const {
    const tn_tensor* tensor = host()->run_input(context_, index);
    if (tensor == nullptr)
      throw Error(errors::OutOfRange("input ", index, " is not in [0, ", num_inputs(), ")"));
    return Tensor(tensor);
  }
  Status input(const char* name, Tensor* tensor) const {
    OpInputList list;
    TREENAIL_RETURN_IF_ERROR(input_list(name, &list));
    if (list.size() != 1)
      return errors::InvalidArgument("\"", name, "\" is a list of ", list.size(), " inputs");
    *tensor = list[0];
    return Status();
  }
  Status input_list(const char* name, OpInputList* list) const {
    int32_t begin = 0, end = 0;
    detail::Held status;
    host()->call_input_range(call_, name, &begin, &end, status);
    TREENAIL_RETURN_IF_ERROR(status.get());
    std::vector<Tensor> tensors;
    for (int32_t i = begin; i < end; ++i) tensors.push_back(input(i));
    *list = OpInputList(std::move(tensors));
    return Status();
  }

  // Memory for an output. Where the op's shape rule tells the shape it is there already, and
  // `shape` must be what the rule says. *tensor stays valid as long as the context.
  Status allocate_output(int index, const TensorShape& shape, Tensor** tensor) {
    return detail::Guarded("allocate_output", [&] {
      if (index < 0 || index >= num_outputs())
        return errors::OutOfRange("output ", index, " is not in [0, ", num_outputs(), ")");
      if (provided(index)) {
        const TensorShape is = Tensor(host()->run_output_tensor(context_, index)).shape();
        if (is != shape)
          return errors::InvalidArgument("output ", index, " is allocated as ", shape,
                                         ", but the shape rule says ", is);
      } else {
        detail::Held status;
        host()->run_allocate_output(context_, index, shape.data(), shape.dims(), status);
        TREENAIL_RETURN_IF_ERROR(status.get());
      }
      *tensor = mutable_output(index);
      return Status();
    });
  }
  Status allocate_output(const char* name, const TensorShape& shape, Tensor** tensor) {
    int32_t begin = 0, end = 0;
    TREENAIL_RETURN_IF_ERROR(output_range(name, &begin, &end));
    if (end - begin != 1)
      return errors::InvalidArgument("\"", name, "\" is a list of ", end - begin, " outputs");
    return allocate_output(begin, shape, tensor);
  }
  // The outputs [*begin, *end) that a declared one stands for.
  Status output_range(const char* name, int32_t* begin, int32_t* end) const {
    detail::Held status;
    host()->call_output_range(call_, name, begin, end, status);
    return status.get();
  }
  // An output that is provided or was allocated.
  Tensor* mutable_output(int index) {
    if (index < 0 || index >= num_outputs() || !provided(index))
      throw Error(errors::FailedPrecondition("output ", index, " is not allocated"));
    Tensor& output = outputs_[static_cast<size_t>(index)];
    output = Tensor(host()->run_output_tensor(context_, index));
    output.written_ = host()->run_output(context_, index);
    output.run_ = context_;
    output.output_ = index;
    return &output;
  }
  // Memory of the kernel's own, ended with the last copy of *tensor.
  Status allocate_temp(DataType dtype, const TensorShape& shape, Tensor* tensor) const {
    detail::Held status;
    tn_tensor* made = host()->tensor_new(dtype, shape.data(), shape.dims(), status);
    TREENAIL_RETURN_IF_ERROR(status.get());
    *tensor = Tensor(made);
    tensor->owned_.reset(made, host()->tensor_delete);
    tensor->written_ = host()->tensor_mutable_data(made, status);
    return Status();
  }
  void* scratch() const { return host()->run_scratch(context_); }

  // body(begin, end) over pieces of [0, total), `grain` items each, on several threads; the pieces
  // depend on total and grain alone. cost: nanoseconds of one item, roughly.
  template <class Body>
  Status ParallelFor(int64_t total, int64_t grain, double cost, const Body& body) const {
    detail::Held status;
    host()->run_parallel_for(
        context_, total, grain, cost,
        [](void* argument, int64_t begin, int64_t end, tn_status* piece) {
          const Body& call = *static_cast<const Body*>(argument);
          detail::Store(detail::Guarded("the parallel loop",
                                        [&] {
                                          call(begin, end);
                                          return Status();
                                        }),
                        piece);
        },
        const_cast<Body*>(&body), status);
    return status.get();
  }
  // For long serial loops: the kernel then returns.
  bool cancelled() const { return host()->run_cancelled(context_) != 0; }

  // Of an AsyncOpKernel: `callback` is called, once, on whatever thread, if the run is cancelled
  // before done. False where it is cancelled already: then it is not called.
  template <class Callback>
  bool OnCancel(Callback callback) {
    auto& kept =
        callbacks_.emplace_back(std::make_shared<std::function<void()>>(std::move(callback)));
    return host()->run_on_cancel(
               context_,
               [](void* argument) {
                 // A copy: the callback may end the run, and with it what holds it.
                 const auto call = *static_cast<std::shared_ptr<std::function<void()>>*>(argument);
                 detail::Guarded("the cancel callback", [&] {
                   (*call)();
                   return Status();
                 });
               },
               &kept) != 0;
  }

 private:
  friend class AsyncOpKernel;
  bool provided(int index) const {
    const tn_tensor* tensor = host()->run_output_tensor(context_, index);
    return tensor != nullptr && host()->tensor_dtype(tensor) != 0;
  }

  tn_run_context* context_;
  const tn_call* call_;
  std::vector<Tensor> outputs_;
  std::deque<std::shared_ptr<std::function<void()>>> callbacks_;  // a deque: elements do not move
};

class OpKernel {
 public:
  explicit OpKernel(OpKernelConstruction*) {}
  virtual ~OpKernel() = default;
  virtual void Compute(OpKernelContext* context) = 0;
};

}  // namespace op
}  // namespace tn

// Of constructors, Compute, and what else returns nothing.
#define TREENAIL_OP_REQUIRES(context, condition, failure) \
  do {                                                    \
    if (!(condition)) {                                   \
      (context)->CtxFailure(failure);                     \
      return;                                             \
    }                                                     \
  } while (0)
#define TREENAIL_OP_REQUIRES_OK(context, expression)        \
  do {                                                      \
    const ::tn::op::Status treenail_status_ = (expression); \
    if (!treenail_status_.ok()) {                           \
      (context)->CtxFailure(treenail_status_);              \
      return;                                               \
    }                                                       \
  } while (0)

#endif  // TREENAIL_OP_KERNEL_HPP_
