// SPDX-License-Identifier: Apache-2.0
#include "framework/op/op_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"

namespace treenail {
namespace {

OpDef product(const std::string& name) {
  OpDef def;
  def.name = name;
  OpDeclaration(def)
      .input("a: T")
      .input("b: T")
      .output("product: T")
      .attr("T: {float, double}")
      .attr("transpose_a: bool = false");
  return def;
}

const std::vector<DType> kFloats{DType::kFloat32, DType::kFloat32};

TEST(OpCache, LikeCallsShareOneResult) {
  const OpDef def = product("MatMul");
  const NamedAttrs transposed = {{"transpose_a", true}};
  OpCache cache;
  const OpInstance first = cache.resolve(def, kFloats, transposed, {});
  const OpInstance again = cache.resolve(def, kFloats, transposed, {});
  EXPECT_EQ(first.attrs().data(), again.attrs().data());
  EXPECT_TRUE(again.get_bool("transpose_a"));
  EXPECT_EQ(again.output_type(0), DType::kFloat32);
}

TEST(OpCache, CallsThatDifferAreResolvedEach) {
  const OpDef def = product("MatMul");
  const std::vector<DType> doubles{DType::kFloat64, DType::kFloat64};
  const OpDef other = product("Other");
  const NamedAttrs transposed = {{"transpose_a", true}};
  OpCache cache;
  for (int round = 0; round < 2; ++round) {
    EXPECT_FALSE(cache.resolve(def, kFloats, {}, {}).get_bool("transpose_a"));
    EXPECT_TRUE(cache.resolve(def, kFloats, transposed, {}).get_bool("transpose_a"));
    EXPECT_EQ(cache.resolve(def, doubles, {}, {}).output_type(0), DType::kFloat64);
    EXPECT_EQ(cache.resolve(other, kFloats, {}, {}).name(), "Other");
  }
}

TEST(OpCache, NothingIsRememberedOfACallThatIsRefused) {
  const OpDef def = product("MatMul");
  const std::vector<DType> mixed{DType::kFloat32, DType::kFloat64};
  OpCache cache;
  for (int round = 0; round < 2; ++round)
    EXPECT_THROW(cache.resolve(def, mixed, {}, {}), Error) << round;
  EXPECT_EQ(cache.resolve(def, kFloats, {}, {}).input_type(1), DType::kFloat32);
}

}  // namespace
}  // namespace treenail
