// SPDX-License-Identifier: Apache-2.0
// A thousand random runs on queues that several sessions' threads share, ended by deadlines,
// tokens, closed queues and closed sessions: none hangs, no element is lost half or given twice,
// and no memory stays behind.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/device/allocator.h"
#include "framework/runtime/run/session.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using test::GraphBuilder;

constexpr int kRows = 3;  // of what is enqueued and dequeued at once

// A queue of pairs (number, 100 floats that are all the number), and what can be done with it.
struct QueueGraph {
  QueueGraph(const char* kind, int64_t capacity) {
    const std::vector<DType> types = {DType::kInt64, DType::kFloat32};
    const std::vector<PartialShape> shapes = {PartialShape(Shape()), PartialShape{100}};
    const Output handle =
        g.op(kind, {}, {{"component_types", types}, {"shapes", shapes}, {"capacity", capacity}},
             "queue");
    const Output one = g.placeholder(DType::kInt64, {}, "one");
    const Output many = g.placeholder(DType::kInt64, {kRows}, "many");
    const Output wide = g.constant(Tensor::vector<int32_t>({100}));
    const Output rows = g.constant(Tensor::vector<int32_t>({kRows, 100}));
    const Output column = g.constant(Tensor::vector<int32_t>({kRows, 1}));
    const auto floats = [&](Output x) { return g.op("Cast", {x}, {{"DstT", DType::kFloat32}}); };
    // The value is computed in the run, so that its memory is the run's until it is stored.
    put("enqueue", "QueueEnqueueV2", handle, one, g.op("BroadcastTo", {floats(one), wide}));
    const Output columns = g.op("Reshape", {floats(many), column});
    put("enqueue_many", "QueueEnqueueManyV2", handle, many, g.op("BroadcastTo", {columns, rows}));
    const Output n = g.constant(Tensor::scalar<int32_t>(kRows));
    take("dequeue", "QueueDequeueV2", {handle}, types);
    take("dequeue_many", "QueueDequeueManyV2", {handle, n}, types);
    take("dequeue_up_to", "QueueDequeueUpToV2", {handle, n}, types);
    g.node("QueueCloseV2", {handle}, {}, "close");
    g.node("QueueCloseV2", {handle}, {{"cancel_pending_enqueues", true}}, "cancel");
    g.op("QueueSizeV2", {handle}, {}, "size");
  }

  void put(const char* name, const char* op, Output handle, Output number, Output value) {
    g.node(op, {handle, number, value}, {}, name);
  }
  void take(const char* name, const char* op, std::vector<Output> inputs,
            const std::vector<DType>& types) {
    Node& node = g.node(op, std::move(inputs), {{"component_types", types}}, name);
    // Something behind it that reads the value.
    g.op("Neg", {{&node, 1}}, {}, concat(name, "_negated"));
  }

  GraphBuilder g;
};

// What the threads know of all elements of one session.
struct Ledger {
  std::mutex mutex;
  std::set<int64_t> tried;  // given to an enqueue, which may have failed
  std::set<int64_t> taken;

  int64_t number() {
    const std::lock_guard lock(mutex);
    const auto next = static_cast<int64_t>(tried.size());
    tried.insert(next);
    return next;
  }
  void take(int64_t number, const float* negated) {
    for (int i = 0; i < 100; ++i) ASSERT_EQ(negated[i], -static_cast<float>(number));
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(tried.contains(number));
    EXPECT_TRUE(taken.insert(number).second) << number << " came twice";
  }
};

class RandomRuns {
 public:
  RandomRuns(Session& session, Ledger& ledger, uint32_t seed)
      : session_(session), ledger_(ledger), random_(seed) {}

  void run(int times) {
    for (int i = 0; i < times; ++i) one_run();
  }

 private:
  // With a deadline always: nobody else may come.
  void one_run() {
    RunOptions options;
    options.timeout_ms = 1 + static_cast<int64_t>(random_() % 8);
    CancellationToken token;
    std::thread canceller;
    if (random_() % 8 == 0) {
      options.token = &token;
      const auto delay = std::chrono::microseconds(random_() % 2000);
      canceller = std::thread([&token, delay] {
        std::this_thread::sleep_for(delay);
        token.cancel(Code::kCancelled, "enough");
      });
    }
    try {
      choose(options);
    } catch (const Error& error) {
      const Code code = error.code();
      EXPECT_TRUE(code == Code::kDeadlineExceeded || code == Code::kCancelled ||
                  code == Code::kOutOfRange || code == Code::kFailedPrecondition)
          << error.what();
    }
    if (canceller.joinable()) canceller.join();
  }

  void choose(const RunOptions& options) {
    switch (random_() % 40) {
      case 0:
        session_.run({}, {}, {random_() % 2 == 0 ? "close" : "cancel"}, options);
        return;
      case 1:
        EXPECT_GE(session_.run({}, {"size"}, {}, options)[0].data<int32_t>()[0], 0);
        return;
      default:
        break;
    }
    switch (random_() % 5) {
      case 0:
      case 1:
        session_.run({{"one", Tensor::scalar(ledger_.number())}}, {}, {"enqueue"}, options);
        return;
      case 2: {
        std::vector<int64_t> numbers;
        for (int i = 0; i < kRows; ++i) numbers.push_back(ledger_.number());
        session_.run({{"many", Tensor::vector<int64_t>(numbers)}}, {}, {"enqueue_many"}, options);
        return;
      }
      default: {
        const char* const names[] = {"dequeue", "dequeue_many", "dequeue_up_to"};
        const std::string name = names[random_() % 3];
        const std::vector<Tensor> got =
            session_.run({}, {name + ":0", name + "_negated"}, {}, options);
        for (int64_t i = 0; i < got[0].num_elements(); ++i)
          ledger_.take(got[0].data<int64_t>()[i], got[1].data<float>() + 100 * i);
      }
    }
  }

  Session& session_;
  Ledger& ledger_;
  std::mt19937 random_;
};

void random_session(const char* kind, uint32_t seed) {
  const QueueGraph graph(kind, seed % 2 == 0 ? 4 : 20);
  Session session(graph.g.graph);
  Ledger ledger;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 5; ++t)
    threads.emplace_back([&, t] { RandomRuns(session, ledger, seed * 8 + t).run(20); });
  if (seed % 3 == 0) {  // the session ends while runs wait
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    session.close();
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(QueueRuns, AThousandEndAndLeaveNothingBehind) {
  random_session("FIFOQueueV2", 0);  // what is made once in a process
  const int64_t before = Allocator::host().stats().bytes_in_use;
  for (uint32_t seed = 1; seed <= 10; ++seed)
    random_session(seed % 2 == 0 ? "FIFOQueueV2" : "RandomShuffleQueueV2", seed);
  EXPECT_EQ(Allocator::host().stats().bytes_in_use, before);
}

}  // namespace
}  // namespace treenail
