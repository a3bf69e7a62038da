// SPDX-License-Identifier: Apache-2.0
// Treenail for C++17 programs: treenail.h with owning types and exceptions. Header only, so that
// nothing of C++ crosses the library's border. The namespace is tn: libtreenail keeps its own C++
// symbols in namespace treenail, which must never meet those of a program.
//
//   tn::Graph graph;
//   tn::Output x = graph.placeholder(tn::DType::kFloat32, {-1, 3}, "x");
//   tn::Output y = graph.add("Square", {x});
//   tn::Session session(graph);
//   tn::Tensor result = session.run({{x, tn::Tensor::of<float>({1, 2, 3}, {1, 3})}}, {y})[0];
#ifndef TREENAIL_TREENAIL_HPP_
#define TREENAIL_TREENAIL_HPP_

#include <complex>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "treenail/treenail.h"

namespace tn {

enum class Code : tn_code {
  kOk = TN_OK,
  kCancelled = TN_CANCELLED,
  kUnknown = TN_UNKNOWN,
  kInvalidArgument = TN_INVALID_ARGUMENT,
  kDeadlineExceeded = TN_DEADLINE_EXCEEDED,
  kNotFound = TN_NOT_FOUND,
  kAlreadyExists = TN_ALREADY_EXISTS,
  kPermissionDenied = TN_PERMISSION_DENIED,
  kResourceExhausted = TN_RESOURCE_EXHAUSTED,
  kFailedPrecondition = TN_FAILED_PRECONDITION,
  kAborted = TN_ABORTED,
  kOutOfRange = TN_OUT_OF_RANGE,
  kUnimplemented = TN_UNIMPLEMENTED,
  kInternal = TN_INTERNAL,
  kUnavailable = TN_UNAVAILABLE,
  kDataLoss = TN_DATA_LOSS,
  kUnauthenticated = TN_UNAUTHENTICATED
};

// What every call here throws when it fails.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

namespace detail {

template <auto Delete>
struct Deleter {
  template <class T>
  void operator()(T* handle) const {
    Delete(handle);
  }
};

template <class T, auto Delete>
using Handle = std::unique_ptr<T, Deleter<Delete>>;

// `detail::Status status; tn_...(..., status); status.check();`
class Status {
 public:
  Status() : status_(tn_status_new()) {
    if (!status_) throw std::bad_alloc();
  }
  operator tn_status*() { return status_.get(); }  // NOLINT(google-explicit-constructor)
  void check() const {
    const tn_code code = tn_status_code(status_.get());
    if (code != TN_OK) throw Error(static_cast<Code>(code), tn_status_message(status_.get()));
  }

 private:
  Handle<tn_status, tn_status_delete> status_;
};

template <class F>
auto checked(F&& call) {
  Status status;
  if constexpr (std::is_void_v<std::invoke_result_t<F&, tn_status*>>) {
    call(static_cast<tn_status*>(status));
    status.check();
  } else {
    auto result = call(static_cast<tn_status*>(status));
    status.check();
    return result;
  }
}

}  // namespace detail

inline std::string version() { return tn_version(); }
inline int num_threads() { return tn_num_threads(); }
inline void set_num_threads(int threads) {
  detail::checked([&](tn_status* s) { tn_set_num_threads(threads, s); });
}
inline void load_plugin(const std::string& path) {
  detail::checked([&](tn_status* s) { tn_load_plugin(path.c_str(), s); });
}

enum class DType : tn_dtype {
  kFloat32 = TN_FLOAT32,
  kFloat64 = TN_FLOAT64,
  kInt32 = TN_INT32,
  kUInt8 = TN_UINT8,
  kInt16 = TN_INT16,
  kInt8 = TN_INT8,
  kString = TN_STRING,
  kComplex64 = TN_COMPLEX64,
  kInt64 = TN_INT64,
  kBool = TN_BOOL,
  kBFloat16 = TN_BFLOAT16,
  kUInt16 = TN_UINT16,
  kComplex128 = TN_COMPLEX128,
  kFloat16 = TN_FLOAT16,
  kResource = TN_RESOURCE,
  kVariant = TN_VARIANT,
  kUInt32 = TN_UINT32,
  kUInt64 = TN_UINT64
};

// The dtype whose elements are T; float16 and bfloat16 have no C++ type here.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return DType::kFloat32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::kFloat64;
  else if constexpr (std::is_same_v<T, bool>)
    return DType::kBool;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::kInt8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return DType::kInt16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::kInt32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::kInt64;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::kUInt8;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return DType::kUInt16;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return DType::kUInt32;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return DType::kUInt64;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return DType::kComplex64;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return DType::kComplex128;
  else
    static_assert(!sizeof(T), "no dtype has elements of this type");
}

using Shape = std::vector<int64_t>;  // -1: an unknown extent, where unknowns are allowed

// Copies share their bytes; writing to one does not change the others.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, const Shape& shape)
      : handle_(detail::checked([&](tn_status* s) {
          return tn_tensor_new(static_cast<tn_dtype>(dtype), shape.data(), rank_of(shape), s);
        })) {}
  Tensor(const Tensor& other)
      : handle_(other.handle_ == nullptr ? nullptr : detail::checked([&](tn_status* s) {
          return tn_tensor_share(other.handle_.get(), s);
        })) {}
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor other) noexcept {
    handle_.swap(other.handle_);
    return *this;
  }

  // A vector, or any shape with as many elements.
  template <class T>
  static Tensor of(std::initializer_list<T> values) {
    return copy_of<T>(values.begin(), {static_cast<int64_t>(values.size())}, values.size());
  }
  template <class T>
  static Tensor of(std::initializer_list<T> values, const Shape& shape) {
    return copy_of<T>(values.begin(), shape, values.size());
  }
  template <class T>
  static Tensor of(const std::vector<T>& values, const Shape& shape) {
    return copy_of<T>(values.data(), shape, values.size());
  }
  template <class T>
  static Tensor scalar(T value) {
    return copy_of<T>(&value, {}, 1);
  }
  static Tensor of_strings(const std::vector<std::string>& values, const Shape& shape) {
    Tensor tensor(DType::kString, shape);
    if (static_cast<size_t>(tensor.num_elements()) != values.size()) {
      throw Error(Code::kInvalidArgument, std::to_string(values.size()) + " strings for " +
                                              std::to_string(tensor.num_elements()) + " elements");
    }
    for (size_t i = 0; i < values.size(); ++i) {
      detail::checked([&](tn_status* s) {
        tn_tensor_set_string(tensor.handle_.get(), static_cast<int64_t>(i), values[i].data(),
                             values[i].size(), s);
      });
    }
    return tensor;
  }
  // Takes over a handle of the C API.
  static Tensor adopt(tn_tensor* handle) {
    Tensor tensor;
    tensor.handle_.reset(handle);
    return tensor;
  }

  explicit operator bool() const { return handle_ != nullptr; }
  const tn_tensor* get() const { return handle_.get(); }
  DType dtype() const { return static_cast<DType>(tn_tensor_dtype(get())); }
  Shape shape() const {
    const int64_t* dims = tn_tensor_dims(get());
    return Shape(dims, dims + tn_tensor_rank(get()));
  }
  int64_t num_elements() const { return tn_tensor_num_elements(get()); }

  template <class T>
  const T* data() const {
    check_dtype(dtype_of<T>());
    return static_cast<const T*>(tn_tensor_data(get()));
  }
  // To be written; ask again after the tensor was given to a call.
  template <class T>
  T* mutable_data() {
    check_dtype(dtype_of<T>());
    return static_cast<T*>(
        detail::checked([&](tn_status* s) { return tn_tensor_mutable_data(handle_.get(), s); }));
  }
  template <class T>
  std::vector<T> values() const {
    const T* first = data<T>();
    return std::vector<T>(first, first + num_elements());
  }
  std::string string(int64_t element) const {
    size_t length = 0;
    const char* bytes =
        detail::checked([&](tn_status* s) { return tn_tensor_string(get(), element, &length, s); });
    return std::string(bytes, length);
  }

 private:
  static int32_t rank_of(const Shape& shape) { return static_cast<int32_t>(shape.size()); }

  template <class T>
  static Tensor copy_of(const T* values, const Shape& shape, size_t count) {
    return adopt(detail::checked([&](tn_status* s) {
      return tn_tensor_new_from(static_cast<tn_dtype>(dtype_of<T>()), shape.data(), rank_of(shape),
                                values, count * sizeof(T), s);
    }));
  }

  void check_dtype(DType wanted) const {
    if (dtype() == wanted) return;
    throw Error(Code::kInvalidArgument, std::string("the tensor is ") +
                                            tn_dtype_name(tn_tensor_dtype(get())) +
                                            ", its elements were asked for as " +
                                            tn_dtype_name(static_cast<tn_dtype>(wanted)));
  }

  detail::Handle<tn_tensor, tn_tensor_delete> handle_;
};

// Attributes: tn::Attrs().set("transpose_a", true).set("axes", std::vector<int64_t>{0, 1})
class Attrs {
 public:
  Attrs() : handle_(tn_attrs_new()) {
    if (!handle_) throw std::bad_alloc();
  }
  const tn_attrs* get() const { return handle_.get(); }

  // Any integer type but bool is an int attribute, any floating one a float attribute.
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Attrs& set(const char* name, T value) {
    if constexpr (std::is_same_v<T, bool>)
      tn_attrs_set_bool(handle_.get(), name, value ? 1 : 0);
    else if constexpr (std::is_integral_v<T>)
      tn_attrs_set_int(handle_.get(), name, static_cast<int64_t>(value));
    else
      tn_attrs_set_float(handle_.get(), name, static_cast<double>(value));
    return *this;
  }
  Attrs& set(const char* name, const std::string& value) {
    tn_attrs_set_string(handle_.get(), name, value.data(), value.size());
    return *this;
  }
  Attrs& set(const char* name, const char* value) { return set(name, std::string(value)); }
  Attrs& set(const char* name, DType value) {
    tn_attrs_set_type(handle_.get(), name, static_cast<tn_dtype>(value));
    return *this;
  }
  Attrs& set(const char* name, const Tensor& value) {
    tn_attrs_set_tensor(handle_.get(), name, value.get());
    return *this;
  }
  Attrs& set(const char* name, const std::vector<int64_t>& values) {
    tn_attrs_set_ints(handle_.get(), name, values.data(), values.size());
    return *this;
  }
  Attrs& set(const char* name, const std::vector<double>& values) {
    tn_attrs_set_floats(handle_.get(), name, values.data(), values.size());
    return *this;
  }
  Attrs& set(const char* name, const std::vector<DType>& values) {
    const std::vector<tn_dtype> numbers = numbers_of(values);
    tn_attrs_set_types(handle_.get(), name, numbers.data(), numbers.size());
    return *this;
  }
  Attrs& set(const char* name, const std::vector<std::string>& values) {
    std::vector<const char*> bytes;
    std::vector<size_t> lengths;
    for (const std::string& value : values) {
      bytes.push_back(value.data());
      lengths.push_back(value.size());
    }
    tn_attrs_set_strings(handle_.get(), name, bytes.data(), lengths.data(), values.size());
    return *this;
  }
  // A shape attribute; a vector of numbers given to set() is a list of ints.
  Attrs& set_shape(const char* name, const Shape& shape) {
    tn_attrs_set_shape(handle_.get(), name, shape.data(), static_cast<int32_t>(shape.size()));
    return *this;
  }
  Attrs& set_unknown_shape(const char* name) {
    tn_attrs_set_shape(handle_.get(), name, nullptr, -1);
    return *this;
  }

 private:
  static std::vector<tn_dtype> numbers_of(const std::vector<DType>& values) {
    std::vector<tn_dtype> out;
    for (DType value : values) out.push_back(static_cast<tn_dtype>(value));
    return out;
  }
  friend class Graph;
  detail::Handle<tn_attrs, tn_attrs_delete> handle_;
};

class Operation;

// One output of an operation; belongs to its graph.
class Output {
 public:
  Output() = default;
  Output(const tn_output* output) : output_(output) {}  // NOLINT(google-explicit-constructor)
  inline Output(const Operation& operation);  // NOLINT(google-explicit-constructor): output 0
  const tn_output* get() const { return output_; }
  explicit operator bool() const { return output_ != nullptr; }
  inline Operation operation() const;
  int index() const { return tn_output_index(output_); }
  DType dtype() const { return static_cast<DType>(tn_output_dtype(output_)); }
  int rank() const { return tn_output_shape(output_, nullptr, 0); }  // -1: unknown
  // Extents, -1 where unknown. Requires rank() >= 0.
  Shape shape() const {
    Shape out(static_cast<size_t>(rank()));
    tn_output_shape(output_, out.data(), static_cast<int32_t>(out.size()));
    return out;
  }

 private:
  const tn_output* output_ = nullptr;
};

class Operation {
 public:
  Operation() = default;
  Operation(tn_operation* operation)
      : operation_(operation) {}  // NOLINT(google-explicit-constructor)
  tn_operation* get() const { return operation_; }
  explicit operator bool() const { return operation_ != nullptr; }
  std::string name() const { return tn_operation_name(operation_); }
  std::string type() const { return tn_operation_type(operation_); }
  std::string device() const { return tn_operation_device(operation_); }
  int num_outputs() const { return tn_operation_num_outputs(operation_); }
  Output output(int index) const { return tn_operation_output(operation_, index); }

 private:
  tn_operation* operation_ = nullptr;
};

inline Output::Output(const Operation& operation)
    : output_(tn_operation_output(operation.get(), 0)) {}
inline Operation Output::operation() const { return tn_output_operation(output_); }

// An input as declared: one value, or a list ("values: N * T").
class Input {
 public:
  Input(Output value) : values_{value}, list_(false) {}              // NOLINT
  Input(const Operation& operation) : Input(operation.output(0)) {}  // NOLINT
  Input(std::vector<Output> values) : values_(std::move(values)) {}  // NOLINT
  Input(std::initializer_list<Output> values) : values_(values) {}   // NOLINT

 private:
  friend class Graph;
  std::vector<Output> values_;
  bool list_ = true;
};

// Where else an operation may differ: all of it is optional.
struct Placement {
  std::string name;
  std::string device;
  std::vector<Operation> control_inputs;
};

namespace detail {

inline std::vector<const tn_output*> handles_of(const std::vector<Output>& outputs) {
  std::vector<const tn_output*> out;
  for (const Output& output : outputs) out.push_back(output.get());
  return out;
}

inline std::vector<Tensor> adopt_all(const std::vector<tn_tensor*>& handles) {
  std::vector<Tensor> out;
  for (tn_tensor* handle : handles) out.push_back(Tensor::adopt(handle));
  return out;
}

}  // namespace detail

class Graph {
 public:
  Graph() : handle_(detail::checked([](tn_status* s) { return tn_graph_new(s); })) {}
  static Graph load(const std::string& path) {
    return Graph(detail::checked([&](tn_status* s) { return tn_graph_load(path.c_str(), s); }));
  }
  // Takes over a handle of the C API.
  static Graph adopt(tn_graph* handle) { return Graph(handle); }
  void save(const std::string& path) const {
    detail::checked([&](tn_status* s) { tn_graph_save(get(), path.c_str(), s); });
  }
  tn_graph* get() const { return handle_.get(); }

  Operation add(const std::string& op, const std::vector<Input>& inputs = {},
                const Attrs& attrs = Attrs(), const Placement& placement = {}) {
    const char* name = placement.name.empty() ? nullptr : placement.name.c_str();
    tn_builder* builder =
        detail::checked([&](tn_status* s) { return tn_builder_new(get(), op.c_str(), name, s); });
    detail::Handle<tn_builder, tn_builder_delete> owned(builder);
    for (const Input& input : inputs) {
      if (input.list_) {
        const auto list = detail::handles_of(input.values_);
        tn_builder_add_input_list(builder, list.data(), list.size());
      } else {
        tn_builder_add_input(builder, input.values_[0].get());
      }
    }
    for (const Operation& before : placement.control_inputs) {
      tn_builder_add_control_input(builder, before.get());
    }
    tn_builder_set_device(builder, placement.device.c_str());
    tn_builder_set_attrs(builder, attrs.get());
    return detail::checked([&](tn_status* s) { return tn_builder_finish(owned.release(), s); });
  }

  Output constant(const Tensor& value, const std::string& name = {}) {
    return add("Const", {}, Attrs().set("dtype", value.dtype()).set("value", value),
               {name, {}, {}});
  }
  Output placeholder(DType dtype, const std::string& name = {}) {
    return add("Placeholder", {}, Attrs().set("dtype", dtype).set_unknown_shape("shape"),
               {name, {}, {}});
  }
  Output placeholder(DType dtype, const Shape& shape, const std::string& name = {}) {
    return add("Placeholder", {}, Attrs().set("dtype", dtype).set_shape("shape", shape),
               {name, {}, {}});
  }

  Operation operation(const std::string& name) const {
    return detail::checked(
        [&](tn_status* s) { return tn_graph_find_operation(get(), name.c_str(), s); });
  }
  // "h1/MatMul:0", or "h1/MatMul" for output 0
  Output output(const std::string& name) const {
    return detail::checked(
        [&](tn_status* s) { return tn_graph_find_output(get(), name.c_str(), s); });
  }
  std::vector<Operation> operations() const {
    std::vector<Operation> out;
    const size_t count = tn_graph_num_operations(get());
    for (size_t i = 0; i < count; ++i) {
      Operation operation(
          detail::checked([&](tn_status* s) { return tn_graph_operation(get(), i, s); }));
      if (operation) out.push_back(operation);
    }
    return out;
  }

  // d(sum of ys)/dx for each x; an empty Output where no y depends on it.
  std::vector<Output> gradients(const std::vector<Output>& ys, const std::vector<Output>& xs) {
    const auto from = detail::handles_of(ys);
    const auto to = detail::handles_of(xs);
    std::vector<const tn_output*> found(xs.size());
    detail::checked([&](tn_status* s) {
      tn_graph_add_gradients(get(), from.data(), from.size(), to.data(), to.size(), nullptr,
                             found.data(), s);
    });
    return std::vector<Output>(found.begin(), found.end());
  }

 private:
  explicit Graph(tn_graph* handle) : handle_(handle) {}
  detail::Handle<tn_graph, tn_graph_delete> handle_;
};

class Session {
 public:
  explicit Session(const Graph& graph)
      : handle_(detail::checked(
            [&](tn_status* s) { return tn_session_new(graph.get(), nullptr, s); })) {}
  Session(const Graph& graph, const tn_session_options& options)
      : handle_(detail::checked(
            [&](tn_status* s) { return tn_session_new(graph.get(), &options, s); })) {}
  tn_session* get() const { return handle_.get(); }

  using Feeds = std::vector<std::pair<Output, Tensor>>;
  // One tensor per fetch, in order; targets are executed as well. Several threads may run at once.
  std::vector<Tensor> run(const Feeds& feeds, const std::vector<Output>& fetches,
                          const std::vector<Operation>& targets = {},
                          const tn_run_options* options = nullptr,
                          tn_run_metadata* metadata = nullptr) const {
    std::vector<const tn_output*> fed;
    std::vector<const tn_tensor*> values;
    for (const auto& [output, tensor] : feeds) {
      fed.push_back(output.get());
      values.push_back(tensor.get());
    }
    const auto fetched = detail::handles_of(fetches);
    std::vector<const tn_operation*> wanted;
    for (const Operation& target : targets) wanted.push_back(target.get());
    std::vector<tn_tensor*> results(fetches.size());
    detail::checked([&](tn_status* s) {
      tn_session_run(get(), options, fed.data(), values.data(), fed.size(), fetched.data(),
                     results.data(), fetched.size(), wanted.data(), wanted.size(), metadata, s);
    });
    return detail::adopt_all(results);
  }
  void close() {
    detail::checked([&](tn_status* s) { tn_session_close(get(), s); });
  }

 private:
  detail::Handle<tn_session, tn_session_delete> handle_;
};

// Executes one op now. `list_sizes`: the number of inputs per declared input, where the op has
// several lists.
inline std::vector<Tensor> execute(const std::string& op, const std::vector<Tensor>& inputs,
                                   const Attrs& attrs = Attrs(),
                                   const std::vector<int32_t>& list_sizes = {}) {
  std::vector<const tn_tensor*> given;
  std::vector<tn_dtype> dtypes;
  for (const Tensor& input : inputs) {
    given.push_back(input.get());
    dtypes.push_back(tn_tensor_dtype(input.get()));
  }
  const detail::Handle<tn_call, tn_call_delete> call(detail::checked([&](tn_status* s) {
    return tn_call_new(op.c_str(), dtypes.data(), dtypes.size(), attrs.get(), list_sizes.data(),
                       list_sizes.size(), s);
  }));
  std::vector<tn_tensor*> results(static_cast<size_t>(tn_call_num_outputs(call.get())));
  detail::checked([&](tn_status* s) {
    tn_call_execute(call.get(), given.data(), given.size(), results.data(), s);
  });
  return detail::adopt_all(results);
}

}  // namespace tn

#endif  // TREENAIL_TREENAIL_HPP_
