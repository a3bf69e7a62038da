// SPDX-License-Identifier: Apache-2.0
// The strided copy against the definition: one element after the other.
#include "kernels/host/arrays/strided_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "framework/tensor/string_element.h"

namespace treenail::host {
namespace {

struct Axis {
  int64_t extent, from, to;
};

// Calls body(from, to) for every element.
template <class F>
void for_each_element(const std::vector<Axis>& axes, size_t axis, int64_t from, int64_t to,
                      F&& body) {
  if (axis == axes.size()) {
    body(from, to);
    return;
  }
  for (int64_t i = 0; i < axes[axis].extent; ++i) {
    for_each_element(axes, axis + 1, from + i * axes[axis].from, to + i * axes[axis].to, body);
  }
}

StridedCopy make_copy(DType dtype, const std::vector<Axis>& axes, int64_t from, int64_t to) {
  StridedCopy copy(dtype);
  for (const Axis& axis : axes) copy.axis(axis.extent, axis.from, axis.to);
  return copy.offsets(from, to).finish();
}

// A random order of random extents: dense source and target with axes of their own order; some
// source axes are repeated or run backwards, some target axes have gaps.
struct RandomCase {
  std::vector<Axis> axes;
  int64_t from_size = 1, to_size = 1, from_offset = 0, to_offset = 0;
};

RandomCase random_case(std::mt19937& rng) {
  const auto below = [&rng](int n) { return static_cast<int>(rng() % static_cast<uint32_t>(n)); };
  RandomCase c;
  const int rank = below(6);
  for (int i = 0; i < rank; ++i)
    c.axes.push_back({1 + (below(3) == 0 ? below(40) : below(5)), 0, 0});
  std::vector<size_t> order(c.axes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), rng);
  for (size_t i : order) {
    Axis& axis = c.axes[i];
    if (below(5) == 0) continue;  // repeated: stride 0
    const int64_t step = below(6) == 0 ? 2 : 1;
    axis.from = c.from_size * step;
    c.from_size *= axis.extent * step;
    if (below(5) != 0) continue;
    c.from_offset += (axis.extent - 1) * axis.from;
    axis.from = -axis.from;
  }
  std::shuffle(order.begin(), order.end(), rng);
  for (size_t i : order) {
    const int64_t gap = below(6) == 0 ? 3 : 1;
    c.axes[i].to = c.to_size * gap;
    c.to_size *= c.axes[i].extent * gap;
  }
  c.to_offset = below(3);
  c.to_size += c.to_offset;
  return c;
}

template <class T>
void expect_copied(const RandomCase& c, DType dtype, int64_t shift) {
  // `shift` elements off alignment: kernels may count on element alignment only.
  std::vector<T> from(static_cast<size_t>(c.from_size + shift));
  for (size_t i = 0; i < from.size(); ++i) {
    const uint64_t mixed = (i + 1) * 0x9e3779b97f4a7c15u;
    std::memcpy(&from[i], &mixed, std::min(sizeof(T), sizeof(mixed)));
  }
  std::vector<T> got(static_cast<size_t>(c.to_size + shift));
  std::vector<T> wanted = got;
  RunContext context;
  make_copy(dtype, c.axes, c.from_offset, c.to_offset)
      .run(context, from.data() + shift, got.data() + shift);
  for_each_element(c.axes, 0, c.from_offset, c.to_offset, [&](int64_t a, int64_t b) {
    wanted[static_cast<size_t>(b + shift)] = from[static_cast<size_t>(a + shift)];
  });
  EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(T)), 0);
}

struct Complex128 {
  double real, imaginary;
};

TEST(StridedCopy, CopiesWhatTheDefinitionSays) {
  std::mt19937 rng(1);
  for (int round = 0; round < 400; ++round) {
    const RandomCase c = random_case(rng);
    SCOPED_TRACE(round);
    expect_copied<uint8_t>(c, DType::kInt8, round % 3);
    expect_copied<uint16_t>(c, DType::kFloat16, round % 3);
    expect_copied<uint32_t>(c, DType::kFloat32, round % 3);
    expect_copied<uint64_t>(c, DType::kInt64, round % 3);
    expect_copied<Complex128>(c, DType::kComplex128, round % 3);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(StridedCopy, LeavesTheRestOfTheTargetAlone) {
  std::vector<float> from = {1, 2, 3, 4};
  std::vector<float> to(9, 9);
  RunContext context;
  make_copy(DType::kFloat32, {{2, 2, 3}, {2, 1, 1}}, 0, 1).run(context, from.data(), to.data());
  EXPECT_EQ(to, (std::vector<float>{9, 1, 2, 9, 3, 4, 9, 9, 9}));
}

TEST(StridedCopy, DoesNothingWithoutElements) {
  float untouched = 5;
  RunContext context;
  make_copy(DType::kFloat32, {{3, 1, 1}, {0, 1, 1}}, 100, 100).run(context, nullptr, &untouched);
  EXPECT_EQ(untouched, 5);
}

TEST(StridedCopy, CopiesStringsProperly) {
  const Tensor from = [] {
    Tensor t(DType::kString, Shape({2, 3}));
    for (int i = 0; i < 6; ++i)
      t.data<StringElement>()[i] = StringElement(std::string(static_cast<size_t>(20 * i), 'x'));
    return t;
  }();
  Tensor to(DType::kString, Shape({3, 2}));
  RunContext context;
  make_copy(DType::kString, {{3, 1, 2}, {2, 3, 1}}, 0, 0).run(context, from.raw(), to.raw());
  EXPECT_EQ(to.data<StringElement>()[1].view().size(), 60u);
  EXPECT_EQ(to.data<StringElement>()[2].view().size(), 20u);
}

}  // namespace
}  // namespace treenail::host
