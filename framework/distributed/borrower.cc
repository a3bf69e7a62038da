// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/borrower.h"

#include <charconv>
#include <span>
#include <utility>

#include "framework/base/cancellation.h"
#include "framework/base/error.h"
#include "framework/base/spin.h"
#include "framework/distributed/message.h"
#include "framework/distributed/receiving.h"
#include "framework/runtime/kernel/kernel_functions.h"

namespace treenail {
namespace {

// For so long nothing is asked of a task that had no memory to lend.
constexpr int64_t kPauseNs = 1'000'000'000;

uint64_t number_of(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw invalid_argument("a task says \"", text, "\" where a number is needed");
  return number;
}

// What the other task has failed with is the error of this one as it stands.
std::exception_ptr error_of_task(std::string_view body) {
  const size_t blank = body.find(' ');
  const uint64_t code = number_of(body.substr(0, blank));
  const bool known = code > 0 && code <= static_cast<uint64_t>(Code::kUnauthenticated);
  const std::string text(blank == std::string_view::npos ? "" : body.substr(blank + 1));
  return std::make_exception_ptr(Error(known ? static_cast<Code>(code) : Code::kUnknown, text));
}

// Gives the block back, unless a tensor does so.
class Borrowed {
 public:
  explicit Borrowed(const SharedBlock& block) : block_(&block) {}
  ~Borrowed() {
    if (block_ != nullptr) block_->release();
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  void keep() { block_ = nullptr; }

 private:
  const SharedBlock* block_;
};

}  // namespace

struct Borrower::Awaited {
  Awaited(Borrower& borrower, protocol::ReceiveRequest request, const RunContext& c,
          const Done& done)
      : borrower(borrower), request(std::move(request)), c(c), done(done) {}

  // The last that happens to it, but for the callback that does so itself.
  void stop_watching() const { c.token()->remove_callback(callback); }
  void fail(std::exception_ptr error) const {
    if (!c.token()->cancelled()) error = std::make_exception_ptr(BodyError{error});
    done.fail(std::move(error));
  }

  Borrower& borrower;
  const protocol::ReceiveRequest request;
  RunContext c;
  const Done done;
  uint64_t number = 0;
  uint64_t callback = 0;
};

Borrower::Borrower(const RpcPeer& peer, LocalConnection connection,
                   std::shared_ptr<const WakeEvent> event, std::string_view hello)
    : peer_(peer), link_(std::move(connection)), event_(std::move(event)) {
  post(PacketKind::kHello, 0, hello);
}

Borrower::~Borrower() = default;

void Borrower::post(PacketKind kind, uint64_t number, std::string_view body) {
  if (link_.post(write_packet(kind, number, body))) event_->wake();
}

bool Borrower::ask(const protocol::ReceiveRequest& request, const RunContext& c, const Done& done) {
  const std::string body = protocol::write(request).text();
  if (!ready_ || monotonic_ns() < paused_until_ || body.size() > PacketLink::kMostBytes / 2)
    return false;
  auto made = std::make_unique<Awaited>(*this, request, c, done);
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    number = made->number = ++last_number_;
    made->callback = c.token()->add_callback(cancel, made.get());
    if (made->callback == 0) c.token()->check();  // it was cancelled before
    awaited_.emplace(number, std::move(made));
  }
  post(PacketKind::kAsk, number, body);
  return true;
}

std::unique_ptr<Borrower::Awaited> Borrower::take(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto at = awaited_.find(number);
  if (at == awaited_.end()) return nullptr;
  std::unique_ptr<Awaited> taken = std::move(at->second);
  awaited_.erase(at);
  return taken;
}

// On the thread that cancels. Whoever takes an Awaited elsewhere waits for the end of this.
void Borrower::cancel(void* awaited) {
  auto& cancelled = *static_cast<Awaited*>(awaited);
  Borrower& borrower = cancelled.borrower;
  const std::unique_ptr<Awaited> taken = borrower.take(cancelled.number);
  if (taken == nullptr) return;
  borrower.post(PacketKind::kForget, taken->number, {});
  taken->fail(std::make_exception_ptr(treenail::cancelled("nobody waits for the value")));
}

bool Borrower::hear() {
  std::string packet;
  while (true) {
    int passed = -1;
    const auto got = link_.receive(&packet, &passed);
    if (got != LocalConnection::Received::kMessage)
      return got == LocalConnection::Received::kNothing;
    handle(packet, passed);
  }
}

void Borrower::handle(std::string_view bytes, int passed) {
  IntrusivePtr<Segment> segment;
  if (passed >= 0) segment = Segment::open(passed);
  const NeighbourPacket packet = read_packet(bytes);
  switch (packet.kind) {
    case PacketKind::kHello:
      ready_ = true;
      return;
    case PacketKind::kSegment:
      if (segment) segment->close_fd();
      segments_[packet.number] = segment;
      return;
    case PacketKind::kDropSegment:
      segments_.erase(packet.number);
      return;
    case PacketKind::kInline:
      return finish(packet.number, [&] {
        const RpcView view{packet.body.data(), packet.body.size()};
        return Message(std::span(&view, 1)).tensors.at(0);
      });
    case PacketKind::kLent: {
      // Also where nobody waits any more: it has to be given back.
      Tensor value = lent_tensor(read_lent(packet.body));
      return finish(packet.number, [&] { return std::move(value); });
    }
    case PacketKind::kLentMessage: {
      Tensor value = lent_message(read_lent(packet.body));
      return finish(packet.number, [&] { return std::move(value); });
    }
    case PacketKind::kFailed:
      return finish(packet.number,
                    [&]() -> Tensor { std::rethrow_exception(error_of_task(packet.body)); });
    case PacketKind::kElsewhere:
      return ask_by_message(packet.number, packet.body);
    default:
      throw invalid_argument("a task answers what there is not: kind ",
                             static_cast<uint32_t>(packet.kind));
  }
}

SharedBlock Borrower::block_of(const LentValue& lent) const {
  const auto at = segments_.find(lent.address.segment);
  if (at != segments_.end() && at->second) {
    const IntrusivePtr<Segment>& segment = at->second;
    if (lent.address.offset >= kSharedHeader && lent.address.offset % kSharedHeader == 0 &&
        lent.address.offset <= segment->bytes() &&
        lent.address.bytes <= segment->bytes() - lent.address.offset)
      return {lent.address, segment->data() + lent.address.offset, segment};
  }
  throw invalid_argument("a task lends ", lent.address.bytes, " bytes at ", lent.address.offset,
                         " of its segment ", lent.address.segment, ", which it has not passed");
}

Tensor Borrower::lent_tensor(const LentValue& lent) {
  const SharedBlock block = block_of(lent);
  Borrowed borrowed(block);
  const auto& [dtype, shape] = lent.tensor;
  const bool plain = is_plain(dtype) && dtype != DType::kBool;
  // Divided, since a product could be too large.
  if (!plain || lent.address.bytes % dtype_size(dtype) != 0 ||
      lent.address.bytes / dtype_size(dtype) != static_cast<uint64_t>(shape.num_elements()))
    throw invalid_argument("a task lends ", lent.address.bytes, " bytes as a ", dtype, shape);
  Tensor value(dtype, shape, shared_buffer(block, lent.address.bytes));
  borrowed.keep();
  lent_bytes_ += lent.address.bytes;
  return value;
}

Tensor Borrower::lent_message(const LentValue& lent) {
  const SharedBlock block = block_of(lent);
  const Borrowed borrowed(block);
  lent_bytes_ += lent.address.bytes;
  // Nobody writes to it meanwhile but one who could do worse; still nothing is read twice that a
  // length depends on.
  const RpcView view{block.data, lent.address.bytes};
  return Message(std::span(&view, 1)).tensors.at(0);
}

template <class Make>
void Borrower::finish(uint64_t number, Make make) {
  const std::unique_ptr<Awaited> awaited = take(number);
  if (awaited == nullptr) return;
  awaited->stop_watching();
  std::exception_ptr error;
  try {
    awaited->c.set_output(0, make());
    ++values_;
  } catch (...) {
    error = std::current_exception();
  }
  if (error == nullptr) {
    awaited->done();
  } else {
    awaited->fail(error);
  }
}

void Borrower::ask_by_message(uint64_t number, std::string_view key) {
  paused_until_ = monotonic_ns() + kPauseNs;
  const std::unique_ptr<Awaited> awaited = take(number);
  if (awaited == nullptr) return;
  awaited->stop_watching();
  try {
    receive_by_message(peer_, {awaited->request.step, std::string(key)}, awaited->c, awaited->done);
  } catch (...) {
    awaited->fail(std::current_exception());
  }
}

void Borrower::close(const std::exception_ptr& error) {
  std::unordered_map<uint64_t, std::unique_ptr<Awaited>> left;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    ready_ = false;
    left.swap(awaited_);
  }
  for (const auto& [number, awaited] : left) {
    awaited->stop_watching();
    awaited->fail(error);
  }
}

}  // namespace treenail
