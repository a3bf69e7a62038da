// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/small_receives.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "framework/base/error.h"
#include "framework/distributed/protocol.h"
#include "framework/distributed/receiving.h"
#include "framework/distributed/shared_call.h"
#include "framework/runtime/kernel/kernel_functions.h"

namespace treenail {
namespace {

// Of larger values a message of their own costs little.
constexpr int64_t kSmallBytes = 16 << 10;
// In one request: so an answer stays far below what a message may have.
constexpr size_t kMostKeys = 512;

using Wanted = ReceiveCollector::Wanted;

bool is_small(const Node& receive) {
  const auto dtype = receive.op().get<DType>("T");
  const auto& shape = receive.op().get<PartialShape>("shape");
  if (!is_plain(dtype) || !shape.fully_known()) return false;
  return shape.num_elements() <= kSmallBytes / static_cast<int64_t>(dtype_size(dtype));
}

void fail(const Wanted& wanted, std::exception_ptr error) {
  if (!wanted.c.token()->cancelled()) error = std::make_exception_ptr(BodyError{error});
  wanted.done.fail(std::move(error));
}

// One request, and the next one for what its answer lacks.
class Asking final : public SharedCall {
 public:
  static void begin(const RpcPeer& peer, uint64_t step, std::vector<Wanted> wanted) {
    auto* const self = new Asking(peer, step, std::move(wanted));
    self->watch();
    std::unique_ptr<RpcCalling> calling;
    try {
      protocol::ReceiveSomeRequest request{step, {}};
      for (const Wanted& each : self->wanted_) request.keys.push_back(each.key);
      calling = peer.start(protocol::worker::kReceiveSome, protocol::write(request), {}, 0, *self);
    } catch (...) {
      self->answered(std::current_exception(), nullptr);
      return self->release();
    }
    self->started(std::move(calling));
  }

  void answered(std::exception_ptr error, const Message* reply) noexcept override {
    unwatch();
    std::vector<Wanted> wanted = std::move(wanted_);
    const RpcPeer& peer = peer_;
    const uint64_t step = step_;
    release();
    try {
      if (error != nullptr) std::rethrow_exception(error);
      take(*reply, wanted);
      if (!wanted.empty()) begin(peer, step, std::move(wanted));
    } catch (...) {
      for (const Wanted& each : wanted) fail(each, std::current_exception());
    }
  }

 private:
  Asking(const RpcPeer& peer, uint64_t step, std::vector<Wanted> wanted)
      : SharedCall(*wanted.front().c.token()),  // there until the last of them is done
        peer_(peer),
        step_(step),
        wanted_(std::move(wanted)) {}

  // What has come leaves `wanted`.
  static void take(const Message& reply, std::vector<Wanted>& wanted) {
    const auto got = protocol::read<protocol::ReceivedSome>(reply.fields());
    if (got.keys.empty() || got.keys.size() != reply.tensors.size())
      throw data_loss("another task sent ", reply.tensors.size(), " values for ", got.keys.size(),
                      " keys");
    for (size_t i = 0; i < got.keys.size(); ++i) {
      const auto at = std::ranges::find(wanted, got.keys[i], &Wanted::key);
      if (at == wanted.end())
        throw data_loss("another task sent a value that nobody has asked for: ", got.keys[i]);
      at->c.set_output(0, reply.tensors[i]);
      const Done done = at->done;
      wanted.erase(at);
      done();
    }
  }

  const RpcPeer& peer_;
  const uint64_t step_;
  std::vector<Wanted> wanted_;
};

}  // namespace

SmallReceives small_receives(const Graph& piece) {
  SmallReceives found;
  for (const Node* node : topological_order(piece)) {
    if (node->type() != "_Recv" || !is_small(*node)) continue;
    ++found.by_task[node->op().get_string("from")];
    found.keys.insert(node->op().get_string("key"));
  }
  return found;
}

void ReceiveCollector::add(Wanted wanted, Neighbours& neighbours) {
  bool first = false;
  bool last = false;
  {
    const std::lock_guard lock(mutex_);
    wanted_.push_back(std::move(wanted));
    first = wanted_.size() == 1;
    last = ++added_ == most_;
  }
  if (last) {
    run();
  } else if (first) {
    neighbours.later(shared_from_this());
  }
}

void ReceiveCollector::run() noexcept {
  std::vector<Wanted> wanted;
  {
    const std::lock_guard lock(mutex_);
    wanted.swap(wanted_);
  }
  for (size_t i = 0; i < wanted.size(); i += kMostKeys) {
    const auto from = wanted.begin() + static_cast<std::ptrdiff_t>(i);
    const auto count = static_cast<std::ptrdiff_t>(std::min(kMostKeys, wanted.size() - i));
    Asking::begin(peer_, step_, std::vector<Wanted>(from, from + count));
  }
}

}  // namespace treenail
