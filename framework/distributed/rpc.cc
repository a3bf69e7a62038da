// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/rpc.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/base/interrupt.h"
#include "framework/distributed/say_error.h"

namespace treenail {
namespace {

// gRPC's lengths are ints.
constexpr int64_t kMostBytes = std::numeric_limits<int32_t>::max();

RpcTls tls_of(const CredentialFiles& files) {
  return {files.certificate.c_str(), files.key.c_str(), files.authority.c_str(),
          files.revoked.c_str()};
}

// What a process shows besides its certificate.
std::string token_of(const Credentials* credentials) {
  const bool none = credentials == nullptr || credentials->tokens() == nullptr;
  return none ? std::string() : credentials->tokens()->own();
}

RpcView view_of(std::string_view text) { return {text.data(), text.size()}; }
std::string_view text_of(const RpcView& view) {
  return {static_cast<const char*>(view.data), view.bytes};
}

std::atomic<const RpcApi*> given_api{nullptr};

const RpcApi& rpc_api() {
  if (const RpcApi* given = given_api.load(std::memory_order_acquire)) return *given;
  static const auto* const kApi = static_cast<const RpcApi*>(
      open_adapter({"grpc", sizeof(RpcApi), "clusters of processes",
                    "gRPC (Debian: libgrpc++, Fedora: grpc-cpp)", "grpc"}));
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
Error named(const std::string& who, bool encrypted, int32_t code, bool theirs,
            std::string_view text) {
  const auto known = static_cast<Code>(theirs ? 0 : code);
  if (known == Code::kUnavailable) {
    // A connection that ends before it is one: by gRPC a server says no more of what it misses.
    const bool refused = text.find("failed to connect") != std::string_view::npos;
    return error_of(known, {"lost ", who, " or could not reach it: ", text,
                            !refused    ? ""
                            : encrypted ? ". One of the two may not accept the other's certificate"
                                        : ". If that is encrypted, credentials are needed"});
  }
  if (known == Code::kDeadlineExceeded)
    return error_of(known, {who, " did not answer in time: ", text});
  return error_from(code, std::string(text));
}

}  // namespace

void set_rpc_api(const RpcApi* api) { given_api.store(api, std::memory_order_release); }

// --- Servers -------------------------------------------------------------------------------------

RpcHandler::~RpcHandler() = default;

void RpcHandler::handle_bytes(size_t method, const Caller& caller, std::span<const RpcView> request,
                              const RpcAsked& asked) {
  handle(method, caller, Message(request), asked);
}

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
  say_error(error, [&](Code code, std::string_view text) {
    rpc_api().refuse(call_, static_cast<int32_t>(code), text.data(), text.size());
  });
}

bool RpcAsked::abandoned() const { return rpc_api().abandoned(call_); }

struct RpcListener::Impl {
  RpcServer* server = nullptr;
  std::vector<RpcMethod> methods;
};

namespace {

void admit(void* self, const RpcCaller* caller, RpcStatus* status) {
  try {
    std::vector<std::string_view> names;
    for (size_t i = 0; i < caller->num_names; ++i) names.push_back(text_of(caller->names[i]));
    const Caller known = static_cast<RpcHandler*>(self)->admit(names, text_of(caller->token));
    set_status(status, 0, Admission::to_text(known));
  } catch (const Error& error) {
    set_status(status, static_cast<int32_t>(error.code()), error.message());
  } catch (...) {
    set_status(status, static_cast<int32_t>(Code::kInternal), "the caller could not be examined");
  }
}

}  // namespace

RpcListener::RpcListener(RpcHandler& handler, const std::string& address,
                         const RpcListenerOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->methods = handler.methods();
  const auto handle = [](void* self, size_t method, RpcView caller, RpcCall* call,
                         const RpcView* views, size_t count) {
    const RpcAsked asked(call);
    try {
      auto* const all = static_cast<RpcHandler*>(self);
      const Caller known = Admission::from_text(text_of(caller));
      all->check_method(method, known);
      all->handle_bytes(method, known, {views, count}, asked);
    } catch (...) {
      asked.refuse(std::current_exception());
    }
  };
  const auto cancelled = [](void* self, RpcCall* call) {
    static_cast<RpcHandler*>(self)->cancelled(RpcAsked(call));
  };
  const RpcService service{&handler, impl_->methods.data(), impl_->methods.size(), admit, handle,
                           cancelled};
  const Credentials* const shown = options.credentials.get();
  const RpcTls tls = shown == nullptr ? RpcTls{} : tls_of(shown->files());
  const RpcServerOptions wanted{address.c_str(),
                                options.patience.keepalive_ms,
                                options.patience.keepalive_wait_ms,
                                options.most_bytes,
                                shown == nullptr ? nullptr : &tls,
                                shown != nullptr && shown->tokens() == nullptr};
  RpcStatus status;
  impl_->server = rpc_api().serve(&wanted, &service, &status);
  check(status);
}

RpcListener::~RpcListener() {
  if (impl_->server != nullptr) rpc_api().stop(impl_->server, 0);
}

int RpcListener::port() const { return rpc_api().port(impl_->server); }

// --- Clients -------------------------------------------------------------------------------------

RpcCalling::~RpcCalling() { rpc_api().forget(pending_); }
void RpcCalling::cancel() const { rpc_api().cancel(pending_); }

RpcPeer::RpcPeer(std::string who, const std::string& address, const RpcPatience& patience,
                 std::shared_ptr<const Credentials> credentials)
    : who_(std::move(who)), credentials_(std::move(credentials)), generation_(fork_generation()) {
  const RpcTls tls = credentials_ == nullptr ? RpcTls{} : tls_of(credentials_->files());
  const RpcChannelOptions options{address.c_str(), patience.keepalive_ms,
                                  patience.keepalive_wait_ms, kMostBytes,
                                  credentials_ == nullptr ? nullptr : &tls};
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

// The answer to a call that is waited for.
struct RpcPeer::Waited {
  const std::string& who;
  bool encrypted;
  const CancellationToken* token;
  std::exception_ptr interrupted;
  std::exception_ptr error;
  std::unique_ptr<Message> reply;
  bool lost = false;  // nobody has answered: there is no connection, or none any more

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
      lost = !theirs && code == static_cast<int32_t>(Code::kUnavailable);
      if (code != 0) throw named(who, encrypted, code, theirs, text);
      reply = std::make_unique<Message>(views);
    } catch (...) {
      error = std::current_exception();
    }
  }
  // Whether the pause was had.
  bool pause(std::chrono::milliseconds time) {
    constexpr std::chrono::milliseconds kPollPeriod{50};
    for (; time.count() > 0 && !poll() && interrupted == nullptr; time -= kPollPeriod)
      std::this_thread::sleep_for(std::min(time, kPollPeriod));
    return interrupted == nullptr;
  }
};

void RpcPeer::call_once(const RpcRequest& request, Waited& waited) const {
  waited.error = nullptr;
  const auto answered = [](void* self, int32_t code, bool theirs, const char* text, size_t bytes,
                           const RpcView* views, size_t count) {
    static_cast<Waited*>(self)->answered(code, theirs, {text, bytes}, {views, count});
  };
  const RpcAnswer answer{&waited, answered};
  rpc_api().call(
      channel_, &request, &answer,
      [](void* argument) { return static_cast<Waited*>(argument)->poll(); }, &waited);
}

Message RpcPeer::call(const char* path, const ProtoWriter& head, std::span<const Tensor> tensors,
                      const Options& options) const {
  check_process();
  constexpr std::chrono::milliseconds kFirstPause{50}, kLastPause{200};
  Waited waited{who_, encrypted(), options.token, nullptr, nullptr, nullptr};
  for (auto pause = kFirstPause;; pause *= 2) {
    OutgoingMessage message(ProtoWriter(head), tensors);
    const std::vector<RpcSlice> slices = message.take_slices();
    const std::string token = token_of(credentials_.get());
    call_once({path, slices.data(), slices.size(), options.timeout_ms, view_of(token),
               options.wait_for_ready},
              waited);
    if (!options.repeatable || !waited.lost || pause > kLastPause || !waited.pause(pause)) break;
  }
  if (waited.interrupted != nullptr) std::rethrow_exception(waited.interrupted);
  if (waited.error != nullptr) std::rethrow_exception(waited.error);
  return std::move(*waited.reply);
}

namespace {

// The answer to a call that was started; frees itself.
struct Told {
  std::string who;
  bool encrypted;
  RpcPeer::Answer& answer;

  static void answered(void* self, int32_t code, bool theirs, const char* text, size_t bytes,
                       const RpcView* views, size_t count) {
    const std::unique_ptr<Told> told(static_cast<Told*>(self));
    std::exception_ptr error;
    std::unique_ptr<Message> reply;
    try {
      if (code != 0) throw named(told->who, told->encrypted, code, theirs, {text, bytes});
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
                                           Answer& answer, bool wait_for_ready) const {
  check_process();
  OutgoingMessage message(std::move(head), tensors);
  const std::vector<RpcSlice> slices = message.take_slices();
  const std::string token = token_of(credentials_.get());
  const RpcRequest request{path,       slices.data(),  slices.size(),
                           timeout_ms, view_of(token), wait_for_ready};
  const RpcAnswer told{new Told{who_, encrypted(), answer}, Told::answered};
  return std::make_unique<RpcCalling>(rpc_api().start(channel_, &request, &told));
}

namespace {

class Unheard final : public RpcPeer::Answer {
 public:
  void answered(std::exception_ptr, const Message*) noexcept override {}
};

}  // namespace

void RpcPeer::tell(const char* path, ProtoWriter head, bool insist) const noexcept {
  constexpr int64_t kPatienceMs = 10'000;
  static Unheard unheard;
  try {
    start(path, std::move(head), {}, kPatienceMs, unheard, insist);
  } catch (...) {
  }
}

}  // namespace treenail
