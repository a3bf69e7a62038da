// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/resource_manager.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/runtime/state/variable.h"
#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;

class Counter final : public Resource {
 public:
  explicit Counter(int* alive) : alive_(alive) { ++*alive_; }
  const char* kind() const override { return "Counter"; }

 private:
  ~Counter() override { --*alive_; }
  int* alive_;
};

TEST(ResourceManager, FindsWhatWasMade) {
  ResourceManager resources;
  int alive = 0;
  auto make = [&] { return make_counted<Counter>(&alive); };
  EXPECT_FALSE(resources.find("", "c"));
  const auto made = resources.lookup_or_create<Counter>("", "c", make);
  EXPECT_EQ(resources.lookup_or_create<Counter>("", "c", make), made);
  EXPECT_EQ(resources.lookup<Counter>("", "c"), made);
  EXPECT_EQ(alive, 1);
  EXPECT_FALSE(resources.find("other", "c"));
}

TEST(ResourceManager, SaysWhatIsMissingOrOfAnotherKind) {
  ResourceManager resources;
  int alive = 0;
  resources.lookup_or_create<Counter>("", "c", [&] { return make_counted<Counter>(&alive); });
  EXPECT_EQ(error_of([&] { resources.lookup<Counter>("", "d"); }),
            "NotFound: there is no resource \"d\"");
  EXPECT_EQ(error_of([&] { resources.lookup<Counter>("box", "c"); }),
            "NotFound: there is no resource \"c\" in container \"box\"");
  EXPECT_EQ(error_of([&] { resources.lookup<Variable>("", "c"); }),
            "InvalidArgument: resource \"c\" is a Counter; it was asked for as something else");
}

TEST(ResourceManager, StoresNothingWhenMakingFails) {
  ResourceManager resources;
  const auto fail = []() -> IntrusivePtr<Counter> { throw resource_exhausted("no room"); };
  EXPECT_EQ(error_of([&] { resources.lookup_or_create<Counter>("", "c", fail); }),
            "ResourceExhausted: no room");
  EXPECT_TRUE(resources.list().empty());
}

TEST(ResourceManager, RemovesAndLists) {
  ResourceManager resources;
  int alive = 0;
  auto make = [&] { return make_counted<Counter>(&alive); };
  resources.lookup_or_create<Counter>("b", "y", make);
  resources.lookup_or_create<Counter>("", "x", make);
  auto kept = resources.lookup_or_create<Counter>("b", "a", make);
  std::vector<std::pair<std::string, std::string>> names;
  for (const ResourceEntry& entry : resources.list())
    names.emplace_back(entry.container, entry.name);
  const std::vector<std::pair<std::string, std::string>> sorted = {
      {"", "x"}, {"b", "a"}, {"b", "y"}};
  EXPECT_EQ(names, sorted);
  EXPECT_TRUE(resources.remove("b", "a"));
  EXPECT_FALSE(resources.remove("b", "a"));
  EXPECT_EQ(alive, 3);  // a share is held here
  kept.reset();
  EXPECT_EQ(alive, 2);
  resources.clear();
  EXPECT_EQ(alive, 0);
}

TEST(ResourceManager, RemovesByTheBeginningOfNames) {
  ResourceManager resources;
  int alive = 0;
  auto make = [&] { return make_counted<Counter>(&alive); };
  for (const char* name : {"f", "f/", "f/0", "f/x/1", "f0", "e/1"})
    resources.lookup_or_create<Counter>("c", name, make);
  resources.lookup_or_create<Counter>("d", "f/0", make);
  resources.remove_all("c", "f/");
  EXPECT_EQ(alive, 4);
  for (const char* name : {"f", "f0", "e/1"}) EXPECT_TRUE(resources.find("c", name));
  EXPECT_TRUE(resources.find("d", "f/0"));
  resources.remove_all("c", "z");
  EXPECT_EQ(alive, 4);
}

TEST(ResourceManager, MakesOneObjectForManyThreads) {
  ResourceManager resources;
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        auto make = [&] {
          ++made;
          return make_counted<Variable>("v", DType::kFloat32, PartialShape());
        };
        resources.lookup_or_create<Variable>("", std::to_string(i), make);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 200);
}

TEST(RandomCounter, GivesEveryBlockOnce) {
  ResourceManager resources;
  std::vector<std::vector<uint64_t>> firsts(4);
  std::vector<std::thread> threads;
  for (auto& mine : firsts) {
    threads.emplace_back([&resources, &mine] {
      const auto counter = random_counter_of(resources, "node");
      for (int i = 0; i < 500; ++i) mine.push_back(counter->reserve(3));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> all;
  for (const auto& mine : firsts) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 2000u);
  EXPECT_EQ(*all.rbegin(), 3u * 1999);
  EXPECT_EQ(random_counter_of(resources, "another")->reserve(1), 0u);
}

}  // namespace
}  // namespace treenail
