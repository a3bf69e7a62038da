// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/receives_some.h"

#include <deque>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"

namespace treenail {

class ReceivesSome::Batch final : public LaterWork, public std::enable_shared_from_this<Batch> {
 public:
  Batch(ReceivesSome& all, const RpcAsked& asked, const protocol::ReceiveSomeRequest& request)
      : asked_(asked), all_(all), step_(request.step) {
    for (const std::string& key : request.keys) slots_.emplace_back(*this, key);
  }

  void begin() {
    std::exception_ptr error;
    size_t asked = 0;
    try {
      for (; asked < slots_.size(); ++asked)
        all_.worker_.receive({step_, slots_[asked].key}, slots_[asked]);
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    if (error != nullptr) error_ = error;
    for (size_t i = asked; i < slots_.size(); ++i) slots_[i].forgotten = true;
    forgotten_ = slots_.size() - asked;
    begun_ = true;
    if (arrived_ > 0 || forgotten_ > 0 || unwanted_) finish();
  }

  // Answers with what is there, and has the others forgotten; those that are just coming are waited
  // for.
  void run() noexcept override {
    const std::lock_guard lock(mutex_);
    unwanted_ = true;
    if (begun_) finish();
  }

 private:
  struct Slot final : Rendezvous::Receiver {
    Slot(Batch& batch, std::string key) : batch(batch), key(std::move(key)) {}
    void received(const Tensor* value, std::exception_ptr error) noexcept override {
      batch.received(*this, value, error);
    }
    Batch& batch;
    const std::string key;
    Tensor value;
    bool forgotten = false;
  };

  void received(Slot& slot, const Tensor* value, const std::exception_ptr& error) {
    const std::shared_ptr<Batch> self = shared_from_this();
    const std::lock_guard lock(mutex_);
    if (error == nullptr) slot.value = *value;
    if (error != nullptr && error_ == nullptr) error_ = error;
    ++arrived_;
    if (finishing_) return answer();
    // Others may be on their way.
    if (begun_ && !std::exchange(posted_, true)) all_.worker_.later(self);
  }

  // The lock is held; no receiver is called with a lock of the step's held.
  void finish() {
    if (std::exchange(finishing_, true)) return;
    for (Slot& slot : slots_) {
      if (slot.value.defined() || slot.forgotten) continue;
      slot.forgotten = all_.worker_.forget(step_, slot);
      if (slot.forgotten) ++forgotten_;
    }
    answer();
  }

  // When all is told.
  void answer() {
    if (arrived_ + forgotten_ < slots_.size()) return;
    all_.remove(asked_);
    protocol::ReceivedSome got;
    std::vector<Tensor> values;
    for (Slot& slot : slots_) {
      if (!slot.value.defined()) continue;
      got.keys.push_back(slot.key);
      values.push_back(std::move(slot.value));
    }
    if (error_ == nullptr && values.empty())
      error_ = std::make_exception_ptr(treenail::cancelled("nobody waits for the values"));
    if (error_ != nullptr) {
      asked_.refuse(error_);
    } else {
      asked_.reply(protocol::write(got), values);
    }
  }

  const RpcAsked asked_;
  ReceivesSome& all_;
  const uint64_t step_;
  std::mutex mutex_;  // guards what follows
  std::deque<Slot> slots_;
  size_t arrived_ = 0;
  size_t forgotten_ = 0;
  std::exception_ptr error_;
  bool begun_ = false;
  bool unwanted_ = false;  // before it had begun
  bool posted_ = false;
  bool finishing_ = false;
};

ReceivesSome::ReceivesSome(Worker& worker) : worker_(worker) {}
ReceivesSome::~ReceivesSome() = default;

void ReceivesSome::remove(const RpcAsked& asked) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(asked.id());
}

void ReceivesSome::begin(const protocol::ReceiveSomeRequest& request, const RpcAsked& asked) {
  if (request.keys.empty()) throw invalid_argument("no key says which values are asked for");
  const auto batch = std::make_shared<Batch>(*this, asked, request);
  {
    const std::lock_guard lock(mutex_);
    waiting_[asked.id()] = batch;
  }
  batch->begin();
  cancelled(asked);  // where that was told before it was known here
}

void ReceivesSome::cancelled(const RpcAsked& asked) {
  std::shared_ptr<Batch> batch;
  {
    const std::lock_guard lock(mutex_);
    const auto at = waiting_.find(asked.id());
    if (at == waiting_.end() || !asked.abandoned()) return;
    batch = at->second;
  }
  batch->run();
}

}  // namespace treenail
