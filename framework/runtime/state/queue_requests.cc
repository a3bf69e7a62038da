// SPDX-License-Identifier: Apache-2.0
// What runs ask of a queue. Values are checked, and what is kept is copied where it has to be,
// before the lock is taken; rows are cut out as they fit, so that a batch that waits is not there
// twice.
#include <utility>

#include "framework/base/error.h"
#include "framework/runtime/state/queue.h"
#include "framework/runtime/state/queue_batch.h"
#include "framework/runtime/state/queue_elements.h"
#include "framework/runtime/state/stored_value.h"

namespace treenail {
namespace {

constexpr int kIn = 0;
constexpr int kOut = 1;

}  // namespace

class Queue::Enqueue final : public Request {
 public:
  Enqueue(Queue& queue, const RunContext& c, Done done, QueueElement element)
      : Request(c, done), queue_(queue), element_(std::move(element)) {}

 private:
  Progress attempt() override {
    queue_.check_open();
    if (queue_.full()) return Progress::kNone;
    queue_.put(std::move(element_));
    return Progress::kEnded;
  }

  Queue& queue_;
  QueueElement element_;
};

class Queue::EnqueueMany final : public Request {
 public:
  EnqueueMany(Queue& queue, const RunContext& c, Done done, std::vector<Tensor> batches,
              int64_t rows)
      : Request(c, done), queue_(queue), batches_(std::move(batches)), rows_(rows) {}

 private:
  Progress attempt() override {
    queue_.check_open();
    const int64_t before = next_;
    while (next_ < rows_ && !queue_.full()) queue_.put(element_of(batches_, next_++));
    if (next_ == rows_) return Progress::kEnded;
    return next_ > before ? Progress::kAdvanced : Progress::kNone;
  }

  Queue& queue_;
  const std::vector<Tensor> batches_;
  const int64_t rows_;
  int64_t next_ = 0;
};

class Queue::Dequeue final : public Request {
 public:
  Dequeue(Queue& queue, const RunContext& c, Done done) : Request(c, done), queue_(queue) {}

 private:
  Progress attempt() override {
    const int64_t there = queue_.elements_->size();
    if (queue_.closed_ && there == 0) queue_.throw_insufficient(1, there);
    if (queue_.available() == 0) return Progress::kNone;
    QueueElement element = queue_.elements_->take();
    for (size_t i = 0; i < element.values.size(); ++i)
      context().set_output(static_cast<int>(i), std::move(element.values[i]));
    return Progress::kEnded;
  }

  Queue& queue_;
};

class Queue::DequeueMany final : public Request {
 public:
  DequeueMany(Queue& queue, const RunContext& c, Done done, int64_t n, bool up_to)
      : Request(c, done), queue_(queue), n_(n), up_to_(up_to) {}

  void set_outputs() {
    const std::vector<HandleInfo>& components = queue_.spec_.components;
    std::vector<Tensor> batches;
    for (size_t i = 0; i < components.size(); ++i)
      batches.push_back(batch_of(taken_, i, components[i].dtype, components[i].shape));
    for (size_t i = 0; i < batches.size(); ++i)
      context().set_output(static_cast<int>(i), std::move(batches[i]));
  }

 private:
  // What is left of a closed queue is all that will ever be there: enqueues before the close have
  // ended, and no later dequeue holds any.
  Progress attempt() override {
    if (queue_.closed_) settle_for(static_cast<int64_t>(taken_.size()) + queue_.elements_->size());
    const size_t before = taken_.size();
    while (taken() < n_ && queue_.available() > 0) taken_.push_back(queue_.elements_->take());
    if (taken() == n_) {
      set_outputs();
      return Progress::kEnded;
    }
    return taken_.size() > before ? Progress::kAdvanced : Progress::kNone;
  }

  void settle_for(int64_t there) {
    if (there >= n_) return;
    if (!up_to_ || there == 0) queue_.throw_insufficient(n_, there);
    n_ = there;
  }

  void withdraw() noexcept override {
    for (; !taken_.empty(); taken_.pop_back())
      queue_.elements_->give_back(std::move(taken_.back()));
  }

  int64_t taken() const { return static_cast<int64_t>(taken_.size()); }

  Queue& queue_;
  int64_t n_;
  const bool up_to_;
  std::vector<QueueElement> taken_;
};

class Queue::Close final : public Request {
 public:
  Close(Queue& queue, const RunContext& c, Done done) : Request(c, done), queue_(queue) {}

 private:
  Progress attempt() override {
    if (queue_.closed_) throw treenail::cancelled(queue_.called(), " is closed already");
    queue_.closed_ = true;
    return Progress::kEnded;
  }

  Queue& queue_;
};

void Queue::enqueue(const RunContext& c, Done done, int values) {
  QueueElement element{given(c, values)};
  check_element(element.values);
  for (Tensor& value : element.values) value = stored_value(value);
  submit(kIn, std::make_unique<Enqueue>(*this, c, done, std::move(element)));
}

void Queue::enqueue_many(const RunContext& c, Done done, int values) {
  std::vector<Tensor> batches = given(c, values);
  const int64_t rows = check_batches(batches);
  if (rows == 0) return done();
  submit(kIn, std::make_unique<EnqueueMany>(*this, c, done, std::move(batches), rows));
}

void Queue::dequeue(const RunContext& c, Done done, std::span<const DType> dtypes) {
  check_dtypes(dtypes);
  submit(kOut, std::make_unique<Dequeue>(*this, c, done));
}

void Queue::dequeue_many(const RunContext& c, Done done, std::span<const DType> dtypes, int64_t n,
                         bool up_to) {
  check_dtypes(dtypes);
  check_batches_can_be_made();
  if (n < 0)
    throw invalid_argument(called(), ": n = ", n, " elements are asked for; 0 or more are needed");
  auto request = std::make_unique<DequeueMany>(*this, c, done, n, up_to);
  if (n > 0) return submit(kOut, std::move(request));
  request->set_outputs();
  done();
}

void Queue::close(const RunContext& c, Done done, bool cancel) {
  if (!cancel) return submit(kIn, std::make_unique<Close>(*this, c, done));
  change([this] { closed_ = true; });
  done();
}

}  // namespace treenail
