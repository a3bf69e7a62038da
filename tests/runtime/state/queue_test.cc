// SPDX-License-Identifier: Apache-2.0
// Queues as kernels use them: started operations that end now, later, or cancelled.
#include "framework/runtime/state/queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/philox.h"
#include "framework/runtime/state/resource_manager.h"
#include "framework/runtime/state/variable.h"
#include "framework/tensor/string_element.h"
#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;
using Order = QueueSpec::Order;
using Values = std::vector<Tensor>;

// What an executor holds of a started operation.
class Operation final : public Done::Target {
 public:
  explicit Operation(Values given = {}) : inputs_(given.size() + 1), values_(inputs_ + 8) {
    std::move(given.begin(), given.end(), values_.begin() + 1);
    slots_.resize(inputs_);
    std::iota(slots_.begin(), slots_.end(), 0);
    context_.values_ = values_.data();
    context_.input_slots_ = slots_.data();
    context_.output_slot_ = static_cast<int32_t>(inputs_);
    context_.token_ = &token_;
  }

  template <class F>
  Operation& start(F f) {
    try {
      f(context_, Done(*this, 0));
    } catch (...) {
      ended(0, std::current_exception());
    }
    return *this;
  }
  void ended(int32_t, std::exception_ptr error) noexcept override {
    error_ = std::move(error);
    if (on_end) on_end();
    ++ends_;
  }
  std::function<void()> on_end;
  Tensor& value(int i) { return values_[static_cast<size_t>(i) + 1]; }

  int given() const { return static_cast<int>(inputs_) - 1; }
  int ends() const { return ends_; }
  void cancel() { token_.cancel(Code::kCancelled, "by the test"); }
  // "waits", "ended", or what it failed with.
  std::string state() const {
    if (ends_ == 0) return "waits";
    if (error_ == nullptr) return "ended";
    return error_of([this] { std::rethrow_exception(error_); });
  }
  const Tensor& output(int i = 0) const { return values_[inputs_ + static_cast<size_t>(i)]; }

 private:
  size_t inputs_;
  Values values_;
  std::vector<int32_t> slots_;
  RunContext context_;
  CancellationToken token_;
  std::exception_ptr error_;
  std::atomic<int> ends_ = 0;
};

using OperationPtr = std::unique_ptr<Operation>;

std::vector<DType> dtypes_of(const Queue& queue) {
  std::vector<DType> dtypes;
  for (const HandleInfo& component : queue.spec().components) dtypes.push_back(component.dtype);
  return dtypes;
}

OperationPtr enqueue(Queue& queue, Values values) {
  auto op = std::make_unique<Operation>(std::move(values));
  op->start([&](const RunContext& c, Done done) { queue.enqueue(c, done, op->given()); });
  return op;
}

OperationPtr enqueue_many(Queue& queue, Values values) {
  auto op = std::make_unique<Operation>(std::move(values));
  op->start([&](const RunContext& c, Done done) { queue.enqueue_many(c, done, op->given()); });
  return op;
}

OperationPtr dequeue(Queue& queue) {
  auto op = std::make_unique<Operation>();
  op->start([&](const RunContext& c, Done done) { queue.dequeue(c, done, dtypes_of(queue)); });
  return op;
}

OperationPtr dequeue_many(Queue& queue, int64_t n, bool up_to = false) {
  auto op = std::make_unique<Operation>();
  op->start([&](const RunContext& c, Done done) {
    queue.dequeue_many(c, done, dtypes_of(queue), n, up_to);
  });
  return op;
}

OperationPtr close(Queue& queue, bool cancel = false) {
  auto op = std::make_unique<Operation>();
  op->start([&](const RunContext& c, Done done) { queue.close(c, done, cancel); });
  return op;
}

Tensor number(int64_t value) { return Tensor::scalar(value); }

Tensor numbers(std::vector<int64_t> values) {
  return Tensor::vector(std::span<const int64_t>(values));
}

Tensor counted(int64_t n) {
  std::vector<int64_t> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  return numbers(std::move(values));
}

std::vector<int64_t> list(const Tensor& tensor) {
  const auto values = tensor.values<int64_t>();
  return {values.begin(), values.end()};
}

using List = std::vector<int64_t>;

QueueSpec scalars(int64_t capacity = -1, Order order = Order::kFifo) {
  return {order, {{DType::kInt64, Shape()}}, capacity};
}

IntrusivePtr<Queue> make(QueueSpec spec) { return make_counted<Queue>("q", std::move(spec)); }

// Takes all that is there, one by one.
List drained(Queue& queue) {
  List all;
  while (queue.size() > 0) all.push_back(*dequeue(queue)->output().data<int64_t>());
  return all;
}

// --- Order and room --------------------------------------------------------------------------

TEST(Queue, ElementsLeaveAsTheyCame) {
  const auto queue = make(scalars());
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(enqueue(*queue, {number(i)})->state(), "ended");
  EXPECT_EQ(queue->size(), 5);
  EXPECT_EQ(drained(*queue), (List{0, 1, 2, 3, 4}));
  EXPECT_EQ(queue->size(), 0);
}

TEST(Queue, AnEnqueueWaitsForRoomAndADequeueForAnElement) {
  const auto queue = make(scalars(2));
  const auto first = dequeue(*queue);
  EXPECT_EQ(first->state(), "waits");
  enqueue(*queue, {number(7)});
  EXPECT_EQ(first->state(), "ended");
  EXPECT_EQ(*first->output().data<int64_t>(), 7);
  enqueue(*queue, {number(1)});
  enqueue(*queue, {number(2)});
  const auto late = enqueue(*queue, {number(3)});
  EXPECT_EQ(late->state(), "waits");
  EXPECT_EQ(*dequeue(*queue)->output().data<int64_t>(), 1);
  EXPECT_EQ(late->state(), "ended");
  EXPECT_EQ(drained(*queue), (List{2, 3}));
}

TEST(Queue, BatchesLargerThanTheQueuePassThrough) {
  const auto queue = make(scalars(3));
  const auto in = enqueue_many(*queue, {counted(10)});
  EXPECT_EQ(in->state(), "waits");
  EXPECT_EQ(queue->size(), 3);
  const auto out = dequeue_many(*queue, 8);
  EXPECT_EQ(out->state(), "ended");
  EXPECT_EQ(list(out->output()), (List{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(in->state(), "ended");
  EXPECT_EQ(drained(*queue), (List{8, 9}));
}

TEST(Queue, WhoCameFirstIsServedFirst) {
  const auto queue = make(scalars());
  const auto many = dequeue_many(*queue, 3);
  const auto one = dequeue(*queue);
  const auto two = dequeue(*queue);
  enqueue(*queue, {number(0)});
  enqueue(*queue, {number(1)});
  EXPECT_EQ(many->state() + one->state(), "waitswaits");
  enqueue_many(*queue, {numbers({2, 3})});
  EXPECT_EQ(list(many->output()), (List{0, 1, 2}));
  EXPECT_EQ(*one->output().data<int64_t>(), 3);
  EXPECT_EQ(two->state(), "waits");
  two->cancel();
}

TEST(Queue, NothingIsAskedAndNothingGiven) {
  const auto queue = make({Order::kFifo, {{DType::kInt64, Shape({2})}}});
  const auto none = dequeue_many(*queue, 0);
  EXPECT_EQ(none->state(), "ended");
  EXPECT_EQ(none->output().shape(), Shape({0, 2}));
  EXPECT_EQ(enqueue_many(*queue, {Tensor(DType::kInt64, Shape({0, 2}))})->state(), "ended");
  EXPECT_EQ(queue->size(), 0);
}

// --- Closing -----------------------------------------------------------------------------------

TEST(Queue, AClosedQueueGivesWhatIsLeft) {
  const auto queue = make(scalars());
  enqueue_many(*queue, {counted(3)});
  const auto waits = dequeue_many(*queue, 5);
  EXPECT_FALSE(queue->closed());
  EXPECT_EQ(close(*queue)->state(), "ended");
  EXPECT_TRUE(queue->closed());
  EXPECT_EQ(waits->state(),
            "OutOfRange: FIFOQueue 'q' is closed and has insufficient elements (requested 5, "
            "current size 3)");
  EXPECT_EQ(enqueue(*queue, {number(9)})->state(), "Cancelled: FIFOQueue 'q' is closed");
  EXPECT_EQ(enqueue_many(*queue, {counted(2)})->state(), "Cancelled: FIFOQueue 'q' is closed");
  EXPECT_EQ(list(dequeue_many(*queue, 2)->output()), (List{0, 1}));
  EXPECT_EQ(dequeue_many(*queue, 2)->state().substr(0, 10), "OutOfRange");
  EXPECT_EQ(list(dequeue_many(*queue, 2, true)->output()), (List{2}));
  EXPECT_EQ(dequeue(*queue)->state(),
            "OutOfRange: FIFOQueue 'q' is closed and has insufficient elements (requested 1, "
            "current size 0)");
  EXPECT_EQ(dequeue_many(*queue, 2, true)->state().substr(0, 10), "OutOfRange");
  EXPECT_EQ(close(*queue)->state(), "Cancelled: FIFOQueue 'q' is closed already");
  EXPECT_EQ(close(*queue, true)->state(), "ended");
}

TEST(Queue, AGentleCloseLetsPendingEnqueuesFinish) {
  const auto queue = make(scalars(1));
  enqueue(*queue, {number(0)});
  const auto pending = enqueue_many(*queue, {numbers({1, 2})});
  const auto closing = close(*queue);
  const auto late = enqueue(*queue, {number(3)});
  EXPECT_EQ(closing->state(), "waits");
  EXPECT_FALSE(queue->closed());
  EXPECT_EQ(list(dequeue_many(*queue, 3)->output()), (List{0, 1, 2}));
  EXPECT_EQ(pending->state() + closing->state(), "endedended");
  EXPECT_EQ(late->state(), "Cancelled: FIFOQueue 'q' is closed");
}

TEST(Queue, ACancellingCloseFailsPendingEnqueues) {
  const auto queue = make(scalars(2));
  const auto many = enqueue_many(*queue, {counted(4)});
  const auto one = enqueue(*queue, {number(9)});
  const auto gentle = close(*queue);
  EXPECT_EQ(close(*queue, true)->state(), "ended");
  EXPECT_EQ(many->state(), "Cancelled: FIFOQueue 'q' is closed");
  EXPECT_EQ(one->state(), "Cancelled: FIFOQueue 'q' is closed");
  EXPECT_EQ(gentle->state(), "Cancelled: FIFOQueue 'q' is closed already");
  EXPECT_EQ(drained(*queue), (List{0, 1}));
}

TEST(Queue, ABatchThatWaitsGivesBackWhatItTook) {
  for (const bool by_cancelling : {false, true}) {
    const auto queue = make(scalars(2));
    const auto batch = dequeue_many(*queue, 5);
    enqueue_many(*queue, {counted(4)});
    EXPECT_EQ(queue->size(), 0);
    if (by_cancelling) {
      batch->cancel();
      EXPECT_EQ(batch->state(), "Cancelled: the operation was cancelled");
    } else {
      close(*queue);
      EXPECT_EQ(batch->state().substr(0, 10), "OutOfRange");
    }
    EXPECT_EQ(batch->ends(), 1);
    EXPECT_EQ(queue->size(), 4);  // above its capacity, until they have left
    EXPECT_EQ(drained(*queue), (List{0, 1, 2, 3}));
  }
}

TEST(Queue, WhatIsGivenBackGoesToTheNextInLine) {
  const auto queue = make(scalars());
  const auto batch = dequeue_many(*queue, 3);
  const auto next = dequeue(*queue);
  enqueue_many(*queue, {counted(2)});
  batch->cancel();
  EXPECT_EQ(*next->output().data<int64_t>(), 0);
  EXPECT_EQ(drained(*queue), (List{1}));
}

TEST(Queue, ACancelledEnqueueLeavesWholeElements) {
  const auto queue =
      make({Order::kFifo, {{DType::kInt64, Shape()}, {DType::kInt64, Shape({2})}}, 2});
  Tensor pairs(DType::kInt64, Shape({3, 2}));
  std::iota(pairs.data<int64_t>(), pairs.data<int64_t>() + 6, 0);
  const auto in = enqueue_many(*queue, {counted(3), pairs});
  in->cancel();
  EXPECT_EQ(in->state(), "Cancelled: the operation was cancelled");
  EXPECT_EQ(queue->size(), 2);
  const auto out = dequeue_many(*queue, 2);
  EXPECT_EQ(list(out->output(0)), (List{0, 1}));
  EXPECT_EQ(list(out->output(1)), (List{0, 1, 2, 3}));
}

TEST(Queue, AnOperationOfACancelledRunDoesNotStart) {
  const auto queue = make(scalars());
  Operation op;
  op.cancel();
  op.start([&](const RunContext& c, Done done) { queue->dequeue(c, done, dtypes_of(*queue)); });
  EXPECT_EQ(op.state(), "Cancelled: the operation was cancelled");
}

// --- The kinds of queue ------------------------------------------------------------------------

TEST(Queue, PaddingFillsUpToTheLargest) {
  const auto queue = make({Order::kPaddingFifo,
                           {{DType::kInt64, PartialShape{kUnknown, 2, kUnknown}},
                            {DType::kString, PartialShape{kUnknown}}}});
  const auto put = [&](int64_t rows, int64_t columns, int64_t strings) {
    Tensor block(DType::kInt64, Shape({rows, 2, columns}));
    std::fill_n(block.data<int64_t>(), block.num_elements(), rows * 10 + columns);
    Tensor words(DType::kString, Shape({strings}));
    for (int64_t i = 0; i < strings; ++i) words.data<StringElement>()[i] = StringElement("w");
    EXPECT_EQ(enqueue(*queue, {block, words})->state(), "ended");
  };
  put(1, 3, 0);
  put(2, 1, 2);
  put(0, 2, 1);
  const auto out = dequeue_many(*queue, 3);
  ASSERT_EQ(out->output(0).shape(), Shape({3, 2, 2, 3}));
  EXPECT_EQ(list(out->output(0).rows(0, 1)), (List{13, 13, 13, 13, 13, 13, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(list(out->output(0).rows(1, 2)), (List{21, 0, 0, 21, 0, 0, 21, 0, 0, 21, 0, 0}));
  EXPECT_EQ(list(out->output(0).rows(2, 3)), List(12, 0));
  ASSERT_EQ(out->output(1).shape(), Shape({3, 2}));
  std::string words;
  for (int i = 0; i < 6; ++i) {
    words += out->output(1).data<StringElement>()[i].view();
    words += '.';
  }
  EXPECT_EQ(words, "..w.w.w..");
  EXPECT_EQ(dequeue_many(*queue, 0)->output(0).shape(), Shape({0, 0, 2, 0}));
}

// The same draws, written out: TensorFlow 1's stream word by word, the last element into the gap.
List shuffled(List elements, uint64_t seed, uint64_t seed2) {
  List out;
  const Philox stream(seed, seed2);
  for (uint64_t draw = 0; !elements.empty(); ++draw) {
    const size_t at = stream(draw / 4)[draw % 4] % elements.size();
    out.push_back(elements[at]);
    elements[at] = elements.back();
    elements.pop_back();
  }
  return out;
}

QueueSpec shuffling(int64_t seed, int64_t seed2, int64_t min_after_dequeue = 0) {
  QueueSpec spec = scalars(-1, Order::kRandomShuffle);
  spec.seed = seed;
  spec.seed2 = seed2;
  spec.min_after_dequeue = min_after_dequeue;
  return spec;
}

TEST(Queue, ARandomOrderIsThatOfItsSeeds) {
  const auto order = [](int64_t seed, int64_t seed2) {
    const auto queue = make(shuffling(seed, seed2));
    enqueue_many(*queue, {counted(100)});
    return list(dequeue_many(*queue, 100)->output());
  };
  EXPECT_EQ(order(3, 5), shuffled(list(counted(100)), 3, 5));
  EXPECT_EQ(order(3, 5), order(3, 5));
  EXPECT_NE(order(3, 5), order(3, 6));
  EXPECT_NE(order(0, 0), order(0, 0));
  List all = order(0, 0);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, list(counted(100)));
}

TEST(Queue, SomeStayUntilTheQueueIsClosed) {
  const auto queue = make(shuffling(1, 2, 3));
  enqueue_many(*queue, {counted(4)});
  EXPECT_EQ(dequeue(*queue)->state(), "ended");
  const auto waits = dequeue_many(*queue, 2);
  EXPECT_EQ(waits->state(), "waits");
  enqueue(*queue, {number(4)});
  EXPECT_EQ(waits->state(), "waits");
  close(*queue);
  EXPECT_EQ(waits->state(), "ended");
  EXPECT_EQ(drained(*queue).size(), 2U);
}

TEST(Queue, TheLowestPriorityLeavesFirstAndOfEqualOnesTheFirst) {
  const auto queue = make({Order::kPriority, {{DType::kInt64, Shape()}, {DType::kInt64, Shape()}}});
  enqueue_many(*queue, {numbers({5, -1, 5, 0, -1, 5}), counted(6)});
  const auto waits = dequeue_many(*queue, 7);  // takes them, and gives them back
  EXPECT_EQ(queue->size(), 0);
  waits->cancel();
  const auto out = dequeue_many(*queue, 6);
  EXPECT_EQ(list(out->output(0)), (List{-1, -1, 0, 5, 5, 5}));
  EXPECT_EQ(list(out->output(1)), (List{1, 4, 3, 0, 2, 5}));
}

// --- Memory --------------------------------------------------------------------------------------

TEST(Queue, AnElementHasMemoryOfItsOwn) {
  const auto queue = make({Order::kFifo, {{DType::kInt64, PartialShape()}}});
  Tensor batch = counted(1000);
  enqueue_many(*queue, {batch});
  EXPECT_TRUE(batch.exclusive());
  EXPECT_LT(dequeue(*queue)->output().buffer()->bytes(), 64U);
  enqueue(*queue, {batch.rows(0, 10)});
  drained(*queue);
  EXPECT_TRUE(batch.exclusive());
  List fed = {1, 2, 3};
  const Tensor borrowed(DType::kInt64, Shape({3}),
                        Buffer::borrow(
                            fed.data(), sizeof(int64_t) * 3, [](void*) {}, nullptr));
  enqueue(*queue, {borrowed});
  fed[0] = 9;
  EXPECT_EQ(list(dequeue(*queue)->output()), (List{1, 2, 3}));
  const void* const bytes = batch.raw();
  enqueue(*queue, {std::move(batch)});
  const auto out = dequeue(*queue);
  EXPECT_EQ(out->output().raw(), bytes);  // neither way copies
}

TEST(Queue, WhatARequestHeldIsFreeWhenItsEndIsTold) {
  const auto queue = make(scalars(2));
  const Tensor batch = counted(3);
  Operation op({batch});
  bool free = false;
  op.on_end = [&] {
    op.value(0) = Tensor();
    free = batch.buffer()->unique();
  };
  op.start([&](const RunContext& c, Done done) { queue->enqueue_many(c, done, 1); });
  EXPECT_EQ(op.state(), "waits");
  dequeue(*queue);
  EXPECT_EQ(op.state(), "ended");
  EXPECT_TRUE(free);
}

TEST(Queue, AllDtypesOfElements) {
  const auto queue =
      make({Order::kFifo, {{DType::kBool, Shape({2})}, {DType::kResource, Shape()}}});
  Tensor flags(DType::kBool, Shape({2}));
  flags.data<bool>()[0] = true;
  flags.data<bool>()[1] = false;
  Tensor handle(DType::kResource, Shape());
  handle.data<ResourceElement>()->object = queue;
  enqueue(*queue, {flags, handle});
  enqueue(*queue, {flags, handle});
  const auto out = dequeue_many(*queue, 2);
  EXPECT_EQ(out->output(0).shape(), Shape({2, 2}));
  EXPECT_TRUE(out->output(0).data<bool>()[2]);
  EXPECT_EQ(out->output(1).data<ResourceElement>()[1].object.get(), queue.get());
}

// --- Many ----------------------------------------------------------------------------------------

TEST(Queue, OneHundredThousandElements) {
  const auto queue = make(scalars());
  for (int64_t i = 0; i < 50'000; ++i) enqueue(*queue, {number(i)});
  enqueue_many(*queue, {counted(50'000)});
  EXPECT_EQ(queue->size(), 100'000);
  const auto out = dequeue_many(*queue, 100'000);
  EXPECT_EQ(list(out->output().rows(50'000, 100'000)), list(counted(50'000)));
}

TEST(Queue, TenThousandRequestsWait) {
  const auto queue = make(scalars());
  std::vector<OperationPtr> waiting;
  for (int i = 0; i < 10'000; ++i) waiting.push_back(dequeue(*queue));
  for (int i = 1; i < 10'000; i += 2) waiting[static_cast<size_t>(i)]->cancel();
  enqueue_many(*queue, {counted(5'000)});
  for (size_t i = 0; i < 10'000; i += 2)
    ASSERT_EQ(*waiting[i]->output().data<int64_t>(), static_cast<int64_t>(i / 2));
  for (const OperationPtr& op : waiting) ASSERT_EQ(op->ends(), 1);
}

TEST(Queue, ThreadsPutInAndTakeOut) {
  for (const Order order : {Order::kFifo, Order::kRandomShuffle}) {
    const auto queue = make(scalars(7, order));
    constexpr int kThreads = 4;
    constexpr int64_t kEach = 500;
    std::vector<List> taken(kThreads);
    std::vector<std::thread> threads;
    const auto until_ended = [](const OperationPtr& op) {
      while (op->ends() == 0) std::this_thread::yield();
    };
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int64_t i = 0; i < kEach; ++i) until_ended(enqueue(*queue, {number(t * kEach + i)}));
      });
      threads.emplace_back([&, t] {
        for (int64_t i = 0; i < kEach; i += 5) {
          const auto out = dequeue_many(*queue, 5);
          until_ended(out);
          for (const int64_t value : list(out->output()))
            taken[static_cast<size_t>(t)].push_back(value);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    List all;
    for (const List& of_one : taken) all.insert(all.end(), of_one.begin(), of_one.end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, list(counted(kThreads * kEach)));
  }
}

// --- Wrong inputs --------------------------------------------------------------------------------

std::string of_spec(QueueSpec spec) {
  return error_of([&] { make(std::move(spec)); });
}

TEST(Queue, WrongSpecs) {
  EXPECT_EQ(of_spec(scalars(0)),
            "InvalidArgument: capacity = 0 has room for no element; 1 or more, or -1, is needed");
  QueueSpec spec = shuffling(0, 0, -1);
  EXPECT_EQ(of_spec(spec), "InvalidArgument: min_after_dequeue = -1 must not be negative");
  spec.min_after_dequeue = spec.capacity = 4;
  EXPECT_EQ(of_spec(spec),
            "InvalidArgument: min_after_dequeue = 4 must be < capacity = 4: nothing could leave "
            "the queue");
  EXPECT_EQ(of_spec({Order::kPaddingFifo, {{DType::kInt64, PartialShape()}}}),
            "InvalidArgument: component 0 has no shape: a PaddingFIFOQueue needs the rank of each "
            "component");
}

TEST(Queue, WrongElements) {
  const auto queue = make({Order::kFifo, {{DType::kInt64, Shape({3})}, {DType::kInt64, Shape()}}});
  const std::string who = "InvalidArgument: FIFOQueue 'q': ";
  EXPECT_EQ(enqueue(*queue, {counted(3)})->state(),
            who + "Wrong number of components in tuple. Expected 2, got 1");
  EXPECT_EQ(enqueue(*queue, {counted(3), Tensor::scalar(1.0f)})->state(),
            who + "Type mismatch in tuple component 1. Expected int64, got float32");
  EXPECT_EQ(enqueue(*queue, {counted(2), number(1)})->state(),
            who + "Shape mismatch in tuple component 0. Expected [3], got [2]");
  EXPECT_EQ(enqueue_many(*queue, {counted(3), counted(3)})->state(),
            who +
                "Shape mismatch in tuple component 0. Expected [?,3] with one row per element, "
                "got [3]");
  EXPECT_EQ(
      enqueue_many(*queue, {Tensor::zeros(DType::kInt64, Shape({2, 3})), counted(3)})->state(),
      who +
          "All input tensors must have the same size in the 0th dimension. Component 1 has "
          "3, and should have 2");
  EXPECT_EQ(dequeue_many(*queue, -1)->state(),
            who + "n = -1 elements are asked for; 0 or more are needed");
  const auto shapeless = make({Order::kFifo, {{DType::kInt64, PartialShape()}}});
  EXPECT_EQ(
      enqueue_many(*shapeless, {number(1)})->state(),
      who + "Shape mismatch in tuple component 0. Expected ? with one row per element, got []");
  EXPECT_EQ(dequeue_many(*shapeless, 1)->state(),
            who +
                "DequeueMany and DequeueUpTo require the components to have specified shapes, "
                "and these have [?]");
}

TEST(Queue, WrongHandles) {
  EXPECT_EQ(
      error_of([] { queue_from(number(1)); }),
      "InvalidArgument: a queue's handle is needed (a scalar of dtype resource), got int64[]");
  Tensor handle(DType::kResource, Shape());
  EXPECT_EQ(error_of([&] { queue_from(handle); }),
            "InvalidArgument: the handle refers to nothing; a queue's handle is needed");
  handle.data<ResourceElement>()->object = make_counted<Variable>("v", DType::kInt64, Shape());
  EXPECT_EQ(error_of([&] { queue_from(handle); }),
            "InvalidArgument: the handle refers to a Variable; a queue's handle is needed");
  handle.data<ResourceElement>()->object = make(scalars());
  EXPECT_EQ(error_of([&] { variable_from(handle); }),
            "InvalidArgument: the handle refers to a FIFOQueue; a variable's handle is needed");
}

TEST(Queue, ANameMeansOneQueue) {
  ResourceManager resources;
  const auto named = [&](const QueueSpec& spec, const char* name = "shared") {
    return error_of([&] { named_queue(resources, "", name, spec); });
  };
  const auto queue = named_queue(resources, "", "shared", scalars(4));
  EXPECT_EQ(named_queue(resources, "", "shared", scalars(4)).get(), queue.get());
  EXPECT_NE(named_queue(resources, "other", "shared", scalars(4)).get(), queue.get());
  const std::string who = "InvalidArgument: Shared queue 'shared' has ";
  EXPECT_EQ(named(scalars(5)), who + "capacity 4 but requested capacity was 5");
  EXPECT_EQ(named(scalars(4, Order::kPaddingFifo)),
            who + "type FIFOQueue but requested type was PaddingFIFOQueue");
  EXPECT_EQ(named({Order::kFifo, {{DType::kBool, Shape()}}, 4}),
            who + "component types [int64] but requested component types was [bool]");
  EXPECT_EQ(named({Order::kFifo, {{DType::kInt64, Shape({2})}}, 4}),
            who + "component shapes [[]] but requested component shapes was [[2]]");
  named_queue(resources, "", "mixed", shuffling(1, 2, 3));
  EXPECT_EQ(named(shuffling(1, 2, 4), "mixed"),
            "InvalidArgument: Shared queue 'mixed' has min_after_dequeue 3 but requested "
            "min_after_dequeue was 4");
  EXPECT_EQ(named(shuffling(1, 9, 3), "mixed"),
            "InvalidArgument: Shared queue 'mixed' has seed 1 and 2 but requested seed was 1 and "
            "9");
  EXPECT_EQ(named(shuffling(0, 0, 3), "mixed"), "no error");
}

}  // namespace
}  // namespace treenail
