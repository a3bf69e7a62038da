// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/grouped_receives.h"

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
// In one request: so an answer stays far below what a message may have, and what a request repeats
// for each value that is answered by itself stays small.
constexpr size_t kMostKeys = 512;
constexpr size_t kMostOverMpi = 64;

using Wanted = ReceiveCollector::Wanted;

// Null: it is asked for by itself.
GroupedReceives::Group* group_of(const Node& receive, GroupedReceives& all) {
  const auto dtype = receive.op().get<DType>("T");
  const auto& shape = receive.op().get<PartialShape>("shape");
  if (!is_plain(dtype) || !shape.fully_known()) return nullptr;
  const auto size = static_cast<int64_t>(dtype_size(dtype));
  if (shape.num_elements() <= kSmallBytes / size) return &all.small;
  const bool is_large = MpiValues::fits(dtype, static_cast<size_t>(shape.num_elements() * size));
  return is_large ? &all.over_mpi : nullptr;
}

// One request, and the next one for what its answer lacks.
class Asking final : public SharedCall {
 public:
  static void begin(const RpcPeer& peer, uint64_t step, std::shared_ptr<MpiWay> way,
                    std::vector<Wanted> wanted) {
    auto* const self = new Asking(peer, step, std::move(way), std::move(wanted));
    self->watch();
    std::unique_ptr<RpcCalling> calling;
    try {
      calling = peer.start(protocol::worker::kReceiveSome, protocol::write(self->request()), {}, 0,
                           *self);
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
    const std::shared_ptr<MpiWay> way = way_;
    const uint64_t step = step_;
    release();
    try {
      if (error != nullptr) std::rethrow_exception(error);
      take(*reply, peer, way, wanted);
      if (!wanted.empty()) begin(peer, step, way, std::move(wanted));
    } catch (...) {
      for (const Wanted& each : wanted) give_up(each, way, std::current_exception());
    }
  }

 private:
  Asking(const RpcPeer& peer, uint64_t step, std::shared_ptr<MpiWay> way,
         std::vector<Wanted> wanted)
      : SharedCall(*wanted.front().c.token()),  // there until the last of them is done
        peer_(peer),
        way_(std::move(way)),
        step_(step),
        wanted_(std::move(wanted)) {}

  protocol::ReceiveSomeRequest request() {
    protocol::ReceiveSomeRequest request;
    request.step = step_;
    for (const Wanted& each : wanted_) request.keys.push_back(each.key);
    if (way_ == nullptr) return request;
    const MpiTask& own = way_->values->own();
    request.mpi_rank = own.rank;
    request.mpi_token = own.token;
    for (Wanted& each : wanted_) request.mpi_tags.push_back(each.mpi_tag = way_->values->new_tag());
    return request;
  }

  // The elements may have been sent before the answer was lost, or given up.
  static void give_up(const Wanted& wanted, const std::shared_ptr<MpiWay>& way,
                      std::exception_ptr error) {
    if (wanted.mpi_tag != 0) way->values->drop(way->task, wanted.mpi_tag);
    if (!wanted.c.token()->cancelled()) error = std::make_exception_ptr(BodyError{error});
    wanted.done.fail(std::move(error));
  }

  // What has come, or is under way, leaves `wanted`.
  static void take(const Message& reply, const RpcPeer& peer, const std::shared_ptr<MpiWay>& way,
                   std::vector<Wanted>& wanted) {
    const auto got = protocol::read<protocol::ReceivedSome>(reply.fields());
    if (got.keys.size() != reply.tensors.size() || got.mpi_keys.size() != got.mpi_tensors.size() ||
        got.keys.size() + got.mpi_keys.size() == 0)
      throw data_loss("another task sent ", reply.tensors.size(), " values for ", got.keys.size(),
                      " keys, and ", got.mpi_tensors.size(), " over MPI for ", got.mpi_keys.size());
    for (size_t i = 0; i < got.mpi_keys.size(); ++i) {
      const auto at = find(wanted, got.mpi_keys[i]);
      if (at->mpi_tag == 0)
        throw data_loss("another task sent over MPI what was not to: ", at->key);
      receive_over_mpi(peer, way, at->mpi_tag, read_description(got.mpi_tensors[i]), at->c,
                       at->done);
      wanted.erase(at);
    }
    for (size_t i = 0; i < got.keys.size(); ++i) {
      const auto at = find(wanted, got.keys[i]);
      at->c.set_output(0, reply.tensors[i]);
      const Done done = at->done;
      wanted.erase(at);
      done();
    }
  }

  static std::vector<Wanted>::iterator find(std::vector<Wanted>& wanted, const std::string& key) {
    const auto at = std::ranges::find(wanted, key, &Wanted::key);
    if (at == wanted.end())
      throw data_loss("another task sent a value that nobody has asked for: ", key);
    return at;
  }

  const RpcPeer& peer_;
  const std::shared_ptr<MpiWay> way_;  // null: none
  const uint64_t step_;
  std::vector<Wanted> wanted_;
};

}  // namespace

GroupedReceives grouped_receives(const Graph& piece) {
  GroupedReceives found;
  for (const Node* node : topological_order(piece)) {
    GroupedReceives::Group* const group =
        node->type() == "_Recv" ? group_of(*node, found) : nullptr;
    if (group == nullptr) continue;
    ++group->by_task[node->op().get_string("from")];
    group->keys.insert(node->op().get_string("key"));
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
  const size_t most = way_ == nullptr ? kMostKeys : kMostOverMpi;
  for (size_t i = 0; i < wanted.size(); i += most) {
    const auto from = wanted.begin() + static_cast<std::ptrdiff_t>(i);
    const auto count = static_cast<std::ptrdiff_t>(std::min(most, wanted.size() - i));
    Asking::begin(peer_, step_, way_, std::vector<Wanted>(from, from + count));
  }
}

}  // namespace treenail
