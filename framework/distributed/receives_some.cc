// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/receives_some.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/distributed/message.h"
#include "framework/distributed/mpi_values.h"

namespace treenail {

class ReceivesSome::Batch final : public LaterWork, public std::enable_shared_from_this<Batch> {
 public:
  Batch(ReceivesSome& all, const RpcAsked& asked, const protocol::ReceiveSomeRequest& request)
      : asked_(asked), all_(all), step_(request.step), to_{request.mpi_rank, request.mpi_token} {
    for (size_t i = 0; i < request.keys.size(); ++i)
      slots_.emplace_back(*this, request.keys[i],
                          i < request.mpi_tags.size() ? request.mpi_tags[i] : 0);
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
    Slot(Batch& batch, std::string key, uint64_t mpi_tag)
        : batch(batch), key(std::move(key)), mpi_tag(mpi_tag) {}
    void received(const Tensor* value, std::exception_ptr error) noexcept override {
      batch.received(*this, value, error);
    }
    Batch& batch;
    const std::string key;
    const uint64_t mpi_tag;  // 0: none
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
    const bool none = std::ranges::none_of(slots_, [](Slot& slot) { return slot.value.defined(); });
    if (error_ == nullptr && none)
      error_ = std::make_exception_ptr(treenail::cancelled("nobody waits for the values"));
    if (error_ != nullptr) return asked_.refuse(error_);
    protocol::ReceivedSome got;
    std::vector<Tensor> values;
    for (Slot& slot : slots_) {
      if (slot.value.defined()) put(slot, got, values);
    }
    asked_.reply(protocol::write(got), values);
  }

  void put(Slot& slot, protocol::ReceivedSome& got, std::vector<Tensor>& values) {
    if (sent_over_mpi(slot)) {
      const TensorDescription sent{slot.value.dtype(), slot.value.shape()};
      got.mpi_keys.push_back(slot.key);
      got.mpi_tensors.push_back(write_description(sent).text());
    } else {
      got.keys.push_back(slot.key);
      values.push_back(std::move(slot.value));
    }
  }

  bool sent_over_mpi(const Slot& slot) const {
    MpiValues* const mpi = all_.worker_.mpi();
    return mpi != nullptr && slot.mpi_tag != 0 && !asked_.abandoned() &&
           mpi->send(to_, slot.mpi_tag, slot.value);
  }

  const RpcAsked asked_;
  ReceivesSome& all_;
  const uint64_t step_;
  const MpiTask to_;
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
