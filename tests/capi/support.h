// SPDX-License-Identifier: Apache-2.0
// Short hand for tests of the C ABI: a status that is a sentence, tensors and operations in one
// line.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "treenail/treenail.h"

namespace capi_test {

template <auto Delete>
struct Deleter {
  template <class T>
  void operator()(T* handle) const {
    Delete(handle);
  }
};
using Tensor = std::unique_ptr<tn_tensor, Deleter<tn_tensor_delete>>;
using Graph = std::unique_ptr<tn_graph, Deleter<tn_graph_delete>>;
using Session = std::unique_ptr<tn_session, Deleter<tn_session_delete>>;
using Attrs = std::unique_ptr<tn_attrs, Deleter<tn_attrs_delete>>;

// EXPECT_EQ(status.said(), "InvalidArgument: ...") states code and sentence; "Ok" after success.
class Status {
 public:
  Status() : status_(tn_status_new()) {}
  ~Status() { tn_status_delete(status_); }
  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;
  operator tn_status*() { return status_; }  // NOLINT(google-explicit-constructor)
  tn_code code() const { return tn_status_code(status_); }
  std::string said() const {
    if (code() == TN_OK) return "Ok";
    return std::string(tn_code_name(code())) + ": " + tn_status_message(status_);
  }

 private:
  tn_status* status_;
};

template <class T>
Tensor tensor(tn_dtype dtype, std::vector<T> values, std::vector<int64_t> dims) {
  Status status;
  return Tensor(tn_tensor_new_from(dtype, dims.data(), static_cast<int32_t>(dims.size()),
                                   values.data(), values.size() * sizeof(T), status));
}
inline Tensor floats(std::vector<float> values) {
  const auto n = static_cast<int64_t>(values.size());
  return tensor<float>(TN_FLOAT32, std::move(values), {n});
}
inline Tensor doubles(std::vector<double> values) {
  const auto n = static_cast<int64_t>(values.size());
  return tensor<double>(TN_FLOAT64, std::move(values), {n});
}
template <class T>
std::vector<T> values(const tn_tensor* tensor) {
  const auto* first = static_cast<const T*>(tn_tensor_data(tensor));
  return std::vector<T>(first, first + tn_tensor_num_elements(tensor));
}

inline Graph graph() { return Graph(tn_graph_new(nullptr)); }

// Adds an operation on single inputs; `attrs` may be null. The output 0, or null with `said` set.
inline const tn_output* op(const Graph& graph, const char* type,
                           std::vector<const tn_output*> inputs, const tn_attrs* attrs = nullptr,
                           std::string* said = nullptr, const char* name = nullptr) {
  Status status;
  tn_builder* builder = tn_builder_new(graph.get(), type, name, status);
  for (const tn_output* input : inputs) tn_builder_add_input(builder, input);
  if (attrs != nullptr) tn_builder_set_attrs(builder, attrs);
  tn_operation* made = tn_builder_finish(builder, status);
  if (said != nullptr) *said = status.said();
  return tn_operation_output(made, 0);
}

inline const tn_output* placeholder(const Graph& graph, tn_dtype dtype, std::vector<int64_t> dims,
                                    const char* name = "x") {
  const Attrs attrs(tn_attrs_new());
  tn_attrs_set_type(attrs.get(), "dtype", dtype);
  tn_attrs_set_shape(attrs.get(), "shape", dims.data(), static_cast<int32_t>(dims.size()));
  return op(graph, "Placeholder", {}, attrs.get(), nullptr, name);
}

inline const tn_output* constant(const Graph& graph, const Tensor& value,
                                 const char* name = nullptr) {
  const Attrs attrs(tn_attrs_new());
  tn_attrs_set_type(attrs.get(), "dtype", tn_tensor_dtype(value.get()));
  tn_attrs_set_tensor(attrs.get(), "value", value.get());
  return op(graph, "Const", {}, attrs.get(), nullptr, name);
}

// Fetches one value in a session of its own.
inline Tensor fetch(const Graph& graph, const tn_output* wanted, Status& status,
                    const tn_output* fed = nullptr, const tn_tensor* value = nullptr) {
  const Session session(tn_session_new(graph.get(), nullptr, status));
  if (!session) return nullptr;
  tn_tensor* result = nullptr;
  tn_session_run(session.get(), nullptr, &fed, &value, fed == nullptr ? 0 : 1, &wanted, &result, 1,
                 nullptr, 0, nullptr, status);
  return Tensor(result);
}

}  // namespace capi_test
