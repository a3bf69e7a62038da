// SPDX-License-Identifier: Apache-2.0
// Whole programs: in C11 (client.c) and by the C++ header.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/capi/client.h"
#include "treenail/treenail.hpp"

namespace {

TEST(Client, InC) {
  float result[4] = {};
  char message[256];
  ASSERT_EQ(run_client(result, message, sizeof(message)), 0) << message;
  const float wanted[] = {5, 0, 0, 25};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(result[i], wanted[i]);
}

// Five steps of gradient descent on (w - 3)^2, written as a program would.
TEST(Client, TrainsInCxx) {
  tn::Graph graph;
  const tn::Attrs variable =
      std::move(tn::Attrs().set("dtype", tn::DType::kFloat64).set_shape("shape", {}));
  const tn::Output w = graph.add("VarHandleOp", {}, variable, {"w", {}, {}});
  const tn::Operation init =
      graph.add("AssignVariableOp", {w, graph.constant(tn::Tensor::scalar(0.0))});
  const tn::Output value =
      graph.add("ReadVariableOp", {w}, tn::Attrs().set("dtype", tn::DType::kFloat64));
  const tn::Output three = graph.constant(tn::Tensor::scalar(3.0));
  const tn::Output loss = graph.add("Square", {graph.add("Sub", {value, three})});
  const tn::Output slope = graph.gradients({loss}, {value})[0];
  ASSERT_TRUE(slope);
  const tn::Output rate = graph.constant(tn::Tensor::scalar(0.25));
  const tn::Operation train =
      graph.add("AssignSubVariableOp", {w, graph.add("Mul", {rate, slope})}, tn::Attrs());
  const tn::Session session(graph);
  session.run({}, {}, {init});
  double error = 9;
  for (int i = 0; i < 5; ++i) {
    EXPECT_DOUBLE_EQ(session.run({}, {loss})[0].values<double>()[0], error);
    session.run({}, {}, {train});
    error *= 0.25;
  }
}

TEST(Client, FeedsFetchesAndKeepsValues) {
  tn::Graph graph;
  const tn::Output x = graph.placeholder(tn::DType::kFloat32, {-1, 2}, "x");
  const tn::Operation split =
      graph.add("Unpack", {x}, tn::Attrs().set("num", 2).set("axis", 1), {"columns", {}, {}});
  EXPECT_EQ(split.num_outputs(), 2);
  const tn::Output joined = graph.add("Pack", {tn::Input({split.output(1), split.output(0)})},
                                      tn::Attrs().set("axis", 1));
  EXPECT_EQ(joined.shape(), (tn::Shape{-1, 2}));
  const tn::Session session(graph);
  const tn::Tensor fed = tn::Tensor::of<float>({1, 2, 3, 4}, {2, 2});
  const std::vector<tn::Tensor> got = session.run({{x, fed}}, {joined, x});
  EXPECT_EQ(got[0].values<float>(), (std::vector<float>{2, 1, 4, 3}));
  tn::Tensor copy = got[0];
  copy.mutable_data<float>()[0] = 9;
  EXPECT_EQ(got[0].values<float>()[0], 2);
  EXPECT_EQ(got[0].shape(), (tn::Shape{2, 2}));
}

TEST(Client, ErrorsAreExceptions) {
  tn::Graph graph;
  const tn::Output a = graph.placeholder(tn::DType::kFloat32, {2, 3}, "a");
  try {
    graph.add("MatMul", {a, a}, tn::Attrs(), {"product", {}, {}});
    FAIL() << "the inner dimensions differ";
  } catch (const tn::Error& error) {
    EXPECT_EQ(error.code(), tn::Code::kInvalidArgument);
    EXPECT_EQ(std::string(error.what()).rfind("[MatMul node \"product\"] ", 0), 0U) << error.what();
  }
  EXPECT_THROW(tn::Tensor::of<float>({1, 2}, {3}), tn::Error);
  EXPECT_THROW(tn::Tensor::scalar(1.0F).data<double>(), tn::Error);
  EXPECT_THROW(tn::load_plugin("/nonexistent"), tn::Error);
}

TEST(Client, ExecutesAtOnce) {
  const tn::Tensor x = tn::Tensor::of<int32_t>({1, 2, 3, 4, 5, 6});
  const std::vector<tn::Tensor> parts =
      tn::execute("Split", {tn::Tensor::scalar<int32_t>(0), x}, tn::Attrs().set("num_split", 3));
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[2].values<int32_t>(), (std::vector<int32_t>{5, 6}));
}

TEST(Client, StringsAndFiles) {
  const tn::Tensor words = tn::Tensor::of_strings({"oak", "", "pine"}, {3});
  EXPECT_EQ(words.string(2), "pine");
  tn::Graph graph;
  graph.constant(words, "words");
  const std::string path = testing::TempDir() + "capi_client_test.tng";
  graph.save(path);
  const tn::Graph loaded = tn::Graph::load(path);
  std::remove(path.c_str());
  EXPECT_EQ(loaded.operations().size(), 1U);
  EXPECT_EQ(tn::Session(loaded).run({}, {loaded.output("words")})[0].string(0), "oak");
}

}  // namespace
