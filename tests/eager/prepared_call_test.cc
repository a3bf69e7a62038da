// SPDX-License-Identifier: Apache-2.0
// Calls of immediate execution that are kept: what makes two of them the same, and what is never
// kept.
#include "framework/eager/prepared_call.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/intrusive_ptr.h"
#include "framework/eager/execute.h"
#include "framework/eager/immediate_options.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/state/resource_manager.h"
#include "framework/runtime/state/variable.h"
#include "tests/support/idle_device.h"

namespace treenail {
namespace {

using Tensors = std::vector<Tensor>;
using CallPtr = std::shared_ptr<const PreparedCall>;

Tensor floats(std::initializer_list<float> values) { return Tensor::vector<float>(values); }

std::vector<float> list(const Tensor& t) {
  return {t.values<float>().begin(), t.values<float>().end()};
}

CallPtr prepared(const std::string& op, const Tensors& inputs, const NamedAttrs& attrs = {},
                 ResourceManager* resources = nullptr) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  return prepare_call({OpRegistry::instance().get(op), pointers, attrs, {}, resources});
}

bool kept(const std::string& op, const Tensors& inputs, const NamedAttrs& attrs = {}) {
  const CallPtr first = prepared(op, inputs, attrs);
  return prepared(op, inputs, attrs) == first;
}

TEST(PreparedCalls, AreKeptByDtypesAndShapes) {
  const Tensors row = {floats({1, 2, 3, 4, 5, 6, 7})};
  const CallPtr neg = prepared("Neg", row);
  EXPECT_EQ(prepared("Neg", Tensors{floats({7, 6, 5, 4, 3, 2, 1})}), neg);
  EXPECT_NE(prepared("Neg", Tensors{floats({1, 2, 3, 4, 5, 6})}), neg);
  EXPECT_NE(prepared("Neg", Tensors{Tensor::vector<int32_t>({1, 2, 3, 4, 5, 6, 7})}), neg);
  EXPECT_NE(prepared("Abs", row), neg);
  EXPECT_EQ(list(execute("Neg", row)[0]), (std::vector<float>{-1, -2, -3, -4, -5, -6, -7}));
}

TEST(PreparedCalls, TellDevicesApart) {
  static test::IdleDevice other({"localhost", 0, 0, "IDLE", 0});
  const Tensor x = floats({1, 2});
  const Tensor* const inputs[] = {&x};
  const OpDef& def = OpRegistry::instance().get("Shape");
  const CallPtr here = prepare_call({def, inputs, {}, {}, nullptr, nullptr});
  const CallPtr there = prepare_call({def, inputs, {}, {}, nullptr, &other});
  EXPECT_NE(here, there);
  EXPECT_EQ(prepare_call({def, inputs, {}, {}, nullptr, nullptr}), here);
  EXPECT_EQ(prepare_call({def, inputs, {}, {}, nullptr, &other}), there);
  EXPECT_TRUE(there->may_wait());
  EXPECT_FALSE(here->may_wait());
}

TEST(RequestedDevices, AreThoseOfTheOptions) {
  const ImmediateOptions usual = *immediate_options();
  EXPECT_EQ(requested_device("/cpu:0"), nullptr);
  EXPECT_THROW(requested_device("/cpu:1"), Error);
  EXPECT_THROW(requested_device("/cpu:one"), Error);
  ImmediateOptions more = usual;
  more.device_count = {{"CPU", 2}};
  set_immediate_options(more);
  EXPECT_EQ(requested_device("/cpu:1"), nullptr);
  EXPECT_THROW(requested_device("/gpu:0"), Error);
  more.allow_soft_placement = true;
  set_immediate_options(more);
  EXPECT_EQ(requested_device("/gpu:0"), nullptr);
  set_immediate_options(usual);
  EXPECT_THROW(requested_device("/cpu:1"), Error);
}

TEST(PreparedCalls, TellAttributesApart) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}).reshaped(Shape({2, 3}));
  const Tensor y = floats({1, 0, 0, 1}).reshaped(Shape({2, 2}));
  for (int round = 0; round < 2; ++round) {
    const Tensor one = execute("MatMul", Tensors{x, y}, {{"transpose_a", true}})[0];
    EXPECT_EQ(list(one), (std::vector<float>{1, 4, 2, 5, 3, 6}));
    EXPECT_NE(prepared("MatMul", Tensors{x, y}, {{"transpose_a", true}}),
              prepared("MatMul", Tensors{x, y}, {{"transpose_a", true}, {"transpose_b", true}}));
    const Tensor two = execute("MatMul", Tensors{y, x}, {{"transpose_a", false}})[0];
    EXPECT_EQ(list(two), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  }
}

TEST(PreparedCalls, AreKeptByTheValuesThatWereRead) {
  const Tensor x = floats({1, 2, 3, 4});
  const CallPtr square = prepared("Reshape", Tensors{x, Tensor::vector<int32_t>({2, 2})});
  EXPECT_EQ(prepared("Reshape", Tensors{x, Tensor::vector<int32_t>({2, 2})}), square);
  EXPECT_NE(prepared("Reshape", Tensors{x, Tensor::vector<int32_t>({4, 1})}), square);
  EXPECT_EQ(execute("Reshape", Tensors{x, Tensor::vector<int32_t>({1, 4})})[0].shape(),
            Shape({1, 4}));
  // What may change afterwards was copied.
  Tensor shape = Tensor::vector<int32_t>({2, 2});
  const CallPtr first = prepared("Reshape", Tensors{x, shape});
  shape.data<int32_t>()[0] = 4;
  shape.data<int32_t>()[1] = 1;
  EXPECT_NE(prepared("Reshape", Tensors{x, shape}), first);
}

TEST(PreparedCalls, AreKeptByTheShapeOfAVariable) {
  const auto handle_of = [](const Tensor& value) {
    auto variable = make_counted<Variable>("v", value.dtype(), PartialShape());
    variable->assign(value);
    Tensor handle(DType::kResource, Shape());
    handle.data<ResourceElement>()->object = variable;
    return handle;
  };
  const NamedAttrs dtype = {{"dtype", DType::kFloat32}};
  const CallPtr two = prepared("ReadVariableOp", Tensors{handle_of(floats({1, 2}))}, dtype);
  EXPECT_EQ(prepared("ReadVariableOp", Tensors{handle_of(floats({3, 4}))}, dtype), two);
  EXPECT_NE(prepared("ReadVariableOp", Tensors{handle_of(floats({3, 4, 5}))}, dtype), two);
}

TEST(PreparedCalls, StateOfAManagerIsNotKept) {
  const Tensors shape = {Tensor::vector<int32_t>({4})};
  const NamedAttrs seeds = {
      {"seed", int64_t{1}}, {"seed2", int64_t{2}}, {"dtype", DType::kFloat32}};
  std::vector<float> first;
  for (int round = 0; round < 2; ++round) {
    ResourceManager resources;  // perhaps where the last one was
    const auto draw = [&] {
      return list(execute("RandomUniform", shape, seeds, {}, &resources)[0]);
    };
    const std::vector<float> drawn = draw();
    EXPECT_NE(draw(), drawn);
    if (round == 0) first = drawn;
    EXPECT_EQ(drawn, first);
  }
}

TEST(PreparedCalls, RandomNumbersBeginAnew) {
  const Tensors shape = {Tensor::vector<int32_t>({4})};
  const NamedAttrs seeds = {
      {"seed", int64_t{1}}, {"seed2", int64_t{3}}, {"dtype", DType::kFloat32}};
  const auto draw = [&] { return list(execute("RandomUniform", shape, seeds)[0]); };
  restart_random_counters();
  const std::vector<float> first = draw(), second = draw();
  EXPECT_NE(first, second);
  restart_random_counters();
  EXPECT_EQ(draw(), first);
  EXPECT_EQ(draw(), second);
}

TEST(PreparedCalls, HoldNoTensorsOfAttributes) {
  const NamedAttrs attrs = {{"value", floats({1, 2})}, {"dtype", DType::kFloat32}};
  EXPECT_EQ(list(execute("Const", Tensors{}, attrs)[0]), (std::vector<float>{1, 2}));
  EXPECT_FALSE(kept("Const", {}, attrs));
}

TEST(PreparedCalls, FailedCallsFailAgain) {
  const Tensors apart = {floats({1, 2}), floats({1, 2, 3})};
  for (int round = 0; round < 2; ++round) EXPECT_THROW(execute("Add", apart), Error);
}

TEST(PreparedCalls, MoreKindsThanPlacesStayRight) {
  for (int round = 0; round < 2; ++round) {
    for (int64_t n = 1; n <= 2500; ++n) {
      Tensor x(DType::kFloat32, Shape({n}));
      for (int64_t i = 0; i < n; ++i) x.data<float>()[i] = static_cast<float>(i);
      const Tensor y = execute("Neg", Tensors{x})[0];
      ASSERT_EQ(y.shape(), x.shape());
      ASSERT_EQ(y.data<float>()[n - 1], -static_cast<float>(n - 1));
    }
  }
}

TEST(PreparedCalls, EachThreadHasItsOwn) {
  const Tensors row = {floats({7, 8})};
  const CallPtr here = prepared("Square", row);
  CallPtr elsewhere;
  std::thread([&] { elsewhere = prepared("Square", row); }).join();
  EXPECT_NE(elsewhere, here);
  EXPECT_EQ(prepared("Square", row), here);
}

}  // namespace
}  // namespace treenail
