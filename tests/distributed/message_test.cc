// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/message.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/tensor/string_element.h"
#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;

std::string bytes_of(OutgoingMessage message) {
  std::string bytes;
  for (const RpcSlice& slice : message.take_slices()) {
    bytes.append(static_cast<const char*>(slice.data), slice.bytes);
    if (slice.release != nullptr) slice.release(slice.owner);
  }
  return bytes;
}

// As it comes in pieces of so many bytes.
Message read(const std::string& bytes, size_t piece) {
  std::vector<RpcView> views;
  for (size_t at = 0; at < bytes.size(); at += piece)
    views.push_back({bytes.data() + at, std::min(piece, bytes.size() - at)});
  return Message(views);
}

std::vector<Tensor> samples() {
  Tensor strings(DType::kString, Shape({2, 2}));
  strings.data<StringElement>()[1] = StringElement("two");
  strings.data<StringElement>()[3] = StringElement(std::string(3000, 'x'));
  Tensor large(DType::kFloat64, Shape({50, 7}));
  for (int64_t i = 0; i < large.num_elements(); ++i) large.data<double>()[i] = 0.5 * i;
  return {Tensor::scalar(3.5f), Tensor(DType::kInt32, Shape({0, 3})), strings, large,
          Tensor::vector<bool>({true, false})};
}

void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.shape(), b.shape());
  if (a.dtype() == DType::kString) {
    for (int64_t i = 0; i < a.num_elements(); ++i)
      EXPECT_EQ(a.data<StringElement>()[i].view(), b.data<StringElement>()[i].view());
  } else if (a.bytes() > 0) {
    EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0);
  }
}

std::string sample_bytes() {
  ProtoWriter head;
  head.bytes(1, "a head");
  return bytes_of(OutgoingMessage(head, samples()));
}

TEST(Message, ComesAsItWasSentHoweverItIsCut) {
  const std::string bytes = sample_bytes();
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{1000}, bytes.size()}) {
    const Message message = read(bytes, piece);
    ProtoReader reader = message.fields();
    ProtoField field;
    ASSERT_TRUE(reader.next(&field));
    EXPECT_EQ(field.bytes, "a head");
    ASSERT_EQ(message.tensors.size(), samples().size());
    for (size_t i = 0; i < samples().size(); ++i) expect_same(message.tensors[i], samples()[i]);
  }
}

TEST(Message, IsRefusedWhereverItIsCutOff) {
  const std::string bytes = sample_bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string said = error_of([&] { read(bytes.substr(0, size), 64); });
    EXPECT_TRUE(said.starts_with("InvalidArgument: a message ")) << size << ": " << said;
  }
  EXPECT_EQ(error_of([&] { read(bytes + "xy", 64); }),
            "InvalidArgument: a message goes on after its contents, for 2 bytes");
}

// A mutated message is read or refused, and takes no memory that its bytes do not account for.
TEST(Message, SurvivesAnyChangeOfItsBytes) {
  const std::string bytes = sample_bytes();
  std::mt19937 random(7);
  int read_all = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string changed = bytes;
    for (int change = 0; change < 1 + round % 3; ++change)
      changed[random() % 120] = static_cast<char>(random());
    try {
      const Message message = read(changed, 1 + random() % 200);
      size_t elements = 0;
      for (const Tensor& tensor : message.tensors)
        elements += static_cast<size_t>(tensor.num_elements());
      EXPECT_LE(elements, changed.size());
      ++read_all;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument) << error.what();
    }
  }
  EXPECT_GT(read_all, 100);
}

TEST(Message, HasNoHandlesAndOnlyTruthValuesThatAreZeroOrOne) {
  const Tensor handles(DType::kResource, Shape({1}));
  EXPECT_EQ(error_of([&] { OutgoingMessage({}, std::span(&handles, 1)); }),
            "InvalidArgument: a resource[1] cannot pass between processes");
  const Tensor truth = Tensor::vector<bool>({true, true});
  std::string bytes = bytes_of(OutgoingMessage({}, std::span(&truth, 1)));
  bytes.back() = 77;
  uint8_t raw = 0;
  std::memcpy(&raw, static_cast<const char*>(read(bytes, 64).tensors[0].raw()) + 1, 1);
  EXPECT_EQ(raw, 1);
}

}  // namespace
}  // namespace treenail
