// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/queue_elements.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "framework/base/philox.h"
#include "framework/base/system_seed.h"

namespace treenail {
namespace {

class FifoElements final : public QueueElements {
 public:
  int64_t size() const override { return static_cast<int64_t>(elements_.size()); }
  void put(QueueElement element) override { elements_.push_back(std::move(element)); }
  QueueElement take() override {
    QueueElement first = std::move(elements_.front());
    elements_.pop_front();
    return first;
  }
  void give_back(QueueElement element) override { elements_.push_front(std::move(element)); }

 private:
  std::deque<QueueElement> elements_;
};

class ShuffledElements final : public QueueElements {
 public:
  explicit ShuffledElements(const Philox& stream) : stream_(stream) {}
  int64_t size() const override { return static_cast<int64_t>(elements_.size()); }
  void put(QueueElement element) override { elements_.push_back(std::move(element)); }
  // The last one fills the gap.
  QueueElement take() override {
    std::swap(elements_[draw() % elements_.size()], elements_.back());
    QueueElement taken = std::move(elements_.back());
    elements_.pop_back();
    return taken;
  }
  void give_back(QueueElement element) override { put(std::move(element)); }

 private:
  uint32_t draw() {
    if (left_ == 0) {
      block_ = stream_(blocks_++);
      left_ = block_.size();
    }
    return block_[block_.size() - left_--];
  }

  std::vector<QueueElement> elements_;
  const Philox stream_;
  uint64_t blocks_ = 0;  // drawn
  Philox::Block block_ = {};
  size_t left_ = 0;  // of block_
};

bool leaves_later(const QueueElement& a, const QueueElement& b) {
  const int64_t first = *a.values[0].data<int64_t>();
  const int64_t second = *b.values[0].data<int64_t>();
  return first != second ? first > second : a.number > b.number;
}

class PriorityElements final : public QueueElements {
 public:
  int64_t size() const override { return static_cast<int64_t>(heap_.size()); }
  void put(QueueElement element) override {
    heap_.push_back(std::move(element));
    std::push_heap(heap_.begin(), heap_.end(), leaves_later);
  }
  QueueElement take() override {
    std::pop_heap(heap_.begin(), heap_.end(), leaves_later);
    QueueElement first = std::move(heap_.back());
    heap_.pop_back();
    return first;
  }
  void give_back(QueueElement element) override { put(std::move(element)); }

 private:
  std::vector<QueueElement> heap_;
};

}  // namespace

QueueElements::~QueueElements() = default;

std::unique_ptr<QueueElements> fifo_elements() { return std::make_unique<FifoElements>(); }

std::unique_ptr<QueueElements> shuffled_elements(int64_t seed, int64_t seed2) {
  const bool chosen = seed != 0 || seed2 != 0;
  return std::make_unique<ShuffledElements>(
      chosen ? Philox(static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2))
             : Philox(system_seed(), system_seed()));
}

std::unique_ptr<QueueElements> priority_elements() { return std::make_unique<PriorityElements>(); }

}  // namespace treenail
