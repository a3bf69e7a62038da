// SPDX-License-Identifier: Apache-2.0
// The C ABI given what it cannot take: counts and lengths that no memory holds, ranks, indices and
// numbers out of range, NULL wherever a pointer goes, values of another graph. Each is a status,
// never a crash. What plugins call: hostile_plugin_test.cc.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "tests/capi/hostile.h"
#include "tests/capi/support.h"

namespace capi_test {
namespace {

constexpr int32_t kLowest = std::numeric_limits<int32_t>::min();
constexpr int32_t kHighest = std::numeric_limits<int32_t>::max();
// Sizes that a negative number turns into, or that overflow when a header is added.
constexpr size_t kImpossible[] = {SIZE_MAX, SIZE_MAX - 15, SIZE_MAX / 2 + 1};
constexpr size_t kImpossibleCounts[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 8};

TEST_F(Hostile, StringsOfImpossibleLength) {
  const Tensor t(tn_tensor_new(TN_STRING, nullptr, 0, status));
  for (const size_t length : kImpossible) {
    tn_tensor_set_string(t.get(), 0, "abc", length, status);
    EXPECT_EQ(status.said(), "InvalidArgument: the count of bytes is " + std::to_string(length) +
                                 ", more than memory can hold");
    const Attrs attrs(tn_attrs_new());
    tn_attrs_set_string(attrs.get(), "s", "abc", length);
    EXPECT_EQ(tn_call_new("NoOp", nullptr, 0, attrs.get(), nullptr, 0, status), nullptr);
    refused("tn_attrs_set_string");
  }
  tn_tensor_set_string(t.get(), 0, nullptr, 3, status);
  refused("NULL bytes");
  for (const int64_t element : {int64_t{-1}, int64_t{1}, std::numeric_limits<int64_t>::min()}) {
    tn_tensor_set_string(t.get(), element, "abc", 3, status);
    EXPECT_EQ(status.code(), TN_OUT_OF_RANGE);
    size_t length = 7;
    EXPECT_EQ(tn_tensor_string(t.get(), element, &length, status), nullptr);
    EXPECT_EQ(status.code(), TN_OUT_OF_RANGE);
    EXPECT_EQ(length, 0U);
  }
  const Tensor numbers = floats({1});
  tn_tensor_set_string(numbers.get(), 0, "abc", 3, status);
  refused("a string for a float");
  EXPECT_EQ(tn_tensor_string(numbers.get(), 0, nullptr, status), nullptr);
  refused("a string of a float");
}

TEST_F(Hostile, ShapesOutOfRange) {
  const int64_t one = 1;
  for (const int32_t rank : {kLowest, -1, 33, kHighest}) {  // the array has one extent
    EXPECT_EQ(tn_tensor_new(TN_FLOAT32, &one, rank, status), nullptr);
    refused("tn_tensor_new");
    EXPECT_EQ(tn_tensor_new_from(TN_FLOAT32, &one, rank, &one, 4, status), nullptr);
    refused("tn_tensor_new_from");
    EXPECT_EQ(tn_tensor_borrow(TN_FLOAT32, &one, rank, &one, 4, nullptr, nullptr, status), nullptr);
    refused("tn_tensor_borrow");
    const Tensor t = floats({1});
    EXPECT_EQ(tn_tensor_reshape(t.get(), &one, rank, status), nullptr);
    refused("tn_tensor_reshape");
    if (rank == -1) continue;  // an unknown rank
    const Attrs attrs(tn_attrs_new());
    tn_attrs_set_shape(attrs.get(), "shape", &one, rank);
    EXPECT_EQ(tn_call_new("NoOp", nullptr, 0, attrs.get(), nullptr, 0, status), nullptr);
    refused("tn_attrs_set_shape");
    const Graph g = graph();
    tn_output_set_shape(placeholder(g, TN_FLOAT32, {-1}), &one, rank, status);
    refused("tn_output_set_shape");
  }
  const int64_t shapes[][2] = {{-1, 1}, {INT64_MIN, 0}, {INT64_MAX, 2}, {INT64_MAX, 1}};
  for (const auto& dims : shapes) {
    EXPECT_EQ(tn_tensor_new(TN_COMPLEX128, dims, 2, status), nullptr);
    EXPECT_NE(status.code(), TN_OK);
    EXPECT_EQ(tn_tensor_new_from(TN_COMPLEX128, dims, 2, &one, SIZE_MAX, status), nullptr);
    EXPECT_NE(status.code(), TN_OK);
    EXPECT_EQ(tn_tensor_new(TN_STRING, dims, 2, status), nullptr);
    EXPECT_NE(status.code(), TN_OK);
  }
}

TEST_F(Hostile, NumbersThatAreNoDtype) {
  const int64_t one = 1;
  for (const tn_dtype dtype : {kLowest, -1, 0, 11, 24, 255, 256 + TN_FLOAT32, kHighest}) {
    EXPECT_EQ(tn_dtype_size(dtype), 0U);
    EXPECT_STREQ(tn_dtype_name(dtype), "invalid");
    EXPECT_EQ(tn_tensor_new(dtype, &one, 1, status), nullptr);
    refused("tn_tensor_new");
    EXPECT_EQ(tn_tensor_new_from(dtype, &one, 1, &one, 4, status), nullptr);
    refused("tn_tensor_new_from");
    EXPECT_EQ(tn_call_new("Neg", &dtype, 1, nullptr, nullptr, 0, status), nullptr);
    refused("tn_call_new");
    const Attrs attrs(tn_attrs_new());
    tn_attrs_set_types(attrs.get(), "T", &dtype, 1);
    EXPECT_EQ(tn_call_new("NoOp", nullptr, 0, attrs.get(), nullptr, 0, status), nullptr);
    refused("tn_attrs_set_types");
  }
  for (const tn_dtype dtype : {TN_STRING, TN_RESOURCE, TN_VARIANT}) {
    EXPECT_EQ(tn_tensor_new_from(dtype, &one, 1, &one, 8, status), nullptr);
    refused("pointers as bytes");
    EXPECT_EQ(tn_tensor_borrow(dtype, &one, 1, &one, 8, nullptr, nullptr, status), nullptr);
    refused("borrowed pointers");
    const Tensor t(tn_tensor_new(dtype, &one, 1, status));
    EXPECT_EQ(tn_tensor_data(t.get()), nullptr);
    EXPECT_EQ(tn_tensor_mutable_data(t.get(), status), nullptr);
    refused("tn_tensor_mutable_data");
  }
}

TEST_F(Hostile, EmptyHandlesOfResourcesAreRefusedByOps) {
  for (const tn_dtype dtype : {TN_RESOURCE, TN_VARIANT}) {
    const Tensor empty(tn_tensor_new(dtype, nullptr, 0, status));
    const tn_tensor* input = empty.get();
    const Attrs attrs(tn_attrs_new());
    tn_attrs_set_type(attrs.get(), "dtype", TN_FLOAT32);
    tn_tensor* out = nullptr;
    tn_execute("ReadVariableOp", &input, 1, attrs.get(), nullptr, 0, &out, 1, status);
    EXPECT_NE(status.code(), TN_OK);
    EXPECT_EQ(out, nullptr);
  }
}

TEST_F(Hostile, ImpossibleCountsOfAttributes) {
  using Set = void (*)(tn_attrs*, const void*, size_t);
  const Set setters[] = {
      [](tn_attrs* a, const void* p, size_t n) {
        tn_attrs_set_ints(a, "n", static_cast<const int64_t*>(p), n);
      },
      [](tn_attrs* a, const void* p, size_t n) {
        tn_attrs_set_floats(a, "n", static_cast<const double*>(p), n);
      },
      [](tn_attrs* a, const void* p, size_t n) {
        tn_attrs_set_bools(a, "n", static_cast<const int32_t*>(p), n);
      },
      [](tn_attrs* a, const void* p, size_t n) {
        tn_attrs_set_types(a, "n", static_cast<const tn_dtype*>(p), n);
      },
      [](tn_attrs* a, const void* p, size_t n) {
        tn_attrs_set_strings(a, "n", static_cast<const char* const*>(p),
                             static_cast<const size_t*>(p), n);
      },
      [](tn_attrs* a, const void* p, size_t n) {
        tn_attrs_set_shapes(a, "n", static_cast<const int64_t* const*>(p),
                            static_cast<const int32_t*>(p), n);
      },
      [](tn_attrs* a, const void* p, size_t n) {
        tn_attrs_set_tensors(a, "n", static_cast<const tn_tensor* const*>(p), n);
      },
      [](tn_attrs* a, const void* p, size_t n) {
        tn_attrs_set_functions(a, "n", static_cast<const char* const*>(p), nullptr, n);
      },
  };
  const uint64_t memory[2] = {};
  for (const Set set : setters) {
    for (const void* array :
         {static_cast<const void*>(nullptr), static_cast<const void*>(memory)}) {
      for (const size_t count : kImpossibleCounts) {
        if (array != nullptr && count == SIZE_MAX / 8) continue;  // possible for 4-byte elements
        const Attrs attrs(tn_attrs_new());
        set(attrs.get(), array, count);
        EXPECT_EQ(tn_call_new("NoOp", nullptr, 0, attrs.get(), nullptr, 0, status), nullptr);
        refused("a list of attributes");
      }
    }
    const Attrs attrs(tn_attrs_new());
    set(nullptr, nullptr, 1);
    set(attrs.get(), nullptr, 0);
    EXPECT_EQ(tn_call_new("NoOp", nullptr, 0, attrs.get(), nullptr, 0, status), nullptr);
    EXPECT_NE(status.said().find("\"n\""), std::string::npos) << status.said();
  }
}

TEST_F(Hostile, ImpossibleCountsOfValues) {
  const Graph g = graph();
  const tn_output* x = placeholder(g, TN_FLOAT32, {1});
  const tn_operation* target = tn_output_operation(x);
  const Session session(tn_session_new(g.get(), nullptr, status));
  const Tensor t = floats({1});
  const tn_tensor* value = t.get();
  tn_tensor* result = nullptr;
  const tn_output* gradient = nullptr;
  const tn_dtype dtype = TN_FLOAT32;
  const int32_t one = 1;
  for (const size_t n : kImpossibleCounts) {
    tn_session_run(session.get(), nullptr, &x, &value, n, &x, &result, 1, nullptr, 0, nullptr,
                   status);
    refused("feeds");
    tn_session_run(session.get(), nullptr, &x, &value, 1, &x, &result, n, nullptr, 0, nullptr,
                   status);
    refused("fetches");
    tn_session_run(session.get(), nullptr, &x, &value, 1, &x, &result, 1, &target, n, nullptr,
                   status);
    refused("targets");
    EXPECT_EQ(tn_callable_new(session.get(), &x, n, &x, 1, nullptr, 0, status), nullptr);
    refused("a callable's feeds");
    EXPECT_EQ(tn_callable_new(session.get(), &x, 1, &x, n, nullptr, 0, status), nullptr);
    refused("a callable's fetches");
    tn_graph_add_gradients(g.get(), &x, n, &x, 1, nullptr, &gradient, status);
    refused("ys");
    tn_graph_add_gradients(g.get(), &x, 1, &x, n, nullptr, &gradient, status);
    refused("xs");
    tn_execute("Neg", &value, n, nullptr, nullptr, 0, &result, 1, status);
    refused("inputs");
    tn_execute("Neg", &value, 1, nullptr, nullptr, 0, &result, n, status);
    refused("outputs");
    EXPECT_EQ(
        tn_call_new("Neg", &dtype, n == SIZE_MAX / 8 ? SIZE_MAX : n, nullptr, nullptr, 0, status),
        nullptr);
    refused("input_dtypes");
    tn_execute("Neg", &value, 1, nullptr, &one, n == SIZE_MAX / 8 ? SIZE_MAX : n, &result, 1,
               status);
    refused("list_sizes");
    tn_builder* builder = tn_builder_new(g.get(), "AddN", nullptr, status);
    tn_builder_add_input_list(builder, &x, n);
    EXPECT_EQ(tn_builder_finish(builder, status), nullptr);
    refused("an input list");
    EXPECT_EQ(tn_graph_operation(g.get(), n, status), nullptr);
  }
}

TEST_F(Hostile, CallsWithOtherInputsThanAskedFor) {
  const tn_dtype dtype = TN_FLOAT32;
  tn_call* call = tn_call_new("Neg", &dtype, 1, nullptr, nullptr, 0, status);
  ASSERT_NE(call, nullptr) << status.said();
  const Tensor t = floats({1});
  const Tensor other = doubles({1});
  const tn_tensor* two[] = {t.get(), t.get()};
  const tn_tensor* wrong = other.get();
  const tn_tensor* null = nullptr;
  tn_tensor* out = nullptr;
  tn_call_execute(call, nullptr, 0, &out, status);
  refused("no inputs");
  tn_call_execute(call, two, 2, &out, status);
  refused("two inputs");
  tn_call_execute(call, &wrong, 1, &out, status);
  refused("another dtype");
  tn_call_execute(call, &null, 1, &out, status);
  refused("a NULL input");
  tn_call_execute(call, two, 1, nullptr, status);
  refused("no room");
  for (const int32_t size : {kLowest, -1, 0, 2, kHighest}) {
    tn_execute("AddN", two, 1, nullptr, &size, 1, &out, 1, status);
    EXPECT_NE(status.code(), TN_OK) << "list size " << size;
    const int32_t sizes[] = {size, 1 - size};  // their sum is right, or overflows
    tn_execute("AddN", two, 1, nullptr, sizes, 2, &out, 1, status);
    EXPECT_NE(status.code(), TN_OK) << "list sizes " << size;
  }
  tn_call_delete(call);
}

TEST_F(Hostile, ValuesOfAnotherGraph) {
  const Graph a = graph();
  const Graph b = graph();
  const tn_output* mine = placeholder(a, TN_FLOAT32, {1});
  const tn_output* other = placeholder(b, TN_FLOAT32, {1});
  std::string said;
  EXPECT_EQ(op(a, "Neg", {other}, nullptr, &said), nullptr);
  EXPECT_EQ(said.rfind("InvalidArgument", 0), 0U) << said;
  tn_builder* builder = tn_builder_new(a.get(), "NoOp", nullptr, status);
  tn_builder_add_control_input(builder, tn_output_operation(other));
  EXPECT_EQ(tn_builder_finish(builder, status), nullptr);
  refused("a control input");
  const tn_output* gradient = nullptr;
  tn_graph_add_gradients(a.get(), &other, 1, &mine, 1, nullptr, &gradient, status);
  refused("ys");
  tn_graph_add_gradients(a.get(), &mine, 1, &other, 1, nullptr, &gradient, status);
  refused("xs");
  tn_graph_add_gradients(a.get(), &mine, 1, &mine, 1, &other, &gradient, status);
  refused("grad_ys");
  const Session session(tn_session_new(a.get(), nullptr, status));
  tn_tensor* result = nullptr;
  tn_session_run(session.get(), nullptr, nullptr, nullptr, 0, &other, &result, 1, nullptr, 0,
                 nullptr, status);
  refused("a fetch");
  const tn_operation* target = tn_output_operation(other);
  tn_session_run(session.get(), nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, &target, 1,
                 nullptr, status);
  refused("a target");
}

// A byte other than 0 is true, wherever a program gives it.
TEST_F(Hostile, TruthValuesOfOtherBytes) {
  const std::vector<uint8_t> meant = {0, 1, 1, 1};
  const Tensor given = tensor<uint8_t>(TN_BOOL, {0, 1, 2, 255}, {4});
  const tn_tensor* input = given.get();
  const auto rows = [](const tn_tensor* where) {
    return where == nullptr ? std::vector<int64_t>() : values<int64_t>(where);
  };
  tn_tensor* out = nullptr;
  tn_execute("Where", &input, 1, nullptr, nullptr, 0, &out, 1, status);
  EXPECT_EQ(rows(Tensor(out).get()), (std::vector<int64_t>{1, 2, 3})) << status.said();
  tn_execute("LogicalNot", &input, 1, nullptr, nullptr, 0, &out, 1, status);
  EXPECT_EQ(values<uint8_t>(Tensor(out).get()), (std::vector<uint8_t>{1, 0, 0, 0}));

  const Graph g = graph();
  const tn_output* x = placeholder(g, TN_BOOL, {4});
  EXPECT_EQ(rows(fetch(g, op(g, "Where", {x}), status, x, input).get()),
            (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(values<uint8_t>(fetch(g, op(g, "Identity", {x}), status, x, input).get()), meant);
  EXPECT_EQ(values<uint8_t>(fetch(g, constant(g, given), status).get()), meant);
}

TEST_F(Hostile, IndicesOutOfRange) {
  const Graph g = graph();
  const tn_output* x = placeholder(g, TN_FLOAT32, {1});
  const tn_operation* operation = tn_output_operation(x);
  const tn_call* call = tn_operation_call(operation);
  const tn_op* found = tn_op_find("AddN", status);
  for (const int32_t i : {kLowest, -1, 1, 9, kHighest}) {
    EXPECT_EQ(tn_operation_input(operation, i), nullptr);
    EXPECT_EQ(tn_operation_output(operation, i), nullptr);
    EXPECT_EQ(tn_operation_control_input(operation, i), nullptr);
    EXPECT_EQ(tn_call_input_dtype(call, i), 0);
    EXPECT_EQ(tn_call_output_dtype(call, i), 0);
    EXPECT_EQ(tn_op_input_name(found, i), nullptr);
    EXPECT_EQ(tn_op_output_name(found, i), nullptr);
    EXPECT_EQ(tn_op_input_dtype(found, i), 0);
    EXPECT_EQ(tn_op_output_dtype(found, i), 0);
    if (i == 1) continue;  // AddN has two attributes
    EXPECT_EQ(tn_op_attr_name(found, i), nullptr);
    EXPECT_EQ(tn_op_attr_kind(found, i), 0);
    EXPECT_EQ(tn_op_attr_has_default(found, i), 0);
  }
  EXPECT_EQ(tn_call_attr_type(call, "dtype", 1, status), 0);
  EXPECT_EQ(status.code(), TN_OUT_OF_RANGE);
  EXPECT_EQ(tn_call_attr_type(call, "dtype", SIZE_MAX, status), 0);
  EXPECT_EQ(status.code(), TN_OUT_OF_RANGE);
  EXPECT_EQ(tn_call_attr_int(call, "dtype", 0, status), 0);
  refused("another kind");
  EXPECT_EQ(tn_call_attr_tensor(call, "shape", 0, status), nullptr);
  refused("another kind");
  for (const int32_t capacity : {kLowest, -1, 0}) {
    int64_t dims = 77;
    EXPECT_EQ(tn_output_shape(x, &dims, capacity), 1);
    EXPECT_EQ(dims, 77);
  }
  for (const int32_t threads : {kLowest, -1, 0, 1025, kHighest}) {
    tn_set_num_threads(threads, status);
    refused("tn_set_num_threads");
  }
}

TEST_F(Hostile, StructsOfImpossibleSize) {
  const Graph g = graph();
  const tn_output* x = constant(g, floats({1}));
  tn_session_options session_options = TN_SESSION_OPTIONS_INIT;
  tn_run_options run_options = TN_RUN_OPTIONS_INIT;
  tn_run_metadata metadata = TN_RUN_METADATA_INIT;
  tn_build_info info = TN_BUILD_INFO_INIT;
  session_options.struct_size = 0;
  EXPECT_EQ(tn_session_new(g.get(), &session_options, status), nullptr);
  refused("tn_session_options");
  session_options.struct_size = SIZE_MAX;
  const Session session(tn_session_new(g.get(), &session_options, status));
  ASSERT_NE(session, nullptr) << status.said();
  tn_tensor* result = nullptr;
  for (const size_t size : {size_t{0}, size_t{3}, sizeof(size_t), SIZE_MAX}) {
    run_options.struct_size = size;
    run_options.timeout_ms = INT64_MAX;
    metadata.struct_size = size;
    info.struct_size = size;
    tn_get_build_info(&info);
    tn_session_run(session.get(), &run_options, nullptr, nullptr, 0, &x, &result, 1, nullptr, 0,
                   &metadata, status);
    EXPECT_EQ(status.code(), size < sizeof(size_t) ? TN_INVALID_ARGUMENT : TN_OK);
    tn_tensor_delete(result);
  }
}

// Every function, NULL for every pointer: what can fail says so, the rest gives nothing.
TEST_F(Hostile, NullEverywhere) {
  tn_get_build_info(nullptr);
  tn_status_delete(nullptr);
  tn_status_set(nullptr, TN_ABORTED, nullptr);
  EXPECT_STREQ(tn_status_message(nullptr), "");
  EXPECT_EQ(tn_dtype_from_name(nullptr, status), 0);
  refused("tn_dtype_from_name");
  EXPECT_EQ(tn_tensor_new(TN_FLOAT32, nullptr, 1, status), nullptr);
  refused("tn_tensor_new");
  EXPECT_EQ(tn_tensor_new_from(TN_FLOAT32, nullptr, 0, nullptr, 4, status), nullptr);
  refused("tn_tensor_new_from");
  EXPECT_EQ(tn_tensor_borrow(TN_FLOAT32, nullptr, 0, nullptr, 4, nullptr, nullptr, status),
            nullptr);
  refused("tn_tensor_borrow");
  EXPECT_EQ(tn_tensor_share(nullptr, status), nullptr);
  refused("tn_tensor_share");
  EXPECT_EQ(tn_tensor_reshape(nullptr, nullptr, 0, status), nullptr);
  refused("tn_tensor_reshape");
  tn_tensor_delete(nullptr);
  EXPECT_EQ(tn_tensor_dtype(nullptr), 0);
  EXPECT_EQ(tn_tensor_rank(nullptr), 0);
  EXPECT_EQ(tn_tensor_dims(nullptr), nullptr);
  EXPECT_EQ(tn_tensor_num_elements(nullptr), 0);
  EXPECT_EQ(tn_tensor_bytes(nullptr), 0U);
  EXPECT_EQ(tn_tensor_data(nullptr), nullptr);
  EXPECT_EQ(tn_tensor_mutable_data(nullptr, status), nullptr);
  refused("tn_tensor_mutable_data");
  EXPECT_EQ(tn_tensor_string(nullptr, 0, nullptr, status), nullptr);
  refused("tn_tensor_string");
  tn_tensor_set_string(nullptr, 0, nullptr, 0, status);
  refused("tn_tensor_set_string");
}

TEST_F(Hostile, NullEverywhereAmongAttributesAndCalls) {
  tn_attrs_delete(nullptr);
  tn_attrs_set_int(nullptr, nullptr, 0);
  tn_attrs_set_float(nullptr, nullptr, 0);
  tn_attrs_set_bool(nullptr, nullptr, 0);
  tn_attrs_set_string(nullptr, nullptr, nullptr, 0);
  tn_attrs_set_type(nullptr, nullptr, 0);
  tn_attrs_set_shape(nullptr, nullptr, nullptr, 0);
  tn_attrs_set_tensor(nullptr, nullptr, nullptr);
  tn_attrs_set_function(nullptr, nullptr, nullptr, nullptr);
  for (const int which : {0, 1, 2, 3}) {
    const Attrs attrs(tn_attrs_new());
    if (which == 0) tn_attrs_set_int(attrs.get(), nullptr, 1);
    if (which == 1) tn_attrs_set_shape(attrs.get(), "n", nullptr, 1);
    if (which == 2) tn_attrs_set_tensor(attrs.get(), "n", nullptr);
    if (which == 3) tn_attrs_set_function(attrs.get(), "n", nullptr, nullptr);
    EXPECT_EQ(tn_call_new("NoOp", nullptr, 0, attrs.get(), nullptr, 0, status), nullptr);
    refused("tn_attrs_set");
  }
  EXPECT_EQ(tn_call_op(nullptr), nullptr);
  EXPECT_EQ(tn_call_num_inputs(nullptr), 0);
  EXPECT_EQ(tn_call_num_outputs(nullptr), 0);
  EXPECT_EQ(tn_call_input_dtype(nullptr, 0), 0);
  EXPECT_EQ(tn_call_output_dtype(nullptr, 0), 0);
  tn_call* call = tn_call_new("NoOp", nullptr, 0, nullptr, nullptr, 0, status);
  for (const tn_call* c :
       {static_cast<const tn_call*>(nullptr), static_cast<const tn_call*>(call)}) {
    EXPECT_EQ(tn_call_attr_kind(c, nullptr, status), 0);
    refused("tn_call_attr_kind");
    EXPECT_EQ(tn_call_attr_size(c, nullptr, status), 0U);
    refused("tn_call_attr_size");
    EXPECT_EQ(tn_call_attr_int(c, nullptr, 0, status), 0);
    refused("tn_call_attr_int");
    EXPECT_EQ(tn_call_attr_float(c, nullptr, 0, status), 0);
    refused("tn_call_attr_float");
    EXPECT_EQ(tn_call_attr_bool(c, nullptr, 0, status), 0);
    refused("tn_call_attr_bool");
    EXPECT_EQ(tn_call_attr_string(c, nullptr, 0, nullptr, status), nullptr);
    refused("tn_call_attr_string");
    EXPECT_EQ(tn_call_attr_type(c, nullptr, 0, status), 0);
    refused("tn_call_attr_type");
    EXPECT_EQ(tn_call_attr_shape(c, nullptr, 0, nullptr, status), -1);
    refused("tn_call_attr_shape");
    EXPECT_EQ(tn_call_attr_tensor(c, nullptr, 0, status), nullptr);
    refused("tn_call_attr_tensor");
    EXPECT_EQ(tn_call_attr_function(c, nullptr, 0, status), nullptr);
    refused("tn_call_attr_function");
  }
  tn_call_delete(call);
  tn_call_delete(nullptr);
  EXPECT_EQ(tn_execute(nullptr, nullptr, 0, nullptr, nullptr, 0, nullptr, 0, status), 0U);
  refused("tn_execute");
  EXPECT_EQ(tn_call_new(nullptr, nullptr, 0, nullptr, nullptr, 0, status), nullptr);
  refused("tn_call_new");
  tn_call_execute(nullptr, nullptr, 0, nullptr, status);
  refused("tn_call_execute");
  tn_load_plugin(nullptr, status);
  refused("tn_load_plugin");
}

TEST_F(Hostile, NullEverywhereAmongGraphs) {
  EXPECT_EQ(tn_op_find(nullptr, status), nullptr);
  refused("tn_op_find");
  EXPECT_EQ(tn_op_name(nullptr), nullptr);
  EXPECT_EQ(tn_op_doc(nullptr), nullptr);
  EXPECT_EQ(tn_op_version(nullptr), 0);
  EXPECT_EQ(tn_op_flags(nullptr), 0U);
  EXPECT_EQ(tn_op_num_inputs(nullptr), 0);
  EXPECT_EQ(tn_op_num_outputs(nullptr), 0);
  EXPECT_EQ(tn_op_num_attrs(nullptr), 0);
  EXPECT_EQ(tn_op_input_name(nullptr, 0), nullptr);
  EXPECT_EQ(tn_op_attr_kind(nullptr, 0), 0);
  tn_graph_delete(nullptr);
  tn_graph_save(nullptr, nullptr, status);
  refused("tn_graph_save");
  EXPECT_EQ(tn_graph_load(nullptr, status), nullptr);
  refused("tn_graph_load");
  tn_graph_set_seed(nullptr, 1);
  EXPECT_EQ(tn_graph_num_operations(nullptr), 0U);
  EXPECT_EQ(tn_graph_operation(nullptr, 0, status), nullptr);
  refused("tn_graph_operation");
  const Graph g = graph();
  for (tn_graph* graph : {static_cast<tn_graph*>(nullptr), g.get()}) {
    EXPECT_EQ(tn_graph_find_operation(graph, nullptr, status), nullptr);
    refused("tn_graph_find_operation");
    EXPECT_EQ(tn_graph_find_output(graph, nullptr, status), nullptr);
    refused("tn_graph_find_output");
    EXPECT_EQ(tn_builder_new(graph, nullptr, nullptr, status), nullptr);
    refused("tn_builder_new");
  }
  tn_builder_delete(nullptr);
  tn_builder_add_input(nullptr, nullptr);
  tn_builder_add_input_list(nullptr, nullptr, 1);
  tn_builder_add_control_input(nullptr, nullptr);
  tn_builder_set_device(nullptr, nullptr);
  tn_builder_set_attrs(nullptr, nullptr);
  EXPECT_EQ(tn_builder_attrs(nullptr), nullptr);
  EXPECT_EQ(tn_builder_finish(nullptr, status), nullptr);
  refused("tn_builder_finish");
  for (const int which : {0, 1, 2, 3}) {
    tn_builder* builder = tn_builder_new(g.get(), "NoOp", nullptr, status);
    if (which == 0) tn_builder_add_input(builder, nullptr);
    if (which == 1) tn_builder_add_input_list(builder, nullptr, 1);
    if (which == 2) tn_builder_add_control_input(builder, nullptr);
    if (which == 3) tn_builder_set_device(builder, nullptr);
    EXPECT_EQ(tn_builder_finish(builder, status), nullptr);
    refused("a builder");
  }
  EXPECT_EQ(tn_operation_name(nullptr), nullptr);
  EXPECT_EQ(tn_operation_type(nullptr), nullptr);
  EXPECT_EQ(tn_operation_device(nullptr), nullptr);
  EXPECT_EQ(tn_operation_call(nullptr), nullptr);
  EXPECT_EQ(tn_operation_num_inputs(nullptr), 0);
  EXPECT_EQ(tn_operation_num_outputs(nullptr), 0);
  EXPECT_EQ(tn_operation_num_control_inputs(nullptr), 0);
  EXPECT_EQ(tn_operation_input(nullptr, 0), nullptr);
  EXPECT_EQ(tn_operation_output(nullptr, 0), nullptr);
  EXPECT_EQ(tn_operation_control_input(nullptr, 0), nullptr);
  EXPECT_EQ(tn_output_operation(nullptr), nullptr);
  EXPECT_EQ(tn_output_index(nullptr), 0);
  EXPECT_EQ(tn_output_dtype(nullptr), 0);
  EXPECT_EQ(tn_output_shape(nullptr, nullptr, 0), -1);
  tn_output_set_shape(nullptr, nullptr, 0, status);
  refused("tn_output_set_shape");
  tn_graph_add_gradients(nullptr, nullptr, 0, nullptr, 0, nullptr, nullptr, status);
  refused("tn_graph_add_gradients");
  const tn_output* x = placeholder(g, TN_FLOAT32, {1});
  tn_graph_add_gradients(g.get(), &x, 1, &x, 1, nullptr, nullptr, status);
  refused("no room for gradients");
}

TEST_F(Hostile, NullEverywhereAmongSessions) {
  const Graph g = graph();
  const tn_output* x = constant(g, floats({1}));
  const Session session(tn_session_new(g.get(), nullptr, status));
  EXPECT_EQ(tn_session_new(nullptr, nullptr, status), nullptr);
  refused("tn_session_new");
  tn_session_close(nullptr, status);
  refused("tn_session_close");
  tn_session_delete(nullptr);
  tn_cancellation_delete(nullptr);
  tn_cancellation_cancel(nullptr, nullptr);
  tn_tensor* result = nullptr;
  const auto run = [&](tn_session* s, const tn_output* const* feeds, const tn_tensor* const* values,
                       size_t num_feeds, const tn_output* const* fetches, tn_tensor** results,
                       size_t num_fetches, const tn_operation* const* targets, size_t num_targets) {
    tn_session_run(s, nullptr, feeds, values, num_feeds, fetches, results, num_fetches, targets,
                   num_targets, nullptr, status);
    refused("tn_session_run");
  };
  const tn_output* no_output = nullptr;
  const tn_operation* no_operation = nullptr;
  const tn_tensor* no_tensor = nullptr;
  run(nullptr, nullptr, nullptr, 0, &x, &result, 1, nullptr, 0);
  run(session.get(), nullptr, nullptr, 1, &x, &result, 1, nullptr, 0);
  run(session.get(), &no_output, &no_tensor, 1, &x, &result, 1, nullptr, 0);
  run(session.get(), &x, &no_tensor, 1, &x, &result, 1, nullptr, 0);
  run(session.get(), &x, nullptr, 1, &x, &result, 1, nullptr, 0);
  run(session.get(), nullptr, nullptr, 0, nullptr, &result, 1, nullptr, 0);
  run(session.get(), nullptr, nullptr, 0, &no_output, &result, 1, nullptr, 0);
  run(session.get(), nullptr, nullptr, 0, &x, nullptr, 1, nullptr, 0);
  run(session.get(), nullptr, nullptr, 0, &x, &result, 1, nullptr, 1);
  run(session.get(), nullptr, nullptr, 0, &x, &result, 1, &no_operation, 1);
  EXPECT_EQ(tn_callable_new(nullptr, nullptr, 0, &x, 1, nullptr, 0, status), nullptr);
  refused("tn_callable_new");
  tn_callable_run(nullptr, nullptr, nullptr, nullptr, nullptr, status);
  refused("tn_callable_run");
  tn_callable_delete(nullptr);
  tn_callable* callable = tn_callable_new(session.get(), nullptr, 0, &x, 1, nullptr, 0, status);
  tn_callable_run(callable, nullptr, nullptr, nullptr, nullptr, status);
  refused("no room for results");
  tn_callable_delete(callable);
}

}  // namespace
}  // namespace capi_test
