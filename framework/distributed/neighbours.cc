// SPDX-License-Identifier: Apache-2.0
// One thread per task answers and hears all local sockets.
#include "framework/distributed/neighbours.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/base/logging.h"
#include "framework/base/spin.h"
#include "framework/distributed/borrower.h"
#include "framework/distributed/neighbour_packets.h"
#include "framework/distributed/say_error.h"
#include "framework/distributed/shared_memory/local_socket.h"
#include "framework/distributed/wake_event.h"

namespace treenail {

LaterWork::~LaterWork() = default;

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kRetryNs = 10 * kSecond;  // whether a task is on this host
constexpr int64_t kRestartNs = kSecond;     // the same, when one was and its socket closed
constexpr int64_t kStatusMs = 10'000;       // for its answer who it is
constexpr int kPollMs = 1000;
constexpr const char* kNotWanted = "TREENAIL_SHARED_MEMORY is \"no\"";

}  // namespace

class Neighbours::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(ValueSource& own, uint64_t incarnation, MpiChoice mpi)
      : own_(own),
        mpi_(std::move(mpi)),
        hello_(hello_text(incarnation)),
        most_lent_(most_lent_bytes()),
        event_(std::make_shared<WakeEvent>()) {
    listen(incarnation);
    start();
  }
  ~Core() {
    // The child of a fork has no thread, and the socket's name is the parent's.
    if (listener_ != nullptr && generation_ != fork_generation()) listener_.release();
  }

  void stop();
  // Null: by message.
  std::shared_ptr<Borrower> borrower(std::string_view task, const RpcPeer& peer);
  std::shared_ptr<MpiWay> mpi_way(std::string_view task) const;
  std::vector<Transport> transports() const;
  void later(std::shared_ptr<LaterWork> work) {
    {
      const std::lock_guard lock(mutex_);
      works_.push_back(std::move(work));
    }
    event_->wake();
  }

 private:
  struct Peer {
    std::shared_ptr<Borrower> borrower;
    bool asked = false;  // who it is
    std::string reason;  // why there is no borrower
    std::shared_ptr<MpiWay> way;
    std::string no_way;  // why there is none
    int64_t retry_at = 0;
  };
  class Finding;

  void listen(uint64_t incarnation);
  void start();
  void run();
  void turn();
  void work();
  bool listening() const { return listener_ != nullptr && monotonic_ns() >= accept_after_; }
  void accept();
  template <class Link>
  void hear_each(std::vector<std::shared_ptr<Link>>& links, const pollfd* polled);
  void drop(const std::shared_ptr<Lender>& lender, const std::string& why);
  void drop(const std::shared_ptr<Borrower>& borrower, const std::string& why);
  void find(const std::string& task, const RpcPeer& peer);
  void found(const std::string& task, const RpcPeer& peer, const protocol::TaskStatus& status);
  void find_in_mpi(const std::string& task, const MpiTask& place);
  void not_found(const std::string& task, const std::string& why);

  ValueSource& own_;
  const MpiChoice mpi_;
  const std::string hello_;
  const int64_t most_lent_;
  const std::shared_ptr<const WakeEvent> event_;
  const uint32_t generation_ = fork_generation();
  std::unique_ptr<LocalListener> listener_;
  std::optional<std::thread> thread_;
  std::atomic<bool> stopped_{false};
  std::vector<std::shared_ptr<Lender>> lenders_;  // of the thread
  int64_t accept_after_ = 0;                      // of the thread
  mutable std::mutex mutex_;                      // guards what follows
  std::map<std::string, Peer, std::less<>> peers_;
  std::vector<std::shared_ptr<LaterWork>> works_;
};

// Asks a task who it is; frees itself.
class Neighbours::Core::Finding final : public RpcPeer::Answer {
 public:
  Finding(std::shared_ptr<Core> core, std::string task, const RpcPeer& peer)
      : core_(std::move(core)), task_(std::move(task)), peer_(peer) {}

  void answered(std::exception_ptr error, const Message* reply) noexcept override {
    const std::unique_ptr<Finding> self(this);
    try {
      if (error != nullptr) std::rethrow_exception(error);
      core_->found(task_, peer_, protocol::read<protocol::TaskStatus>(reply->fields()));
    } catch (...) {
      core_->not_found(task_, text_of(std::current_exception()));
    }
  }

 private:
  const std::shared_ptr<Core> core_;
  const std::string task_;
  const RpcPeer& peer_;
};

void Neighbours::Core::listen(uint64_t incarnation) {
  const std::string directory = neighbour_directory();
  if (directory.empty()) return;
  try {
    listener_ = std::make_unique<LocalListener>(directory, neighbour_name(incarnation));
    remove_dead_sockets(directory);
  } catch (const std::exception& error) {
    log(LogLevel::kInfo, "other tasks get values by message: ", error.what());
  }
}

void Neighbours::Core::start() {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_.emplace([this] { run(); });
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw resource_exhausted("no thread is left for the other tasks of this host");
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Neighbours::Core::stop() {
  if (generation_ != fork_generation()) {
    new std::optional<std::thread>(std::move(thread_));  // nobody to wait for
    return;
  }
  stopped_ = true;
  event_->wake();
  thread_->join();
  work();
  for (const auto& lender : lenders_) lender->close();
  lenders_.clear();
  decltype(peers_) gone;
  {
    const std::lock_guard lock(mutex_);
    gone.swap(peers_);
  }
  const auto error = std::make_exception_ptr(cancelled("the server has stopped"));
  for (const auto& [task, peer] : gone)
    if (peer.borrower != nullptr) peer.borrower->close(error);
}

// --- The thread ----------------------------------------------------------------------------------

void Neighbours::Core::run() {
  while (!stopped_) {
    try {
      turn();
    } catch (const std::exception& error) {
      log(LogLevel::kError, "values of other tasks of this host: ", error.what());
    }
  }
}

void Neighbours::Core::turn() {
  std::vector<std::shared_ptr<Borrower>> borrowers;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [task, peer] : peers_)
      if (peer.borrower != nullptr) borrowers.push_back(peer.borrower);
  }
  std::vector<std::shared_ptr<Lender>> lenders = lenders_;
  std::vector<pollfd> polled{{event_->fd(), POLLIN, 0},
                             {listening() ? listener_->fd() : -1, POLLIN, 0}};
  const auto add = [&](const auto& link) {
    const auto wanted = static_cast<short>(link->waits() ? POLLIN | POLLOUT : POLLIN);
    polled.push_back({link->fd(), wanted, 0});
  };
  for (const auto& lender : lenders) add(lender);
  for (const auto& borrower : borrowers) add(borrower);
  if (::poll(polled.data(), polled.size(), kPollMs) <= 0) return;
  if (polled[0].revents != 0) event_->clear();
  work();
  hear_each(borrowers, polled.data() + 2 + lenders.size());
  hear_each(lenders, polled.data() + 2);
  if (polled[1].revents != 0) accept();
}

void Neighbours::Core::work() {
  std::vector<std::shared_ptr<LaterWork>> works;
  {
    const std::lock_guard lock(mutex_);
    works.swap(works_);
  }
  for (const auto& each : works) each->run();
}

template <class Link>
void Neighbours::Core::hear_each(std::vector<std::shared_ptr<Link>>& links, const pollfd* polled) {
  for (size_t i = 0; i < links.size(); ++i) {
    if (polled[i].revents == 0) continue;
    try {
      if ((polled[i].revents & POLLOUT) != 0) links[i]->flush();
      if (!links[i]->hear()) drop(links[i], "its process has ended, or its server");
    } catch (...) {
      drop(links[i], text_of(std::current_exception()));
    }
  }
}

void Neighbours::Core::accept() {
  try {
    Lender::Options options;
    options.hello = hello_;
    options.most_bytes = most_lent_;
    lenders_.push_back(std::make_shared<Lender>(own_, listener_->accept(monotonic_ns()), event_,
                                                std::move(options)));
  } catch (const Error& error) {
    log(LogLevel::kInfo, "refused a process of this host: ", error.message());
    // It may still stand in the queue.
    if (error.code() == Code::kUnavailable) accept_after_ = monotonic_ns() + kSecond;
  }
}

void Neighbours::Core::drop(const std::shared_ptr<Lender>& lender, const std::string& why) {
  log(LogLevel::kInfo, "a task of this host borrows no more: ", why);
  lender->close();
  std::erase(lenders_, lender);
}

void Neighbours::Core::drop(const std::shared_ptr<Borrower>& borrower, const std::string& why) {
  std::string who;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [task, peer] : peers_) {
      if (peer.borrower != borrower) continue;
      peer.borrower.reset();
      peer.reason = why;
      peer.retry_at = monotonic_ns() + (borrower->ready() ? kRestartNs : kRetryNs);
      who = task;
    }
  }
  log(LogLevel::kInfo, who, " lends no more: ", why);
  borrower->close(
      std::make_exception_ptr(Error(Code::kUnavailable, concat("lost the task ", who, ": ", why))));
}

// --- Finding them --------------------------------------------------------------------------------

std::shared_ptr<Borrower> Neighbours::Core::borrower(std::string_view task, const RpcPeer& peer) {
  if (generation_ != fork_generation()) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    Peer& known = peers_.try_emplace(std::string(task)).first->second;
    if (known.borrower != nullptr) return known.borrower;
    if (known.asked || monotonic_ns() < known.retry_at) return nullptr;
    known.asked = true;
  }
  find(std::string(task), peer);
  return nullptr;
}

void Neighbours::Core::find(const std::string& task, const RpcPeer& peer) {
  if (neighbour_directory().empty() && mpi_.values == nullptr) return not_found(task, kNotWanted);
  auto finding = std::make_unique<Finding>(shared_from_this(), task, peer);
  try {
    peer.start(protocol::worker::kGetStatus, {}, {}, kStatusMs, *finding);
    static_cast<void>(finding.release());
  } catch (const Error& error) {
    not_found(task, error.message());
  }
}

void Neighbours::Core::found(const std::string& task, const RpcPeer& peer,
                             const protocol::TaskStatus& status) {
  find_in_mpi(task, {status.mpi_rank, status.mpi_token});
  const std::string directory = neighbour_directory();
  if (directory.empty()) return not_found(task, kNotWanted);
  const uint64_t incarnation = status.incarnation;
  const auto made = std::make_shared<Borrower>(
      peer, connect_local(directory, neighbour_name(incarnation), monotonic_ns()), event_,
      hello_text(incarnation));
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    Peer& known = peers_[task];
    known.asked = false;
    known.borrower = made;
    known.reason.clear();
  }
  log(LogLevel::kInfo, task, " is on this host");
  event_->wake();
}

void Neighbours::Core::find_in_mpi(const std::string& task, const MpiTask& place) {
  if (mpi_.values == nullptr) return;
  const bool known = mpi_.values->knows(place);
  const std::lock_guard lock(mutex_);
  Peer& peer = peers_[task];
  peer.no_way = known ? "" : place.token.empty() ? "it has none" : "it is of another launch";
  if (!known) return peer.way.reset();
  if (peer.way != nullptr && peer.way->task.rank == place.rank) return;
  peer.way = std::make_shared<MpiWay>(mpi_.values, place);
  log(LogLevel::kInfo, task, " is rank ", place.rank, " of MPI");
}

std::shared_ptr<MpiWay> Neighbours::Core::mpi_way(std::string_view task) const {
  const std::lock_guard lock(mutex_);
  const auto at = peers_.find(task);
  return at == peers_.end() ? nullptr : at->second.way;
}

void Neighbours::Core::not_found(const std::string& task, const std::string& why) {
  log(LogLevel::kInfo, task, " gives values by message: ", why);
  const std::lock_guard lock(mutex_);
  Peer& known = peers_[task];
  known.asked = false;
  known.reason = why;
  known.retry_at = monotonic_ns() + kRetryNs;
}

std::vector<Transport> Neighbours::Core::transports() const {
  const std::lock_guard lock(mutex_);
  std::vector<Transport> all;
  for (const auto& [task, peer] : peers_) {
    Transport& one = all.emplace_back();
    one.task = task;
    one.reason = peer.reason;
    const std::string& no_way = mpi_.values != nullptr ? peer.no_way : mpi_.why_not;
    if (!no_way.empty()) one.reason += concat("; no MPI: ", no_way);
    if (peer.way != nullptr) {
      one.mpi = true;
      one.mpi_values = peer.way->received;
      one.mpi_bytes = peer.way->bytes;
    }
    if (peer.borrower == nullptr) continue;
    one.shared_memory = peer.borrower->ready();
    one.values = peer.borrower->values();
    one.lent_bytes = peer.borrower->lent_bytes();
  }
  return all;
}

// --- The face ------------------------------------------------------------------------------------

Neighbours::Neighbours(ValueSource& own, uint64_t incarnation, MpiChoice mpi)
    : core_(std::make_shared<Core>(own, incarnation, std::move(mpi))) {}

Neighbours::~Neighbours() { core_->stop(); }

bool Neighbours::receive(std::string_view from, const RpcPeer& peer,
                         const protocol::ReceiveRequest& request, const RunContext& c,
                         const Done& done) {
  const std::shared_ptr<Borrower> borrower = core_->borrower(from, peer);
  return borrower != nullptr && borrower->ask(request, c, done);
}

void Neighbours::later(std::shared_ptr<LaterWork> work) { core_->later(std::move(work)); }
std::shared_ptr<MpiWay> Neighbours::mpi_way(std::string_view from) const {
  return core_->mpi_way(from);
}
std::vector<Transport> Neighbours::transports() const { return core_->transports(); }

}  // namespace treenail
