// SPDX-License-Identifier: Apache-2.0
// Vectors that lie within themselves up to three elements, held against std::vector.
#include "framework/base/small_vector.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace treenail {
namespace {

using Vector = SmallVector<int64_t, 3>;

Vector counted(size_t size) {
  Vector made;
  for (size_t i = 0; i < size; ++i) made.push_back(static_cast<int64_t>(i) + 1);
  return made;
}

std::vector<int64_t> elements(const Vector& v) { return {v.begin(), v.end()}; }

std::vector<int64_t> wanted(size_t size) {
  std::vector<int64_t> made;
  for (size_t i = 0; i < size; ++i) made.push_back(static_cast<int64_t>(i) + 1);
  return made;
}

TEST(SmallVector, KeepsWhatIsPushed) {
  for (size_t size = 0; size < 20; ++size) {
    const Vector v = counted(size);
    EXPECT_EQ(elements(v), wanted(size));
    EXPECT_EQ(v.size(), size);
    EXPECT_EQ(v.empty(), size == 0);
    if (size > 0) {
      EXPECT_EQ(v.back(), static_cast<int64_t>(size));
    }
  }
}

TEST(SmallVector, CopiesAndMovesBetweenAllSizes) {
  for (size_t from = 0; from < 9; ++from) {
    for (size_t to = 0; to < 9; ++to) {
      Vector source = counted(from);
      Vector copy = counted(to);
      copy = source;
      EXPECT_EQ(elements(copy), wanted(from));
      Vector moved = counted(to);
      moved = std::move(source);
      EXPECT_EQ(elements(moved), wanted(from));
      source = moved;  // what was moved from can be used again
      source.push_back(77);
      EXPECT_EQ(source.size(), from + 1);
      EXPECT_EQ(elements(moved), wanted(from));
      EXPECT_EQ(Vector(moved) == copy, true);
      EXPECT_EQ(Vector(std::move(moved)) == source, false);
    }
  }
}

TEST(SmallVector, MayBeGivenToItself) {
  for (const size_t size : {2, 3, 4, 8}) {
    Vector v = counted(size);
    Vector& same = v;
    v = same;
    EXPECT_EQ(elements(v), wanted(size));
    v = std::move(same);
    EXPECT_EQ(elements(v), wanted(size));
    v.push_back(v[0]);  // which moves as the vector grows
    EXPECT_EQ(v.back(), 1);
  }
}

TEST(SmallVector, NewElementsAreZerosAlsoWhereOthersWere) {
  Vector v = counted(8);
  v.resize(1);
  v.resize(6);
  EXPECT_EQ(elements(v), (std::vector<int64_t>{1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(elements(Vector(size_t{2})), (std::vector<int64_t>{0, 0}));
  v.assign(wanted(5));
  EXPECT_EQ(elements(v), wanted(5));
}

}  // namespace
}  // namespace treenail
