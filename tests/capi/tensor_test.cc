// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/capi/support.h"

namespace capi_test {
namespace {

TEST(CStatus, KeepsCodeAndMessage) {
  Status status;
  EXPECT_EQ(status.said(), "Ok");
  tn_status_set(status, TN_ABORTED, "text");
  EXPECT_EQ(status.said(), "Aborted: text");
  tn_status_set(status, TN_OK, "ignored");
  EXPECT_EQ(status.said(), "Ok");
  EXPECT_STREQ(tn_status_message(status), "");
}

TEST(CStatus, NumbersThatAreNoCodesAreUnknown) {
  Status status;
  tn_status_set(status, 4711, nullptr);
  EXPECT_EQ(status.said(), "Unknown: ");
  EXPECT_STREQ(tn_code_name(-1), "Unknown");
  EXPECT_EQ(tn_status_code(nullptr), TN_OK);
}

TEST(CStatus, IsSetToOkBySuccess) {
  Status status;
  tn_status_set(status, TN_ABORTED, "text");
  EXPECT_EQ(tn_dtype_from_name("float", status), TN_FLOAT32);
  EXPECT_EQ(status.said(), "Ok");
}

TEST(CDtype, HasNamesAndSizes) {
  EXPECT_STREQ(tn_dtype_name(TN_BFLOAT16), "bfloat16");
  EXPECT_STREQ(tn_dtype_name(99), "invalid");
  EXPECT_EQ(tn_dtype_size(TN_COMPLEX128), 16U);
  EXPECT_EQ(tn_dtype_size(11), 0U);
  Status status;
  EXPECT_EQ(tn_dtype_from_name("float7", status), 0);
  EXPECT_EQ(status.code(), TN_INVALID_ARGUMENT);
}

TEST(CTensor, HoldsACopyOfBytes) {
  std::vector<int32_t> numbers = {1, 2, 3, 4, 5, 6};
  const Tensor t = tensor<int32_t>(TN_INT32, numbers, {2, 3});
  ASSERT_TRUE(t);
  EXPECT_EQ(tn_tensor_dtype(t.get()), TN_INT32);
  EXPECT_EQ(tn_tensor_rank(t.get()), 2);
  EXPECT_EQ(tn_tensor_dims(t.get())[1], 3);
  EXPECT_EQ(tn_tensor_num_elements(t.get()), 6);
  EXPECT_EQ(tn_tensor_bytes(t.get()), 24U);
  EXPECT_EQ(values<int32_t>(t.get()), numbers);
}

TEST(CTensor, WritingDoesNotReachAnotherHandle) {
  const Tensor t = floats({1, 2});
  const Tensor shared(tn_tensor_share(t.get(), nullptr));
  EXPECT_EQ(tn_tensor_data(t.get()), tn_tensor_data(shared.get()));
  Status status;
  auto* data = static_cast<float*>(tn_tensor_mutable_data(shared.get(), status));
  data[0] = 7;
  EXPECT_EQ(values<float>(t.get()), (std::vector<float>{1, 2}));
  EXPECT_EQ(values<float>(shared.get()), (std::vector<float>{7, 2}));
}

TEST(CTensor, BorrowedMemoryIsReleasedOnceAndNeverWritten) {
  float memory[3] = {1, 2, 3};
  int released = 0;
  const auto release = [](void* argument) { ++*static_cast<int*>(argument); };
  Status status;
  const int64_t dims[] = {3};
  Tensor t(
      tn_tensor_borrow(TN_FLOAT32, dims, 1, memory, sizeof(memory), release, &released, status));
  ASSERT_EQ(status.said(), "Ok");
  EXPECT_EQ(tn_tensor_data(t.get()), memory);
  const Tensor shared(tn_tensor_share(t.get(), status));
  t.reset();
  EXPECT_EQ(released, 0);
  static_cast<float*>(tn_tensor_mutable_data(shared.get(), status))[0] = 9;
  EXPECT_EQ(released, 1);  // the handle has a copy of its own now
  EXPECT_EQ(memory[0], 1);
}

TEST(CTensor, BorrowingChecksBeforeItTakes) {
  float memory[3] = {};
  int released = 0;
  const auto release = [](void* argument) { ++*static_cast<int*>(argument); };
  Status status;
  const int64_t dims[] = {4};
  EXPECT_EQ(
      tn_tensor_borrow(TN_FLOAT32, dims, 1, memory, sizeof(memory), release, &released, status),
      nullptr);
  EXPECT_EQ(status.said(), "InvalidArgument: 12 bytes are given for float32[4], which has 16");
  const int64_t two[] = {2};
  EXPECT_EQ(tn_tensor_borrow(TN_FLOAT32, two, 1, reinterpret_cast<char*>(memory) + 1, 8, release,
                             &released, status),
            nullptr);
  EXPECT_EQ(status.said(),
            "InvalidArgument: borrowed memory for float32 must be aligned to 4 bytes");
  EXPECT_EQ(tn_tensor_borrow(TN_STRING, two, 1, memory, 16, release, &released, status), nullptr);
  EXPECT_EQ(status.said(), "InvalidArgument: string elements cannot be given as bytes");
  EXPECT_EQ(released, 0);
}

TEST(CTensor, RefusesShapesThatAreNone) {
  Status status;
  const int64_t absurd[] = {int64_t{1} << 62, 8};
  EXPECT_EQ(tn_tensor_new(TN_FLOAT32, absurd, 2, status), nullptr);
  EXPECT_EQ(status.code(), TN_INVALID_ARGUMENT);
  const int64_t negative[] = {-3};
  EXPECT_EQ(tn_tensor_new(TN_FLOAT32, negative, 1, status), nullptr);
  EXPECT_EQ(status.code(), TN_INVALID_ARGUMENT);
  EXPECT_EQ(tn_tensor_new(TN_FLOAT32, nullptr, 2, status), nullptr);
  EXPECT_EQ(status.said(), "InvalidArgument: dims is NULL, its count 2");
  EXPECT_EQ(tn_tensor_new(TN_FLOAT32, nullptr, -1, status), nullptr);
  EXPECT_EQ(status.said(), "InvalidArgument: the rank is -1; needed is a known one");
  EXPECT_EQ(tn_tensor_new(13, nullptr, 0, status), nullptr);
  EXPECT_EQ(status.said(), "InvalidArgument: 13 is no dtype's number");
  const int64_t large[] = {int64_t{1} << 55};
  EXPECT_EQ(tn_tensor_new(TN_UINT8, large, 1, status), nullptr);
  EXPECT_EQ(status.code(), TN_RESOURCE_EXHAUSTED);
}

TEST(CTensor, MayBeEmptyOrAScalar) {
  Status status;
  const int64_t dims[] = {0, 5};
  const Tensor empty(tn_tensor_new_from(TN_FLOAT64, dims, 2, nullptr, 0, status));
  ASSERT_TRUE(empty) << status.said();
  EXPECT_EQ(tn_tensor_num_elements(empty.get()), 0);
  const double value = 2.5;
  const Tensor scalar(tn_tensor_new_from(TN_FLOAT64, nullptr, 0, &value, sizeof(value), status));
  ASSERT_TRUE(scalar) << status.said();
  EXPECT_EQ(values<double>(scalar.get()), std::vector<double>{2.5});
}

TEST(CTensor, ReshapesToAsManyElements) {
  const Tensor t = floats({1, 2, 3, 4});
  Status status;
  const int64_t square[] = {2, 2}, other[] = {3};
  const Tensor reshaped(tn_tensor_reshape(t.get(), square, 2, status));
  EXPECT_EQ(tn_tensor_data(reshaped.get()), tn_tensor_data(t.get()));
  EXPECT_EQ(tn_tensor_reshape(t.get(), other, 1, status), nullptr);
  EXPECT_EQ(status.code(), TN_INVALID_ARGUMENT);
}

TEST(CTensor, HoldsStringsOfAnyBytes) {
  Status status;
  const int64_t dims[] = {2};
  const Tensor t(tn_tensor_new(TN_STRING, dims, 1, status));
  const Tensor before(tn_tensor_share(t.get(), status));
  tn_tensor_set_string(t.get(), 1, "a\0b", 3, status);
  ASSERT_EQ(status.said(), "Ok");
  size_t length = 7;
  const char* bytes = tn_tensor_string(t.get(), 1, &length, status);
  EXPECT_EQ(std::string(bytes, length), std::string("a\0b", 3));
  bytes = tn_tensor_string(t.get(), 0, &length, status);
  EXPECT_EQ(std::string(bytes, length), "");
  bytes = tn_tensor_string(before.get(), 1, &length, status);
  EXPECT_EQ(length, 0U);  // another handle does not see the change
  EXPECT_EQ(tn_tensor_data(t.get()), nullptr);
}

TEST(CTensor, RefusesStringsThatAreNotThere) {
  Status status;
  const int64_t dims[] = {2};
  const Tensor t(tn_tensor_new(TN_STRING, dims, 1, status));
  tn_tensor_set_string(t.get(), 2, "x", 1, status);
  EXPECT_EQ(status.said(), "OutOfRange: element 2 is not in [0, 2)");
  const Tensor f = floats({1});
  EXPECT_EQ(tn_tensor_string(f.get(), 0, nullptr, status), nullptr);
  EXPECT_EQ(status.said(),
            "InvalidArgument: a string was asked of float32[1]; needed is a tensor of strings");
  EXPECT_EQ(tn_tensor_mutable_data(t.get(), status), nullptr);
  EXPECT_EQ(status.code(), TN_INVALID_ARGUMENT);
}

TEST(CTensor, NullIsRefusedOrEmpty) {
  Status status;
  EXPECT_EQ(tn_tensor_share(nullptr, status), nullptr);
  EXPECT_EQ(status.said(), "InvalidArgument: tensor is NULL");
  EXPECT_EQ(tn_tensor_dtype(nullptr), 0);
  EXPECT_EQ(tn_tensor_num_elements(nullptr), 0);
  EXPECT_EQ(tn_tensor_data(nullptr), nullptr);
  tn_tensor_delete(nullptr);
}

}  // namespace
}  // namespace capi_test
