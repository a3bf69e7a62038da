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
  static void begin(const RpcPeer& peer, const protocol::ReceiveRequest& request, RunContext c,
                    Done done) {
    auto* const self = new Receiving(c, done);
    self->watch();
    std::unique_ptr<RpcCalling> calling;
    try {
      calling = peer.start(protocol::worker::kReceive, protocol::write(request), {}, 0, *self);
    } catch (...) {
      self->unwatch();
      delete self;
      throw;
    }
    self->started(std::move(calling));
  }

  // What the other task has failed with, or what the connection says, is the error of this task as
  // it stands: whichever of them is heard of first, it is the same.
  void answered(std::exception_ptr error, const Message* reply) noexcept override {
    unwatch();
    const Done done = done_;
    if (error == nullptr) {
      error = take(*reply);
    } else if (!context_.token()->cancelled()) {
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
  Receiving(RunContext c, Done done) : SharedCall(*c.token()), context_(c), done_(done) {}

  std::exception_ptr take(const Message& reply) {
    try {
      if (reply.tensors.size() != 1)
        throw data_loss("another task sent ", reply.tensors.size(), " values instead of one");
      context_.set_output(0, reply.tensors[0]);
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  RunContext context_;
  const Done done_;
};

}  // namespace

void receive_by_message(const RpcPeer& peer, const protocol::ReceiveRequest& request,
                        const RunContext& c, const Done& done) {
  Receiving::begin(peer, request, c, done);
}

}  // namespace treenail
