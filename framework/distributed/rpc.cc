// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/rpc.h"

#include <limits>
#include <new>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/base/interrupt.h"

namespace treenail {
namespace {

// gRPC's lengths are ints.
constexpr int64_t kMostBytes = std::numeric_limits<int32_t>::max();

const RpcApi& rpc_api() {
  static const auto* const kApi = static_cast<const RpcApi*>(
      open_adapter({"grpc", sizeof(RpcApi), "clusters of processes",
                    "gRPC (Debian: libtreenail1-grpc, Fedora: treenail-grpc)"}));
  return *kApi;
}

Error error_from(int32_t code, std::string text) {
  const bool known = code > 0 && code <= static_cast<int32_t>(Code::kUnauthenticated);
  return {known ? static_cast<Code>(code) : Code::kUnknown, std::move(text)};
}

void check(const RpcStatus& status) {
  if (status.code != 0) throw error_from(status.code, status.text);
}

// What the connection says itself names nobody.
Error named(const std::string& who, int32_t code, bool theirs, std::string_view text) {
  const auto known = static_cast<Code>(theirs ? 0 : code);
  if (known == Code::kUnavailable)
    return error_of(known, {"lost ", who, " or could not reach it: ", text});
  if (known == Code::kDeadlineExceeded)
    return error_of(known, {who, " did not answer in time: ", text});
  return error_from(code, std::string(text));
}

}  // namespace

// --- Servers -------------------------------------------------------------------------------------

RpcHandler::~RpcHandler() = default;

void RpcAsked::reply(ProtoWriter head, std::span<const Tensor> tensors) const noexcept {
  try {
    OutgoingMessage message(std::move(head), tensors);
    const std::vector<RpcSlice> slices = message.take_slices();
    rpc_api().reply(call_, slices.data(), slices.size());
  } catch (...) {
    refuse(std::current_exception());
  }
}

void RpcAsked::refuse(const std::exception_ptr& error) const noexcept {
  const auto say = [&](Code code, std::string_view text) {
    rpc_api().refuse(call_, static_cast<int32_t>(code), text.data(), text.size());
  };
  try {
    std::rethrow_exception(error);
  } catch (const Error& found) {
    say(found.code(), found.message());
  } catch (const std::bad_alloc&) {
    say(Code::kResourceExhausted, "out of memory");
  } catch (const std::exception& found) {
    say(Code::kInternal, found.what());
  } catch (...) {
    say(Code::kUnknown, "an unknown error");
  }
}

bool RpcAsked::abandoned() const { return rpc_api().abandoned(call_); }

struct RpcListener::Impl {
  RpcServer* server = nullptr;
  std::vector<RpcMethod> methods;
};

RpcListener::RpcListener(RpcHandler& handler, const std::string& address,
                         const RpcPatience& patience)
    : impl_(std::make_unique<Impl>()) {
  impl_->methods = handler.methods();
  const auto handle = [](void* self, size_t method, RpcCall* call, const RpcView* views,
                         size_t count) {
    const RpcAsked asked(call);
    try {
      static_cast<RpcHandler*>(self)->handle(method, Message({views, count}), asked);
    } catch (...) {
      asked.refuse(std::current_exception());
    }
  };
  const auto cancelled = [](void* self, RpcCall* call) {
    static_cast<RpcHandler*>(self)->cancelled(RpcAsked(call));
  };
  const RpcService service{&handler, impl_->methods.data(), impl_->methods.size(), handle,
                           cancelled};
  const RpcServerOptions options{address.c_str(), patience.keepalive_ms, patience.keepalive_wait_ms,
                                 kMostBytes};
  RpcStatus status;
  impl_->server = rpc_api().serve(&options, &service, &status);
  check(status);
}

RpcListener::~RpcListener() {
  if (impl_->server != nullptr) rpc_api().stop(impl_->server, 0);
}

int RpcListener::port() const { return rpc_api().port(impl_->server); }

// --- Clients -------------------------------------------------------------------------------------

RpcCalling::~RpcCalling() { rpc_api().forget(pending_); }
void RpcCalling::cancel() const { rpc_api().cancel(pending_); }

RpcPeer::RpcPeer(std::string who, const std::string& address, const RpcPatience& patience)
    : who_(std::move(who)), generation_(fork_generation()) {
  const RpcChannelOptions options{address.c_str(), patience.keepalive_ms,
                                  patience.keepalive_wait_ms, kMostBytes};
  RpcStatus status;
  channel_ = rpc_api().connect(&options, &status);
  check(status);
}

// In the child of a fork the connection is the parent's, and its threads are not there.
RpcPeer::~RpcPeer() {
  if (generation_ == fork_generation()) rpc_api().disconnect(channel_);
}

void RpcPeer::check_process() const {
  if (generation_ == fork_generation()) return;
  throw failed_precondition("the connection to ", who_,
                            " belongs to the process that was forked; open a session of its own in "
                            "the child, before anything connects in the parent");
}

namespace {

// The answer to a call that is waited for.
struct Waited {
  const RpcPeer& peer;
  const CancellationToken* token;
  std::exception_ptr interrupted;
  std::exception_ptr error;
  std::unique_ptr<Message> reply;

  bool poll() {
    if (interrupted != nullptr) return false;
    try {
      poll_interrupt();
      if (token != nullptr) token->check();
      return false;
    } catch (...) {
      interrupted = std::current_exception();
      return true;
    }
  }
  void answered(int32_t code, bool theirs, std::string_view text, std::span<const RpcView> views) {
    try {
      if (code != 0) throw named(peer.who(), code, theirs, text);
      reply = std::make_unique<Message>(views);
    } catch (...) {
      error = std::current_exception();
    }
  }
};

}  // namespace

Message RpcPeer::call(const char* path, ProtoWriter head, std::span<const Tensor> tensors,
                      const Options& options) const {
  check_process();
  Waited waited{*this, options.token, nullptr, nullptr, nullptr};
  OutgoingMessage message(std::move(head), tensors);
  const std::vector<RpcSlice> slices = message.take_slices();
  const RpcRequest request{path, slices.data(), slices.size(), options.timeout_ms,
                           options.wait_for_ready};
  const auto answered = [](void* self, int32_t code, bool theirs, const char* text, size_t bytes,
                           const RpcView* views, size_t count) {
    static_cast<Waited*>(self)->answered(code, theirs, {text, bytes}, {views, count});
  };
  const RpcAnswer answer{&waited, answered};
  rpc_api().call(
      channel_, &request, &answer,
      [](void* argument) { return static_cast<Waited*>(argument)->poll(); }, &waited);
  if (waited.interrupted != nullptr) std::rethrow_exception(waited.interrupted);
  if (waited.error != nullptr) std::rethrow_exception(waited.error);
  return std::move(*waited.reply);
}

namespace {

// The answer to a call that was started; frees itself.
struct Told {
  std::string who;
  RpcPeer::Answer& answer;

  static void answered(void* self, int32_t code, bool theirs, const char* text, size_t bytes,
                       const RpcView* views, size_t count) {
    const std::unique_ptr<Told> told(static_cast<Told*>(self));
    std::exception_ptr error;
    std::unique_ptr<Message> reply;
    try {
      if (code != 0) throw named(told->who, code, theirs, {text, bytes});
      reply = std::make_unique<Message>(std::span(views, count));
    } catch (...) {
      error = std::current_exception();
    }
    told->answer.answered(error, reply.get());
  }
};

}  // namespace

std::unique_ptr<RpcCalling> RpcPeer::start(const char* path, ProtoWriter head,
                                           std::span<const Tensor> tensors, int64_t timeout_ms,
                                           Answer& answer) const {
  check_process();
  OutgoingMessage message(std::move(head), tensors);
  const std::vector<RpcSlice> slices = message.take_slices();
  const RpcRequest request{path, slices.data(), slices.size(), timeout_ms, false};
  const RpcAnswer told{new Told{who_, answer}, Told::answered};
  return std::make_unique<RpcCalling>(rpc_api().start(channel_, &request, &told));
}

namespace {

class Unheard final : public RpcPeer::Answer {
 public:
  void answered(std::exception_ptr, const Message*) noexcept override {}
};

}  // namespace

void RpcPeer::tell(const char* path, ProtoWriter head) const noexcept {
  constexpr int64_t kPatienceMs = 10'000;
  static Unheard unheard;
  try {
    start(path, std::move(head), {}, kPatienceMs, unheard);
  } catch (...) {
  }
}

}  // namespace treenail
