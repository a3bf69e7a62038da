// SPDX-License-Identifier: Apache-2.0
// Buffers of the three kinds, and the counted elements of string, resource and variant buffers.
#include "framework/tensor/buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "framework/base/error.h"
#include "framework/device/allocator.h"
#include "framework/tensor/resource.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/variant.h"

namespace treenail {
namespace {

TEST(Buffer, OwnedMemoryGoesBack) {
  const int64_t in_use = Allocator::host().stats().bytes_in_use;
  for (const int64_t elements : {0, 1, 1000, 4096, 4097, 1'000'000}) {
    const IntrusivePtr<Buffer> buffer = Buffer::allocate(DType::kFloat32, elements);
    EXPECT_EQ(buffer->kind(), Buffer::Kind::kOwned);
    EXPECT_EQ(buffer->bytes(), static_cast<size_t>(elements) * 4);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
    for (int64_t i = 0; i < elements; ++i) static_cast<float*>(buffer->data())[i] = 1;
    EXPECT_GT(Allocator::host().stats().bytes_in_use, in_use);
  }
  EXPECT_EQ(Allocator::host().stats().bytes_in_use, in_use);
}

TEST(Buffer, AbsurdSizesAreErrors) {
  EXPECT_THROW(Buffer::allocate(DType::kInvalid, 1), Error);
  EXPECT_THROW(Buffer::allocate(DType::kFloat32, -1), Error);
  EXPECT_THROW(Buffer::allocate(DType::kFloat64, int64_t{1} << 60), Error);
  const int64_t in_use = Allocator::host().stats().bytes_in_use;
  EXPECT_THROW(Buffer::allocate(DType::kUInt8, int64_t{1} << 59), Error);
  EXPECT_EQ(Allocator::host().stats().bytes_in_use, in_use);
}

TEST(Buffer, BorrowedMemoryIsReleasedOnceByTheLastShare) {
  static int released;
  released = 0;
  const float value = 3;
  int five = 5;
  {
    IntrusivePtr<Buffer> a = Buffer::borrow(
        &value, 4, [](void* argument) { released += *static_cast<int*>(argument); }, &five);
    const IntrusivePtr<Buffer> b = a;
    a.reset();
    EXPECT_EQ(released, 0);
    EXPECT_EQ(b->kind(), Buffer::Kind::kBorrowed);
    EXPECT_EQ(b->data(), &value);
  }
  EXPECT_EQ(released, 5);
  Buffer::borrow(&value, 4, nullptr, nullptr);
}

TEST(Buffer, ArenaSlice) {
  char frame[256];
  const IntrusivePtr<Buffer> buffer = Buffer::arena(frame + 64, 128);
  EXPECT_EQ(buffer->kind(), Buffer::Kind::kArena);
  EXPECT_EQ(buffer->data(), frame + 64);
}

TEST(Buffer, StringElementsBeginEmptyAndAreFreed) {
  const int64_t in_use = Allocator::host().stats().bytes_in_use;
  {
    const IntrusivePtr<Buffer> buffer = Buffer::allocate(DType::kString, 100);
    auto* strings = static_cast<StringElement*>(buffer->data());
    EXPECT_EQ(strings[99].view(), "");
    for (int i = 0; i < 100; ++i) strings[i] = StringElement(std::string(100, 'x'));
  }
  EXPECT_EQ(Allocator::host().stats().bytes_in_use, in_use);
}

class CountedResource final : public Resource {
 public:
  explicit CountedResource(int* alive) : alive_(alive) { ++*alive_; }
  const char* kind() const override { return "Counted"; }

 protected:
  ~CountedResource() override { --*alive_; }

 private:
  int* alive_;
};

class CountedVariant final : public VariantObject {
 public:
  explicit CountedVariant(int* alive) : alive_(alive) { ++*alive_; }
  const char* type_name() const override { return "counted"; }

 protected:
  ~CountedVariant() override { --*alive_; }

 private:
  int* alive_;
};

TEST(Buffer, ResourceAndVariantElementsAreCounted) {
  int alive = 0;
  {
    const IntrusivePtr<Buffer> resources = Buffer::allocate(DType::kResource, 2);
    auto* elements = static_cast<ResourceElement*>(resources->data());
    EXPECT_FALSE(elements[0].object);
    elements[0].object = make_counted<CountedResource>(&alive);
    elements[1] = elements[0];
    const IntrusivePtr<Buffer> variants = Buffer::allocate(DType::kVariant, 1);
    static_cast<VariantElement*>(variants->data())->object = make_counted<CountedVariant>(&alive);
    std::string out;
    EXPECT_FALSE(static_cast<VariantElement*>(variants->data())->object->serialize(out));
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 0);
}

TEST(StringElement, SharesMovesAndCompares) {
  const int64_t in_use = Allocator::host().stats().bytes_in_use;
  {
    StringElement a(std::string_view("with\0zero", 9));
    StringElement b = a;
    EXPECT_EQ(b.view(), std::string_view("with\0zero", 9));
    EXPECT_EQ(a.view().data(), b.view().data());
    const StringElement c = std::move(a);
    EXPECT_TRUE(c == b);
    b = StringElement("other");
    EXPECT_FALSE(c == b);
    b = StringElement();
    EXPECT_EQ(b.view(), "");
  }
  EXPECT_EQ(Allocator::host().stats().bytes_in_use, in_use);
}

}  // namespace
}  // namespace treenail
