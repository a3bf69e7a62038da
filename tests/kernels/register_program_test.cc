// SPDX-License-Identifier: Apache-2.0
// How programs are laid out on registers: which become register programs, and how many steps and
// places to wait that takes. What they compute: tests/python/test_register_steps.py.
#include "kernels/host/elementwise/register_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "framework/eager/execute.h"
#include "kernels/host/elementwise/tile_engine.h"

namespace treenail::host {
namespace {

constexpr DType kF = DType::kFloat32;

class RegisterProgramTest : public ::testing::Test {
 protected:
  // Opens the level's library, which brings the loops and the machine.
  void SetUp() override {
    execute("Neg", std::vector<Tensor>{Tensor::scalar(1.0f)});
    ASSERT_NE(register_machine(), nullptr);
  }

  int op(std::string_view name, std::vector<int> operands, DType key = kF) {
    return program.add_step(find_tile_op(name, key)->loops, operands, key, 1);
  }
  std::unique_ptr<const RegisterProgram> make(const std::vector<int>& singles = {}) {
    std::vector<bool> single(static_cast<size_t>(program.registers()));
    for (const int reg : singles) single[static_cast<size_t>(reg)] = true;
    return make_register_program(program, single);
  }

  TileProgram program;
};

TEST_F(RegisterProgramTest, AChainTakesAStepPerOp) {
  const int x = program.add_input(kF), y = program.add_input(kF);
  op("Tanh", {op("Relu", {op("Add", {op("Mul", {x, y}), x})})});
  const auto made = make();
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->code.size(), 6u);  // load, four ops, store
  EXPECT_TRUE(made->waiting.empty());
  EXPECT_EQ(made->output_bytes, 4);
}

TEST_F(RegisterProgramTest, TwoLiveValuesStayInRegisters) {
  const int x = program.add_input(kF);
  const int e = op("Exp", {x});
  op("Sub", {op("Square", {e}), e});
  const auto made = make();
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->code.size(), 6u);  // load, exp, copy, square, subtract, store
  EXPECT_TRUE(made->waiting.empty());
}

TEST_F(RegisterProgramTest, AThirdLiveValueWaits) {
  const int x = program.add_input(kF);
  const int a = op("Exp", {x}), b = op("Square", {a}), c = op("Tanh", {b});
  op("Sub", {op("Sub", {op("Abs", {c}), op("Sub", {a, b})}), c});
  const auto made = make();
  ASSERT_NE(made, nullptr);
  EXPECT_GE(made->waiting.size(), 1u);
  EXPECT_LE(made->waiting.size(), 3u);
}

TEST_F(RegisterProgramTest, AProgramComputesWhatItsOpsDo) {
  const int x = program.add_input(kF), s = program.add_input(kF);
  const int a = op("Square", {x}), b = op("Sub", {s, a});
  op("Maximum", {op("Add", {a, b}), op("Sub", {b, a})});
  const auto made = make({s});
  ASSERT_NE(made, nullptr);
  std::vector<float> in(1001), out(1001);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i) * 0.01f - 5;
  float scalar = 3;
  std::vector<void*> pointer(static_cast<size_t>(program.registers()), nullptr);
  pointer[0] = in.data();
  pointer[1] = &scalar;
  RegisterContext context;
  made->begin(context);
  made->run(context, pointer.data(), reinterpret_cast<std::byte*>(out.data()), 1001, false);
  for (size_t i = 0; i < in.size(); ++i) {
    const float square = in[i] * in[i], rest = scalar - square;
    ASSERT_EQ(out[i], std::max(square + rest, rest - square)) << i;
  }
}

// The last elements of each array go through a block of their own, of which there are so many.
TEST_F(RegisterProgramTest, MoreArraysThanBlocksStayInTiles) {
  int sum = program.add_input(kF);
  std::vector<int> inputs{sum};
  while (inputs.size() < kMostRegisterArrays) inputs.push_back(program.add_input(kF));
  const int one_more = program.add_input(kF);
  for (size_t k = 1; k < inputs.size(); ++k) sum = op("Add", {sum, inputs[k]});
  const auto made = make();
  ASSERT_NE(made, nullptr);
  std::vector<float> in(5, 1), out(5);
  const std::vector<void*> pointer(static_cast<size_t>(program.registers()), in.data());
  RegisterContext context;
  made->begin(context);
  made->run(context, pointer.data(), reinterpret_cast<std::byte*>(out.data()), 5, false);
  for (const float x : out) EXPECT_EQ(x, static_cast<float>(kMostRegisterArrays));
  op("Add", {sum, one_more});
  EXPECT_EQ(make(), nullptr);
}

TEST_F(RegisterProgramTest, WhatHasNoFormStaysInTiles) {
  const int x = program.add_input(DType::kInt32);
  op("FloorDiv", {op("Add", {x, x}, DType::kInt32), x}, DType::kInt32);
  EXPECT_EQ(make(), nullptr);
}

TEST_F(RegisterProgramTest, LanesOfTwoWidthsStayInTiles) {
  const int x = program.add_input(kF);
  program.add_conversion(program.add_conversion(op("Neg", {x}), DType::kFloat64), kF);
  EXPECT_EQ(make(), nullptr);
}

TEST_F(RegisterProgramTest, HalvesAreWidenedAndNarrowed) {
  const int x = program.add_input(DType::kBFloat16);
  const int wide = program.add_conversion(x, kF);
  program.add_conversion(op("Neg", {wide}), DType::kBFloat16);
  const auto made = make();
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->lane, 4);
  EXPECT_EQ(made->output_bytes, 2);
}

}  // namespace
}  // namespace treenail::host
