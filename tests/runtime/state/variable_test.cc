// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/variable.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "framework/runtime/state/resource_manager.h"
#include "framework/tensor/prepacked.h"
#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;

Tensor filled(int64_t n, float value) {
  Tensor t(DType::kFloat32, Shape({n}));
  std::fill(t.data<float>(), t.data<float>() + n, value);
  return t;
}

IntrusivePtr<Variable> vector_variable(const char* name = "v") {
  return make_counted<Variable>(name, DType::kFloat32, PartialShape{kUnknown});
}

Tensor handle_of(const IntrusivePtr<Resource>& resource) {
  Tensor handle(DType::kResource, Shape());
  handle.data<ResourceElement>()->object = resource;
  return handle;
}

TEST(Variable, IsUninitializedUntilAssigned) {
  const auto v = vector_variable();
  EXPECT_FALSE(v->initialized());
  EXPECT_EQ(
      error_of([&] { v->read(); }),
      "FailedPrecondition: Attempting to use uninitialized value v: variable of dtype float32 "
      "and shape [?] needs its initializer run, or a checkpoint restored, first");
  EXPECT_EQ(error_of([&] { Variable::Write write(*v); }).substr(0, 18), "FailedPrecondition");
  v->assign(filled(2, 1));
  EXPECT_TRUE(v->initialized());
  v->reset();
  EXPECT_FALSE(v->initialized());
}

TEST(Variable, AWriteForgetsFormsOfTheBytes) {
  const auto v = vector_variable();
  v->assign(filled(2, 1));
  const PackKey key = {v.get(), {}};
  const auto form_of = [&](const Tensor& value) {
    return value.buffer()->prepacked()->find(
        key, 4, [&](std::byte* to) { std::memcpy(to, value.data<float>(), 4); });
  };
  form_of(v->read());
  const Tensor before = v->read();
  const std::byte* const kept = form_of(before);
  ASSERT_NE(kept, nullptr);
  // A reader is there: it keeps the old bytes and their form.
  { Variable::Write(*v).value().data<float>()[0] = 5; }
  EXPECT_EQ(form_of(before), kept);
  EXPECT_EQ(form_of(v->read()), nullptr);
  ASSERT_NE(form_of(v->read()), nullptr);
  // In place.
  { Variable::Write(*v).value().data<float>()[0] = 6; }
  EXPECT_EQ(form_of(v->read()), nullptr);
  float first = 0;
  std::memcpy(&first, form_of(v->read()), 4);
  EXPECT_EQ(first, 6);
}

TEST(Variable, RefusesOtherDtypesAndShapes) {
  const auto v = make_counted<Variable>("v", DType::kFloat32, PartialShape{kUnknown, 3});
  EXPECT_EQ(error_of([&] {
              v->assign(Tensor::vector<int32_t>({1, 2}));
            }),
            "InvalidArgument: variable v has dtype float32, the value assigned is int32[2]");
  EXPECT_EQ(error_of([&] { v->assign(filled(3, 0)); }),
            "InvalidArgument: variable v has shape [?,3], the value assigned is float32[3]");
  v->assign(filled(6, 0).reshaped(Shape({2, 3})));
  EXPECT_EQ(v->read().shape(), Shape({2, 3}));
}

TEST(Variable, ReadingSharesTheBytes) {
  const auto v = vector_variable();
  v->assign(filled(4, 1));
  EXPECT_EQ(v->read().raw(), v->read().raw());
}

TEST(Variable, WritesInPlaceWhenNobodyElseHoldsTheValue) {
  const auto v = vector_variable();
  v->assign(filled(4, 1));
  const void* bytes = v->read().raw();
  {
    const Variable::Write write(*v);
    write.value().data<float>()[0] = 7;
  }
  EXPECT_EQ(v->read().raw(), bytes);
  EXPECT_EQ(v->read().data<float>()[0], 7);
}

TEST(Variable, AValueOnceReadSurvivesAWrite) {
  const auto v = vector_variable();
  v->assign(filled(4, 1));
  const Tensor before = v->read();
  {
    const Variable::Write write(*v);
    write.value().data<float>()[0] = 7;
  }
  EXPECT_EQ(before.data<float>()[0], 1);
  EXPECT_EQ(v->read().data<float>()[0], 7);
  EXPECT_NE(v->read().raw(), before.raw());
}

TEST(Variable, AnAssignedTensorSurvivesAWrite) {
  const auto v = vector_variable();
  const Tensor value = filled(4, 1);
  v->assign(value);
  EXPECT_EQ(v->read().raw(), value.raw());  // shared, not copied
  {
    const Variable::Write write(*v);
    write.value().data<float>()[0] = 7;
  }
  EXPECT_EQ(value.data<float>()[0], 1);
}

TEST(Variable, CopiesMemoryThatIsNotItsOwn) {
  const auto v = vector_variable();
  std::vector<float> foreign(4, 1.0f);
  v->assign(Tensor(DType::kFloat32, Shape({4}),
                   Buffer::borrow(
                       foreign.data(), 16, [](void*) {}, nullptr)));
  foreign[0] = 7;
  EXPECT_EQ(v->read().data<float>()[0], 1);
  v->assign(Tensor(DType::kFloat32, Shape({4}), Buffer::arena(foreign.data(), 16)));
  foreign[0] = 8;
  EXPECT_EQ(v->read().data<float>()[0], 7);
}

TEST(Variable, DoesNotKeepALargeBufferAliveForASmallPartOfIt) {
  const auto v = vector_variable();
  const Tensor whole = filled(1000, 1);
  v->assign(whole.rows(0, 10));
  EXPECT_NE(v->read().raw(), whole.raw());
}

// Readers see a value as some writer left it, never one that is being written.
TEST(Variable, ReadersAndWritersMayRunAtOnce) {
  constexpr int64_t kSize = 4096;
  constexpr int kRounds = 300;
  const auto v = vector_variable();
  v->assign(filled(kSize, 0));
  std::atomic<bool> torn{false};
  std::atomic<int> writers{2};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        const Variable::Write write(*v);
        float* values = write.value().data<float>();
        for (int64_t k = 0; k < kSize; ++k) values[k] += 1;
      }
      --writers;
    });
  }
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (writers > 0) {
        const Tensor value = v->read();
        const float first = value.data<float>()[0];
        for (const float x : value.values<float>()) torn = torn || x != first;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(torn);
  EXPECT_EQ(v->read().data<float>()[kSize - 1], 2 * kRounds);
}

TEST(Variable, AssignmentsMayRunBesideWrites) {
  const auto v = vector_variable();
  v->assign(filled(64, 0));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        if (t % 2 == 0) {
          v->assign(filled(64, static_cast<float>(i)));
        } else {
          const Variable::Write write(*v);
          for (int64_t k = 0; k < 64; ++k) write.value().data<float>()[k] += 1;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Tensor value = v->read();
  for (const float x : value.values<float>()) EXPECT_EQ(x, value.data<float>()[0]);
}

TEST(VariableFrom, NamesWhatIsNoVariable) {
  class Other final : public Resource {
   public:
    const char* kind() const override { return "Queue"; }
  };
  EXPECT_EQ(error_of([] { variable_from(Tensor::scalar(1.0f)); }),
            "InvalidArgument: a variable's handle is needed (a scalar of dtype resource), got "
            "float32[]");
  EXPECT_EQ(error_of([] { variable_from(Tensor(DType::kResource, Shape())); }),
            "InvalidArgument: the handle refers to nothing; a variable's handle is needed");
  EXPECT_EQ(error_of([] { variable_from(handle_of(make_counted<Other>())); }),
            "InvalidArgument: the handle refers to a Queue; a variable's handle is needed");
  const auto v = vector_variable("weights");
  EXPECT_EQ(&variable_from(handle_of(v)), v.get());
  EXPECT_EQ(error_of([&] { variable_of_dtype(handle_of(v), DType::kInt32); }),
            "InvalidArgument: variable weights has dtype float32, the operation works on int32");
}

TEST(NamedVariable, IsOneObjectPerName) {
  ResourceManager resources;
  const auto a = named_variable(resources, "", "v", DType::kFloat32, Shape({2}));
  EXPECT_EQ(a, named_variable(resources, "", "v", DType::kFloat32, Shape({2})));
  EXPECT_FALSE(a == named_variable(resources, "box", "v", DType::kFloat32, Shape({2})));
  EXPECT_EQ(error_of([&] { named_variable(resources, "", "v", DType::kFloat32, Shape({3})); }),
            "InvalidArgument: variable v exists with dtype float32 and shape [2]; it is asked for "
            "with dtype float32 and shape [3]");
}

}  // namespace
}  // namespace treenail
