// SPDX-License-Identifier: Apache-2.0
// Bodies that wait, overlap and call themselves, in runs of several threads: for the thread
// sanitizer as well. tests/python/test_waiting_bodies.py has more.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/thread_pool.h"
#include "framework/graph/function.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/kernel/async_kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/run/session.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using test::GraphBuilder;

constexpr DType kInt = DType::kInt32;

// Output = input, from another thread and some time later.
class LaterKernel final : public AsyncKernel {
 public:
  void start(RunContext c, Done done) const override {
    std::thread([c, done]() mutable {
      const Tensor x = c.input(0);
      std::this_thread::sleep_for(std::chrono::microseconds(*x.data<int32_t>() % 7 * 30));
      c.set_output(0, x);
      done();
    }).detach();
  }
};

// Output = input, after some work; how many at once.
std::atomic<int> busy{0}, most_busy{0};
void work(RunContext& c) {
  int most = most_busy.load();
  for (const int now = ++busy; now > most && !most_busy.compare_exchange_weak(most, now);) {
  }
  const int32_t x = *c.input(0).data<int32_t>();
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(x % 5 * 20);
  while (std::chrono::steady_clock::now() < end) {
  }
  *c.output(0).data<int32_t>() = x;
  --busy;
}

void register_ops() {
  static bool registered = false;  // where tests are repeated
  if (std::exchange(registered, true)) return;
  OpRegistry& r = OpRegistry::instance();
  r.op("TestBusy", HostAccess::kNone)
      .input("x: int32")
      .output("y: int32")
      .shape([](ShapeContext& c) { c.set_output(0, c.input(0)); })
      .not_differentiable()
      .doc("For tests.");
  r.op("TestLater", HostAccess::kNone)
      .input("x: int32")
      .output("y: int32")
      .asynchronous()
      .shape([](ShapeContext& c) { c.set_output(0, c.input(0)); })
      .not_differentiable()
      .doc("For tests.");
  r.finish("test");
  KernelRegistry::instance().add("TestLater", {},
                                 [](const PrepareContext&) -> std::unique_ptr<Kernel> {
                                   return std::make_unique<LaterKernel>();
                                 });
  KernelRegistry::instance().add("TestBusy", {},
                                 [](const PrepareContext&) { return make_kernel(work, 40'000); });
}

class Bodies : public ::testing::Test {
 protected:
  using Make = std::function<std::vector<Output>(GraphBuilder&, const std::vector<Output>&)>;
  static void SetUpTestSuite() { register_ops(); }
  void SetUp() override {
    threads_ = ThreadPool::instance().num_threads();
    ThreadPool::instance().set_num_threads(4);
  }
  void TearDown() override { ThreadPool::instance().set_num_threads(threads_); }

  static Output number(GraphBuilder& g, int32_t value) {
    return g.constant(Tensor::scalar<int32_t>(value));
  }

  // A function of as many numbers.
  void function(const std::string& name, int arguments, const Make& make) {
    GraphBuilder body;
    auto made = std::make_shared<Function>();
    made->name = name;
    std::vector<Output> inputs;
    for (int i = 0; i < arguments; ++i) {
      const std::string input = concat("a", i);
      inputs.push_back(body.placeholder(kInt, PartialShape(Shape()), input));
      made->inputs.push_back({input, kInt, PartialShape(Shape())});
      made->input_nodes.push_back(input);
    }
    for (const Output& value : make(body, inputs)) {
      const DType dtype = value.node->op().output_type(value.index);
      made->outputs.push_back({concat("r", made->outputs.size()), dtype, PartialShape(Shape())});
      made->output_values.push_back(to_text(value));
    }
    made->body = body.graph;
    g.graph->functions()[name] = made;
  }

  static NamedAttrs choice(const std::string& yes, const std::string& no, size_t values) {
    return {{"Tin", std::vector<DType>(values, kInt)},
            {"Tout", std::vector<DType>{kInt}},
            {"then_branch", FunctionAttr{yes}},
            {"else_branch", FunctionAttr{no}},
            {"output_shapes", std::vector<PartialShape>{PartialShape(Shape())}}};
  }

  // A loop of i from 0 to below n, and of a sum.
  Node& loop(const std::string& name, int32_t n, int64_t parallel, const Make& step) {
    function(name + "_cond", 2, [&](GraphBuilder& b, const std::vector<Output>& v) {
      return std::vector<Output>{b.op("Less", {v[0], number(b, n)})};
    });
    function(name + "_body", 2, [&](GraphBuilder& b, const std::vector<Output>& v) {
      std::vector<Output> next = step(b, v);
      next.insert(next.begin(), b.op("Add", {v[0], number(b, 1)}));
      return next;
    });
    const PartialShape scalar{Shape()};
    return g.node("While", {number(g, 0), number(g, 0)},
                  {{"T", std::vector<DType>{kInt, kInt}},
                   {"cond", FunctionAttr{name + "_cond"}},
                   {"body", FunctionAttr{name + "_body"}},
                   {"parallel_iterations", parallel},
                   {"output_shapes", std::vector<PartialShape>{scalar, scalar}}},
                  name);
  }

  static Output queue(GraphBuilder& b, const char* name) {
    return b.op("FIFOQueueV2", {},
                {{"component_types", std::vector<DType>{kInt}},
                 {"shapes", std::vector<PartialShape>{PartialShape(Shape())}},
                 {"capacity", int64_t{1}},
                 {"shared_name", std::string(name)}},
                name);
  }

  // The same runs in several threads, each of a session of its own.
  void everywhere(const std::function<void(Session&)>& work) {
    std::vector<std::thread> callers;
    for (int i = 0; i < 3; ++i) {
      callers.emplace_back([&] {
        Session session(g.graph);
        for (int k = 0; k < 8; ++k) work(session);
      });
    }
    for (std::thread& caller : callers) caller.join();
  }

  static int32_t value(const Tensor& t) { return *t.data<int32_t>(); }

  GraphBuilder g;

 private:
  int threads_ = 0;
};

TEST_F(Bodies, LoopsThatWaitForEachOther) {
  loop("ping", 20, 10, [&](GraphBuilder& b, const std::vector<Output>& v) {
    Node& put = b.node("QueueEnqueueV2", {queue(b, "there"), v[0]},
                       {{"Tcomponents", std::vector<DType>{kInt}}});
    const Output taken = b.op("QueueDequeueV2", {queue(b, "back")},
                              {{"component_types", std::vector<DType>{kInt}}}, "", {&put});
    return std::vector<Output>{b.op("Add", {v[1], taken})};
  });
  loop("pong", 20, 10, [&](GraphBuilder& b, const std::vector<Output>& v) {
    const Output taken = b.op("QueueDequeueV2", {queue(b, "there")},
                              {{"component_types", std::vector<DType>{kInt}}});
    Node& put = b.node("QueueEnqueueV2", {queue(b, "back"), b.op("Mul", {taken, number(b, 2)})},
                       {{"Tcomponents", std::vector<DType>{kInt}}});
    return std::vector<Output>{b.op("Identity", {v[1]}, {}, "", {&put})};
  });
  everywhere([](Session& session) {
    const std::vector<Tensor> got = session.run({}, {"ping:1", "pong:0", "pong:1"});
    EXPECT_EQ(value(got[0]), 380);
    EXPECT_EQ(value(got[1]), 20);
  });
}

TEST_F(Bodies, ATreeOfCalls) {
  const auto call = [](GraphBuilder& b, Output n) {
    return b.op("If", {b.op("Greater", {n, number(b, 1)}), n}, choice("both", "same", 1));
  };
  function("same", 1, [](GraphBuilder& b, const std::vector<Output>& v) {
    return std::vector<Output>{b.op("Identity", {v[0]})};
  });
  function("both", 1, [&](GraphBuilder& b, const std::vector<Output>& v) {
    const Output less = call(b, b.op("Sub", {v[0], number(b, 1)}));
    const Output least = call(b, b.op("Sub", {v[0], number(b, 2)}));
    return std::vector<Output>{b.op("Add", {less, least})};
  });
  g.op("Identity", {call(g, g.placeholder(kInt, PartialShape(Shape()), "n"))}, {}, "y");
  everywhere([](Session& session) {
    EXPECT_EQ(value(session.run({{"n", Tensor::scalar<int32_t>(12)}}, {"y"})[0]), 144);
  });
}

TEST_F(Bodies, RecursionEndsWithTheClassAndThePath) {
  const auto call = [](GraphBuilder& b, Output n) {
    return b.op("If", {b.op("Greater", {n, number(b, 0)}), n}, choice("step", "end", 1), "call");
  };
  function("end", 1, [](GraphBuilder& b, const std::vector<Output>& v) {
    return std::vector<Output>{b.op("Identity", {v[0]})};
  });
  function("step", 1, [&](GraphBuilder& b, const std::vector<Output>& v) {
    return std::vector<Output>{b.op("Add", {v[0], call(b, b.op("Sub", {v[0], number(b, 1)}))})};
  });
  g.op("Identity", {call(g, g.placeholder(kInt, PartialShape(Shape()), "n"))}, {}, "y");
  Session session(g.graph);
  EXPECT_EQ(value(session.run({{"n", Tensor::scalar<int32_t>(9990)}}, {"y"})[0]), 9990 * 9991 / 2);
  try {
    session.run({{"n", Tensor::scalar<int32_t>(20000)}}, {"y"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kResourceExhausted);
    EXPECT_NE(error.message().find("9994 more calls"), std::string::npos) << error.message();
    EXPECT_LT(error.message().size(), 500u);
  }
}

TEST_F(Bodies, IterationsThatOverlapGiveTheSame) {
  for (const int64_t parallel : {1, 2, 8}) {
    loop(concat("loop", parallel), 40, parallel,
         [&](GraphBuilder& b, const std::vector<Output>& v) {
           const Output late = b.op("TestLater", {v[0]});
           const Output mixed = b.op("Add", {b.op("Mul", {v[1], number(b, 3)}), late});
           return std::vector<Output>{b.op("TestLater", {b.op("Mod", {mixed, number(b, 101)})})};
         });
  }
  int32_t expected = 0;
  for (int32_t i = 0; i < 40; ++i) expected = (expected * 3 + i) % 101;
  everywhere([&](Session& session) {
    for (const Tensor& got : session.run({}, {"loop1:1", "loop2:1", "loop8:1"}))
      EXPECT_EQ(value(got), expected);
  });
}

TEST_F(Bodies, IterationsThatOnlyComputeOverlapAndGiveTheSame) {
  for (const int64_t parallel : {1, 2, 8}) {
    loop(concat("loop", parallel), 40, parallel,
         [&](GraphBuilder& b, const std::vector<Output>& v) {
           const Output made = b.op("TestBusy", {b.op("TestBusy", {v[0]})});
           const Output mixed = b.op("Add", {b.op("Mul", {v[1], number(b, 3)}), made});
           return std::vector<Output>{b.op("Mod", {mixed, number(b, 101)})};
         });
  }
  int32_t expected = 0;
  for (int32_t i = 0; i < 40; ++i) expected = (expected * 3 + i) % 101;
  Session session(g.graph);
  const auto run = [&](const char* fetch) {
    EXPECT_EQ(value(session.run({}, {fetch})[0]), expected);
  };
  most_busy = 0;
  run("loop1:1");
  EXPECT_EQ(most_busy, 1);
  for (int k = 0; k < 1000 && most_busy < 2; ++k) run("loop8:1");
  EXPECT_GE(most_busy, 2);
  everywhere([&](Session& own) {
    for (const Tensor& got : own.run({}, {"loop1:1", "loop2:1", "loop8:1"}))
      EXPECT_EQ(value(got), expected);
  });
}

TEST_F(Bodies, DeadlinesEndIterationsThatOverlap) {
  for (const char* op : {"TestLater", "TestBusy"}) {
    loop(op, 1 << 30, 8, [&](GraphBuilder& b, const std::vector<Output>& v) {
      return std::vector<Output>{b.op("Add", {v[1], b.op(op, {v[0]})})};
    });
    everywhere([&](Session& session) {
      RunOptions options;
      options.timeout_ms = 5;
      try {
        session.run({}, {concat(op, ":1")}, {}, options);
        FAIL();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::kDeadlineExceeded) << error.message();
      }
    });
  }
}

TEST_F(Bodies, TheFirstIterationThatFailsIsTold) {
  for (const char* op : {"TestLater", "TestBusy"}) {
    loop(op, 40, 8, [&](GraphBuilder& b, const std::vector<Output>& v) {
      const Output given = b.op(op, {v[0]});
      const Output by = b.op("Sub", {v[0], number(b, 17)});
      return std::vector<Output>{
          b.op("Add", {v[1], b.op("FloorDiv", {given, by}, {}, "division")})};
    });
    const std::string expected = concat("[While node \"", op, "\"] iteration 17: [FloorDiv node");
    everywhere([&](Session& session) {
      try {
        session.run({}, {concat(op, ":1")});
        FAIL();
      } catch (const Error& error) {
        EXPECT_EQ(error.message().find(expected), 0u) << error.message();
      }
    });
  }
}

}  // namespace
}  // namespace treenail
