// SPDX-License-Identifier: Apache-2.0
// Calls between processes: the face of the gRPC adapter (rpc_api.h) for the rest of distributed/.
#pragma once

#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/cancellation.h"
#include "framework/base/function_ref.h"
#include "framework/distributed/callers.h"
#include "framework/distributed/credentials.h"
#include "framework/distributed/message.h"

namespace treenail {

// What carries messages from here on instead of the adapter: for tests without a network, which
// hold no listener and no peer at that time. Null: the adapter.
void set_rpc_api(const RpcApi* api);

// How long a connection may be silent before it is asked whether it is there, and for the answer.
// A closed connection is noticed at once.
struct RpcPatience {
  int64_t keepalive_ms = 5000;
  int64_t keepalive_wait_ms = 5000;
};
// With which a silent connection is given up after so long.
inline RpcPatience patience_of(int64_t silence_ms) {
  return {(silence_ms + 1) / 2, (silence_ms + 1) / 2};
}

class LongMessages;

// A request that a server answers once, from any thread.
class RpcAsked {
 public:
  // `parts`: of the server, for what is too long for one message; of that caller. Null: nothing is.
  explicit RpcAsked(RpcCall* call, LongMessages* parts = nullptr, std::string caller = {})
      : call_(call), parts_(parts), caller_(std::move(caller)) {}
  // What came before the request with that head. Errors: as LongMessages::take().
  std::vector<Tensor> take_parts(const Message& request) const;
  void reply(ProtoWriter head, std::span<const Tensor> tensors = {}) const noexcept;
  // Of an empty head and what follows it.
  void reply_bytes(std::vector<RpcSlice> bytes) const noexcept;
  void refuse(const std::exception_ptr& error) const noexcept;
  bool abandoned() const;
  RpcCall* id() const { return call_; }

 private:
  RpcCall* call_;
  LongMessages* parts_;
  std::string caller_;
};

// What a server does. Methods are called on threads of the adapter, several at once.
class RpcHandler {
 public:
  virtual ~RpcHandler();
  // Called once; the paths stay.
  virtual std::vector<RpcMethod> methods() const = 0;
  // Of callers over encrypted connections, before their messages are read. Errors: a refusal.
  virtual Caller admit(std::span<const std::string_view> names, std::string_view token) = 0;
  // Answers now or later; what it throws is the answer.
  virtual void handle(size_t method, const Caller& caller, const Message& request,
                      const RpcAsked& asked) = 0;
  // The same, before the request is read; for who reads it itself.
  virtual void handle_bytes(size_t method, const Caller& caller, std::span<const RpcView> request,
                            const RpcAsked& asked);
  // Whether the caller may use that method. Errors: a refusal.
  virtual void check_method(size_t method, const Caller& caller) = 0;
  // Of a deferred method: nobody waits any more; it still has to be answered.
  virtual void cancelled(const RpcAsked& asked) = 0;
};

struct RpcListenerOptions {
  RpcPatience patience;
  int64_t most_bytes = std::numeric_limits<int32_t>::max();  // of one request
  // Messages in parts are taken and given, of each caller so many bytes at a time: `most_bytes`.
  bool in_parts = false;
  // Null: nothing is encrypted, and every caller is the same one to the handler.
  std::shared_ptr<const Credentials> credentials;
};

class RpcListener {
 public:
  // Listens at once. Errors: Unimplemented without the adapter, Unavailable where the address
  // cannot be had.
  RpcListener(RpcHandler& handler, const std::string& address,
              const RpcListenerOptions& options = {});
  // Cancels what runs, and returns when all is answered.
  ~RpcListener();
  RpcListener(const RpcListener&) = delete;
  RpcListener& operator=(const RpcListener&) = delete;
  int port() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

class StartedCall;

// A call that is under way.
class RpcCalling {
 public:
  explicit RpcCalling(std::shared_ptr<StartedCall> call) : call_(std::move(call)) {}
  void cancel() const;

 private:
  const std::shared_ptr<StartedCall> call_;
};

// A connection as it is used; it goes when nobody uses it any more.
using SharedChannel = std::shared_ptr<RpcChannel>;

// A server as its clients see it; connects when it is first called, and again after a failure.
class RpcPeer {
 public:
  // `who`: "the task /job:ps/task:0 (127.0.0.1:2222)", for errors. `credentials`: null where
  // nothing is encrypted. Errors: Unimplemented.
  RpcPeer(std::string who, const std::string& address, const RpcPatience& patience = {},
          std::shared_ptr<const Credentials> credentials = nullptr);
  ~RpcPeer();
  RpcPeer(const RpcPeer&) = delete;
  RpcPeer& operator=(const RpcPeer&) = delete;
  const std::string& who() const { return who_; }
  bool encrypted() const { return credentials_ != nullptr; }

  struct Options {
    int64_t timeout_ms = 0;       // <= 0: none
    bool wait_for_ready = false;  // for a server that is still to come
    const CancellationToken* token = nullptr;
    // Having been called twice leaves no more than once: where the connection was lost, or there
    // is none, it is called again, three times, after ever longer pauses.
    bool repeatable = false;
  };
  // Waits; polls (base/interrupt.h) meanwhile, and what that throws cancels the call. Errors: what
  // the server answered; Unavailable and DeadlineExceeded, which name it; Cancelled;
  // FailedPrecondition in the child of a fork.
  Message call(const char* path, const ProtoWriter& head, std::span<const Tensor> tensors,
               const Options& options) const;

  class Answer {
   public:
    // Once, from any thread, maybe before start() returns. `reply` is null where there is an error.
    virtual void answered(std::exception_ptr error, const Message* reply) noexcept = 0;

   protected:
    ~Answer() = default;
  };
  // Does not wait. Errors: InvalidArgument, FailedPrecondition, as call(); then nobody is told.
  std::unique_ptr<RpcCalling> start(const char* path, ProtoWriter head,
                                    std::span<const Tensor> tensors, int64_t timeout_ms,
                                    Answer& answer, bool wait_for_ready = false) const;
  // What nobody waits for: that something is to be forgotten. Whoever is not there has nothing to
  // forget; with `insist` a lost connection is made anew, within ten seconds, to say it.
  void tell(const char* path, ProtoWriter head, bool insist = false) const noexcept;

 private:
  struct Waited;
  void call_once(const RpcRequest& request, Waited& waited) const;
  // `begin`: of the call that it is given.
  Message wait_for(const char* path, const Options& options, int64_t began_ns,
                   FunctionRef<void(StartedCall&)> begin) const;
  std::shared_ptr<StartedCall> started(const char* path, int64_t timeout_ms, bool wait_for_ready,
                                       Answer& answer) const;
  void check_process() const;
  const std::string who_;
  const std::shared_ptr<const Credentials> credentials_;
  SharedChannel channel_;
  const uint32_t generation_;
};

}  // namespace treenail
