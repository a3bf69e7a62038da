// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/receiving.h"

#include <memory>
#include <utility>

#include "framework/base/error.h"
#include "framework/distributed/shared_call.h"
#include "framework/runtime/kernel/kernel_functions.h"

namespace treenail {
namespace {

// A value on its way from another task.
class Receiving final : public SharedCall {
 public:
  static void begin(const RpcPeer& peer, protocol::ReceiveRequest request, RunContext c, Done done,
                    std::shared_ptr<MpiWay> way) {
    auto* const self = new Receiving(peer, c, done, std::move(way));
    self->offer_mpi(request);
    self->start(peer, protocol::worker::kReceive, protocol::write(request), {});
  }

  // What the other task has failed with, or what the connection says, is the error of this task as
  // it stands: whichever of them is heard of first, it is the same.
  void answered(std::exception_ptr error, const Message* reply) noexcept override {
    unwatch();
    const Done done = done_;
    if (error == nullptr) {
      bool comes_yet = false;
      error = take(*reply, comes_yet);
      if (comes_yet) return release();
    } else {
      drop_what_was_sent();
    }
    if (error != nullptr && !context_.token()->cancelled()) {
      error = std::make_exception_ptr(BodyError{error});
    }
    release();
    if (error == nullptr) {
      done();
    } else {
      done.fail(std::move(error));
    }
  }

 private:
  Receiving(const RpcPeer& peer, RunContext c, Done done, std::shared_ptr<MpiWay> way)
      : SharedCall(*c.token()), peer_(peer), context_(c), done_(done), way_(std::move(way)) {}

  void offer_mpi(protocol::ReceiveRequest& request) {
    if (way_ == nullptr) return;
    const MpiTask& own = way_->values->own();
    request.mpi_rank = own.rank;
    request.mpi_token = own.token;
    request.mpi_tag = tag_ = way_->values->new_tag();
  }
  // The elements may have been sent before the answer was lost, or given up.
  void drop_what_was_sent() {
    if (way_ != nullptr) way_->values->drop(way_->task, tag_);
  }

  // `comes_yet`: it ends when the elements have come.
  std::exception_ptr take(const Message& reply, bool& comes_yet) {
    try {
      if (reply.tensors.empty() && way_ != nullptr) {
        const auto sent = protocol::read<protocol::ReceivedByMpi>(reply.fields());
        receive_over_mpi(peer_, way_, tag_, read_description(sent.tensor), context_, done_);
        comes_yet = true;
        return nullptr;
      }
      if (reply.tensors.size() != 1)
        throw data_loss("another task sent ", reply.tensors.size(), " values instead of one");
      context_.set_output(0, reply.tensors[0]);
      return nullptr;
    } catch (...) {
      if (reply.tensors.empty()) drop_what_was_sent();
      return std::current_exception();
    }
  }

  const RpcPeer& peer_;
  RunContext context_;
  const Done done_;
  const std::shared_ptr<MpiWay> way_;  // null: none
  uint64_t tag_ = 0;
};

}  // namespace

void receive_by_message(const RpcPeer& peer, const protocol::ReceiveRequest& request,
                        const RunContext& c, const Done& done, std::shared_ptr<MpiWay> way) {
  Receiving::begin(peer, request, c, done, std::move(way));
}

}  // namespace treenail
