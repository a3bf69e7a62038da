// SPDX-License-Identifier: Apache-2.0
// Element types: the numbers that stand in files, names, sizes.
#include "framework/tensor/dtype.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <string>

#include "framework/base/error.h"
#include "framework/tensor/resource.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/variant.h"

namespace treenail {
namespace {

TEST(DType, NumbersAreTensorFlows) {
  EXPECT_EQ(static_cast<int>(DType::kFloat32), 1);
  EXPECT_EQ(static_cast<int>(DType::kString), 7);
  EXPECT_EQ(static_cast<int>(DType::kBFloat16), 14);
  EXPECT_EQ(static_cast<int>(DType::kFloat16), 19);
  EXPECT_EQ(static_cast<int>(DType::kUInt64), 23);
}

TEST(DType, NamesReadBack) {
  int valid = 0;
  for (int number = -1; number < 300; ++number) {
    if (!dtype_is_valid(number)) continue;
    ++valid;
    const auto dtype = static_cast<DType>(number);
    EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
    EXPECT_GT(dtype_size(dtype), 0u);
  }
  EXPECT_EQ(valid, 18);
}

TEST(DType, DeclarationNamesAreAccepted) {
  EXPECT_EQ(dtype_from_name("float"), DType::kFloat32);
  EXPECT_EQ(dtype_from_name("double"), DType::kFloat64);
  EXPECT_EQ(dtype_from_name("half"), DType::kFloat16);
}

TEST(DType, UnknownNamesAreRefusedWithTheKnownOnes) {
  for (const char* name : {"", "float16x", "invalid", "Float32"}) {
    try {
      dtype_from_name(name);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      EXPECT_NE(error.message().find("float32"), std::string::npos);
    }
  }
  EXPECT_EQ(to_text(DType::kInvalid), "invalid");
  EXPECT_EQ(dtype_size(static_cast<DType>(200)), 0u);
}

template <class T>
void expect_size() {
  EXPECT_EQ(dtype_size(dtype_of<T>), sizeof(T)) << dtype_name(dtype_of<T>);
}

TEST(DType, SizesAreThoseOfTheTypes) {
  expect_size<float>();
  expect_size<double>();
  expect_size<int8_t>();
  expect_size<uint64_t>();
  expect_size<bool>();
  expect_size<Float16>();
  expect_size<BFloat16>();
  expect_size<std::complex<float>>();
  expect_size<std::complex<double>>();
  expect_size<StringElement>();
  expect_size<ResourceElement>();
  expect_size<VariantElement>();
}

}  // namespace
}  // namespace treenail
