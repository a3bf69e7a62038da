// SPDX-License-Identifier: Apache-2.0
// A call that another thread may answer, or cancel, before it is wholly begun. Owned by who started
// it and by who answers it; the one that is done last frees it.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "framework/base/cancellation.h"
#include "framework/distributed/rpc.h"

namespace treenail {

class SharedCall : public RpcPeer::Answer {
 protected:
  // `token` is there until the call is answered.
  explicit SharedCall(const CancellationToken& token) : token_(token) {}
  virtual ~SharedCall() = default;

  // Starts it, without a timeout; the token cancels it from here on. Where that throws, it is gone.
  void start(const RpcPeer& peer, const char* path, const ProtoWriter& head,
             std::span<const Tensor> tensors) {
    watch();
    std::unique_ptr<RpcCalling> calling;
    try {
      calling = peer.start(path, head, tensors, 0, *this);
    } catch (...) {
      unwatch();
      delete this;
      throw;
    }
    started(std::move(calling));
  }
  // From here on the token cancels the call.
  void watch() {
    callback_ =
        token_.add_callback([](void* call) { static_cast<SharedCall*>(call)->cancel(); }, this);
  }
  // First of all when it is answered, and where it could not be begun.
  void unwatch() {
    if (callback_ != 0) token_.remove_callback(callback_);
  }
  // It is under way; its starter is done with it.
  void started(std::unique_ptr<RpcCalling> calling) {
    {
      const std::lock_guard lock(mutex_);
      calling_ = std::move(calling);
      if (cancelled_) calling_->cancel();
    }
    if (callback_ == 0) cancel();  // it was cancelled before
    release();
  }
  void release() {
    {
      const std::lock_guard lock(mutex_);
      if (--shares_ > 0) return;
    }
    delete this;
  }

 private:
  void cancel() {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (calling_ != nullptr) calling_->cancel();
  }

  const CancellationToken& token_;
  uint64_t callback_ = 0;
  std::mutex mutex_;  // guards what follows
  std::unique_ptr<RpcCalling> calling_;
  bool cancelled_ = false;
  int shares_ = 2;
};

}  // namespace treenail
