// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/thread_pool.h"
#include "framework/device/allocator.h"
#include "framework/runtime/state/resource_manager.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using test::floats;
using test::GraphBuilder;

std::vector<float> list(const Tensor& t) {
  const auto values = t.values<float>();
  return {values.begin(), values.end()};
}

// The text of the Error that `f` throws, "" when it throws none.
template <class F>
std::string error_of(F&& f, Code expected) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(code_name(error.code()), code_name(expected)) << error.what();
    return error.what();
  }
  return "";
}

TEST(Session, RunsAFedAndFetchedOp) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  b.op("Add", {x, b.constant(Tensor::scalar(2.0f), "two")}, {}, "y");
  Session session(b.graph);
  const auto result = session.run({{"x:0", floats({1, 2, 3})}}, {"y:0", "y"});
  ASSERT_EQ(result.size(), 2u);
  EXPECT_EQ(list(result[0]), (std::vector<float>{3, 4, 5}));
  EXPECT_EQ(list(result[1]), (std::vector<float>{3, 4, 5}));
}

TEST(Session, FedShapesMayChangeFromRunToRun) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  b.op("Mul", {x, x}, {}, "y");
  Session session(b.graph);
  for (int round = 0; round < 3; ++round) {
    for (int64_t n = 0; n < 40;
         ++n) {  // more shapes than plans are kept: the generic plan serves the rest
      Tensor feed(DType::kFloat32, Shape({n}));
      for (int64_t i = 0; i < n; ++i) feed.data<float>()[i] = static_cast<float>(i);
      const Tensor y = session.run({{"x", feed}}, {"y"})[0];
      ASSERT_EQ(y.shape(), Shape({n}));
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y.data<float>()[i], static_cast<float>(i * i));
    }
  }
}

TEST(Session, AnyTensorMayBeFedAndFetched) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  const Output y = b.op("Neg", {x}, {}, "y");
  b.op("Neg", {y}, {}, "z");
  Session session(b.graph);
  // y is fed: x is not needed, and fetching y gives what was fed.
  const auto result = session.run({{"y", floats({5})}}, {"z", "y"});
  EXPECT_EQ(list(result[0]), (std::vector<float>{-5}));
  EXPECT_EQ(list(result[1]), (std::vector<float>{5}));
}

TEST(Session, AFetchedValueIsOwnedByTheCaller) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  const Output y = b.op("Neg", {x}, {}, "y");
  b.op("Reshape", {y, b.constant(Tensor::vector<int32_t>({1, -1}), "shape")}, {}, "view");
  Session session(b.graph);
  const Tensor first = session.run({{"x", floats({1, 2})}}, {"view"})[0];
  const Tensor second = session.run({{"x", floats({3, 4})}}, {"view"})[0];
  EXPECT_EQ(first.shape(), Shape({1, 2}));
  EXPECT_EQ(list(first), (std::vector<float>{-1, -2}));
  EXPECT_EQ(list(second), (std::vector<float>{-3, -4}));
  EXPECT_TRUE(first.exclusive());
}

TEST(Session, IntermediateMemoryIsSharedOnlyAcrossDisjointLives) {
  // A diamond over a long chain: every intermediate must keep its value while someone still needs
  // it.
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {4}, "x");
  Output a = x;
  std::vector<Output> kept;
  for (int i = 0; i < 50; ++i) {
    a = b.op("Add", {a, x}, {}, "a");
    if (i % 7 == 0) kept.push_back(b.op("Mul", {a, a}, {}, "square"));
  }
  Output sum = a;
  for (const Output& k : kept) sum = b.op("Add", {sum, k}, {}, "sum");
  SessionOptions options;
  options.fuse_elementwise = false;  // else nothing lies between the nodes
  Session session(b.graph, options);
  const auto signature = session.signature(std::vector{x}, std::vector{sum}, {});
  const Tensor feed = floats({1, 2, 3, 4});
  for (int round = 0; round < 3; ++round) {
    RunMetadata metadata;
    const Tensor y = session.run(signature, std::vector{feed}, {}, &metadata)[0];
    for (int i = 0; i < 4; ++i) {
      const float v = static_cast<float>(i + 1);
      float expected = 51 * v;
      for (int k = 0; k < 50; k += 7)
        expected += (static_cast<float>(k) + 2) * v * (static_cast<float>(k) + 2) * v;
      EXPECT_FLOAT_EQ(y.data<float>()[i], expected);
    }
    EXPECT_LT(metadata.arena_bytes, 64 * 20)
        << "58 values of 16 bytes were given memory of their own";
    EXPECT_GT(metadata.nodes_executed, 50);
  }
}

TEST(Session, PlansOfOldFetchesAreForgotten) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {1}, "x");
  std::vector<Output> values{x};
  for (int i = 0; i < 600; ++i) values.push_back(b.op("Neg", {values.back()}));
  Session session(b.graph);
  std::weak_ptr<Session::Signature> first =
      session.signature(std::vector{x}, std::vector{values[1]}, {});
  const auto held = session.signature(std::vector{x}, std::vector{values[2]}, {});
  EXPECT_FALSE(first.expired());
  for (const Output& value : values) session.signature(std::vector{x}, std::vector{value}, {});
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(session.run(held, std::vector{floats({3})})[0].data<float>()[0], 3);
}

TEST(Session, TheFetchesUsedLongestAgoAreForgottenFirst) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {1}, "x");
  std::vector<Output> values{x};
  for (size_t i = 0; i < Session::kMostSignatures; ++i)
    values.push_back(b.op("Neg", {values.back()}));
  Session session(b.graph);
  const auto ask = [&](size_t i) {
    return std::weak_ptr<Session::Signature>(
        session.signature(std::vector{x}, std::vector{values[i]}, {}));
  };
  const auto first = ask(0), second = ask(1), third = ask(2);
  for (size_t i = 3; i < Session::kMostSignatures; ++i) ask(i);
  EXPECT_EQ(ask(0).lock(), first.lock());
  ask(Session::kMostSignatures);
  EXPECT_FALSE(first.expired());
  EXPECT_TRUE(second.expired());
  EXPECT_FALSE(third.expired());
}

// Running counts as use, and not only asking for the signature.
TEST(Session, PlansInUseAreNotForgotten) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {1}, "x");
  std::vector<Output> values{x};
  for (int i = 0; i < 600; ++i) values.push_back(b.op("Neg", {values.back()}));
  Session session(b.graph);
  auto held = session.signature(std::vector{x}, std::vector{values[2]}, {});
  const std::weak_ptr<Session::Signature> used = held;
  for (const Output& value : values) {
    session.signature(std::vector{x}, std::vector{value}, {});
    session.run(held, std::vector{floats({3})});
  }
  held.reset();
  EXPECT_FALSE(used.expired());
}

TEST(Session, AShapeThatSettlesAfterManyMissesIsSpecialised) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  const Output y = b.op("Neg", {b.op("Sin", {x})});
  Session session(b.graph);
  const auto signature = session.signature(std::vector{x}, std::vector{y}, {});
  const auto specialized = [&](int64_t n) {
    RunMetadata metadata;
    session.run(signature, std::vector{Tensor::zeros(DType::kFloat32, Shape({n}))}, {}, &metadata);
    return metadata.specialized;
  };
  for (int64_t n = 1; n <= 40; ++n) EXPECT_EQ(specialized(n), n <= 16) << n;
  EXPECT_FALSE(specialized(100));
  EXPECT_FALSE(specialized(101));
  EXPECT_FALSE(specialized(100));
  EXPECT_TRUE(specialized(100));  // it comes back: a plan of its own
  EXPECT_TRUE(specialized(100));
  EXPECT_TRUE(specialized(200));  // and a hit ends the row of misses
}

// A graph whose plan takes much longer than the limits below, and whose run would not.
Output long_chain(GraphBuilder& b, Output y) {
  for (int i = 0; i < 20'000; ++i) y = b.op(i % 2 == 0 ? "Sin" : "Cos", {y});
  return y;
}

TEST(Session, ATimeoutEndsTheMakingOfAPlan) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {1}, "x");
  const Output y = long_chain(b, x);
  Session session(b.graph);
  const auto signature = session.signature(std::vector{x}, std::vector{y}, {});
  RunOptions options;
  options.timeout_ms = 1;
  RunMetadata metadata{-1, -1, -1, false, -1};
  const std::string text =
      error_of([&] { session.run(signature, std::vector{floats({1})}, options, &metadata); },
               Code::kDeadlineExceeded);
  EXPECT_EQ(text, "the run did not end within its timeout of 1 ms");
  EXPECT_EQ(metadata.peak_bytes, -1) << "there was a plan";
  EXPECT_EQ(session.run(signature, std::vector{floats({0})}).size(), 1U);
}

TEST(Session, ATimeoutHoldsWhileAnotherRunMakesThePlan) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {1}, "x");
  const Output y = long_chain(b, x);
  Session session(b.graph);
  const auto signature = session.signature(std::vector{x}, std::vector{y}, {});
  // The first run stops in the middle of its planning until the second has ended.
  static std::atomic<bool> planning, ended;
  planning = ended = false;
  RunOptions slow;
  slow.poll = [] {
    planning = true;
    while (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  std::thread first([&] { session.run(signature, std::vector{floats({1})}, slow); });
  while (!planning) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  RunOptions options;
  options.timeout_ms = 1;
  error_of([&] { session.run(signature, std::vector{floats({1})}, options); },
           Code::kDeadlineExceeded);
  ended = true;
  first.join();
}

TEST(Session, ACancelledTokenAndASignalEndTheMakingOfAPlan) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {1}, "x");
  const Output y = long_chain(b, x);
  Session session(b.graph);
  const auto signature = session.signature(std::vector{x}, std::vector{y}, {});
  struct Stop {};
  RunMetadata metadata{-1, -1, -1, false, -1};
  RunOptions options;
  options.poll = [] { throw Stop(); };
  EXPECT_THROW(session.run(signature, std::vector{floats({1})}, options, &metadata), Stop);
  EXPECT_EQ(metadata.peak_bytes, -1) << "there was a plan";
  static CancellationToken* cancelled;
  CancellationToken token;
  cancelled = &token;
  options.poll = [] { cancelled->cancel(Code::kCancelled, "enough"); };
  options.token = &token;
  EXPECT_EQ(error_of([&] { session.run(signature, std::vector{floats({1})}, options, &metadata); },
                     Code::kCancelled),
            "enough");
  EXPECT_EQ(metadata.peak_bytes, -1) << "there was a plan";
}

TEST(Session, ShapeArithmeticBecomesConstant) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown, 3}, "x");
  const Output neg = b.op("Neg", {x}, {}, "neg");
  b.op("Shape", {neg}, {}, "shape");
  Session session(b.graph);
  const auto signature =
      session.signature(std::vector{x}, std::vector{b.graph->find_output("shape")}, {});
  RunMetadata metadata;
  const Tensor shape = session.run(
      signature, std::vector{Tensor::zeros(DType::kFloat32, Shape({7, 3}))}, {}, &metadata)[0];
  EXPECT_EQ(shape.data<int32_t>()[0], 7);
  EXPECT_EQ(metadata.nodes_executed, 0) << "nothing needs neg once the shape is known";
}

TEST(Session, AValueKnownOnlyAtRunTimeMayDecideAShape) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  const Output dims = b.placeholder(DType::kInt32, {kUnknown}, "dims");
  const Output filled = b.op("Fill", {dims, b.constant(Tensor::scalar(2.0f), "two")}, {}, "filled");
  b.op("Add", {filled, x}, {}, "y");
  Session session(b.graph);
  for (const int32_t n : {3, 1, 5}) {
    const Tensor y =
        session.run({{"x", floats({1})}, {"dims", Tensor::vector<int32_t>({n})}}, {"y"})[0];
    EXPECT_EQ(list(y), std::vector<float>(static_cast<size_t>(n), 3.0f));
  }
}

TEST(Session, VariablesKeepTheirValueBetweenRuns) {
  GraphBuilder b;
  const Output v = b.variable(DType::kFloat32, {2}, "v");
  b.node("AssignVariableOp", {v, b.constant(floats({1, 2}), "start")}, {}, "init");
  b.node("AssignAddVariableOp", {v, b.constant(floats({10, 10}), "ten")}, {}, "step");
  b.read(v, DType::kFloat32, "value");
  Session session(b.graph);
  const std::string error =
      error_of([&] { session.run({}, {"value"}); }, Code::kFailedPrecondition);
  EXPECT_NE(error.find("[ReadVariableOp node \"value\"]"), std::string::npos) << error;
  EXPECT_NE(error.find("v"), std::string::npos) << error;
  session.run({}, {}, {"init"});
  for (int i = 0; i < 3; ++i) session.run({}, {}, {"step"});
  EXPECT_EQ(list(session.run({}, {"value"})[0]), (std::vector<float>{31, 32}));
  Session other(b.graph);
  EXPECT_NE(error_of([&] { other.run({}, {"value"}); }, Code::kFailedPrecondition), "");
}

TEST(Session, UnorderedAccessesTakeCreationOrderAndReadsKeepTheirValue) {
  GraphBuilder b;
  const Output v = b.variable(DType::kFloat32, {1}, "v");
  b.node("AssignVariableOp", {v, b.constant(floats({1}), "one")}, {}, "init");
  const Output before = b.read(v, DType::kFloat32, "before");
  Node& step = b.node("AssignAddVariableOp", {v, b.constant(floats({5}), "five")}, {}, "step");
  const Output after = b.read(v, DType::kFloat32, "after");
  // Consumes the earlier read after the write: it must still see the old value.
  b.op("Add", {before, after}, {}, "sum", {&step});
  Session session(b.graph);
  session.run({}, {}, {"init"});
  const auto result = session.run({}, {"before", "after", "sum"}, {"step"});
  EXPECT_EQ(list(result[0]), (std::vector<float>{1}));
  EXPECT_EQ(list(result[1]), (std::vector<float>{6}));
  EXPECT_EQ(list(result[2]), (std::vector<float>{7}));
}

TEST(Session, UpdatesAreInPlaceWhenNobodyKeepsTheOldValue) {
  GraphBuilder b;
  const Output v = b.variable(DType::kFloat32, {1000}, "v");
  const Output start = b.op("Fill", {b.constant(Tensor::vector<int32_t>({1000}), "dims"),
                                     b.constant(Tensor::scalar(1.0f), "one")});
  b.node("AssignVariableOp", {v, start}, {}, "init");
  const Output value = b.read(v, DType::kFloat32, "value");
  b.node("AssignSubVariableOp", {v, b.op("Mul", {value, b.constant(Tensor::scalar(0.5f), "half")})},
         {}, "step");
  Session session(b.graph);
  session.run({}, {}, {"init"});
  const Tensor held = session.run({}, {"value"})[0];
  const void* bytes = held.raw();
  session.run({}, {}, {"step"});
  EXPECT_EQ(held.data<float>()[0], 1.0f) << "a value once read never changes";
  const void* second = session.run({}, {"value"})[0].raw();
  EXPECT_NE(second, bytes);
  session.run({}, {}, {"step"});
  EXPECT_EQ(session.run({}, {"value"})[0].raw(), second) << "nobody held the old value";
  EXPECT_EQ(session.run({}, {"value"})[0].data<float>()[999], 0.25f);
}

TEST(Session, NamesWhatIsMissingOrWrong) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown, 3}, "x");
  const Output y = b.op("Neg", {x}, {}, "y");
  Session session(b.graph);
  GraphBuilder other;
  const Output foreign = other.placeholder(DType::kFloat32, {}, "foreign");
  const auto run = [&](const std::string& feed, const Tensor& t, const std::string& fetch) {
    return [=, &session] { session.run({{feed, t}}, {fetch}); };
  };
  const Tensor good = Tensor::zeros(DType::kFloat32, Shape({2, 3}));
  struct Case {
    std::string text;
    std::string needed;
  };
  const std::vector<Case> cases = {
      {error_of(run("z", good, "y"), Code::kNotFound), "no node \"z\""},
      {error_of(run("x", good, "w:0"), Code::kNotFound), "no node \"w\""},
      {error_of(run("x", good, "y:1"), Code::kInvalidArgument), "1 outputs"},
      {error_of(run("x", good, "y:one"), Code::kInvalidArgument), "node:output number"},
      {error_of(run("x", Tensor::zeros(DType::kInt32, Shape({2, 3})), "y"), Code::kInvalidArgument),
       "Cannot feed int32[2,3] for tensor \"x:0\", which has dtype float32"},
      {error_of(run("x", Tensor::zeros(DType::kFloat32, Shape({2, 4})), "y"),
                Code::kInvalidArgument),
       "Cannot feed value of shape [2,4] for tensor \"x:0\", which has shape [?,3]"},
      {error_of([&] { session.run({}, {"y"}); }, Code::kInvalidArgument),
       "[Placeholder node \"x\"] You must feed a value for placeholder tensor"},
      {error_of([&] { session.run({}, {}, {"nothing"}); }, Code::kNotFound), "no node \"nothing\""},
      {error_of(
           [&] {
             session.run({{"x", good}, {"x:0", good}}, {"y"});
           },
           Code::kInvalidArgument),
       "\"x:0\" is fed more than once"},
      {error_of([&] { session.signature({}, std::vector{foreign}, {}); }, Code::kInvalidArgument),
       "foreign:0 is not a value of the session's graph"},
      {error_of([&] { session.run(session.signature(std::vector{x}, std::vector{y}, {}), {}); },
                Code::kInvalidArgument),
       "needs 1 feeds, got 0"},
  };
  for (const Case& c : cases)
    EXPECT_NE(c.text.find(c.needed), std::string::npos) << c.text << "\nlacks: " << c.needed;
  EXPECT_EQ(session.run({{"x", good}}, {"y"})[0].shape(), Shape({2, 3}))
      << "a refused run leaves the session usable";
}

TEST(Session, ACancelledRunEndsAndALaterOneWorks) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  Output y = x;
  for (int i = 0; i < 2000; ++i) y = b.op("Sin", {y});
  Session session(b.graph);
  const auto signature = session.signature(std::vector{x}, std::vector{y}, {});
  const Tensor large = Tensor::zeros(DType::kFloat32, Shape({1 << 20}));
  CancellationToken token;
  RunOptions options;
  options.token = &token;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    token.cancel(Code::kCancelled, "enough");
  });
  EXPECT_EQ(
      error_of([&] { session.run(signature, std::vector{large}, options); }, Code::kCancelled),
      "enough");
  canceller.join();
  options = {};
  options.timeout_ms = 20;
  const std::string text = error_of([&] { session.run(signature, std::vector{large}, options); },
                                    Code::kDeadlineExceeded);
  EXPECT_NE(text.find("20 ms"), std::string::npos) << text;
  EXPECT_EQ(session.run(signature, std::vector{floats({0})})[0].data<float>()[0], 0.0f);
}

TEST(Session, PollRunsOnTheCallersThreadAndItsExceptionLeavesRun) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  Output y = x;
  for (int i = 0; i < 3000; ++i) y = b.op("Sin", {y});
  Session session(b.graph);
  struct Stop {};
  static std::atomic<int> polls;
  static std::thread::id poller;
  polls = 0;
  RunOptions options;
  options.poll = [] {
    poller = std::this_thread::get_id();
    if (++polls == 2) throw Stop();
  };
  const auto signature = session.signature(std::vector{x}, std::vector{y}, {});
  EXPECT_THROW(session.run(signature, std::vector{Tensor::zeros(DType::kFloat32, Shape({1 << 20}))},
                           options),
               Stop);
  EXPECT_EQ(polls, 2);
  EXPECT_EQ(poller, std::this_thread::get_id());
}

TEST(Session, ClosedSessionsRefuseRuns) {
  GraphBuilder b;
  b.constant(Tensor::scalar(1.0f), "c");
  Session session(b.graph);
  EXPECT_EQ(session.run({}, {"c"})[0].data<float>()[0], 1.0f);
  session.close();
  EXPECT_NE(error_of([&] { session.run({}, {"c"}); }, Code::kFailedPrecondition).find("closed"),
            std::string::npos);
}

// A graph with a variable of `n` floats.
struct LargeVariable {
  explicit LargeVariable(int64_t n) : n(n) {
    const Output v = b.variable(DType::kFloat32, {n}, "v");
    const Output x = b.placeholder(DType::kFloat32, {n}, "x");
    b.node("AssignVariableOp", {v, x}, {}, "assign");
    const Output read = b.op("ReadVariableOp", {v}, {{"dtype", DType::kFloat32}}, "read");
    b.op("Neg", {b.op("Sin", {b.op("Neg", {read})})}, {}, "y");
  }
  void fill(Session& session) const {
    session.run({{"x", Tensor::zeros(DType::kFloat32, Shape({n}))}}, {}, {"assign"});
    session.run({}, {"y"});
  }
  GraphBuilder b;
  int64_t n;
};

int64_t bytes_in_use() { return Allocator::host().stats().bytes_in_use; }

TEST(Session, ClosingFreesVariablesPlansAndArenas) {
  constexpr int64_t kElements = 1 << 20;
  const LargeVariable large(kElements);
  const int64_t before = bytes_in_use();
  Session session(large.b.graph);
  large.fill(session);
  EXPECT_GE(bytes_in_use() - before, 4 * kElements);
  const Tensor kept = session.run({}, {"read"})[0];
  session.close();
  EXPECT_LT(bytes_in_use() - before, 6 * kElements);  // what was fetched lives on
  EXPECT_EQ(kept.data<float>()[kElements - 1], 0.0f);
  session.close();
}

TEST(Session, ClosingLeavesNothingButWhatWasFetched) {
  constexpr int64_t kElements = 1 << 20;
  const LargeVariable large(kElements);
  const int64_t before = bytes_in_use();
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 8; ++i) {
    sessions.push_back(std::make_unique<Session>(large.b.graph));
    large.fill(*sessions.back());
    sessions.back()->close();
    EXPECT_LT(bytes_in_use() - before, kElements) << "after " << i + 1 << " sessions";
  }
}

TEST(Session, StateThatAnotherSessionSharesStays) {
  const LargeVariable large(8);
  SessionOptions options;
  options.resources = std::make_shared<ResourceManager>();
  Session first(large.b.graph, options);
  Session second(large.b.graph, options);
  large.fill(first);
  first.close();
  EXPECT_EQ(second.run({}, {"read"})[0].num_elements(), 8);
  second.close();
  EXPECT_TRUE(options.resources->list().empty());
}

TEST(Session, ClosingWhileRunsAreInFlight) {
  const LargeVariable large(1 << 16);
  for (int i = 0; i < 20; ++i) {
    Session session(large.b.graph);
    std::atomic<int> begun{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        try {
          for (;;) {
            large.fill(session);
            ++begun;
          }
        } catch (const Error& error) {
          EXPECT_TRUE(error.code() == Code::kFailedPrecondition || error.code() == Code::kCancelled)
              << error.what();
        }
      });
    }
    while (begun == 0) std::this_thread::yield();
    session.close();
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(Session, ManyThreadsShareASession) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  const Output v = b.variable(DType::kFloat32, {1}, "v");
  b.node("AssignVariableOp", {v, b.constant(floats({0}), "zero")}, {}, "init");
  b.node("AssignAddVariableOp", {v, b.constant(floats({1}), "one")}, {}, "step");
  const Output y = b.op("Add", {b.op("Mul", {x, x}), x}, {}, "y");
  Session session(b.graph);
  session.run({}, {}, {"init"});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto signature = session.signature(std::vector{x}, std::vector{y}, {});
      for (int i = 0; i < 200; ++i) {
        const float f = static_cast<float>(t * 1000 + i);
        if (session.run(signature, std::vector{floats({f})})[0].data<float>()[0] != f * f + f)
          ++wrong;
        session.run({}, {}, {"step"});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  b.read(v, DType::kFloat32, "value");  // the graph may grow while the session lives
  EXPECT_EQ(session.run({}, {"value"})[0].data<float>()[0], 800.0f);
}

TEST(Session, AChangedNodeIsCompiledAnew) {
  GraphBuilder b;
  const Output one = b.constant(floats({1}), "one");
  const Output two = b.constant(floats({2}), "two");
  const Output y = b.op("Neg", {one}, {}, "y");
  Session session(b.graph);
  EXPECT_EQ(session.run({}, {"y"})[0].data<float>()[0], -1.0f);
  b.graph->set_input(*y.node, 0, two);
  EXPECT_EQ(session.run({}, {"y"})[0].data<float>()[0], -2.0f);
}

TEST(Session, ANodeMayReadWhatWasMadeAfterIt) {
  GraphBuilder b;
  const Output y = b.op("Neg", {b.constant(floats({1}))}, {}, "y");
  b.op("Neg", {y}, {}, "z");
  const Output two =
      b.op("Add", {b.constant(floats({1})), b.placeholder(DType::kFloat32, {1}, "x")});
  b.graph->set_input(*y.node, 0, b.op("Exp", {two}));
  Session session(b.graph);
  EXPECT_EQ(session.run({{"x", floats({-1})}}, {"z"})[0].data<float>()[0], 1.0f);
}

TEST(Session, SideBySideGivesTheSameBitsAndTheFirstErrorInOrder) {
  ThreadPool& pool = ThreadPool::instance();
  const int threads = pool.num_threads();
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  std::vector<Output> branches;
  for (int i = 0; i < 6; ++i) {
    Output y = b.op("Add", {x, b.constant(Tensor::scalar(static_cast<float>(i)))});
    for (int k = 0; k < 20; ++k) y = b.op("Sin", {y});
    branches.push_back(y);
  }
  Output sum = branches[0];
  for (size_t i = 1; i < branches.size(); ++i) sum = b.op("Add", {sum, branches[i]});
  Tensor feed(DType::kFloat32, Shape({3000}));
  for (int i = 0; i < 3000; ++i) feed.data<float>()[i] = 0.001f * static_cast<float>(i);
  std::vector<std::vector<float>> results;
  for (const int n : {1, 2, 3, 8}) {
    pool.set_num_threads(n);
    Session session(b.graph);
    const auto signature = session.signature(std::vector{x}, std::vector{sum}, {});
    for (int round = 0; round < 5; ++round)
      results.push_back(list(session.run(signature, std::vector{feed})[0]));
  }
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
  pool.set_num_threads(threads);
}

}  // namespace
}  // namespace treenail
