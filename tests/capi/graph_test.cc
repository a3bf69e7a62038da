// SPDX-License-Identifier: Apache-2.0
// Building, asking and saving graphs by the C ABI, and attributes of every kind.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/capi/support.h"

namespace capi_test {
namespace {

TEST(CGraph, BuildsAndTells) {
  const Graph g = graph();
  const tn_output* x = placeholder(g, TN_FLOAT32, {-1, 3});
  Status status;
  tn_builder* builder = tn_builder_new(g.get(), "MatMul", "h1/MatMul", status);
  const tn_output* w = constant(g, tensor<float>(TN_FLOAT32, std::vector<float>(12), {4, 3}), "w");
  tn_builder_add_input(builder, x);
  tn_builder_add_input(builder, w);
  tn_builder_add_control_input(builder, tn_output_operation(x));
  tn_builder_set_device(builder, "/device:CPU:0");
  tn_attrs_set_bool(tn_builder_attrs(builder), "transpose_b", 1);
  tn_operation* product = tn_builder_finish(builder, status);
  ASSERT_EQ(status.said(), "Ok");

  EXPECT_STREQ(tn_operation_name(product), "h1/MatMul");
  EXPECT_STREQ(tn_operation_type(product), "MatMul");
  EXPECT_STREQ(tn_operation_device(product), "/device:CPU:0");
  EXPECT_EQ(tn_operation_num_inputs(product), 2);
  EXPECT_EQ(tn_operation_input(product, 1), w);
  EXPECT_EQ(tn_operation_input(product, 2), nullptr);
  ASSERT_EQ(tn_operation_num_control_inputs(product), 1);
  EXPECT_EQ(tn_operation_control_input(product, 0), tn_output_operation(x));
  EXPECT_EQ(tn_operation_control_input(product, 1), nullptr);
  const tn_output* out = tn_operation_output(product, 0);
  EXPECT_EQ(tn_operation_output(product, 1), nullptr);
  EXPECT_EQ(tn_output_operation(out), product);
  EXPECT_EQ(tn_output_index(out), 0);
  EXPECT_EQ(tn_output_dtype(out), TN_FLOAT32);
  int64_t dims[2] = {};
  EXPECT_EQ(tn_output_shape(out, dims, 2), 2);
  EXPECT_EQ(dims[0], -1);
  EXPECT_EQ(dims[1], 4);

  EXPECT_EQ(tn_graph_num_operations(g.get()), 3U);
  EXPECT_EQ(tn_graph_operation(g.get(), 2, status), product);
  EXPECT_EQ(tn_graph_operation(g.get(), 3, status), nullptr);
  EXPECT_EQ(tn_graph_find_operation(g.get(), "h1/MatMul", status), product);
  EXPECT_EQ(tn_graph_find_output(g.get(), "h1/MatMul:0", status), out);
}

TEST(CGraph, NamesAreMadeUnique) {
  const Graph g = graph();
  placeholder(g, TN_FLOAT32, {}, "x");
  EXPECT_STREQ(tn_operation_name(tn_output_operation(placeholder(g, TN_FLOAT32, {}, "x"))), "x_1");
}

TEST(CGraph, WhatIsNotThereIsNotFound) {
  const Graph g = graph();
  placeholder(g, TN_FLOAT32, {}, "weights");
  Status status;
  EXPECT_EQ(tn_graph_find_operation(g.get(), "weigths", status), nullptr);
  EXPECT_EQ(status.code(), TN_NOT_FOUND);
  EXPECT_NE(status.said().find("\"weights\""), std::string::npos) << status.said();
  EXPECT_EQ(tn_graph_find_output(g.get(), "weights:1", status), nullptr);
  EXPECT_EQ(status.code(), TN_INVALID_ARGUMENT);
}

TEST(CGraph, AMistakeInABuilderComesOutOfFinish) {
  const Graph g = graph();
  Status status;
  tn_builder* builder = tn_builder_new(g.get(), "Add", "sum", status);
  tn_builder_add_input(builder, nullptr);
  tn_builder_add_input(builder, nullptr);
  EXPECT_EQ(tn_builder_finish(builder, status), nullptr);
  EXPECT_EQ(status.said(), "InvalidArgument: [Add node \"sum\"] an input is NULL");

  builder = tn_builder_new(g.get(), "Placeholder", "p", status);
  tn_attrs_set_type(tn_builder_attrs(builder), "dtype", 13);
  tn_attrs_set_int(tn_builder_attrs(builder), "later", 1);
  EXPECT_EQ(tn_builder_finish(builder, status), nullptr);
  EXPECT_EQ(
      status.said(),
      "InvalidArgument: [Placeholder node \"p\"] attribute \"dtype\": 13 is no dtype's number");
  EXPECT_EQ(tn_graph_num_operations(g.get()), 0U);
}

TEST(CGraph, OpAndNodeStandBeforeAnErrorOfTheOp) {
  const Graph g = graph();
  const tn_output* a = placeholder(g, TN_FLOAT32, {2, 3}, "a");
  const tn_output* b = placeholder(g, TN_FLOAT32, {4, 5}, "b");
  std::string said;
  EXPECT_EQ(op(g, "MatMul", {a, b}, nullptr, &said, "product"), nullptr);
  EXPECT_EQ(said.rfind("InvalidArgument: [MatMul node \"product\"] ", 0), 0U) << said;
  EXPECT_EQ(op(g, "NoSuchOp", {}, nullptr, &said), nullptr);
  EXPECT_EQ(said.rfind("NotFound: ", 0), 0U) << said;
}

TEST(CGraph, KnowsMoreOfAShapeWhenTold) {
  const Graph g = graph();
  const tn_output* x = placeholder(g, TN_FLOAT32, {-1, 3});
  Status status;
  const int64_t more[] = {7, -1}, other[] = {7, 4};
  tn_output_set_shape(x, more, 2, status);
  ASSERT_EQ(status.said(), "Ok");
  int64_t dims[2];
  ASSERT_EQ(tn_output_shape(x, dims, 2), 2);
  EXPECT_EQ(dims[0], 7);
  EXPECT_EQ(dims[1], 3);
  tn_output_set_shape(x, other, 2, status);
  EXPECT_EQ(status.code(), TN_INVALID_ARGUMENT);
}

TEST(CGraph, SavesAndLoads) {
  const Graph g = graph();
  const tn_output* x = placeholder(g, TN_FLOAT32, {2});
  op(g, "Square", {x}, nullptr, nullptr, "y");
  const std::string path = testing::TempDir() + "capi_graph_test.tng";
  Status status;
  tn_graph_save(g.get(), path.c_str(), status);
  ASSERT_EQ(status.said(), "Ok");
  const Graph loaded(tn_graph_load(path.c_str(), status));
  ASSERT_TRUE(loaded) << status.said();
  std::remove(path.c_str());
  const tn_output* y = tn_graph_find_output(loaded.get(), "y", status);
  const Tensor value = floats({3, 4});
  const Tensor result =
      fetch(loaded, y, status, tn_graph_find_output(loaded.get(), "x", status), value.get());
  ASSERT_TRUE(result) << status.said();
  EXPECT_EQ(values<float>(result.get()), (std::vector<float>{9, 16}));
  EXPECT_EQ(tn_graph_load((path + ".absent").c_str(), status), nullptr);
  EXPECT_EQ(status.code(), TN_NOT_FOUND);
}

TEST(CGraph, HandlesOutliveTheGraphWhileASessionLives) {
  Graph g = graph();
  const tn_output* x = placeholder(g, TN_FLOAT32, {2});
  const tn_output* y = op(g, "Neg", {x});
  Status status;
  const Session session(tn_session_new(g.get(), nullptr, status));
  g.reset();
  const Tensor value = floats({1, -2});
  const tn_tensor* fed = value.get();
  tn_tensor* result = nullptr;
  tn_session_run(session.get(), nullptr, &x, &fed, 1, &y, &result, 1, nullptr, 0, nullptr, status);
  ASSERT_EQ(status.said(), "Ok");
  EXPECT_EQ(values<float>(Tensor(result).get()), (std::vector<float>{-1, 2}));
}

// The attributes of a call as an operation tells them.
TEST(CAttrs, OfACallCanBeRead) {
  const Graph g = graph();
  Status status;
  const Tensor value = floats({1, 2, 3});
  const tn_call* call = tn_operation_call(tn_output_operation(constant(g, value)));
  EXPECT_STREQ(tn_call_op(call), "Const");
  EXPECT_EQ(tn_call_attr_kind(call, "dtype", status), TN_ATTR_TYPE);
  EXPECT_EQ(tn_call_attr_type(call, "dtype", 0, status), TN_FLOAT32);
  const tn_tensor* kept = tn_call_attr_tensor(call, "value", 0, status);
  EXPECT_EQ(values<float>(kept), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(tn_call_num_inputs(call), 0);
  EXPECT_EQ(tn_call_num_outputs(call), 1);
  EXPECT_EQ(tn_call_output_dtype(call, 0), TN_FLOAT32);
  EXPECT_EQ(tn_call_output_dtype(call, 1), 0);

  const tn_call* p = tn_operation_call(tn_output_operation(placeholder(g, TN_INT64, {4, -1})));
  const int64_t* dims = nullptr;
  ASSERT_EQ(tn_call_attr_shape(p, "shape", 0, &dims, status), 2);
  EXPECT_EQ(dims[0], 4);
  EXPECT_EQ(dims[1], -1);
}

TEST(CAttrs, ReadingAnotherKindOrElementIsAnError) {
  const Graph g = graph();
  const tn_call* call = tn_operation_call(tn_output_operation(placeholder(g, TN_INT64, {4})));
  Status status;
  EXPECT_EQ(tn_call_attr_int(call, "dtype", 0, status), 0);
  EXPECT_EQ(status.code(), TN_INVALID_ARGUMENT);
  EXPECT_EQ(tn_call_attr_type(call, "dtype", 1, status), 0);
  EXPECT_EQ(status.said(), "OutOfRange: element 1 of attribute \"dtype\" is not in [0, 1)");
  EXPECT_EQ(tn_call_attr_kind(call, "color", status), 0);
  EXPECT_EQ(status.said(), "NotFound: op \"Placeholder\" has no attribute \"color\"");
}

TEST(CAttrs, BorrowedTensorsAreCopied) {
  Graph g = graph();
  float memory[1] = {5};
  const int64_t dims[] = {1};
  Status status;
  const tn_output* c = constant(
      g, Tensor(tn_tensor_borrow(TN_FLOAT32, dims, 1, memory, 4, nullptr, nullptr, status)));
  memory[0] = 6;
  const Tensor result = fetch(g, c, status);
  ASSERT_TRUE(result) << status.said();
  EXPECT_EQ(values<float>(result.get()), std::vector<float>{5});
}

}  // namespace
}  // namespace capi_test
