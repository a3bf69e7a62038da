// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/started_call.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/random_token.h"
#include "framework/base/spin.h"
#include "framework/distributed/rpc_calls.h"

namespace treenail {
namespace {

constexpr int64_t kMs = 1'000'000;

// A head as it stands in a message.
std::string framed(const ProtoWriter& head) {
  ProtoWriter text;
  text.raw_fixed(head.text().size(), 4);
  text.raw_bytes(head.text());
  return text.text();
}

RpcSlice slice_of(const std::string& text) { return {text.data(), text.size(), nullptr, nullptr}; }

}  // namespace

StartedCall::StartedCall(Server server, const char* path, int64_t timeout_ms, bool wait_for_ready,
                         RpcPeer::Answer& answer)
    : api_(rpc_api()),
      server_(std::move(server)),
      path_(path),
      deadline_ns_(timeout_ms > 0 ? monotonic_ns() + timeout_ms * kMs : 0),
      wait_for_ready_(wait_for_ready),
      answer_(answer) {}

StartedCall::~StartedCall() {
  if (pending_ != nullptr) api_.forget(pending_);
}

const char* StartedCall::path_of(Leg leg) const {
  switch (leg) {
    case Leg::kBegin:
      return protocol::parts::kBegin;
    case Leg::kPut:
      return protocol::parts::kPut;
    case Leg::kGet:
      return protocol::parts::kGet;
    default:
      return path_;
  }
}

// What is over ends at the connection, which says so.
int64_t StartedCall::left_ms() const {
  if (deadline_ns_ == 0) return 0;
  return std::max<int64_t>(1, (deadline_ns_ - monotonic_ns()) / kMs);
}

void StartedCall::send(OutgoingMessage message) {
  if (message.payload_bytes() <= most_part_bytes()) return go(Leg::kCall, message.take_slices());
  parts_token_ = random_token();
  out_ = std::make_shared<const OutgoingParts>(message.take_payload(parts_token_));
  message_.emplace(std::move(message));
  go(Leg::kBegin, message_->take_slices());
}

void StartedCall::fetch(Message reply) {
  try {
    begin_fetch(std::move(reply));
  } catch (...) {
    fail(std::current_exception());
  }
}

void StartedCall::go(Leg leg, const std::vector<RpcSlice>& slices) {
  leg_ = leg;
  const uint64_t number = ++last_number_;
  const RpcRequest request{path_of(leg), slices.data(),          slices.size(),
                           left_ms(),    view_of(server_.token), wait_for_ready_};
  using Shared = std::shared_ptr<StartedCall>;
  const auto answered = [](void* self, int32_t code, bool theirs, const char* text, size_t bytes,
                           const RpcView* views, size_t count) {
    const std::unique_ptr<Shared> shared(static_cast<Shared*>(self));
    (*shared)->answered(code, theirs, {text, bytes}, {views, count});
  };
  const RpcAnswer answer{new Shared(shared_from_this()), answered};
  keep(number, api_.start(server_.channel.get(), &request, &answer));
}

// The answer may have come meanwhile, and the next message be under way.
void StartedCall::keep(uint64_t number, RpcPending* pending) {
  {
    const std::lock_guard lock(mutex_);
    if (number > number_) {
      number_ = number;
      std::swap(pending_, pending);
      if (cancelled_) api_.cancel(pending_);
    }
  }
  if (pending != nullptr) api_.forget(pending);
}

void StartedCall::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (pending_ != nullptr) api_.cancel(pending_);
}

bool StartedCall::is_cancelled() {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

void StartedCall::check_cancelled() {
  if (is_cancelled()) throw cancelled("the call was cancelled between two parts of a message");
}

void StartedCall::answered(int32_t code, bool theirs, std::string_view text,
                           std::span<const RpcView> reply) {
  try {
    if (code != 0) {
      code = code_of_call(code, theirs, is_cancelled());
      throw error_of_call(server_.who, server_.encrypted, code, theirs, text);
    }
    go_on(reply);
  } catch (...) {
    fail(std::current_exception());
  }
}

void StartedCall::go_on(std::span<const RpcView> reply) {
  switch (leg_) {
    case Leg::kBegin:
      return put();
    case Leg::kPut:
      offset_ += bytes_;
      return offset_ < out_->bytes() ? put() : call();
    case Leg::kCall: {
      parts_token_.clear();  // the request's, which were taken
      Message message(reply);
      if (message.in_parts) return begin_fetch(std::move(message));
      return answer_.answered(nullptr, &message);
    }
    case Leg::kGet:
      return take(reply);
  }
}

void StartedCall::put() {
  check_cancelled();
  bytes_ = std::min<uint64_t>(most_part_bytes(), out_->bytes() - offset_);
  const std::string head = framed(protocol::write(protocol::Part{parts_token_, offset_, 0}));
  std::vector<RpcSlice> slices{slice_of(head)};
  OutgoingParts::add_slices(out_, offset_, bytes_, slices);
  go(Leg::kPut, slices);
}

void StartedCall::call() {
  check_cancelled();
  out_.reset();
  go(Leg::kCall, message_->take_slices());
}

void StartedCall::begin_fetch(Message reply) {
  parts_token_ = parts_of(reply.head).token;
  in_.emplace(reply.head, std::numeric_limits<uint64_t>::max());
  reply_.emplace(std::move(reply));
  if (in_->left() == 0) throw data_loss(server_.who, " sent a message in no parts");
  get();
}

void StartedCall::get() {
  check_cancelled();
  offset_ = in_->bytes() - in_->left();
  bytes_ = std::min<uint64_t>(most_part_bytes(), in_->left());
  const std::string head = framed(protocol::write(protocol::Part{parts_token_, offset_, bytes_}));
  go(Leg::kGet, {slice_of(head)});
}

void StartedCall::take(std::span<const RpcView> reply) {
  MessageBytes bytes(reply);
  static_cast<void>(bytes.take_head());
  if (bytes.left() != bytes_)
    throw data_loss(server_.who, " sent ", bytes.left(), " bytes of a value instead of ", bytes_);
  in_->take(bytes);
  if (in_->left() > 0) return get();
  reply_->tensors = in_->tensors();
  in_.reset();
  answer_.answered(nullptr, &*reply_);
}

void StartedCall::fail(const std::exception_ptr& error) {
  if (!parts_token_.empty()) drop_parts();
  answer_.answered(error, nullptr);
}

// Nobody goes on with them. Where the server does not hear of it, they go after a while.
void StartedCall::drop_parts() const noexcept {
  constexpr int64_t kPatienceMs = 10'000;
  try {
    const std::string head = framed(protocol::write(protocol::Part{parts_token_, 0, 0}));
    const RpcSlice slice = slice_of(head);
    const RpcRequest request{protocol::parts::kDrop, &slice, 1, kPatienceMs,
                             view_of(server_.token), false};
    const RpcAnswer unheard{
        nullptr, [](void*, int32_t, bool, const char*, size_t, const RpcView*, size_t) {}};
    api_.forget(api_.start(server_.channel.get(), &request, &unheard));
  } catch (...) {
  }
}

}  // namespace treenail
