// SPDX-License-Identifier: Apache-2.0
// TensorList against a vector that holds every element, and who may change one in place.
#include "framework/tensor/tensor_list.h"

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "framework/base/error.h"

namespace treenail {
namespace {

// 0: not set.
using Model = std::vector<int32_t>;

int32_t value_at(const TensorList& list, int64_t i) {
  const Tensor& element = list.at(i);
  return element.defined() ? *element.data<int32_t>() : 0;
}

void expect_equal(const TensorList& list, const Model& model) {
  ASSERT_EQ(list.size(), static_cast<int64_t>(model.size()));
  for (size_t i = 0; i < model.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    EXPECT_EQ(value_at(list, at), model[i]) << "element " << i;
    if (model[i] != 0) {
      EXPECT_GE(at, list.first_set());
      EXPECT_LT(at, list.end_set());
    }
  }
  EXPECT_LE(list.end_set() - list.first_set(), list.size());
}

TEST(TensorList, HoldsWhatWasSet) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    TensorList list(DType::kInt32, PartialShape(), random() % 20);
    Model model(static_cast<size_t>(list.size()));
    for (int32_t step = 1; step < 60; ++step) {
      if (model.empty() || random() % 4 == 0) {
        model.resize(random() % 30);
        list.resize(static_cast<int64_t>(model.size()));
      } else {
        const size_t i = random() % model.size();
        model[i] = random() % 5 == 0 ? 0 : step;
        list.set(static_cast<int64_t>(i), model[i] == 0 ? Tensor() : Tensor::scalar(step));
      }
      expect_equal(list, model);
    }
    expect_equal(*list.copy(), model);
  }
}

TEST(TensorList, TakesMemoryBetweenTheElementsThatAreSet) {
  TensorList list(DType::kInt32, PartialShape(), int64_t{1} << 40);
  list.set(int64_t{1} << 39, Tensor::scalar(7));
  EXPECT_EQ(list.end_set() - list.first_set(), 1);
  list.set(5, Tensor());  // nothing to unset there
  EXPECT_EQ(list.end_set() - list.first_set(), 1);
  EXPECT_THROW(list.set(0, Tensor::scalar(1)), Error);
  EXPECT_EQ(value_at(list, int64_t{1} << 39), 7);
}

TEST(TensorList, IsChangedInPlaceByTheOneWhoHoldsIt) {
  Tensor handle = handle_of(make_counted<TensorList>(DType::kInt32, PartialShape(), 1));
  const TensorList* const object = &TensorList::in(handle);
  OwnList own = own_list(std::move(handle));
  EXPECT_EQ(own.list, object);

  const Tensor other = own.handle;  // another share of the handle
  const OwnList copy = own_list(std::move(own.handle));
  EXPECT_NE(copy.list, object);
  copy.list->set(0, Tensor::scalar(3));
  EXPECT_EQ(value_at(TensorList::in(other), 0), 0);

  const Tensor twin = handle_of(IntrusivePtr<const TensorList>(&TensorList::in(other)));
  EXPECT_NE(own_list(other.deep_copy()).list, object);  // another share of the object
}

TEST(TensorList, SaysWhatDoesNotFit) {
  const TensorList list(DType::kInt32, PartialShape({2}), 1);
  EXPECT_THROW(list.check(Tensor::scalar(1)), Error);
  EXPECT_THROW(list.check(Tensor(DType::kFloat32, Shape({2}))), Error);
  EXPECT_NO_THROW(list.check(Tensor(DType::kInt32, Shape({2}))));
  EXPECT_THROW(TensorList::in(Tensor(DType::kVariant, Shape())), Error);
  EXPECT_THROW(TensorList::in(Tensor(DType::kVariant, Shape({1}))), Error);
}

}  // namespace
}  // namespace treenail
