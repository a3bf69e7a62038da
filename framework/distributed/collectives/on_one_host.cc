// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/collectives/on_one_host.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/base/spin.h"
#include "framework/distributed/collectives/shared_memory_communicator.h"

namespace treenail {
namespace {

// Shared memory within, an exchange around: it ends when the group is left.
class OnOneHost final : public Communicator {
 public:
  OnOneHost(std::shared_ptr<Communicator> within, std::unique_ptr<ByteExchange> around)
      : Communicator(within->rank(), within->size()),
        within_(std::move(within)),
        around_(std::move(around)) {}
  const char* transport() const override { return within_->transport(); }
  void submit(IntrusivePtr<Collective> collective) override {
    within_->submit(std::move(collective));
  }
  Tensor allocate(DType dtype, const Shape& shape) override {
    return within_->allocate(dtype, shape);
  }
  void close() noexcept override {
    within_->close();
    if (std::exchange(closed_, true)) return;
    around_->close();
  }

 private:
  const std::shared_ptr<Communicator> within_;
  const std::unique_ptr<ByteExchange> around_;
  bool closed_ = false;
};

// silent: the ranks from which one has not come.
std::vector<std::byte> await_note(ByteExchange& exchange, int64_t deadline, std::set<int>& silent) {
  int peer = 0;
  std::vector<std::byte> bytes;
  while (!exchange.take_note(&peer, &bytes)) {
    if (std::string why; exchange.take_loss(&peer, &why))
      throw Error(Code::kUnavailable, concat(why, ", while the group was forming"));
    poll_interrupt();
    if (monotonic_ns() > deadline) {
      throw deadline_exceeded("rank ", *silent.begin(),
                              " has not answered in time while the group was forming");
    }
    const timespec moment{0, 100'000};
    ::nanosleep(&moment, nullptr);
  }
  silent.erase(peer);
  return bytes;
}

// A directory of rank 0's, told to all; empty where none can be made.
std::string meeting_place(ByteExchange& exchange, int64_t deadline) {
  if (exchange.rank() != 0) {
    std::set<int> silent{0};
    const std::vector<std::byte> bytes = await_note(exchange, deadline, silent);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  const std::string base =
      env_text("XDG_RUNTIME_DIR").value_or(env_text("TMPDIR").value_or("/tmp"));
  std::string path = base + "/treenail-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) path.clear();
  for (int to = 1; to < exchange.size(); ++to)
    exchange.send_note(to, std::as_bytes(std::span(path)));
  return path;
}

// Whether all ranks say yes.
bool all_agree(ByteExchange& exchange, bool own, int64_t deadline) {
  std::set<int> silent{0};
  const std::byte one{static_cast<unsigned char>(own ? 1 : 0)};
  if (exchange.rank() != 0) {
    exchange.send_note(0, std::span(&one, 1));
    return await_note(exchange, deadline, silent).at(0) == std::byte{1};
  }
  silent.clear();
  for (int peer = 1; peer < exchange.size(); ++peer) silent.insert(peer);
  bool all = own;
  while (!silent.empty()) all = await_note(exchange, deadline, silent).at(0) == std::byte{1} && all;
  const std::byte answer{static_cast<unsigned char>(all ? 1 : 0)};
  for (int to = 1; to < exchange.size(); ++to) exchange.send_note(to, std::span(&answer, 1));
  return all;
}

std::shared_ptr<Communicator> try_join(const ByteExchange& exchange, const OneHostLimits& limits,
                                       const std::string& directory) {
  SharedMemoryGroup where;
  where.rank = exchange.rank();
  where.size = exchange.size();
  where.directory = directory;
  where.timeout_ns = limits.timeout_ns;
  // All are there: who cannot connect by then will not, and time must be left to say so.
  where.join_timeout_ns =
      std::min<int64_t>(limits.join_timeout_ns / 2, int64_t{20} * 1'000'000'000);
  try {
    return directory.empty() ? nullptr : join_shared_memory(where);
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

std::shared_ptr<Communicator> try_on_one_host(std::unique_ptr<ByteExchange>* exchange,
                                              const OneHostLimits& limits) {
  const int64_t deadline = monotonic_ns() + limits.join_timeout_ns;
  const std::string directory = meeting_place(**exchange, deadline);
  // Nobody else has a directory of that name: who sees it is in no other mount namespace.
  const bool seen = !directory.empty() && ::access(directory.c_str(), W_OK | X_OK) == 0;
  std::shared_ptr<Communicator> within;
  bool all = all_agree(**exchange, seen, deadline);
  if (all) {
    within = try_join(**exchange, limits, directory);
    all = all_agree(**exchange, within != nullptr, deadline);
  }
  if ((*exchange)->rank() == 0 && !directory.empty()) ::rmdir(directory.c_str());
  if (all) return std::make_shared<OnOneHost>(std::move(within), std::move(*exchange));
  if (within != nullptr) within->close();
  return nullptr;
}

}  // namespace treenail
