// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/lender.h"

#include <unistd.h>

#include <cstring>
#include <span>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/logging.h"
#include "framework/distributed/say_error.h"

namespace treenail {

ValueSource::~ValueSource() = default;

class Lender::Waiting final : public Rendezvous::Receiver {
 public:
  Waiting(std::shared_ptr<Lender> lender, uint64_t number, protocol::ReceiveRequest request)
      : number(number), request(std::move(request)), lender_(std::move(lender)) {}

  void received(const Tensor* value, std::exception_ptr error) noexcept override {
    const std::shared_ptr<Lender> lender = lender_;
    const std::unique_ptr<Waiting> self = lender->remove(number);
    lender->answer(*this, value, error);
  }

  const uint64_t number;
  const protocol::ReceiveRequest request;

 private:
  const std::shared_ptr<Lender> lender_;
};

Lender::Lender(ValueSource& source, LocalConnection connection,
               std::shared_ptr<const WakeEvent> event, Options options)
    : source_(source),
      link_(std::move(connection)),
      event_(std::move(event)),
      options_(std::move(options)),
      pool_(options_.most_bytes) {}

Lender::~Lender() = default;

void Lender::post(PacketKind kind, uint64_t number, std::string_view body,
                  IntrusivePtr<Segment> passed) {
  if (link_.post(write_packet(kind, number, body), std::move(passed))) event_->wake();
}

bool Lender::hear() {
  std::string packet;
  while (true) {
    int passed = -1;
    const auto got = link_.receive(&packet, &passed);
    if (passed >= 0) ::close(passed);
    if (got != LocalConnection::Received::kMessage)
      return got == LocalConnection::Received::kNothing;
    handle(read_packet(packet));
  }
}

void Lender::handle(const NeighbourPacket& packet) {
  if (packet.kind == PacketKind::kHello) {
    if (packet.body != options_.hello)
      throw failed_precondition("a task of another version of Treenail, or that looks for another ",
                                "process, has connected: it says \"", packet.body, "\"");
    greeted_ = true;
    return post(PacketKind::kHello, 0, {});
  }
  if (greeted_ && packet.kind == PacketKind::kAsk) return ask(packet.number, packet.body);
  if (greeted_ && packet.kind == PacketKind::kForget) return forget(packet.number);
  throw invalid_argument("a task asks for what there is not: kind ",
                         static_cast<uint32_t>(packet.kind));
}

void Lender::ask(uint64_t number, std::string_view body) {
  auto made = std::make_unique<Waiting>(
      shared_from_this(), number, protocol::read<protocol::ReceiveRequest>(ProtoReader(body)));
  Waiting& waiting = *made;
  {
    const std::lock_guard lock(mutex_);
    if (!waiting_.try_emplace(number, std::move(made)).second)
      throw invalid_argument("a task asks twice under the number ", number);
  }
  try {
    source_.receive(waiting.request, waiting);
  } catch (...) {
    answer(*remove(number), nullptr, std::current_exception());
  }
}

std::unique_ptr<Lender::Waiting> Lender::remove(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto at = waiting_.find(number);
  std::unique_ptr<Waiting> removed = std::move(at->second);
  waiting_.erase(at);
  return removed;
}

void Lender::forget(uint64_t number) {
  std::unique_ptr<Waiting> removed;
  const std::lock_guard lock(mutex_);
  const auto at = waiting_.find(number);
  if (at == waiting_.end()) return;
  if (!source_.forget(at->second->request.step, *at->second)) return;  // it is being answered
  removed = std::move(at->second);
  waiting_.erase(at);
}

void Lender::close() {
  std::vector<uint64_t> numbers;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, waiting] : waiting_) numbers.push_back(number);
  }
  for (const uint64_t number : numbers) forget(number);
}

void Lender::answer(const Waiting& waiting, const Tensor* value,
                    const std::exception_ptr& error) noexcept {
  constexpr size_t kMostText = PacketLink::kMostBytes / 2;
  try {
    if (error != nullptr) std::rethrow_exception(error);
    give(waiting, *value);
  } catch (...) {
    say_error(std::current_exception(), [&](Code code, std::string_view text) {
      post(PacketKind::kFailed, waiting.number,
           concat(static_cast<int>(code), " ", text.substr(0, kMostText)));
    });
  }
}

void Lender::give(const Waiting& waiting, const Tensor& value) {
  // A bool is looked at by who takes it from a message: it may hold anything.
  const bool as_it_lies = is_plain(value.dtype()) && value.dtype() != DType::kBool;
  if (as_it_lies && value.bytes() > options_.inline_bytes) {
    const LentValue lent{{}, {value.dtype(), value.shape()}};
    if (!lend(waiting, PacketKind::kLent, lent, &value, nullptr)) send_elsewhere(waiting, value);
    return;
  }
  const OutgoingMessage message({}, std::span(&value, 1));
  if (message.bytes() > options_.inline_bytes) {
    if (!lend(waiting, PacketKind::kLentMessage, {}, nullptr, &message))
      send_elsewhere(waiting, value);
    return;
  }
  std::string body(message.bytes(), '\0');
  message.copy_to(reinterpret_cast<std::byte*>(body.data()));
  post(PacketKind::kInline, waiting.number, body);
}

// Whether there was memory.
bool Lender::lend(const Waiting& waiting, PacketKind kind, LentValue lent, const Tensor* value,
                  const OutgoingMessage* message) {
  const size_t bytes = value != nullptr ? value->bytes() : message->bytes();
  SharedBlock block;
  try {
    block = pool_.allocate(
        bytes,
        [this](uint32_t number, const IntrusivePtr<Segment>& segment) {
          post(PacketKind::kSegment, number, {}, segment);
        },
        [this](uint32_t number) { post(PacketKind::kDropSegment, number, {}); });
  } catch (const Error& refused) {
    if (refused.code() != Code::kResourceExhausted) throw;
    log(LogLevel::kInfo, "a value goes by message to a task of this host: ", refused.message());
    return false;
  }
  if (value != nullptr) {
    std::memcpy(block.data, value->raw(), bytes);
  } else {
    message->copy_to(block.data);
  }
  lent.address = block.address;
  post(kind, waiting.number, write_lent(lent));
  return true;
}

void Lender::send_elsewhere(const Waiting& waiting, const Tensor& value) {
  const std::string key = concat(waiting.request.key, "#", waiting.number);
  source_.send_again({waiting.request.step, key}, value);
  post(PacketKind::kElsewhere, waiting.number, key);
}

}  // namespace treenail
