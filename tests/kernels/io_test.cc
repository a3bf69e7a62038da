// SPDX-License-Identifier: Apache-2.0
// Save, Restore, MergeCheckpoints and ShardedFilename as ops: shapes known beforehand, values,
// parts, errors.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/io/checkpoint.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/runtime/run/immediate.h"
#include "framework/runtime/state/resource_manager.h"
#include "framework/tensor/string_element.h"
#include "tests/support/expect_error.h"
#include "tests/support/needs_hdf5.h"
#include "tests/support/temporary_directory.h"

namespace treenail {
namespace {

using testing::error_of;

std::vector<Tensor> run(std::string_view name, const std::vector<Tensor>& inputs,
                        const NamedAttrs& attrs = {}, const CancellationToken* token = nullptr) {
  std::vector<DType> types;
  for (const Tensor& input : inputs) types.push_back(input.dtype());
  const OpInstance op = resolve_op(OpRegistry::instance().get(name), types, attrs);
  return run_immediately(op, inputs, {&ResourceManager::process()}, token);
}

Tensor string(const std::string& text) { return Tensor::scalar(StringElement(text)); }

Tensor strings(const std::vector<std::string>& texts) {
  Tensor tensor(DType::kString, Shape({static_cast<int64_t>(texts.size())}));
  for (size_t i = 0; i < texts.size(); ++i)
    tensor.data<StringElement>()[i] = StringElement(texts[i]);
  return tensor;
}

class IoOps : public test::NeedsHdf5 {
 protected:
  std::string file(const std::string& name) const { return directory_.file(name); }
  int files() const { return directory_.entries(); }

  void save(const std::string& name, const std::vector<std::string>& names,
            const std::vector<Tensor>& tensors, std::vector<std::string> slices = {}) {
    if (slices.empty()) slices.resize(names.size());
    std::vector<Tensor> inputs = {string(file(name)), strings(names), strings(slices)};
    inputs.insert(inputs.end(), tensors.begin(), tensors.end());
    EXPECT_TRUE(run("Save", inputs).empty());
  }
  std::vector<Tensor> restore(const std::string& name, const std::vector<std::string>& names,
                              const std::vector<DType>& dtypes,
                              std::vector<std::string> slices = {}) {
    if (slices.empty()) slices.resize(names.size());
    return run("Restore", {string(file(name)), strings(names), strings(slices)},
               {{"dtypes", dtypes}});
  }
  Tensor matrix() {
    Tensor tensor(DType::kFloat32, Shape({4, 3}));
    for (int i = 0; i < 12; ++i) tensor.data<float>()[i] = static_cast<float>(i);
    return tensor;
  }
  const test::TemporaryDirectory directory_;
};

TEST_F(IoOps, WhatIsSavedIsRestored) {
  save("a.ckpt", {"w", "w/Adam", "step", "name"},
       {matrix(), matrix(), Tensor::scalar<int64_t>(7),
        Tensor::vector<StringElement>({StringElement("x")})});
  const std::vector<Tensor> values = restore("a.ckpt", {"step", "w/Adam", "name"},
                                             {DType::kInt64, DType::kFloat32, DType::kString});
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(tensor_values(values[0]), "int64[] 7");
  EXPECT_EQ(tensor_values(values[1], 3), "float32[4,3] [0, 1, 2, ...]");
  EXPECT_EQ(tensor_values(values[2]), "string[1] [\"x\"]");
  EXPECT_EQ(files(), 1);
}

TEST_F(IoOps, PartsAreSavedAndRestored) {
  save("a.ckpt", {"v", "v"}, {matrix().rows(0, 1), matrix().rows(1, 4)},
       {"4 3 0,1:-", "4 3 1,3:-"});
  EXPECT_EQ(tensor_values(restore("a.ckpt", {"v"}, {DType::kFloat32})[0], 12),
            tensor_values(matrix(), 12));
  EXPECT_EQ(tensor_values(restore("a.ckpt", {"v"}, {DType::kFloat32}, {"4 3 0,2:1,1"})[0]),
            "float32[2,1] [1, 4]");
}

TEST_F(IoOps, ShardsMerge) {
  std::filesystem::create_directory(file("parts"));
  save("parts/0", {"v", "only"}, {matrix().rows(0, 1), matrix()}, {"4 3 0,1:-", ""});
  save("parts/1", {"v"}, {matrix().rows(1, 4)}, {"4 3 1,3:-"});
  run("MergeCheckpoints", {strings({file("parts/0"), file("parts/1")}), string(file("whole"))});
  EXPECT_EQ(tensor_values(restore("whole", {"v"}, {DType::kFloat32})[0], 12),
            tensor_values(matrix(), 12));
  EXPECT_EQ(tensor_values(restore("whole", {"only"}, {DType::kFloat32})[0], 12),
            tensor_values(matrix(), 12));
  EXPECT_EQ(files(), 1);  // the parts and their directory are gone
}

TEST_F(IoOps, MergeKeepsSourcesWhenAskedTo) {
  save("a", {"x"}, {matrix()});
  run("MergeCheckpoints", {strings({file("a")}), string(file("b"))}, {{"delete_old_dirs", false}});
  EXPECT_EQ(files(), 2);
  run("MergeCheckpoints", {strings({file("a")}), string(file("a"))});  // onto itself
  EXPECT_EQ(restore("a", {"x"}, {DType::kFloat32})[0].shape(), Shape({4, 3}));
}

TEST_F(IoOps, AnIndexLeavesShardsWhereTheyAre) {
  const Tensor top = Tensor::vector<float>({1, 2, 3});
  const Tensor bottom = Tensor::vector<float>({4, 5});
  save("a", {"v", "whole"}, {top, matrix()}, {"5 0,3", ""});
  save("b", {"v"}, {bottom}, {"5 3,2"});
  run("MergeCheckpoints", {strings({file("a"), file("b")}), string(file("m"))},
      {{"by_reference", true}});
  EXPECT_EQ(files(), 3);
  const std::vector<Tensor> values =
      restore("m", {"v", "whole", "v"}, {DType::kFloat32, DType::kFloat32, DType::kFloat32},
              {"", "", "5 2,2"});
  EXPECT_EQ(tensor_values(values[0]), "float32[5] [1, 2, 3, 4, 5]");
  EXPECT_EQ(tensor_values(values[1], 2), "float32[4,3] [0, 1, ...]");
  EXPECT_EQ(tensor_values(values[2]), "float32[2] [3, 4]");
  const CheckpointReader reader(file("m"));
  EXPECT_EQ(reader.get("v").slices.size(), 2u);
  std::filesystem::remove(file("b"));
  EXPECT_EQ(tensor_values(reader.read("v")), "float32[5] [1, 2, 3, 4, 5]");  // it is open
  EXPECT_EQ(error_of([&] { CheckpointReader(file("m")); }), "DataLoss: checkpoint " + file("m") +
                                                                " is incomplete: its shard " +
                                                                file("b") + " is missing");
}

TEST_F(IoOps, FailedMergeTouchesNothing) {
  save("a", {"x"}, {matrix()});
  save("b", {"x"}, {matrix()});
  EXPECT_EQ(error_of([&] {
              run("MergeCheckpoints", {strings({file("a"), file("b")}), string(file("c"))});
            }),
            "InvalidArgument: tensor \"x\" is saved twice");
  EXPECT_EQ(files(), 2);
}

TEST_F(IoOps, MistakesAreNamed) {
  save("a", {"w"}, {matrix()});
  EXPECT_EQ(error_of([&] { restore("a", {"w"}, {DType::kInt32}); }),
            "InvalidArgument: tensor \"w\" in checkpoint " + file("a") +
                " is float32[4,3]; wanted is int32");
  EXPECT_EQ(error_of([&] { restore("a", {"w"}, {DType::kFloat32}, {"5 3 0,1:-"}); }),
            "InvalidArgument: shape_and_slice \"5 3 0,1:-\" is of a tensor of shape [5,3]; tensor "
            "\"w\" in the checkpoint "
            "has shape [4,3]");
  EXPECT_EQ(error_of([&] { restore("a", {"v"}, {DType::kFloat32}); }),
            "NotFound: tensor \"v\" is not in checkpoint " + file("a") +
                "; did you mean \"w\"?; it holds 1 tensors: w");
  EXPECT_EQ(error_of([&] { restore("b", {"w"}, {DType::kFloat32}); }),
            "NotFound: cannot open " + file("b") + ": No such file or directory");
  EXPECT_EQ(error_of([&] {
              restore("a", {"w", "w"}, {DType::kFloat32});
            }),
            "InvalidArgument: tensor_names has 2 elements, there are 1 tensors");
  EXPECT_EQ(error_of([&] {
              save("c", {"w"}, {matrix(), matrix()});
            }),
            "InvalidArgument: tensor_names has 1 elements, there are 2 tensors");
  EXPECT_NE(error_of([&] {
              save("c", {"w"}, {matrix()}, {"nonsense"});
            }).find("shape_and_slice is \"nonsense\""),
            std::string::npos);
  EXPECT_EQ(files(), 1);
}

TEST_F(IoOps, DamagedFilesAreDataLoss) {
  save("a", {"w"}, {matrix()});
  std::filesystem::resize_file(file("a"), 1000);
  EXPECT_EQ(error_of([&] { restore("a", {"w"}, {DType::kFloat32}); }).substr(0, 9), "DataLoss:");
}

TEST_F(IoOps, CancellationLeavesNothing) {
  CancellationToken token;
  token.cancel(Code::kCancelled, "stopped");
  EXPECT_EQ(error_of([&] {
              run("Save", {string(file("a")), strings({"w"}), strings({""}), matrix()}, {}, &token);
            }),
            "Cancelled: stopped");
  EXPECT_EQ(files(), 0);
}

TEST_F(IoOps, ShardedNames) {
  const auto name = [](const char* base, int shard, int shards) {
    const Tensor result = run("ShardedFilename", {string(base), Tensor::scalar<int32_t>(shard),
                                                  Tensor::scalar<int32_t>(shards)})[0];
    return std::string(result.data<StringElement>()->view());
  };
  EXPECT_EQ(name("model.ckpt", 1, 5), "model.ckpt-00001-of-00005");
  EXPECT_EQ(name("", 0, 123456), "-00000-of-123456");
}

TEST_F(IoOps, RestoreKnowsTheShapesOfParts) {
  const OpInstance op =
      resolve_op(OpRegistry::instance().get("Restore"),
                 std::vector<DType>{DType::kString, DType::kString, DType::kString},
                 NamedAttrs{{"dtypes", std::vector<DType>{DType::kFloat32, DType::kInt32}}});
  ValueInfo prefix{DType::kString, Shape()};
  ValueInfo names{DType::kString, Shape({2})};
  ValueInfo slices{DType::kString, Shape({2}),
                   std::make_shared<Tensor>(strings({"", "10 20 0,5:-"}))};
  const ValueInfo* inputs[] = {&prefix, &names, &slices};
  ValueInfo outputs[2];
  infer_shapes(op, inputs, outputs);
  EXPECT_FALSE(outputs[0].shape.rank_known());
  EXPECT_EQ(outputs[1].shape, PartialShape(Shape({5, 20})));
  EXPECT_EQ(outputs[1].dtype, DType::kInt32);
}

}  // namespace
}  // namespace treenail
