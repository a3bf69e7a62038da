// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/rpc.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/base/interrupt.h"
#include "framework/base/random_token.h"
#include "framework/base/spin.h"
#include "framework/distributed/long_messages.h"
#include "framework/distributed/rpc_calls.h"
#include "framework/distributed/say_error.h"
#include "framework/distributed/started_call.h"

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

std::string_view text_of(const RpcView& view) {
  return {static_cast<const char*>(view.data), view.bytes};
}

std::atomic<const RpcApi*> given_api{nullptr};

Error error_from(int32_t code, std::string text) {
  const bool known = code > 0 && code <= static_cast<int32_t>(Code::kUnauthenticated);
  return {known ? static_cast<Code>(code) : Code::kUnknown, std::move(text)};
}

void check(const RpcStatus& status) {
  if (status.code != 0) throw error_from(status.code, status.text);
}

}  // namespace

const RpcApi& rpc_api() {
  if (const RpcApi* given = given_api.load(std::memory_order_acquire)) return *given;
  static const auto* const kApi = static_cast<const RpcApi*>(
      open_adapter({"grpc", sizeof(RpcApi), "clusters of processes",
                    "gRPC (Debian: libgrpc++, Fedora: grpc-cpp)", "grpc"}));
  return *kApi;
}

Error error_of_call(const std::string& who, bool encrypted, int32_t code, bool theirs,
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

void set_rpc_api(const RpcApi* api) { given_api.store(api, std::memory_order_release); }

// --- Servers -------------------------------------------------------------------------------------

RpcHandler::~RpcHandler() = default;

void RpcHandler::handle_bytes(size_t method, const Caller& caller, std::span<const RpcView> bytes,
                              const RpcAsked& asked) {
  Message request(bytes);
  if (request.in_parts) request.tensors = asked.take_parts(request);
  handle(method, caller, request, asked);
}

std::vector<Tensor> RpcAsked::take_parts(const Message& request) const {
  if (parts_ == nullptr) throw invalid_argument("this server takes no messages in parts");
  return parts_->take(caller_, request.head);
}

void RpcAsked::reply(ProtoWriter head, std::span<const Tensor> tensors) const noexcept {
  try {
    OutgoingMessage message(std::move(head), tensors);
    if (parts_ != nullptr && message.payload_bytes() > most_part_bytes()) {
      const std::string token = random_token();
      parts_->keep(caller_, token, message.take_payload(token));
    }
    const std::vector<RpcSlice> slices = message.take_slices();
    rpc_api().reply(call_, slices.data(), slices.size());
  } catch (...) {
    refuse(std::current_exception());
  }
}

void RpcAsked::reply_bytes(std::vector<RpcSlice> bytes) const noexcept {
  constexpr char kNoHead[4] = {};
  bytes.insert(bytes.begin(), {kNoHead, sizeof kNoHead, nullptr, nullptr});
  rpc_api().reply(call_, bytes.data(), bytes.size());
}

void RpcAsked::refuse(const std::exception_ptr& error) const noexcept {
  say_error(error, [&](Code code, std::string_view text) {
    rpc_api().refuse(call_, static_cast<int32_t>(code), text.data(), text.size());
  });
}

bool RpcAsked::abandoned() const { return rpc_api().abandoned(call_); }

namespace {

// Those of the listener itself, behind the handler's.
constexpr std::array kPartMethods = {
    RpcMethod{protocol::parts::kBegin, false}, RpcMethod{protocol::parts::kPut, false},
    RpcMethod{protocol::parts::kGet, false}, RpcMethod{protocol::parts::kDrop, false}};

void answer_part(LongMessages& parts, size_t method, const std::string& caller,
                 std::span<const RpcView> request, const RpcAsked& asked) {
  MessageBytes bytes(request);
  const std::string head = bytes.take_head();
  const std::string_view path = kPartMethods[method].path;
  if (path == protocol::parts::kBegin) {
    parts.begin(caller, head);
    return asked.reply({});
  }
  const auto part = protocol::read<protocol::Part>(ProtoReader(head));
  std::vector<RpcSlice> slices;
  if (path == protocol::parts::kGet) slices = parts.get(caller, part);
  if (path == protocol::parts::kPut) parts.put(caller, part, bytes);
  if (path == protocol::parts::kDrop) parts.drop(caller, part.token);
  asked.reply_bytes(std::move(slices));
}

}  // namespace

struct RpcListener::Impl {
  RpcHandler& handler;
  std::optional<LongMessages> parts;
  std::vector<RpcMethod> methods;
  size_t num_handled = 0;  // of them, by the handler
  RpcServer* server = nullptr;

  void handle(size_t method, RpcView caller, RpcCall* call, std::span<const RpcView> request) {
    const RpcAsked unknown(call);
    try {
      const Caller known = Admission::from_text(text_of(caller));
      const RpcAsked asked(call, parts ? &*parts : nullptr, known.identity);
      if (method >= num_handled)
        return answer_part(*parts, method - num_handled, known.identity, request, asked);
      handler.check_method(method, known);
      handler.handle_bytes(method, known, request, asked);
    } catch (...) {
      unknown.refuse(std::current_exception());
    }
  }
};

namespace {

void admit(void* self, const RpcCaller* caller, RpcStatus* status) {
  try {
    std::vector<std::string_view> names;
    for (size_t i = 0; i < caller->num_names; ++i) names.push_back(text_of(caller->names[i]));
    const Caller known =
        static_cast<RpcListener::Impl*>(self)->handler.admit(names, text_of(caller->token));
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
    : impl_(new Impl{handler, {}, handler.methods()}) {
  impl_->num_handled = impl_->methods.size();
  if (options.in_parts) {
    impl_->parts.emplace(options.most_bytes);
    impl_->methods.insert(impl_->methods.end(), kPartMethods.begin(), kPartMethods.end());
  }
  const auto handle = [](void* self, size_t method, RpcView caller, RpcCall* call,
                         const RpcView* views, size_t count) {
    static_cast<Impl*>(self)->handle(method, caller, call, {views, count});
  };
  const auto cancelled = [](void* self, RpcCall* call) {
    static_cast<Impl*>(self)->handler.cancelled(RpcAsked(call));
  };
  const RpcService service{impl_.get(), impl_->methods.data(), impl_->methods.size(), admit, handle,
                           cancelled};
  const Credentials* const shown = options.credentials.get();
  const RpcTls tls = shown == nullptr ? RpcTls{} : tls_of(shown->files());
  const RpcServerOptions wanted{address.c_str(),
                                options.patience.keepalive_ms,
                                options.patience.keepalive_wait_ms,
                                std::min(options.most_bytes, kMostBytes),
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

void RpcCalling::cancel() const { call_->cancel(); }

namespace {

// In the child of a fork the connection is the parent's, and its threads are not there.
SharedChannel shared(RpcChannel* channel) {
  return {channel, [generation = fork_generation(), &api = rpc_api()](RpcChannel* given) {
            if (generation == fork_generation()) api.disconnect(given);
          }};
}

}  // namespace

RpcPeer::RpcPeer(std::string who, const std::string& address, const RpcPatience& patience,
                 std::shared_ptr<const Credentials> credentials)
    : who_(std::move(who)), credentials_(std::move(credentials)), generation_(fork_generation()) {
  const RpcTls tls = credentials_ == nullptr ? RpcTls{} : tls_of(credentials_->files());
  const RpcChannelOptions options{address.c_str(), patience.keepalive_ms,
                                  patience.keepalive_wait_ms, kMostBytes,
                                  credentials_ == nullptr ? nullptr : &tls};
  RpcStatus status;
  RpcChannel* const channel = rpc_api().connect(&options, &status);
  check(status);
  channel_ = shared(channel);
}

RpcPeer::~RpcPeer() = default;

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
      code = code_of_call(code, theirs, interrupted != nullptr);
      lost = !theirs && code == static_cast<int32_t>(Code::kUnavailable);
      if (code != 0) throw error_of_call(who, encrypted, code, theirs, text);
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
      channel_.get(), &request, &answer,
      [](void* argument) { return static_cast<Waited*>(argument)->poll(); }, &waited);
}

Message RpcPeer::call(const char* path, const ProtoWriter& head, std::span<const Tensor> tensors,
                      const Options& options) const {
  check_process();
  constexpr std::chrono::milliseconds kFirstPause{50}, kLastPause{200};
  Waited waited{who_, encrypted(), options.token, nullptr, nullptr, nullptr};
  const int64_t began_ns = monotonic_ns();
  for (auto pause = kFirstPause;; pause *= 2) {
    OutgoingMessage message(ProtoWriter(head), tensors);
    if (message.payload_bytes() > most_part_bytes()) {
      return wait_for(path, options, began_ns,
                      [&](StartedCall& call) { call.send(std::move(message)); });
    }
    const std::vector<RpcSlice> slices = message.take_slices();
    const std::string token = token_of(credentials_.get());
    call_once({path, slices.data(), slices.size(), options.timeout_ms, view_of(token),
               options.wait_for_ready},
              waited);
    if (!options.repeatable || !waited.lost || pause > kLastPause || !waited.pause(pause)) break;
  }
  if (waited.interrupted != nullptr) std::rethrow_exception(waited.interrupted);
  if (waited.error != nullptr) std::rethrow_exception(waited.error);
  if (!waited.reply->in_parts) return std::move(*waited.reply);
  return wait_for(path, options, began_ns,
                  [&](StartedCall& call) { call.fetch(std::move(*waited.reply)); });
}

namespace {

// The answer to a started call, for a thread that waits for it.
class AwaitedAnswer final : public RpcPeer::Answer {
 public:
  void answered(std::exception_ptr error, const Message* reply) noexcept override {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    if (reply != nullptr) reply_ = *reply;
    answered_ = true;
    changed_.notify_all();
  }
  bool wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return answered_; });
  }
  Message take() {
    const std::lock_guard lock(mutex_);
    if (error_ != nullptr) std::rethrow_exception(error_);
    return std::move(*reply_);
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::exception_ptr error_;
  std::optional<Message> reply_;
  bool answered_ = false;
};

}  // namespace

Message RpcPeer::wait_for(const char* path, const Options& options, int64_t began_ns,
                          FunctionRef<void(StartedCall&)> begin) const {
  constexpr std::chrono::milliseconds kPollPeriod{50};
  constexpr int64_t kMs = 1'000'000;
  int64_t timeout_ms = options.timeout_ms;
  if (timeout_ms > 0)
    timeout_ms = std::max<int64_t>(1, timeout_ms - (monotonic_ns() - began_ns) / kMs);
  AwaitedAnswer answer;
  Waited waited{who_, encrypted(), options.token, nullptr, nullptr, nullptr};
  const std::shared_ptr<StartedCall> call =
      started(path, timeout_ms, options.wait_for_ready, answer);
  begin(*call);
  while (!answer.wait_for(kPollPeriod))
    if (waited.poll()) call->cancel();
  if (waited.interrupted != nullptr) std::rethrow_exception(waited.interrupted);
  return answer.take();
}

std::shared_ptr<StartedCall> RpcPeer::started(const char* path, int64_t timeout_ms,
                                              bool wait_for_ready, Answer& answer) const {
  return std::make_shared<StartedCall>(
      StartedCall::Server{who_, encrypted(), channel_, token_of(credentials_.get())}, path,
      timeout_ms, wait_for_ready, answer);
}

std::unique_ptr<RpcCalling> RpcPeer::start(const char* path, ProtoWriter head,
                                           std::span<const Tensor> tensors, int64_t timeout_ms,
                                           Answer& answer, bool wait_for_ready) const {
  check_process();
  OutgoingMessage message(std::move(head), tensors);
  auto call = started(path, timeout_ms, wait_for_ready, answer);
  call->send(std::move(message));
  return std::make_unique<RpcCalling>(std::move(call));
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
