// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/receives.h"

#include <exception>
#include <span>
#include <utility>

#include "framework/base/error.h"
#include "framework/distributed/message.h"
#include "framework/distributed/mpi_values.h"

namespace treenail {

class Receives::Waiting final : public Rendezvous::Receiver {
 public:
  Waiting(Receives& all, const RpcAsked& asked, const protocol::ReceiveRequest& request)
      : asked(asked),
        step(request.step),
        all_(all),
        to_{request.mpi_rank, request.mpi_token},
        tag_(request.mpi_tag) {}

  void received(const Tensor* value, std::exception_ptr error) noexcept override {
    const std::unique_ptr<Waiting> self = all_.remove(asked);
    if (error != nullptr) {
      asked.refuse(error);
    } else if (sent_over_mpi(*value)) {
      const TensorDescription sent{value->dtype(), value->shape()};
      asked.reply(protocol::write(protocol::ReceivedByMpi{write_description(sent).text()}));
    } else {
      asked.reply({}, std::span(value, 1));
    }
  }

  const RpcAsked asked;
  const uint64_t step;

 private:
  bool sent_over_mpi(const Tensor& value) const {
    MpiValues* const mpi = all_.worker_.mpi();
    return mpi != nullptr && !to_.token.empty() && !asked.abandoned() &&
           mpi->send(to_, tag_, value);
  }

  Receives& all_;
  const MpiTask to_;
  const uint64_t tag_;
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
  auto made = std::make_unique<Waiting>(*this, asked, request);
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
