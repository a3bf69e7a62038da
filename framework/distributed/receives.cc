// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/receives.h"

#include <exception>
#include <span>
#include <utility>

#include "framework/base/error.h"

namespace treenail {

class Receives::Waiting final : public Rendezvous::Receiver {
 public:
  Waiting(Receives& all, const RpcAsked& asked, uint64_t step)
      : asked(asked), step(step), all_(all) {}

  void received(const Tensor* value, std::exception_ptr error) noexcept override {
    const std::unique_ptr<Waiting> self = all_.remove(asked);
    if (error != nullptr) {
      asked.refuse(error);
    } else {
      asked.reply({}, std::span(value, 1));
    }
  }

  const RpcAsked asked;
  const uint64_t step;

 private:
  Receives& all_;
};

Receives::Receives(Worker& worker) : worker_(worker) {}
Receives::~Receives() = default;

std::unique_ptr<Receives::Waiting> Receives::remove(const RpcAsked& asked) {
  const std::lock_guard lock(mutex_);
  const auto at = waiting_.find(asked.id());
  std::unique_ptr<Waiting> removed = std::move(at->second);
  waiting_.erase(at);
  return removed;
}

void Receives::begin(const protocol::ReceiveRequest& request, const RpcAsked& asked) {
  auto made = std::make_unique<Waiting>(*this, asked, request.step);
  Waiting& waiting = *made;
  {
    const std::lock_guard lock(mutex_);
    waiting_[asked.id()] = std::move(made);
  }
  try {
    worker_.receive(request, waiting);
  } catch (...) {
    remove(asked);
    throw;
  }
  cancelled(asked);  // where that was told before it was known here
}

void Receives::cancelled(const RpcAsked& asked) {
  std::unique_ptr<Waiting> removed;
  {
    const std::lock_guard lock(mutex_);
    const auto at = waiting_.find(asked.id());
    if (at == waiting_.end() || !asked.abandoned()) return;
    if (!worker_.forget(at->second->step, *at->second)) return;  // it is being answered
    removed = std::move(at->second);
    waiting_.erase(at);
  }
  removed->asked.refuse(std::make_exception_ptr(treenail::cancelled("nobody waits for the value")));
}

}  // namespace treenail
