// SPDX-License-Identifier: Apache-2.0
// Runs with operations that wait. The waiting is done at a gate: TestPass goes through when the
// test, or TestOpen, has opened it for one more.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/thread_pool.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/kernel/async_kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/run/immediate.h"
#include "framework/runtime/run/session.h"
#include "framework/runtime/state/resource_manager.h"
#include "framework/runtime/state/waiting_resource.h"
#include "tests/support/child.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using test::floats;
using test::GraphBuilder;

class Gate final : public WaitingResource {
 public:
  Gate() : WaitingResource("gate", 1) {}
  const char* kind() const override { return "Gate"; }

  void open(int64_t times) {
    change([&] { open_ += times; });
  }
  void close() {
    change([&] { open_ = 0; });
  }
  int64_t waiting() const {
    return look([&] { return waiting_; });
  }
  void await_waiting(int64_t count) const {
    while (waiting() != count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  // Output = input + 1, once the gate is open.
  class Pass final : public Request {
   public:
    Pass(RunContext context, Done done, Gate& gate) : Request(context, done), gate_(gate) {}
    void admit() override { ++gate_.waiting_; }
    Progress attempt() override {
      if (gate_.open_ == 0) return Progress::kNone;
      --gate_.open_;
      --gate_.waiting_;
      const Tensor& x = context().input(0);
      Tensor y(DType::kFloat32, x.shape());
      for (int64_t i = 0; i < x.num_elements(); ++i) y.data<float>()[i] = x.data<float>()[i] + 1;
      context().set_output(0, std::move(y));
      return Progress::kEnded;
    }
    void withdraw() noexcept override { --gate_.waiting_; }

   private:
    Gate& gate_;
  };

 protected:
  void begin_state_anew() override { open_ = waiting_ = 0; }

 private:
  int64_t open_ = 0;
  int64_t waiting_ = 0;
};

Gate& gate() {
  static const auto* const instance = new IntrusivePtr<Gate>(new Gate);
  return **instance;
}

class PassKernel final : public AsyncKernel {
 public:
  void start(RunContext c, Done done) const override {
    gate().submit(0, std::make_unique<Gate::Pass>(c, done, gate()));
  }
};

// Ends inside start(), with the input for output.
class AtOnceKernel final : public AsyncKernel {
 public:
  void start(RunContext c, Done done) const override {
    c.set_output(0, c.input(0));
    done();
  }
};

// "throw": instead of done; "fail": with done; "late": with done, on a thread of its own.
class FailKernel final : public AsyncKernel {
 public:
  explicit FailKernel(std::string how) : how_(std::move(how)) {}
  void start(RunContext, Done done) const override {
    if (how_ == "throw") throw out_of_range("thrown");
    // Made where it is told: the count of an exception's shares is nothing that TSan sees.
    const auto fail = [done] { done.fail(std::make_exception_ptr(out_of_range("failed"))); };
    if (how_ == "fail") return fail();
    std::thread(fail).detach();
  }

 private:
  std::string how_;
};

void same_shape(ShapeContext& c) { c.set_output(0, c.input(0)); }

void register_test_ops() {
  OpRegistry& r = OpRegistry::instance();
  for (const char* name : {"TestPass", "TestAtOnce"}) {
    r.op(name, HostAccess::kNone)
        .input("x: float")
        .output("y: float")
        .asynchronous()
        .stateful()
        .shape(same_shape)
        .not_differentiable()
        .doc("For tests.");
  }
  r.op("TestFail", HostAccess::kNone)
      .input("x: float")
      .output("y: float")
      .attr("how: string")
      .asynchronous()
      .stateful()
      .shape(same_shape)
      .not_differentiable()
      .doc("For tests.");
  r.op("TestOpen", HostAccess::kNone)
      .input("x: float")
      .output("y: float")
      .stateful()
      .shape(same_shape)
      .not_differentiable()
      .doc("For tests.");
  r.op("TestRaise", HostAccess::kNone)
      .input("x: float")
      .output("y: float")
      .stateful()
      .shape(same_shape)
      .not_differentiable()
      .doc("For tests.");
  r.finish("test");
  KernelRegistry& k = KernelRegistry::instance();
  using KernelPtr = std::unique_ptr<Kernel>;
  k.add("TestPass", {},
        [](const PrepareContext&) -> KernelPtr { return std::make_unique<PassKernel>(); });
  k.add("TestAtOnce", {},
        [](const PrepareContext&) -> KernelPtr { return std::make_unique<AtOnceKernel>(); });
  k.add("TestFail", {}, [](const PrepareContext& p) -> KernelPtr {
    return std::make_unique<FailKernel>(p.op().get_string("how"));
  });
  k.add("TestOpen", {}, [](const PrepareContext&) -> KernelPtr {
    return make_kernel([](RunContext& c) {
      std::copy_n(c.input(0).data<float>(), c.input(0).num_elements(), c.output(0).data<float>());
      gate().open(1);
    });
  });
  k.add("TestRaise", {}, [](const PrepareContext&) -> KernelPtr {
    return make_kernel([](RunContext&) { throw invalid_argument("raised"); });
  });
}

class Async : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { register_test_ops(); }
  void SetUp() override { gate().close(); }
  // Nobody is left behind.
  void TearDown() override { EXPECT_EQ(gate().waiting(), 0); }

  Output pass(Output x, std::string_view name = {}) { return b.op("TestPass", {x}, {}, name); }
  Output fail(Output x, const char* how) {
    return b.op("TestFail", {x}, {{"how", std::string(how)}}, "f");
  }

  GraphBuilder b;
};

float first(const Tensor& t) { return t.data<float>()[0]; }

template <class F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return internal_error("no error");
}

TEST_F(Async, AValueComesFromAnotherThread) {
  const Output x = b.placeholder(DType::kFloat32, {2}, "x");
  b.op("Neg", {pass(x, "p")}, {}, "y");
  Session session(b.graph);
  std::thread opener([] {
    gate().await_waiting(1);
    gate().open(1);
  });
  const Tensor y = session.run({{"x", floats({1, 2})}}, {"y"})[0];
  opener.join();
  EXPECT_EQ(y.data<float>()[0], -2);
  EXPECT_EQ(y.data<float>()[1], -3);
}

TEST_F(Async, WhatDoesNotWaitGoesOn) {
  const Output x = b.placeholder(DType::kFloat32, {1}, "x");
  const Output p = pass(x, "p");
  // The gate is opened by an operation of the same run, later in canonical order.
  const Output o = b.op("TestOpen", {b.op("Neg", {x})}, {}, "o");
  b.op("Add", {p, o}, {}, "y");
  Session session(b.graph);
  EXPECT_EQ(first(session.run({{"x", floats({5})}}, {"y"})[0]), 1);
}

TEST_F(Async, ThousandsOfImmediateEndsTakeNoStack) {
  Output x = b.placeholder(DType::kFloat32, {1}, "x");
  for (int i = 0; i < 100'000; ++i) x = b.op("TestAtOnce", {x});
  b.op("Identity", {x}, {}, "y");
  Session session(b.graph);
  EXPECT_EQ(first(session.run({{"x", floats({7})}}, {"y"})[0]), 7);
}

TEST_F(Async, ThousandsMayWaitAtOnce) {
  const Output x = b.placeholder(DType::kFloat32, {1}, "x");
  std::vector<Output> passed;
  for (int i = 0; i < 10'000; ++i) passed.push_back(pass(x));
  b.op("AddN", passed, {}, "y");
  Session session(b.graph);
  std::thread opener([] {
    gate().await_waiting(10'000);
    gate().open(10'000);
  });
  EXPECT_EQ(first(session.run({{"x", floats({1})}}, {"y"})[0]), 20'000);
  opener.join();
}

TEST_F(Async, OfAShapeThatTheRunTellsToo) {
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  const Output where = b.op("Where", {b.op("Greater", {x, b.constant(floats({0}))})});
  const Output p = pass(b.op("Cast", {where}, {{"DstT", DType::kFloat32}}), "p");
  b.op("Neg", {p}, {}, "y");
  Session session(b.graph);
  gate().open(1);
  const Tensor y = session.run({{"x", floats({-1, 3, 4})}}, {"y"})[0];
  EXPECT_EQ(y.shape(), Shape({2, 1}));
  EXPECT_EQ(y.data<float>()[1], -3);
}

TEST_F(Async, ADeadlineEndsTheWait) {
  pass(b.placeholder(DType::kFloat32, {1}, "x"), "p");
  Session session(b.graph);
  RunOptions options;
  options.timeout_ms = 30;
  const Error error = error_of([&] { session.run({{"x", floats({1})}}, {"p"}, {}, options); });
  EXPECT_EQ(error.code(), Code::kDeadlineExceeded) << error.what();
  gate().open(1);  // the next run is none the worse
  EXPECT_EQ(first(session.run({{"x", floats({1})}}, {"p"})[0]), 2);
}

TEST_F(Async, ATokenEndsTheWait) {
  pass(b.placeholder(DType::kFloat32, {1}, "x"), "p");
  Session session(b.graph);
  CancellationToken token;
  RunOptions options;
  options.token = &token;
  std::thread canceller([&] {
    gate().await_waiting(1);
    token.cancel(Code::kCancelled, "enough");
  });
  const Error error = error_of([&] { session.run({{"x", floats({1})}}, {"p"}, {}, options); });
  canceller.join();
  EXPECT_EQ(error.code(), Code::kCancelled);
  EXPECT_NE(std::string(error.what()).find("enough"), std::string::npos) << error.what();
}

TEST_F(Async, ClosingTheSessionEndsTheWait) {
  pass(b.placeholder(DType::kFloat32, {1}, "x"), "p");
  Session session(b.graph);
  std::thread closer([&] {
    gate().await_waiting(1);
    session.close();
  });
  const Error error = error_of([&] { session.run({{"x", floats({1})}}, {"p"}); });
  closer.join();
  EXPECT_EQ(error.code(), Code::kCancelled);
  EXPECT_NE(std::string(error.what()).find("session was closed"), std::string::npos)
      << error.what();
}

TEST_F(Async, WhatThePollThrowsEndsTheWait) {
  pass(b.placeholder(DType::kFloat32, {1}, "x"), "p");
  Session session(b.graph);
  RunOptions options;
  options.poll = [] { throw std::runtime_error("Ctrl-C"); };
  EXPECT_THROW(session.run({{"x", floats({1})}}, {"p"}, {}, options), std::runtime_error);
}

TEST_F(Async, ErrorsNameTheirNode) {
  const Output x = b.placeholder(DType::kFloat32, {1}, "x");
  for (const char* how : {"throw", "fail", "late"}) {
    b.op("TestFail", {x}, {{"how", std::string(how)}}, how);
    Session session(b.graph);
    const Error error = error_of([&] { session.run({{"x", floats({1})}}, {how}); });
    EXPECT_EQ(error.code(), Code::kOutOfRange);
    EXPECT_NE(std::string(error.what()).find(concat("[TestFail node \"", how, "\"]")),
              std::string::npos)
        << error.what();
  }
}

TEST_F(Async, AnErrorCancelsWhatWaitsAndIsTheOneReported) {
  const Output x = b.placeholder(DType::kFloat32, {1}, "x");
  const Output p = pass(x, "p");  // earlier in canonical order, and would wait for ever
  const Output r = b.op("TestRaise", {x}, {}, "r");
  b.op("Add", {p, r}, {}, "y");
  Session session(b.graph);
  for (int i = 0; i < 3; ++i) {
    const Error error = error_of([&] { session.run({{"x", floats({1})}}, {"y"}); });
    EXPECT_EQ(error.code(), Code::kInvalidArgument) << error.what();
    EXPECT_EQ(gate().waiting(), 0);
  }
}

TEST_F(Async, InImmediateExecutionTheCallerSleeps) {
  std::thread opener([] {
    gate().await_waiting(1);
    gate().open(1);
  });
  const Tensor x = floats({3});
  const DType type = x.dtype();
  const OpInstance op = resolve_op(OpRegistry::instance().get("TestPass"), std::span(&type, 1), {});
  const std::vector<Tensor> y =
      run_immediately(op, std::span(&x, 1), {&ResourceManager::process(), {}, {}}, nullptr);
  opener.join();
  EXPECT_EQ(first(y[0]), 4);
}

TEST_F(Async, AChildOfAForkHasNoneOfTheRunsThatWait) {
  pass(b.placeholder(DType::kFloat32, {1}, "x"), "p");
  Session session(b.graph);
  std::thread runner([&] { session.run({{"x", floats({1})}}, {"p"}); });
  gate().await_waiting(1);
  const int status = test::in_child([&] {
    gate().open(1);  // ends nothing here
    Session own(b.graph);
    return first(own.run({{"x", floats({8})}}, {"p"})[0]) == 9 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  gate().open(1);
  runner.join();
}

// Values that are alive together never share memory, although nodes end in any order.
TEST_F(Async, LifetimesAreSeparatedByDependenciesAlone) {
  std::mt19937 random(7);
  for (int round = 0; round < 30; ++round) {
    GraphBuilder g;
    const Output x = g.placeholder(DType::kFloat32, {1000}, "x");
    std::vector<Output> values{x};
    std::vector<float> expected{1};
    int64_t passes = 0;
    for (int i = 0; i < 60; ++i) {
      const size_t a = random() % values.size(), c = random() % values.size();
      switch (random() % 3) {
        case 0:
          values.push_back(g.op("TestPass", {values[a]}));
          expected.push_back(expected[a] + 1);
          ++passes;
          break;
        case 1:
          values.push_back(g.op("Neg", {values[a]}));
          expected.push_back(-expected[a]);
          break;
        default:
          values.push_back(g.op("Maximum", {values[a], values[c]}));
          expected.push_back(std::max(expected[a], expected[c]));
      }
    }
    g.op("AddN", values, {}, "sum");
    float sum = 0;
    for (const float value : expected) sum += value;
    Session session(g.graph);
    std::thread opener([&] {
      for (int64_t i = 0; i < passes; ++i) {
        gate().open(1);
        if (i % 7 == 0) std::this_thread::yield();
      }
    });
    const Tensor ones = Tensor::vector<float>(std::vector<float>(1000, 1.0f));
    const Tensor y = session.run({{"x", ones}}, {"sum"})[0];
    opener.join();
    for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(y.data<float>()[i], sum) << round;
  }
}

// --- Random runs ---------------------------------------------------------------------------------

// A graph of operations that compute, wait, end at once or fail, and what its sum is.
struct RandomGraph {
  explicit RandomGraph(std::mt19937& random) {
    std::vector<Output> values{g.placeholder(DType::kFloat32, {kUnknown}, "x")};
    std::vector<float> known{1};
    const int nodes = 5 + static_cast<int>(random() % 30);
    for (int i = 0; i < nodes; ++i) add_node(random, values, known);
    g.op("AddN", values, {}, "sum");
    for (const float value : known) sum += value;
  }

  GraphBuilder g;
  float sum = 0;
  bool fails = false;

 private:
  void add_node(std::mt19937& random, std::vector<Output>& values, std::vector<float>& known) {
    const size_t from = random() % values.size();
    const Output x = values[from];
    switch (random() % 12) {
      case 0:
      case 1:
      case 2:
        values.push_back(g.op("TestPass", {x}));
        known.push_back(known[from] + 1);
        return;
      case 3:
        values.push_back(g.op("TestAtOnce", {x}));
        known.push_back(known[from]);
        return;
      case 4:
        values.push_back(g.op("TestOpen", {x}));
        known.push_back(known[from]);
        return;
      case 5:
        if (random() % 8 != 0) return;
        fails = true;
        values.push_back(g.op("TestFail", {x}, {{"how", std::string("late")}}));
        known.push_back(0);
        return;
      default:
        values.push_back(g.op("Neg", {x}));
        known.push_back(-known[from]);
    }
  }
};

// One run of it, which a deadline, a token, the end of the session or an error may end.
void random_run(std::mt19937& random) {
  const RandomGraph graph(random);
  Session session(graph.g.graph);
  CancellationToken token;
  RunOptions options;
  const int64_t end = static_cast<int64_t>(random() % 5);
  if (end == 1) options.timeout_ms = 1 + static_cast<int64_t>(random() % 5);
  if (end == 2) options.token = &token;
  std::atomic<bool> over{false};
  const auto delay = std::chrono::microseconds(random() % 3000);
  std::thread side([&] {
    std::this_thread::sleep_for(delay);
    if (end == 2) token.cancel(Code::kCancelled, "enough");
    if (end == 3) session.close();
    while (end != 2 && end != 3 && !over) {
      gate().open(1);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  const Tensor x = Tensor::vector<float>(std::vector<float>(100 + random() % 100, 1.0f));
  try {
    const Tensor y = session.run({{"x", x}}, {"sum"}, {}, options)[0];
    EXPECT_FALSE(graph.fails);
    EXPECT_EQ(first(y), graph.sum);
  } catch (const Error& error) {
    const bool wanted = (end == 1 && error.code() == Code::kDeadlineExceeded) ||
                        (end == 2 && error.code() == Code::kCancelled) ||
                        (end == 3 && (error.code() == Code::kCancelled ||
                                      error.code() == Code::kFailedPrecondition)) ||
                        (graph.fails && error.code() == Code::kOutOfRange);
    EXPECT_TRUE(wanted) << end << ": " << error.what();
  }
  over = true;
  side.join();
}

TEST_F(Async, AThousandRandomRunsEnd) {
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([thread] {
      std::mt19937 random(thread);
      for (int i = 0; i < 250; ++i) random_run(random);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(gate().waiting(), 0);
}

}  // namespace
}  // namespace treenail
