// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/lookup_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <initializer_list>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "framework/device/memory_account.h"
#include "framework/runtime/state/resource_manager.h"
#include "framework/tensor/string_element.h"
#include "tests/support/child.h"
#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;

const LookupSpec kNumbers{false, DType::kInt64, DType::kInt64};
const LookupSpec kWords{true, DType::kString, DType::kInt64};

Tensor words(std::initializer_list<const char*> texts) {
  Tensor t(DType::kString, Shape({std::ssize(texts)}));
  StringElement* to = t.data<StringElement>();
  for (const char* text : texts) *to++ = StringElement(text);
  return t;
}
Tensor numbers(std::initializer_list<int64_t> values) { return Tensor::vector<int64_t>(values); }

std::string found(const LookupTable& table, const Tensor& keys, const Tensor& otherwise) {
  Tensor out(table.spec().value, keys.shape().concatenated(table.spec().value_shape));
  table.read().find(keys, otherwise, 0, keys.num_elements(), out);
  return tensor_values(out);
}

TEST(LookupTable, GivesWhatWasPutLast) {
  const auto table = make_counted<LookupTable>("t", kNumbers);
  const Tensor none = Tensor::scalar<int64_t>(-1);
  EXPECT_EQ(found(*table, numbers({1}), none), "int64[1] [-1]");
  table->insert(numbers({1, 2, 1}), numbers({10, 20, 30}));
  EXPECT_EQ(found(*table, numbers({2, 1, 3}), none), "int64[3] [20, 30, -1]");
  EXPECT_EQ(table->size(), 2);
  table->remove(numbers({1, 7, 1}));
  EXPECT_EQ(found(*table, numbers({2, 1}), none), "int64[2] [20, -1]");
  table->replace(numbers({5}), numbers({50}));
  EXPECT_EQ(found(*table, numbers({2, 5}), none), "int64[2] [-1, 50]");
  EXPECT_EQ(tensor_values(table->read().keys()), "int64[1] [5]");
  table->remove(numbers({5}));
  EXPECT_EQ(table->size(), 0);
  EXPECT_EQ(tensor_values(table->read().values()), "int64[0] []");
}

TEST(LookupTable, HoldsRowsAndStrings) {
  const auto rows =
      make_counted<LookupTable>("t", LookupSpec{false, DType::kInt32, DType::kFloat32, Shape({2})});
  Tensor pairs(DType::kFloat32, Shape({2, 2}));
  for (int i = 0; i < 4; ++i) pairs.data<float>()[i] = static_cast<float>(i);
  rows->insert(Tensor::vector<int32_t>({7, -7}), pairs);
  EXPECT_EQ(found(*rows, Tensor::vector<int32_t>({-7, 0}), Tensor::vector<float>({8, 9})),
            "float32[2,2] [2, 3, 8, 9]");
  const auto texts =
      make_counted<LookupTable>("t", LookupSpec{false, DType::kString, DType::kString});
  texts->insert(words({"", "a"}), words({"empty", "letter"}));
  EXPECT_EQ(found(*texts, words({"a", "", "b"}), Tensor::scalar(StringElement("?"))),
            "string[3] [\"letter\", \"empty\", \"?\"]");
}

// Against std::map, through growth, removal and the moves that it makes.
TEST(LookupTable, DoesAsAMapDoes) {
  std::mt19937 random(1);
  const auto table = make_counted<LookupTable>("t", kNumbers);
  std::map<int64_t, int64_t> model;
  const Tensor none = Tensor::scalar<int64_t>(-1);
  for (int step = 0; step < 4000; ++step) {
    const auto key = static_cast<int64_t>(random() % 300);
    const auto value = static_cast<int64_t>(random());
    if (random() % 5 < 3) {
      table->insert(numbers({key}), numbers({value}));
      model[key] = value;
    } else {
      table->remove(numbers({key}));
      model.erase(key);
    }
    if (step % 50 != 0) continue;
    ASSERT_EQ(table->size(), std::ssize(model));
    for (int64_t k = 0; k < 300; ++k) {
      const auto at = model.find(k);
      ASSERT_EQ(found(*table, numbers({k}), none),
                concat("int64[1] [", at == model.end() ? -1 : at->second, "]"));
    }
  }
}

TEST(LookupTable, GivesKeysInTheOrderInWhichTheyCame) {
  const auto table =
      make_counted<LookupTable>("t", LookupSpec{false, DType::kString, DType::kBool});
  Tensor yes(DType::kBool, Shape({4}));
  std::fill_n(yes.data<bool>(), 4, true);
  table->insert(words({"d", "b", "c", "a"}), yes);
  EXPECT_EQ(tensor_values(table->read().keys()), "string[4] [\"d\", \"b\", \"c\", \"a\"]");
  table->remove(words({"d"}));
  EXPECT_EQ(tensor_values(table->read().keys()), "string[3] [\"a\", \"b\", \"c\"]");
}

TEST(LookupTable, IsInitialisedOnce) {
  const auto table = make_counted<LookupTable>("words", kWords);
  EXPECT_EQ(error_of([&] { table->read(); }),
            "FailedPrecondition: Table not initialized: run the initializer of table \"words\", or "
            "tables_initializer(), before it is read");
  EXPECT_EQ(table->size(), 0);
  EXPECT_EQ(error_of([&] {
              table->initialize(words({"a", "a"}), numbers({0, 1}));
            }),
            "FailedPrecondition: HashTable has different value for same key. Key string[1] [\"a\"] "
            "has int64[1] [0] and trying to add value int64[1] [1]");
  EXPECT_EQ(table->size(), 0);
  table->initialize(words({"a", "b"}), numbers({0, 1}));
  table->initialize(words({"b", "a", "b"}), numbers({1, 0, 1}));
  for (const Tensor& other : {words({"a"}), words({"a", "c"}), words({"b", "a"})}) {
    const Tensor values = other.num_elements() == 1 ? numbers({0}) : numbers({0, 1});
    EXPECT_EQ(error_of([&] { table->initialize(other, values); }),
              "FailedPrecondition: Table was already initialized with different data: table "
              "\"words\" keeps what it has; one of another shared_name is another table");
  }
  EXPECT_EQ(found(*table, words({"b", "c"}), Tensor::scalar<int64_t>(-1)), "int64[2] [1, -1]");
  EXPECT_EQ(error_of([&] { table->insert(words({"c"}), numbers({2})); }),
            "Unimplemented: Insert is not supported by table \"words\": it is initialized once; a "
            "MutableHashTable can be changed");
}

TEST(LookupTable, RefusesTensorsThatDoNotFit) {
  const auto table = make_counted<LookupTable>("t", kNumbers);
  EXPECT_EQ(error_of([&] { table->insert(words({"a"}), numbers({1})); }),
            "InvalidArgument: the keys of table \"t\" are of dtype int64, given are string[1]");
  EXPECT_EQ(error_of([&] {
              table->insert(numbers({1, 2}), numbers({1}));
            }),
            "InvalidArgument: for keys int64[2] table \"t\" takes values int64[2], given are "
            "int64[1]");
  EXPECT_EQ(error_of([&] { table->check_default(numbers({1})); }),
            "InvalidArgument: a value of table \"t\" is int64[], default_value is int64[1]");
  EXPECT_EQ(error_of([&] { table->initialize(numbers({1}), numbers({1})); }),
            "InvalidArgument: Table \"t\" is not initializable: it can be changed at any time, so "
            "insert into it");
}

TEST(LookupTable, BelongsToAName) {
  ResourceManager resources;
  const auto table = named_lookup_table(resources, "", "x", kNumbers);
  EXPECT_EQ(named_lookup_table(resources, "", "x", kNumbers).get(), table.get());
  EXPECT_NE(named_lookup_table(resources, "c", "x", kNumbers).get(), table.get());
  EXPECT_EQ(error_of([&] { named_lookup_table(resources, "", "x", kWords); }),
            "InvalidArgument: table \"x\" is a MutableHashTable of int64 keys and int64[] values; "
            "it is asked for as a HashTable of string keys and int64[] values");
}

TEST(LookupTable, IsCountedAndRefusedBeyondTheLimit) {
  const auto account = make_counted<MemoryAccount>("they", 200'000);
  const auto table = make_counted<LookupTable>("t", kNumbers);
  std::string said = "no error";
  {
    const MemoryScope scope(account.get());
    for (int64_t i = 0; i < 100'000 && said == "no error"; ++i)
      said = error_of([&] { table->insert(numbers({i}), numbers({i})); });
  }
  EXPECT_TRUE(said.starts_with("ResourceExhausted: they hold ")) << said;
  const int64_t size = table->size();
  EXPECT_GT(size, 1000);
  EXPECT_EQ(found(*table, numbers({size - 1, size}), Tensor::scalar<int64_t>(-1)),
            concat("int64[2] [", size - 1, ", -1]"));
  Tensor all = table->read().keys();
  table->remove(all);
  EXPECT_EQ(account->held(), 0);
}

TEST(LookupTable, IsReadWhileItIsChanged) {
  const auto table = make_counted<LookupTable>("t", kNumbers);
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      const Tensor keys = numbers({1, 2});
      Tensor out(DType::kInt64, Shape({2}));
      while (!stop) {
        table->read().find(keys, Tensor::scalar<int64_t>(0), 0, 2, out);
        if (out.data<int64_t>()[0] != out.data<int64_t>()[1]) stop = true;
      }
    });
  }
  for (int64_t i = 1; i < 2000 && !stop; ++i) {
    table->insert(numbers({1, 2, i + 2}), numbers({i, i, i}));
    if (i % 3 == 0) table->remove(numbers({1, 2}));
  }
  EXPECT_FALSE(stop);
  stop = true;
  for (std::thread& reader : readers) reader.join();
}

// Of the two ends that a fork may meet, one is an error that says so; neither is a child that
// hangs.
TEST(LookupTable, SurvivesForksWhileThreadsInsert) {
  const auto table = make_counted<LookupTable>("t", kNumbers);
  std::atomic<bool> stop{false};
  std::thread thread([&] {
    for (int64_t i = 0; !stop; i = (i + 1) % 1000) table->insert(numbers({i}), numbers({i}));
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(test::in_child([&] {
                const std::string said =
                    error_of([&] { table->insert(numbers({-1}), numbers({1})); });
                return said == "no error" || said.starts_with("FailedPrecondition: ") ? 0 : 1;
              }),
              0);
  }
  stop = true;
  thread.join();
}

}  // namespace
}  // namespace treenail
