// SPDX-License-Identifier: Apache-2.0
// Kernels kept for immediate calls that come again: what makes two calls the same, and what is
// never kept.
#include "framework/eager/repeated_calls.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "framework/eager/execute.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/state/resource_manager.h"

namespace treenail {
namespace {

using Tensors = std::vector<Tensor>;

Tensor floats(std::initializer_list<float> values) { return Tensor::vector<float>(values); }

std::vector<float> list(const Tensor& t) {
  return {t.values<float>().begin(), t.values<float>().end()};
}

bool kept(const std::string& op, const Tensors& inputs, const NamedAttrs& attrs = {}) {
  const ImmediateCall call{OpRegistry::instance().get(op), inputs, attrs, {}};
  return RepeatedCalls::of_this_thread().find(call, RepeatedCalls::hash(call)) != nullptr;
}

TEST(RepeatedCalls, KeepTheKernelOfTheSameDtypesAndShapes) {
  const Tensors row = {floats({1, 2, 3, 4, 5, 6, 7})};
  EXPECT_FALSE(kept("Neg", row));
  EXPECT_EQ(list(execute("Neg", row)[0]), (std::vector<float>{-1, -2, -3, -4, -5, -6, -7}));
  EXPECT_TRUE(kept("Neg", row));
  EXPECT_EQ(list(execute("Neg", Tensors{floats({7, 6, 5, 4, 3, 2, 1})})[0]),
            (std::vector<float>{-7, -6, -5, -4, -3, -2, -1}));
  EXPECT_FALSE(kept("Neg", Tensors{floats({1, 2, 3, 4, 5, 6})}));
  EXPECT_FALSE(kept("Neg", Tensors{Tensor::vector<int32_t>({1, 2, 3, 4, 5, 6, 7})}));
  EXPECT_FALSE(kept("Abs", row));
}

TEST(RepeatedCalls, TellAttributesApart) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}).reshaped(Shape({2, 3}));
  const Tensor y = floats({1, 0, 0, 1}).reshaped(Shape({2, 2}));
  for (int round = 0; round < 2; ++round) {
    const Tensor one = execute("MatMul", Tensors{x, y}, {{"transpose_a", true}})[0];
    EXPECT_EQ(list(one), (std::vector<float>{1, 4, 2, 5, 3, 6}));
    // At once: where the op's address has it so, the next call takes this one's place.
    EXPECT_TRUE(kept("MatMul", Tensors{x, y}, {{"transpose_a", true}}));
    EXPECT_FALSE(kept("MatMul", Tensors{x, y}, {{"transpose_a", true}, {"transpose_b", true}}));
    const Tensor two = execute("MatMul", Tensors{y, x}, {{"transpose_a", false}})[0];
    EXPECT_EQ(list(two), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  }
}

TEST(RepeatedCalls, KeepNothingThatDependsOnValuesOrState) {
  const Tensors reshaped = {floats({1, 2, 3, 4}), Tensor::vector<int32_t>({2, 2})};
  execute("Reshape", reshaped);
  EXPECT_FALSE(kept("Reshape", reshaped));
  const Tensors filled = {Tensor::vector<int32_t>({2}), Tensor::scalar(1.0F)};
  EXPECT_EQ(execute("Fill", filled)[0].shape(), Shape({2}));
  EXPECT_FALSE(kept("Fill", filled));
  const Tensors shape = {Tensor::vector<int32_t>({4})};
  const NamedAttrs seeds = {
      {"seed", int64_t{1}}, {"seed2", int64_t{2}}, {"dtype", DType::kFloat32}};
  ResourceManager resources;
  const auto draw = [&] { return list(execute("RandomUniform", shape, seeds, {}, &resources)[0]); };
  EXPECT_NE(draw(), draw());
  EXPECT_FALSE(kept("RandomUniform", shape, seeds));
}

TEST(RepeatedCalls, HoldNoTensorsOfAttributes) {
  const NamedAttrs attrs = {{"value", floats({1, 2})}, {"dtype", DType::kFloat32}};
  EXPECT_EQ(list(execute("Const", Tensors{}, attrs)[0]), (std::vector<float>{1, 2}));
  EXPECT_FALSE(RepeatedCalls::may_keep({OpRegistry::instance().get("Const"), {}, attrs, {}}));
  EXPECT_FALSE(kept("Const", {}, attrs));
}

TEST(RepeatedCalls, FailedCallsFailAgain) {
  const Tensors apart = {floats({1, 2}), floats({1, 2, 3})};
  for (int round = 0; round < 2; ++round) EXPECT_THROW(execute("Add", apart), Error);
  EXPECT_FALSE(kept("Add", apart));
}

TEST(RepeatedCalls, MoreKindsThanPlacesStayRight) {
  for (int round = 0; round < 2; ++round) {
    for (int64_t n = 1; n <= 600; ++n) {
      Tensor x(DType::kFloat32, Shape({n}));
      for (int64_t i = 0; i < n; ++i) x.data<float>()[i] = static_cast<float>(i);
      const Tensor y = execute("Neg", Tensors{x})[0];
      ASSERT_EQ(y.shape(), x.shape());
      ASSERT_EQ(y.data<float>()[n - 1], -static_cast<float>(n - 1));
    }
  }
}

TEST(RepeatedCalls, EachThreadHasItsOwn) {
  const Tensors row = {floats({7, 8})};
  execute("Square", row);
  bool elsewhere = true;
  std::thread([&] { elsewhere = kept("Square", row); }).join();
  EXPECT_FALSE(elsewhere);
  EXPECT_TRUE(kept("Square", row));
}

}  // namespace
}  // namespace treenail
