// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/collectives/engine.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "framework/base/spin.h"
#include "framework/base/text.h"
#include "framework/distributed/collectives/parts.h"

namespace treenail {
namespace {

// How long a submitting thread helps, and the engine's own looks before it sleeps: about what
// waking a thread costs. It helps with no more than what is over soon.
constexpr int64_t kHelpNs = 20'000;
constexpr size_t kHelpBytes = 1 << 20;
constexpr int64_t kSpinNs = 20'000;
constexpr int64_t kUnderWayNs = 2'000'000;  // where all ranks are there and values are moving
constexpr int64_t kLeaveNs = 10'000'000'000;
constexpr int kCheckMs = 100;  // how often time limits are looked at

std::exception_ptr error_ptr(Code code, std::string text) {
  return std::make_exception_ptr(Error(code, std::move(text)));
}

}  // namespace

Engine::Execution::~Execution() = default;

Engine::Engine(int rank, int size, int64_t timeout_ns)
    : Communicator(rank, size), timeout_ns_(timeout_ns), gone_(static_cast<size_t>(size)) {}

Engine::~Engine() = default;

void Engine::start() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Engine::stop() noexcept {
  if (forked()) {
    thread_.detach();  // it runs in the parent
    return;
  }
  stopping_.store(true);
  wake();
  if (thread_.joinable()) thread_.join();
}

// --- Submitting
// -----------------------------------------------------------------------------------

void Engine::submit(IntrusivePtr<Collective> collective) {
  if (forked()) {
    throw failed_precondition(
        "the process was forked after it had joined its group; the child is no member of it");
  }
  {
    const std::lock_guard lock(queue_mutex_);
    if (!failure_.empty()) throw Error(Code::kUnavailable, failure_);
    if (closed_) throw failed_precondition("the process has left its group of processes");
  }
  std::unique_ptr<Execution> execution = make_execution();
  execution->collective = std::move(collective);
  const IntrusivePtr<Collective> kept = execution->collective;
  Descriptor own = describe(*kept, 0);
  try {
    stage(*execution, own);
  } catch (const Error& error) {
    own.error = static_cast<uint8_t>(error.code());  // the others wait for this rank
  }
  execution->by_rank.assign(1, own);
  execution->submitted_ns = monotonic_ns();
  enqueue(std::move(execution));
  help(input_bytes(own), kept.get());
}

void Engine::enqueue(std::unique_ptr<Execution> execution) {
  const std::lock_guard lock(queue_mutex_);
  Descriptor& own = execution->by_rank[0];
  own.instance = instances_[own.key_hash]++;
  unfinished_.fetch_add(1);
  queue_.push_back(std::move(execution));
}

// Small messages are often through before another thread would be awake.
void Engine::help(size_t bytes, const Collective* collective) {
  const int64_t until =
      monotonic_ns() + (bytes <= kHelpBytes ? kHelpNs + static_cast<int64_t>(bytes / 8) : 0);
  bool over = false;
  do {
    Ends ends;
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) break;
    turn(true, false, ends);
    lock.unlock();
    for (const End& end : ends) over = over || end.collective.get() == collective;
    tell(ends);
    if (!over) spin_pause();
  } while (!over && monotonic_ns() < until);
  if (unfinished_.load() > 0 && asleep_.exchange(false)) wake();
}

// --- Going on
// -------------------------------------------------------------------------------------

Engine::Execution& Engine::execution_of(uint64_t hash, uint64_t instance) {
  std::unique_ptr<Execution>& found = executions_[{hash, instance}];
  if (found != nullptr) return *found;
  found = make_execution();
  const auto ranks = static_cast<size_t>(size());
  found->by_rank.resize(ranks);
  found->place.resize(ranks);
  found->arrived.resize(ranks);
  found->missing = size();
  return *found;
}

void Engine::arrived(int peer, uint64_t place, const Descriptor& descriptor) {
  Execution& execution = execution_of(descriptor.key_hash, descriptor.instance);
  const auto r = static_cast<size_t>(peer);
  if (execution.arrived[r]) return;
  execution.arrived[r] = true;
  execution.by_rank[r] = descriptor;
  execution.place[r] = place;
  --execution.missing;
}

void Engine::departed(int peer, bool left, const std::string& why) {
  gone_[static_cast<size_t>(peer)] = why;
  const std::lock_guard lock(queue_mutex_);
  // The first loss is why others leave, also where their farewells come before it is noticed.
  if (failure_.empty() || (!left && !lost_)) failure_ = why;
  lost_ = lost_ || !left;
}

void Engine::take_queue() {
  std::deque<std::unique_ptr<Execution>> fresh;
  {
    const std::lock_guard lock(queue_mutex_);
    fresh.swap(queue_);
  }
  for (std::unique_ptr<Execution>& execution : fresh) {
    const Descriptor own = execution->by_rank[0];
    const Key key{own.key_hash, own.instance};
    Execution& known = execution_of(key.first, key.second);
    // What peers have told already moves to the one that was staged.
    execution->by_rank = std::move(known.by_rank);
    execution->place = std::move(known.place);
    execution->arrived = std::move(known.arrived);
    execution->missing = known.missing;
    executions_[key] = std::move(execution);
    arrived(rank(), 0, own);
    unposted_.push_back(key);
  }
}

bool Engine::turn(bool small_only, bool all, Ends& ends) {
  take_queue();
  while (!unposted_.empty()) {
    Execution& next = *executions_.at(unposted_.front());
    if (!post(next)) break;
    next.posted = true;
    unposted_.pop_front();
  }
  bool moved = poll(all);
  for (auto at = executions_.begin(); at != executions_.end();) {
    Execution& execution = *at->second;
    if (!go_on(execution, small_only, ends)) {
      ++at;
      continue;
    }
    moved = true;
    at = executions_.erase(at);
  }
  fail_lost(ends);
  return moved;
}

bool Engine::go_on(Execution& execution, bool small_only, Ends& ends) {
  if (execution.missing > 0 || !execution.posted) return false;
  if (!execution.agreed) {
    const Disagreement problem = disagreement(execution.by_rank);
    if (problem.code != Code::kOk) {
      finish(execution, error_ptr(problem.code, problem.text), ends);
      return true;
    }
    execution.agreed = true;
  }
  if (small_only && input_bytes(execution.by_rank[0]) > kHelpBytes) return false;
  try {
    if (!advance(execution)) return false;
    finish(execution, nullptr, ends);
  } catch (...) {
    finish(execution, std::current_exception(), ends);
  }
  return true;
}

void Engine::finish(Execution& execution, std::exception_ptr error, Ends& ends) noexcept {
  finished(execution);
  if (execution.told) return;
  execution.collective->inputs.clear();
  ends.push_back({std::move(execution.collective), std::move(error)});
}

void Engine::tell(Ends& ends) noexcept {
  for (End& end : ends) {
    unfinished_.fetch_sub(1);
    end.collective->ended(std::move(end.error));
  }
  ends.clear();
}

// --- What does not come
// ---------------------------------------------------------------------------

// Whether a peer has left without what the execution needs of it.
bool Engine::lacks(Execution& execution, int peer) {
  if (!execution.arrived[static_cast<size_t>(peer)]) return true;
  return execution.missing == 0 && has_all_of_who_left() && awaits(execution, peer);
}

void Engine::fail_lost(Ends& ends) {
  if (failure_.empty()) return;
  for (auto at = executions_.begin(); at != executions_.end();) {
    Execution& execution = *at->second;
    std::string why = lost_ ? failure_ : "";
    for (int r = 0; r < size() && why.empty(); ++r) {
      const std::string& left = gone_[static_cast<size_t>(r)];
      if (!left.empty() && lacks(execution, r)) why = left;
    }
    if (why.empty() || execution.collective == nullptr) {
      ++at;
      continue;
    }
    const std::string text =
        concat(called(execution.by_rank[static_cast<size_t>(rank())]), ": ", why);
    if (!execution.told)
      ends.push_back({std::move(execution.collective), error_ptr(Code::kUnavailable, text)});
    at = executions_.erase(at);
  }
  unposted_.clear();
}

// Which ranks have not come, or else not done what this one waits for.
std::string Engine::late_ranks(Execution& execution) {
  const auto listed = [&](const auto& is_late) {
    std::string found;
    for (int r = 0; r < size(); ++r) {
      if (r != rank() && is_late(r)) found += concat(found.empty() ? "rank " : ", ", r);
    }
    return found;
  };
  const std::vector<bool>& here = execution.arrived;
  const std::string absent = listed([&](int r) { return !here[static_cast<size_t>(r)]; });
  if (!absent.empty()) return concat(absent, " has not asked for it");
  const std::string slow = listed([&](int r) { return awaits(execution, r); });
  return slow.empty() ? "it has not ended" : concat(slow, " has not done its part");
}

// The execution stays: this rank's part is given, and the others may come yet.
void Engine::fail_late(Ends& ends) {
  if (timeout_ns_ <= 0) return;
  const int64_t now = monotonic_ns();
  for (auto& [key, execution] : executions_) {
    if (execution->collective == nullptr || execution->told) continue;
    if (now - execution->submitted_ns < timeout_ns_) continue;
    const std::string what = late_ranks(*execution);
    execution->told = true;
    ends.push_back(
        {execution->collective,
         error_ptr(Code::kDeadlineExceeded,
                   concat(called(execution->by_rank[static_cast<size_t>(rank())]), ": ", what,
                          " within ", static_cast<double>(timeout_ns_) / 1e9, " s"))});
  }
}

bool Engine::under_way() const {
  for (const auto& [key, execution] : executions_) {
    if (execution->phase > 0) return true;
  }
  return false;
}

bool Engine::outstanding() const {
  for (const auto& [key, execution] : executions_) {
    if (execution->collective != nullptr) return true;
  }
  return false;
}

// --- The thread
// -----------------------------------------------------------------------------------

void Engine::run() {
  int64_t spin_until = 0;
  int64_t checked = monotonic_ns();
  bool all = true;
  while (!stopping_.load()) {
    Ends ends;
    bool moved = false, moving = false;
    {
      const std::lock_guard lock(mutex_);
      moved = turn(false, all, ends);
      moving = under_way();
      const int64_t now = monotonic_ns();
      if (now - checked > kCheckMs * int64_t{1'000'000}) {
        checked = now;
        fail_late(ends);
      }
    }
    moved = moved || !ends.empty();
    tell(ends);
    all = false;
    if (moved) {
      spin_until = monotonic_ns() + (moving ? kUnderWayNs : kSpinNs);
    } else if (monotonic_ns() < spin_until) {
      ::sched_yield();
    } else {
      rest(&spin_until);
      all = true;
    }
  }
}

// Sleeps unless something came in between.
void Engine::rest(int64_t* spin_until) {
  asleep_.store(true);
  Ends ends;
  bool moved = false;
  bool waits = false;
  {
    const std::lock_guard lock(mutex_);
    moved = turn(false, false, ends);
    waits = outstanding();
    if (waits) {
      announce_sleep(true);
      moved = turn(false, false, ends) || moved;  // what came before the peers could know
    }
  }
  moved = moved || !ends.empty();
  tell(ends);
  if (!moved && !stopping_.load()) sleep(waits ? kCheckMs : -1);
  asleep_.store(false);
  {
    const std::lock_guard lock(mutex_);
    announce_sleep(false);
  }
  *spin_until = monotonic_ns() + kSpinNs;
}

void Engine::close() noexcept {
  if (forked()) return;
  {
    const std::lock_guard lock(queue_mutex_);
    if (closed_) return;
    closed_ = true;
  }
  const int64_t until = monotonic_ns() + kLeaveNs;
  while (unfinished_.load() > 0 && monotonic_ns() < until) {
    const timespec moment{0, 1'000'000};
    ::nanosleep(&moment, nullptr);
  }
  stop();
  leave();
}

}  // namespace treenail
