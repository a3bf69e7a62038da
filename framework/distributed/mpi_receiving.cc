// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/mpi_receiving.h"

#include <mutex>

#include "framework/base/cancellation.h"
#include "framework/base/error.h"
#include "framework/distributed/protocol.h"
#include "framework/runtime/kernel/kernel_functions.h"

namespace treenail {
namespace {

constexpr int64_t kAnswerMs = 10'000;  // for a task that is asked whether it still sends
// What was handed to MPI may be on its way for so many seconds more.
constexpr int kMostNotSent = 5;

class Arriving final : public MpiValues::Arrival, public std::enable_shared_from_this<Arriving> {
 public:
  Arriving(const RpcPeer& peer, std::shared_ptr<MpiWay> way, uint64_t tag, const RunContext& c,
           const Done& done)
      : peer_(peer), way_(std::move(way)), tag_(tag), c_(c), done_(done) {}

  void begin(Tensor value) {
    value_ = value;
    callback_ =
        c_.token()->add_callback([](void* self) { static_cast<Arriving*>(self)->cancel(); }, this);
    if (callback_ == 0) throw treenail::cancelled("nobody waits for the value");
    const std::shared_ptr<Arriving> kept = shared_from_this();
    try {
      way_->values->receive(way_->task, tag_, std::move(value), kept);
    } catch (...) {
      c_.token()->remove_callback(callback_);
      throw;
    }
    bool cancelled = false;
    {
      const std::lock_guard lock(mutex_);
      begun_ = true;
      cancelled = cancelled_;
    }
    if (cancelled) give_up(nobody_waits());
  }

  void arrived(std::exception_ptr error) noexcept override {
    c_.token()->remove_callback(callback_);
    end();
    try {
      if (error != nullptr) std::rethrow_exception(error);
      ++way_->received;
      way_->bytes += value_.bytes();
      c_.set_output(0, std::move(value_));
    } catch (...) {
      return fail(std::current_exception());
    }
    done_();
  }

  void waits() noexcept override;
  // Of what it was asked.
  void answered(const std::exception_ptr& error, const Message* reply) noexcept;

 private:
  static std::exception_ptr nobody_waits() {
    return std::make_exception_ptr(treenail::cancelled("nobody waits for the value"));
  }
  // On the thread that cancels; whoever ends this elsewhere waits for the end of it.
  void cancel() {
    const std::shared_ptr<Arriving> kept = shared_from_this();
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
      if (!begun_) return;
    }
    if (!way_->values->forget(*this)) return;
    end();
    fail(nobody_waits());
  }
  void give_up(std::exception_ptr error) {
    if (!way_->values->forget(*this)) return;
    c_.token()->remove_callback(callback_);
    end();
    fail(std::move(error));
  }
  void end() {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  void fail(std::exception_ptr error) {
    if (!c_.token()->cancelled()) error = std::make_exception_ptr(BodyError{error});
    done_.fail(std::move(error));
  }

  const RpcPeer& peer_;
  const std::shared_ptr<MpiWay> way_;
  const uint64_t tag_;
  RunContext c_;
  const Done done_;
  Tensor value_;
  uint64_t callback_ = 0;
  std::recursive_mutex mutex_;  // guards what follows
  bool begun_ = false, cancelled_ = false, over_ = false;
  bool asked_ = false;
  int not_sent_ = 0;
};

// Whether the other task is there; frees itself.
class Asking final : public RpcPeer::Answer {
 public:
  explicit Asking(std::shared_ptr<Arriving> value) : value_(std::move(value)) {}
  void answered(std::exception_ptr error, const Message* reply) noexcept override {
    const std::unique_ptr<Asking> self(this);
    value_->answered(error, reply);
  }

 private:
  const std::shared_ptr<Arriving> value_;
};

void Arriving::waits() noexcept {
  const MpiTask& own = way_->values->own();
  try {
    auto asking = std::make_unique<Asking>(shared_from_this());
    // The peer is there until the run is over, which needs this lock; its answer may come at once.
    const std::lock_guard lock(mutex_);
    if (over_ || asked_) return;
    asked_ = true;
    peer_.start(protocol::worker::kGetStatus,
                protocol::write(protocol::ReceiveRequest{0, "", own.rank, own.token, tag_}), {},
                kAnswerMs, *asking);
    static_cast<void>(asking.release());
  } catch (...) {
    give_up(std::current_exception());
  }
}

void Arriving::answered(const std::exception_ptr& error, const Message* reply) noexcept {
  int not_sent = 0;
  try {
    if (error != nullptr) std::rethrow_exception(error);
    const bool sends = protocol::read<protocol::TaskStatus>(reply->fields()).mpi_sends;
    const std::lock_guard lock(mutex_);
    asked_ = false;
    not_sent = not_sent_ = sends ? 0 : not_sent_ + 1;
  } catch (...) {
    return give_up(std::current_exception());
  }
  if (not_sent < kMostNotSent) return;
  give_up(std::make_exception_ptr(
      Error(Code::kUnavailable, concat("what ", peer_.who(), " has sent over MPI has not come"))));
}

}  // namespace

void receive_over_mpi(const RpcPeer& peer, const std::shared_ptr<MpiWay>& way, uint64_t tag,
                      const TensorDescription& tensor, const RunContext& c, const Done& done) {
  if (!is_plain(tensor.dtype) || tensor.dtype == DType::kBool)
    throw invalid_argument("a task sends a ", tensor.dtype, " over MPI, which has to be a number");
  std::make_shared<Arriving>(peer, way, tag, c, done)->begin(Tensor(tensor.dtype, tensor.shape));
}

}  // namespace treenail
