// SPDX-License-Identifier: Apache-2.0
// Immediate execution: values, views, state, random streams, and how errors begin.
#include "framework/eager/execute.h"

#include <gtest/gtest.h>

#include <vector>

#include "framework/base/cancellation.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/state/resource_manager.h"
#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;
using Tensors = std::vector<Tensor>;

Tensor floats(std::initializer_list<float> values) { return Tensor::vector<float>(values); }

std::vector<float> list(const Tensor& t) {
  return {t.values<float>().begin(), t.values<float>().end()};
}

TEST(Execute, GivesValues) {
  const Tensors sum = execute("Add", Tensors{floats({1, 2}), Tensor::scalar(10.0F)});
  ASSERT_EQ(sum.size(), 1U);
  EXPECT_EQ(list(sum[0]), (std::vector<float>{11, 12}));
}

TEST(Execute, TakesAttributesAndHostInputs) {
  const Tensor x = floats({1, 2, 3, 4}).reshaped(Shape({2, 2}));
  const Tensors sum =
      execute("Sum", Tensors{x, Tensor::scalar(int32_t{-1})}, {{"keep_dims", true}});
  EXPECT_EQ(sum[0].shape(), Shape({2, 1}));
  EXPECT_EQ(list(sum[0]), (std::vector<float>{3, 7}));
}

TEST(Execute, ViewsShareBytes) {
  const Tensor x = floats({1, 2, 3, 4});
  const Tensor y = execute("Reshape", Tensors{x, Tensor::vector<int32_t>({2, -1})})[0];
  EXPECT_EQ(y.shape(), Shape({2, 2}));
  EXPECT_EQ(y.raw(), x.raw());
}

TEST(Execute, InputsAreNeverWritten) {
  const Tensor x = floats({1, 2});
  const Tensor y = execute("Neg", Tensors{x})[0];
  EXPECT_NE(y.raw(), x.raw());
  EXPECT_EQ(list(x), (std::vector<float>{1, 2}));
}

TEST(Execute, EmptyTensorsWork) {
  const Tensor empty(DType::kFloat32, Shape({0, 3}));
  EXPECT_EQ(execute("Add", Tensors{empty, Tensor::scalar(1.0F)})[0].shape(), Shape({0, 3}));
}

TEST(Execute, StateLivesInTheGivenManager) {
  ResourceManager resources;
  const NamedAttrs attrs = {
      {"dtype", DType::kFloat32}, {"shape", PartialShape({2})}, {"shared_name", "v"}};
  const Tensor handle = execute("VarHandleOp", Tensors{}, attrs, {}, &resources)[0];
  execute("AssignVariableOp", Tensors{handle, floats({1, 2})}, {}, {}, &resources);
  const Tensor again = execute("VarHandleOp", Tensors{}, attrs, {}, &resources)[0];
  execute("AssignAddVariableOp", Tensors{again, floats({1, 1})}, {}, {}, &resources);
  EXPECT_EQ(list(execute("ReadVariableOp", Tensors{handle}, {{"dtype", DType::kFloat32}}, {},
                         &resources)[0]),
            (std::vector<float>{2, 3}));
  ResourceManager other;
  const Tensor elsewhere = execute("VarHandleOp", Tensors{}, attrs, {}, &other)[0];
  const std::string text = error_of([&] {
    execute("ReadVariableOp", Tensors{elsewhere}, {{"dtype", DType::kFloat32}}, {}, &other);
  });
  EXPECT_TRUE(text.starts_with("FailedPrecondition: [ReadVariableOp] ")) << text;
}

TEST(Execute, RandomOpsGoThroughTheirStream) {
  const auto draw = [](ResourceManager& resources, int seed) {
    return list(execute("RandomUniform", Tensors{Tensor::vector<int32_t>({4})},
                        {{"dtype", DType::kFloat32}, {"seed", seed}, {"seed2", 2}}, {},
                        &resources)[0]);
  };
  ResourceManager a, b;
  const std::vector<float> first = draw(a, 1);
  const std::vector<float> second = draw(a, 1);
  EXPECT_NE(first, second);
  EXPECT_NE(draw(a, 3), first);
  EXPECT_EQ(draw(b, 1), first);
  EXPECT_EQ(draw(b, 1), second);
}

TEST(Execute, ResolvedOpsCanBeKept) {
  const std::vector<DType> types = {DType::kFloat32, DType::kFloat32};
  const OpDef& def = OpRegistry::instance().get("Mul");
  const OpInstance mul = resolve_op(def, types, {});
  EXPECT_EQ(list(execute(mul, Tensors{floats({2}), floats({3})})[0]), (std::vector<float>{6}));
  EXPECT_EQ(error_of([&] {
              execute(mul, Tensors{floats({2}), Tensor::scalar(1.0)});
            }),
            "InvalidArgument: [Mul] input \"y\" has dtype float64, needed is float32");
  EXPECT_EQ(error_of([&] { execute(mul, Tensors{floats({2})}); }),
            "InvalidArgument: [Mul] expects 2 inputs, got 1");
}

TEST(Execute, Corpus) {
  const Tensor a(DType::kFloat32, Shape({64, 784}));
  const Tensor b(DType::kFloat32, Shape({512, 10}));
  EXPECT_TRUE(error_of([&] {
                execute("MatMul", Tensors{a, b});
              }).starts_with("InvalidArgument: [MatMul] "));
  EXPECT_EQ(error_of([&] {
              execute("Matmul", Tensors{a, b});
            }),
            "NotFound: no op \"Matmul\" is registered; did you mean \"MatMul\"?");
  EXPECT_EQ(error_of([&] { execute("Add", Tensors{a}); }),
            "InvalidArgument: [Add] expects 2 inputs, got 1");
  EXPECT_EQ(error_of([&] { execute("Neg", Tensors{Tensor()}); }).substr(0, 23),
            "InvalidArgument: [Neg] ");
  EXPECT_EQ(error_of([&] {
              execute("Neg", Tensors{a}, {{"alpha", 1}});
            }),
            "InvalidArgument: [Neg] no attribute \"alpha\"");
  EXPECT_EQ(error_of([&] {
              execute("Add", Tensors{floats({1, 2}), floats({1, 2, 3})});
            }),
            "InvalidArgument: [Add] Incompatible shapes: [2] vs. [3]");
  const Tensor huge = Tensor::vector<int64_t>({int64_t{1} << 30, int64_t{1} << 10});
  EXPECT_EQ(error_of([&] {
              execute("Fill", Tensors{huge, Tensor::scalar(1.0F)});
            }).substr(0, 26),
            "ResourceExhausted: [Fill] ");
  const Tensor negative = Tensor::vector<int64_t>({-3});
  EXPECT_EQ(error_of([&] {
              execute("Fill", Tensors{negative, Tensor::scalar(1.0F)});
            }).substr(0, 24),
            "InvalidArgument: [Fill] ");
}

TEST(Execute, ACancelledTokenStopsSplitWork) {
  CancellationToken token;
  token.cancel(Code::kCancelled, "enough");
  const Tensor large(DType::kFloat32, Shape({1 << 22}));
  EXPECT_EQ(error_of([&] { execute("Neg", Tensors{large}, {}, {}, nullptr, &token); }),
            "Cancelled: [Neg] enough");
}

}  // namespace
}  // namespace treenail
