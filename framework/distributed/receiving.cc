// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/receiving.h"

#include <memory>
#include <mutex>
#include <utility>

#include "framework/base/cancellation.h"
#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_functions.h"

namespace treenail {
namespace {

// A value on its way from another task. Owned by who started it and by who answers it; the one that
// is done last frees it.
class Receiving final : public RpcPeer::Answer {
 public:
  static void begin(const RpcPeer& peer, const protocol::ReceiveRequest& request, RunContext c,
                    Done done) {
    auto* const self = new Receiving(c, done);
    self->callback_ = c.token()->add_callback(
        [](void* receiving) { static_cast<Receiving*>(receiving)->cancel(); }, self);
    try {
      self->started(peer.start(protocol::worker::kReceive, protocol::write(request), {}, 0, *self));
    } catch (...) {
      c.token()->remove_callback(self->callback_);
      delete self;
      throw;
    }
    if (self->callback_ == 0) self->cancel();  // it was cancelled before
    self->release();
  }

  // What the other task has failed with, or what the connection says, is the error of this task as
  // it stands: whichever of them is heard of first, it is the same.
  void answered(std::exception_ptr error, const Message* reply) noexcept override {
    if (callback_ != 0) context_.token()->remove_callback(callback_);
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
  Receiving(RunContext c, Done done) : context_(c), done_(done) {}

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

  void started(std::unique_ptr<RpcCalling> calling) {
    const std::lock_guard lock(mutex_);
    calling_ = std::move(calling);
    if (cancelled_) calling_->cancel();
  }
  void cancel() {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (calling_ != nullptr) calling_->cancel();
  }
  void release() {
    {
      const std::lock_guard lock(mutex_);
      if (--shares_ > 0) return;
    }
    delete this;
  }

  RunContext context_;
  const Done done_;
  uint64_t callback_ = 0;
  std::mutex mutex_;  // guards what follows
  std::unique_ptr<RpcCalling> calling_;
  bool cancelled_ = false;
  int shares_ = 2;
};

}  // namespace

void receive_by_message(const RpcPeer& peer, const protocol::ReceiveRequest& request,
                        const RunContext& c, const Done& done) {
  Receiving::begin(peer, request, c, done);
}

}  // namespace treenail
