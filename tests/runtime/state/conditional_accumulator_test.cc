// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/conditional_accumulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <limits>
#include <thread>
#include <vector>

#include "framework/runtime/state/resource_manager.h"
#include "framework/tensor/half.h"
#include "tests/runtime/state/started_call.h"
#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;
using testing::StartedCall;

IntrusivePtr<ConditionalAccumulator> dense(DType dtype = DType::kFloat32,
                                           const PartialShape& shape = PartialShape(),
                                           bool mean = true) {
  return make_counted<ConditionalAccumulator>("acc", AccumulatorOptions{dtype, shape, mean});
}

IntrusivePtr<SparseConditionalAccumulator> sparse(const PartialShape& shape = PartialShape(),
                                                  bool mean = true) {
  return make_counted<SparseConditionalAccumulator>(
      "acc", AccumulatorOptions{DType::kFloat32, shape, mean});
}

Tensor filled(int64_t n, float value) {
  Tensor t(DType::kFloat32, Shape({n}));
  std::fill(t.data<float>(), t.data<float>() + n, value);
  return t;
}

std::vector<float> floats(const Tensor& t) {
  return {t.data<float>(), t.data<float>() + t.num_elements()};
}
std::vector<int64_t> integers(const Tensor& t) {
  return {t.data<int64_t>(), t.data<int64_t>() + t.num_elements()};
}

TEST(ConditionalAccumulator, TakesTheMeanOfAllThereIsOnceThereIsEnough) {
  const auto acc = dense();
  StartedCall call;
  acc->take(call.context(), call.done(), 2);
  acc->apply(0, filled(2, 1));
  EXPECT_EQ(call.times(), 0);
  EXPECT_EQ(acc->num_accumulated(), 1);
  acc->apply(0, filled(2, 2));
  ASSERT_EQ(call.times(), 1);
  EXPECT_EQ(floats(call.output()), (std::vector<float>{1.5F, 1.5F}));
  EXPECT_EQ(acc->num_accumulated(), 0);
  for (int i = 0; i < 3; ++i) acc->apply(1, filled(2, static_cast<float>(i)));
  StartedCall next;
  acc->take(next.context(), next.done(), 1);
  ASSERT_EQ(next.times(), 1);
  EXPECT_EQ(floats(next.output()), (std::vector<float>{1, 1}));
}

// 1e8 + 1 - 1e8 in float is 0 in this order and 1 in others.
TEST(ConditionalAccumulator, AddsInTheOrderOfPlacesWhateverTheArrival) {
  const float values[] = {1e8F, 1, -1e8F};
  std::vector<int> order = {0, 1, 2};
  const auto acc = dense(DType::kFloat32, PartialShape(), false);
  int64_t step = 0;
  do {
    StartedCall call;
    acc->take(call.context(), call.done(), 3);
    for (const int place : order) {
      acc->apply(step, filled(2, values[place]), place);
      acc->apply(step, filled(2, 77), place);  // a second one at this place
    }
    ASSERT_EQ(call.times(), 1);
    EXPECT_EQ(floats(call.output()), (std::vector<float>{0, 0}));
    ++step;
  } while (std::ranges::next_permutation(order).found);
  acc->apply(step, filled(2, 5), 1);
  EXPECT_NE(error_of([&] { acc->apply(step, filled(3, 5), 0); }).find("have shape [2]"),
            std::string::npos);
  acc->apply(step, filled(2, 1));
  StartedCall mixed;
  acc->take(mixed.context(), mixed.done(), 2);
  EXPECT_EQ(floats(mixed.output()), (std::vector<float>{6, 6}));
}

TEST(ConditionalAccumulator, DropsGradientsOfEarlierSteps) {
  const auto acc = dense();
  acc->apply(0, filled(1, 1));
  StartedCall call;
  acc->take(call.context(), call.done(), 1);
  acc->apply(0, filled(1, 5));
  acc->apply(0, filled(7, 5));  // of whatever shape
  EXPECT_EQ(acc->num_accumulated(), 0);
  acc->set_global_step(5);
  acc->apply(4, filled(1, 1));
  acc->apply(5, filled(1, 1));
  acc->apply(9, filled(1, 1));
  EXPECT_EQ(acc->num_accumulated(), 2);
  acc->set_global_step(std::numeric_limits<int64_t>::max());
  StartedCall last;
  acc->take(last.context(), last.done(), 1);
  EXPECT_EQ(last.times(), 1);
}

TEST(ConditionalAccumulator, LeavesGivenValuesAlone) {
  const auto acc = dense();
  const Tensor first = filled(3, 1), second = filled(3, 2);
  acc->apply(0, first);
  acc->apply(0, second);
  StartedCall call;
  acc->take(call.context(), call.done(), 2);
  EXPECT_EQ(floats(first), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(floats(second), (std::vector<float>{2, 2, 2}));
  // Borrowed memory may change once it has been given.
  std::vector<float> memory(64, 1);
  const Tensor borrowed(DType::kFloat32, Shape({64}),
                        Buffer::borrow(
                            memory.data(), 256, [](void*) {}, nullptr));
  acc->apply(1, borrowed);
  std::fill(memory.begin(), memory.end(), 9.0F);
  StartedCall next;
  acc->take(next.context(), next.done(), 1);
  EXPECT_EQ(floats(next.output()), std::vector<float>(64, 1));
}

template <class T>
void expect_mean_and_sum(DType dtype, T a, T b, T mean, T sum) {
  for (const bool wants_mean : {true, false}) {
    const auto acc = dense(dtype, Shape(), wants_mean);
    acc->apply(0, Tensor::scalar<T>(a));
    acc->apply(0, Tensor::scalar<T>(b));
    StartedCall call;
    acc->take(call.context(), call.done(), 2);
    ASSERT_EQ(call.error(), "");
    EXPECT_EQ(*call.output().data<T>(), wants_mean ? mean : sum) << dtype_name(dtype);
  }
}

TEST(ConditionalAccumulator, AddsNumbersOfEveryKind) {
  expect_mean_and_sum<double>(DType::kFloat64, 1.0, 2.0, 1.5, 3.0);
  expect_mean_and_sum<int8_t>(DType::kInt8, 100, 28, -64, -128);  // wraps around
  expect_mean_and_sum<uint8_t>(DType::kUInt8, 200, 50, 125, 250);
  expect_mean_and_sum<int16_t>(DType::kInt16, -3, 0, -1, -3);
  expect_mean_and_sum<uint16_t>(DType::kUInt16, 3, 4, 3, 7);
  expect_mean_and_sum<int32_t>(DType::kInt32, 7, 8, 7, 15);
  expect_mean_and_sum<uint32_t>(DType::kUInt32, 7, 8, 7, 15);
  expect_mean_and_sum<int64_t>(DType::kInt64, -7, -8, -7, -15);
  expect_mean_and_sum<uint64_t>(DType::kUInt64, uint64_t{1} << 63, 2, (uint64_t{1} << 62) + 1,
                                (uint64_t{1} << 63) + 2);
  using C = std::complex<double>;
  expect_mean_and_sum<C>(DType::kComplex128, C(1, 2), C(3, 4), C(2, 3), C(4, 6));
  const auto acc = dense(DType::kFloat16, Shape());
  acc->apply(0, Tensor::scalar(Float16(1.0F)));
  acc->apply(0, Tensor::scalar(Float16(2.0F)));
  StartedCall call;
  acc->take(call.context(), call.done(), 2);
  EXPECT_EQ(static_cast<float>(*call.output().data<Float16>()), 1.5F);
}

TEST(ConditionalAccumulator, ServesWhoWaitsLongestFirst) {
  const auto acc = dense();
  StartedCall many, one, refused;
  acc->take(many.context(), many.done(), 3);
  acc->take(one.context(), one.done(), 1);
  acc->take(refused.context(), refused.done(), 0);
  EXPECT_EQ(refused.error(),
            "InvalidArgument: num_required must be positive, it is 0 for accumulator acc");
  for (int i = 0; i < 2; ++i) acc->apply(0, filled(1, 1));
  EXPECT_EQ(one.times(), 0);
  many.cancel();  // then the next in line has enough
  EXPECT_EQ(many.error(), "Cancelled: the operation was cancelled");
  EXPECT_EQ(one.times(), 1);
  EXPECT_EQ(acc->num_accumulated(), 0);
}

TEST(ConditionalAccumulator, RefusesOtherDtypesAndShapes) {
  const auto acc = dense(DType::kFloat32, PartialShape{kUnknown});
  EXPECT_EQ(error_of([&] { acc->apply(0, Tensor::vector<int32_t>({1})); }),
            "InvalidArgument: accumulator acc has dtype float32, the operation works on int32");
  EXPECT_EQ(error_of([&] { acc->apply(0, Tensor::scalar(1.0F)); }),
            "InvalidArgument: Shape mismatch: accumulator acc has shape [?], the gradient is "
            "float32[]");
  acc->apply(0, filled(2, 1));
  EXPECT_EQ(error_of([&] { acc->apply(0, filled(3, 1)); }),
            "InvalidArgument: Shape mismatch: the gradients in accumulator acc have shape [2], the "
            "one to add is float32[3]");
  EXPECT_EQ(acc->num_accumulated(), 1);
}

TEST(ConditionalAccumulator, BelongsToAName) {
  ResourceManager resources;
  const AccumulatorOptions options{DType::kFloat32, PartialShape{2}, true};
  const auto acc = named_accumulator<ConditionalAccumulator>(resources, "", "x", options);
  EXPECT_EQ(named_accumulator<ConditionalAccumulator>(resources, "", "x", options).get(),
            acc.get());
  EXPECT_EQ(error_of([&] {
              named_accumulator<ConditionalAccumulator>(resources, "", "x",
                                                        {DType::kFloat64, Shape(), false});
            }),
            "InvalidArgument: Shared conditional accumulator x has dtype float32, shape [2] and "
            "reduction MEAN; it is asked for with dtype float64, shape [] and reduction SUM");
  EXPECT_EQ(error_of([&] {
              named_accumulator<SparseConditionalAccumulator>(resources, "", "x", options);
            }),
            "InvalidArgument: resource \"x\" is a ConditionalAccumulator; it was asked for as "
            "something else");
  EXPECT_NE(named_accumulator<ConditionalAccumulator>(resources, "", "", options).get(),
            named_accumulator<ConditionalAccumulator>(resources, "", "", options).get());
}

// Every gradient is in exactly one of the sums.
TEST(ConditionalAccumulator, LosesNothingBetweenThreads) {
  const auto acc = dense(DType::kInt64, Shape(), false);
  constexpr int kGivers = 4, kGradients = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kGivers; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kGradients; ++i) acc->apply(1'000'000, Tensor::scalar<int64_t>(1));
    });
  }
  int64_t total = 0;
  while (total < kGivers * kGradients) {
    StartedCall call;
    acc->take(call.context(), call.done(), 1);
    call.wait();
    total += *call.output().data<int64_t>();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(total, kGivers * kGradients);
  EXPECT_EQ(acc->num_accumulated(), 0);
}

// --- Sparse -------------------------------------------------------------------------------------

Tensor rows(std::initializer_list<float> values, int64_t width) {
  return Tensor::vector<float>(values).reshaped(
      Shape({static_cast<int64_t>(values.size()) / width, width}));
}
Tensor at(std::initializer_list<int64_t> indices) { return Tensor::vector<int64_t>(indices); }

TEST(SparseConditionalAccumulator, AddsSlicesOfOneIndexAndSorts) {
  const auto acc = sparse();
  acc->apply(0, at({5, 2}), rows({1, 1, 2, 2}, 2), nullptr);
  acc->apply(0, at({2, 0, 2}), rows({4, 4, 7, 7, 2, 2}, 2), nullptr);
  StartedCall call(3);
  acc->take(call.context(), call.done(), 2);
  ASSERT_EQ(call.error(), "");
  EXPECT_EQ(integers(call.output(0)), (std::vector<int64_t>{0, 2, 5}));
  // Index 2 is in two gradients, the others in one.
  EXPECT_EQ(floats(call.output(1)), (std::vector<float>{7, 7, 4, 4, 1, 1}));
  EXPECT_EQ(integers(call.output(2)), (std::vector<int64_t>{-1, 2}));
}

TEST(SparseConditionalAccumulator, SumsAndTellsTheShape) {
  const auto acc = sparse(PartialShape{9, kUnknown}, false);
  const Tensor shape = at({9, 1});
  acc->apply(0, at({8}), rows({3}, 1), &shape);
  acc->apply(0, at({8}), rows({4}, 1), nullptr);
  StartedCall call(3);
  acc->take(call.context(), call.done(), 2);
  EXPECT_EQ(floats(call.output(1)), (std::vector<float>{7}));
  EXPECT_EQ(integers(call.output(2)), (std::vector<int64_t>{9, 1}));
}

TEST(SparseConditionalAccumulator, TakesGradientsWithoutSlices) {
  const auto acc = sparse();
  acc->apply(0, at({}), Tensor(DType::kFloat32, Shape({0, 3})), nullptr);
  StartedCall call(3);
  acc->take(call.context(), call.done(), 1);
  ASSERT_EQ(call.error(), "");
  EXPECT_EQ(call.output(0).shape(), Shape({0}));
  EXPECT_EQ(call.output(1).shape(), Shape({0, 3}));
  acc->apply(1, at({}), Tensor(DType::kFloat32, Shape({0, 3})), nullptr);
  acc->apply(1, at({4}), rows({1, 2, 3}, 3), nullptr);
  StartedCall next(3);
  acc->take(next.context(), next.done(), 2);
  EXPECT_EQ(floats(next.output(1)), (std::vector<float>{1, 2, 3}));
}

TEST(SparseConditionalAccumulator, RefusesWhatDoesNotFit) {
  const auto acc = sparse(PartialShape{4, 2});
  const Tensor shape = at({4, 3}), vector = at({4});
  EXPECT_EQ(error_of([&] {
              acc->apply(0, at({0}), rows({1, 2}, 2), &shape);
            }),
            "InvalidArgument: Shape mismatch: accumulator acc has shape [4,2], the gradient's "
            "shape is int64[2] [4, 3]");
  EXPECT_EQ(error_of([&] {
              acc->apply(0, at({0}), rows({1, 2}, 2), &vector);
            }),
            "InvalidArgument: Shape mismatch: accumulator acc has shape [4,2], the gradient's "
            "shape is int64[1] [4]");
  EXPECT_EQ(error_of([&] {
              acc->apply(0, at({0, 4}), rows({1, 2, 3, 4}, 2), nullptr);
            }),
            "InvalidArgument: gradient_indices[1] = 4 is not in [0, 4)");
  EXPECT_EQ(error_of([&] {
              acc->apply(0, at({-1}), rows({1, 2}, 2), nullptr);
            }),
            "InvalidArgument: gradient_indices[0] = -1 is not in [0, 4)");
  EXPECT_EQ(error_of([&] {
              acc->apply(0, at({0}), rows({1, 2, 3}, 3), nullptr);
            }),
            "InvalidArgument: Shape mismatch: accumulator acc has shape [4,2], the values of the "
            "gradient are float32[1,3]");
  const auto any = sparse();
  any->apply(0, at({0}), rows({1, 2}, 2), nullptr);
  EXPECT_EQ(error_of([&] {
              any->apply(0, at({0}), rows({1, 2, 3}, 3), nullptr);
            }),
            "InvalidArgument: Shape mismatch: slices in accumulator acc have shape [2], the values "
            "of the gradient are float32[1,3]");
  EXPECT_EQ(any->num_accumulated(), 1);
}

TEST(SparseConditionalAccumulator, GrowsWithItsRows) {
  const auto acc = sparse(PartialShape(), false);
  for (int64_t i = 0; i < 3000; ++i) {
    acc->apply(0, at({(i * 7) % 1000, 1000 + i}), rows({1, 2}, 1), nullptr);
  }
  StartedCall call(3);
  acc->take(call.context(), call.done(), 3000);
  ASSERT_EQ(call.output(0).num_elements(), 4000);
  for (int64_t i = 0; i < 4000; ++i) {
    EXPECT_EQ(call.output(0).data<int64_t>()[i], i);
    EXPECT_EQ(call.output(1).data<float>()[i], i < 1000 ? 3 : 2);
  }
}

TEST(SparseConditionalAccumulator, AddsInTheOrderOfPlacesWhateverTheArrival) {
  const float values[] = {1e8F, 1, -1e8F};
  std::vector<int> order = {0, 1, 2};
  const auto acc = sparse(PartialShape(), false);
  int64_t step = 0;
  do {
    StartedCall call(3);
    acc->take(call.context(), call.done(), 3);
    for (const int place : order) {
      for (int twice = 0; twice < 2; ++twice)
        acc->apply(step, at({4, place}),
                   filled(2, values[place] + 77.0F * static_cast<float>(twice)), nullptr, place);
    }
    ASSERT_EQ(call.times(), 1);
    EXPECT_EQ(integers(call.output(0)), (std::vector<int64_t>{0, 1, 2, 4}));
    EXPECT_EQ(floats(call.output(1)), (std::vector<float>{1e8F, 1, -1e8F, 0}));
    ++step;
  } while (std::ranges::next_permutation(order).found);
}

}  // namespace
}  // namespace treenail
