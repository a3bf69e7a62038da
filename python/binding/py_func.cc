// SPDX-License-Identifier: Apache-2.0
// Calls of Python functions, for the kernel of PyFunc (kernels/host/state/py_func.cc). One runs on
// a thread of its own, which takes the GIL; a run that is cancelled does not wait for the
// function's end, and then nobody looks at its results.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/blocking_work.h"
#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_end.h"
#include "framework/runtime/kernel/kernel_py_func.h"
#include "framework/runtime/state/stored_value.h"
#include "python/binding/dtypes.h"
#include "python/binding/gil.h"
#include "python/binding/module.h"
#include "python/binding/numpy.h"
#include "python/binding/values.h"

namespace treenail::python {
namespace {

class Call final : public RefCounted {
 public:
  Call(const PyFunction& function, const RunContext& context, Done done)
      : end(context, done), function_(function) {
    // The function may keep them for longer than the run lasts.
    for (int i = 0; i < function.num_inputs; ++i) inputs_.push_back(stored_value(context.input(i)));
  }

  void run() noexcept {
    std::vector<Tensor> outputs;
    std::exception_ptr error;
    try {
      const GilRetake gil;
      outputs = call();
    } catch (...) {
      park_if_thread_ends();
      error = std::current_exception();
    }
    if (error != nullptr) return end.fail(std::move(error));
    end.end(std::move(outputs));
  }

  CancellableEnd end;

 private:
  std::vector<Tensor> call();
  std::vector<Tensor> results(PyObject* values) const;

  const PyFunction function_;
  std::vector<Tensor> inputs_;
};

// (values, None) or (None, (code, text)), as the package's call_py_func says.
std::vector<Tensor> Call::call() {
  Ref arguments = checked(PyList_New(static_cast<Py_ssize_t>(inputs_.size())));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    PyList_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i),
                    array_from_tensor(std::move(inputs_[i]), true).release());
  }
  const Ref token = text_object(function_.token);
  PyObject* given[] = {token.get(), arguments.get()};
  const Ref answer = Ref::steal(
      parking([&] { return PyObject_Vectorcall(state().call_py_func, given, 2, nullptr); }));
  if (!answer) {
    RaisedException raised;
    throw Error(Code::kUnknown, raised.text());
  }
  PyObject* const failure = PyTuple_GET_ITEM(answer.get(), 1);
  if (failure == Py_None) return results(PyTuple_GET_ITEM(answer.get(), 0));
  const long code = PyLong_AsLong(PyTuple_GET_ITEM(failure, 0));
  throw Error(static_cast<Code>(code),
              std::string(text_of(PyTuple_GET_ITEM(failure, 1), "an error's text")));
}

std::vector<Tensor> Call::results(PyObject* values) const {
  const auto count = static_cast<size_t>(PyList_GET_SIZE(values));
  if (count != function_.output_types.size()) {
    throw invalid_argument(function_.token, " returns ", count, " values, but expects to see ",
                           function_.output_types.size(), " values");
  }
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < count; ++i) {
    PyObject* const value = PyList_GET_ITEM(values, static_cast<Py_ssize_t>(i));
    const DType wanted = function_.output_types[i];
    try {
      // A plain number has no dtype of its own; what has one must have the right one.
      const DType read_as = is_weakly_typed(value) ? wanted : DType::kInvalid;
      tensors.push_back(tensor_from_object(value, read_as, Casting::kSafeKind, false));
    } catch (const PythonError&) {
      RaisedException raised;
      throw invalid_argument(i, "-th value returned by ", function_.token, ": ", raised.text());
    }
    if (tensors.back().dtype() == wanted) continue;
    throw invalid_argument(i, "-th value returned by ", function_.token, " is ",
                           dtype_name(tensors.back().dtype()), ", but expects ",
                           dtype_name(wanted));
  }
  return tensors;
}

class CallWork final : public BlockingWork {
 public:
  explicit CallWork(IntrusivePtr<Call> call) : call_(std::move(call)) {}
  void run() noexcept override { call_->run(); }

 private:
  const IntrusivePtr<Call> call_;
};

void start(const PyFunction& function, RunContext context, Done done) {
  const auto call = make_counted<Call>(function, context, done);
  call->end.watch(*call);
  try {
    run_blocking(std::make_unique<CallWork>(call));
  } catch (...) {
    if (call->end.forget()) throw;
  }
}

}  // namespace

void add_py_func() { set_start_py_function(start); }

}  // namespace treenail::python
