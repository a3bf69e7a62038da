// SPDX-License-Identifier: Apache-2.0
// Attribute values: kinds, conversion, equality by bits, text.
#include "framework/op/attribute.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "framework/tensor/string_element.h"
#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;

std::vector<AttrValue> one_of_each_kind() {
  return {AttrValue(7),
          AttrValue(0.5),
          AttrValue(true),
          AttrValue("SAME"),
          AttrValue(DType::kFloat32),
          AttrValue(PartialShape({2, kUnknown})),
          AttrValue(Tensor::vector<int32_t>({1, 2})),
          AttrValue(FunctionAttr{"f", {{"T", DType::kInt64}}}),
          AttrValue(std::vector<int64_t>{1, 2}),
          AttrValue(std::vector<double>{0.5}),
          AttrValue(std::vector<bool>{true, false}),
          AttrValue(std::vector<std::string>{"a", "b"}),
          AttrValue(std::vector<DType>{DType::kInt8}),
          AttrValue(std::vector<PartialShape>{PartialShape(), Shape({3})}),
          AttrValue(std::vector<Tensor>{Tensor::scalar(1.0F)}),
          AttrValue(std::vector<FunctionAttr>{{"g", {}}})};
}

TEST(Attribute, EveryKindHasItsNumberAndName) {
  std::string names;
  for (const AttrValue& value : one_of_each_kind())
    names += concat(attr_kind_name(value.kind()), " ");
  EXPECT_EQ(names,
            "int float bool string type shape tensor func list(int) list(float) list(bool) "
            "list(string) list(type) "
            "list(shape) list(tensor) list(func) ");
  EXPECT_FALSE(AttrValue().defined());
  EXPECT_EQ(element_kind(AttrKind::kShapeList), AttrKind::kShape);
}

TEST(Attribute, EqualsItselfAndNothingElse) {
  const std::vector<AttrValue> a = one_of_each_kind();
  const std::vector<AttrValue> b = one_of_each_kind();
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) {
      // Tensors of one kind in a and b have equal contents in different memory.
      EXPECT_EQ(a[i] == b[j], i == j) << a[i].hash() << to_text(a[i]) << " " << to_text(b[j]);
      if (i == j) {
        EXPECT_EQ(a[i].hash(), b[j].hash()) << to_text(a[i]);
      }
    }
  }
}

TEST(Attribute, FloatsCompareByBits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(AttrValue(nan), AttrValue(nan));
  EXPECT_FALSE(AttrValue(0.0) == AttrValue(-0.0));
  EXPECT_EQ(AttrValue(Tensor::scalar(nan)), AttrValue(Tensor::scalar(nan)));
  EXPECT_FALSE(AttrValue(Tensor::scalar(0.0F)) == AttrValue(Tensor::scalar(-0.0F)));
}

TEST(Attribute, StringTensorsCompareByContent) {
  const auto make = [](std::string_view text) {
    return AttrValue(Tensor::scalar(StringElement(text)));
  };
  EXPECT_EQ(make("abc"), make("abc"));
  EXPECT_EQ(make("abc").hash(), make("abc").hash());
  EXPECT_FALSE(make("abc") == make("abd"));
}

TEST(Attribute, ConvertsWhereNothingIsLost) {
  EXPECT_EQ(AttrValue(3).converted(AttrKind::kFloat), AttrValue(3.0));
  EXPECT_EQ(AttrValue(std::vector<int64_t>{1, 2}).converted(AttrKind::kFloatList),
            AttrValue(std::vector<double>{1, 2}));
  EXPECT_EQ(AttrValue(std::vector<int64_t>()).converted(AttrKind::kTypeList),
            AttrValue(std::vector<DType>()));
  EXPECT_EQ(AttrValue(std::vector<double>()).converted(AttrKind::kFunctionList),
            AttrValue(std::vector<FunctionAttr>()));
}

TEST(Attribute, RefusesLossyConversions) {
  EXPECT_EQ(error_of([] { AttrValue(2.5).converted(AttrKind::kInt); }),
            "InvalidArgument: 2.5 is of kind float, needed is int");
  EXPECT_EQ(error_of([] { AttrValue((int64_t{1} << 53) + 1).converted(AttrKind::kFloat); }),
            "InvalidArgument: 9007199254740993 is of kind int, needed is float");
  EXPECT_EQ(
      error_of([] { AttrValue(std::numeric_limits<int64_t>::max()).converted(AttrKind::kFloat); }),
      "InvalidArgument: 9223372036854775807 is of kind int, needed is float");
  EXPECT_EQ(error_of([] { AttrValue(1).converted(AttrKind::kBool); }),
            "InvalidArgument: 1 is of kind int, needed is bool");
  EXPECT_EQ(error_of([] { AttrValue(std::vector<int64_t>{1}).converted(AttrKind::kStringList); }),
            "InvalidArgument: [1] is of kind list(int), needed is list(string)");
}

TEST(Attribute, GetNamesBothKinds) {
  EXPECT_EQ(error_of([] { AttrValue("SAME").get<int64_t>(); }),
            "InvalidArgument: \"SAME\" is of kind string, needed is int");
  EXPECT_EQ(error_of([] { AttrValue().get<bool>(); }),
            "InvalidArgument: nothing is of kind nothing, needed is bool");
}

TEST(Attribute, TextIsWhatAPersonWouldWrite) {
  EXPECT_EQ(to_text(AttrValue(true)), "true");
  EXPECT_EQ(to_text(AttrValue(std::vector<int64_t>{1, 2})), "[1,2]");
  EXPECT_EQ(to_text(AttrValue(DType::kFloat32)), "float32");
  EXPECT_EQ(to_text(AttrValue("a\"b")), "\"a\\\"b\"");
  EXPECT_EQ(to_text(AttrValue(PartialShape({2, kUnknown}))), "[2,?]");
  EXPECT_EQ(to_text(AttrValue(FunctionAttr{"f", {{"T", DType::kInt64}, {"n", 1}}})),
            "f[T=int64, n=1]");
}

// An attribute may be made of characters, but a sentence says them as they are.
TEST(Attribute, CharactersInASentenceAreNoAttributes) {
  char text[] = "no such file";
  char* const pointer = text;
  EXPECT_EQ(concat(text, ' ', pointer, AttrValue("quoted")), "no such file no such file\"quoted\"");
}

TEST(Attribute, TextOfLongValuesIsCut) {
  EXPECT_LT(to_text(AttrValue(std::string(100000, 'x'))).size(), 300U);
  EXPECT_NE(to_text(AttrValue(std::vector<int64_t>(1000))).find("... of 1000]"), std::string::npos);
}

}  // namespace
}  // namespace treenail
