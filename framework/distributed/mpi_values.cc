// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/mpi_values.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/logging.h"
#include "framework/base/spin.h"
#include "framework/distributed/collectives/mpi_adapter.h"
#include "framework/distributed/say_error.h"

namespace treenail {
namespace {

constexpr size_t kMostAtOnce = size_t{1} << 30;  // counts are int
constexpr uint64_t kLeastTags = 1 << 20;         // before one comes again
constexpr int64_t kMillisecond = 1'000'000, kSecond = 1'000 * kMillisecond;
// For so long a transfer keeps the thread from sleep, and longer the more it has: 100 MB/s.
constexpr int64_t kHurryNs = 20 * kMillisecond;
constexpr int64_t kHurryNsPerByte = 10;
constexpr int64_t kPauseNs = kMillisecond / 5;       // then, between two looks
constexpr int64_t kLongPauseNs = 20 * kMillisecond;  // where nothing need come
constexpr int64_t kUnheardNs = 30 * kSecond;         // how long it may be on its way
constexpr int kMostYields = 200;                     // for who waits for the mutex

}  // namespace

MpiValues::Arrival::~Arrival() = default;

MpiValues::MpiValues(const MpiApi& api, const MpiPlace& place)
    : api_(api), place_(place), version_(place.version) {
  if (static_cast<uint64_t>(place.tag_limit) < kMpiGroupTags + kLeastTags)
    throw error_of(Code::kUnimplemented, {version_, " has tags up to ", place.tag_limit,
                                          "; needed are ", kMpiGroupTags + kLeastTags});
  uint8_t token[kMpiTokenBytes];
  for (int32_t rank = 0; rank < place.size; ++rank) {
    api.token_of(rank, token);
    tokens_.emplace_back(reinterpret_cast<const char*>(token), sizeof token);
  }
  const auto rank = static_cast<size_t>(place.rank);
  own_ = {rank, tokens_.at(rank)};
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw resource_exhausted("no thread is left for values over MPI");
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::shared_ptr<MpiValues> MpiValues::make(const MpiApi& api, const MpiPlace& place) {
  return {new MpiValues(api, place), end};
}

// A thread cannot wait for itself.
void MpiValues::end(MpiValues* values) {
  if (values->thread_.get_id() != std::this_thread::get_id()) {
    delete values;
  } else {
    std::thread([values] { delete values; }).detach();
  }
}

MpiValues::~MpiValues() {
  if (of_parent()) {
    thread_.detach();  // it runs there
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool MpiValues::knows(const MpiTask& task) const {
  return task.rank < tokens_.size() && !task.token.empty() && tokens_[task.rank] == task.token;
}

// A bool is looked at by who takes it from a message: it may hold anything.
bool MpiValues::fits(DType dtype, size_t bytes) {
  return is_plain(dtype) && dtype != DType::kBool && bytes >= kLeastBytes;
}

uint64_t MpiValues::new_tag() {
  const uint64_t tags = static_cast<uint64_t>(place_.tag_limit) - kMpiGroupTags + 1;
  return kMpiGroupTags + last_tag_.fetch_add(1) % tags;
}

void MpiValues::check(int32_t error) const {
  if (error != 0)
    throw Error(Code::kUnavailable, concat("MPI cannot go on: ", mpi_error_text(api_, error)));
}

// While transfers are under way the thread takes the mutex again as soon as it has given it away,
// and would keep it from all others, for a mutex is not fair: so it lets these go first.
std::unique_lock<std::mutex> MpiValues::enter() {
  ++entering_;
  std::unique_lock lock(mutex_);
  --entering_;
  return lock;
}

// With the mutex.
void MpiValues::hurry(size_t bytes) {
  const int64_t until = monotonic_ns() + kHurryNs + static_cast<int64_t>(bytes) * kHurryNsPerByte;
  hurry_until_ = std::max(hurry_until_, until);
}

void MpiValues::begin(Transfer& transfer, bool sends) {
  auto* const bytes = static_cast<std::byte*>(transfer.value.raw());
  const size_t size = transfer.value.bytes();
  for (size_t at = 0; at < size; at += kMostAtOnce) {
    const auto count = static_cast<int32_t>(std::min(kMostAtOnce, size - at));
    uint64_t ticket = 0;
    check(sends ? api_.send(bytes + at, count, transfer.peer, transfer.tag, &ticket)
                : api_.receive(bytes + at, count, transfer.peer, transfer.tag, &ticket));
    transfer.tickets.push_back(ticket);
  }
}

bool MpiValues::send(const MpiTask& to, uint64_t tag, const Tensor& value) {
  const auto limit = static_cast<uint64_t>(place_.tag_limit);
  if (!fits(value.dtype(), value.bytes())) return false;
  if (of_parent() || !knows(to) || tag < kMpiGroupTags || tag > limit) return false;
  std::list<Transfer> made(1);
  made.front().peer = static_cast<int32_t>(to.rank);
  made.front().tag = static_cast<int32_t>(tag);
  made.front().value = value;
  {
    const auto lock = enter();
    try {
      begin(made.front(), true);
    } catch (const Error& error) {
      log(LogLevel::kInfo, "a value goes by message: ", error.message());
      sent_.splice(sent_.end(), made);  // its memory is MPI's, if a part was begun
      return false;
    }
    sent_.splice(sent_.end(), made);
    hurry(value.bytes());
  }
  changed_.notify_all();
  return true;
}

bool MpiValues::sends(const MpiTask& to, uint64_t tag) {
  const auto lock = enter();
  return std::ranges::any_of(sent_, [&](const Transfer& transfer) {
    return static_cast<uint64_t>(transfer.peer) == to.rank &&
           static_cast<uint64_t>(transfer.tag) == tag;
  });
}

void MpiValues::receive(const MpiTask& from, uint64_t tag, Tensor value,
                        std::shared_ptr<Arrival> arrival) {
  std::list<Transfer> made(1);
  Transfer& transfer = made.front();
  transfer.peer = static_cast<int32_t>(from.rank);
  transfer.tag = static_cast<int32_t>(tag);
  transfer.left = value.bytes();
  transfer.value = std::move(value);
  transfer.next_word = monotonic_ns() + kSecond;
  {
    const auto lock = enter();
    try {
      begin(transfer, false);
    } catch (...) {
      transfer.cancel_at = monotonic_ns() + kUnheardNs;
      received_.splice(received_.end(), made);  // its memory is MPI's, if a part was begun
      throw;
    }
    transfer.arrival = std::move(arrival);
    hurry(transfer.left);
    received_.splice(received_.end(), made);
  }
  changed_.notify_all();
}

// What has been begun goes on, for its memory is MPI's until it is over; where nothing comes it is
// cancelled in the end.
bool MpiValues::forget(const Arrival& arrival) {
  const auto lock = enter();
  for (Transfer& transfer : received_) {
    if (transfer.arrival.get() != &arrival) continue;
    transfer.arrival.reset();
    transfer.cancel_at = monotonic_ns() + kUnheardNs;
    return true;
  }
  return false;
}

void MpiValues::drop(const MpiTask& from, uint64_t tag) {
  if (of_parent()) return;
  {
    const auto lock = enter();
    unheard_.push_back(
        {static_cast<int32_t>(from.rank), static_cast<int32_t>(tag), monotonic_ns() + kUnheardNs});
  }
  changed_.notify_all();
}

// --- The thread ----------------------------------------------------------------------------------

// Errors: Unavailable; DataLoss where too few bytes have come.
bool MpiValues::over(Transfer& transfer, bool sends) {
  while (!transfer.tickets.empty()) {
    int32_t done = 0, got = 0;
    const int32_t error = api_.test(&transfer.tickets.back(), &done, sends ? nullptr : &got);
    if (error == 0 && done == 0) return false;
    transfer.tickets.pop_back();
    check(error);
    transfer.left -= static_cast<size_t>(got);
  }
  if (!sends && transfer.left != 0)
    throw data_loss("another task sent ", transfer.value.bytes() - transfer.left, " bytes of ",
                    transfer.value.bytes());
  return true;
}

void MpiValues::take_unheard(int64_t now) {
  if (now < next_unheard_) return;
  next_unheard_ = now + kLongPauseNs;
  for (auto at = unheard_.begin(); at != unheard_.end();) {
    int32_t peer = -1, count = 0;
    if (api_.probe(at->peer, at->tag, &peer, &count) != 0) peer = -1;
    if (peer < 0) {
      at = now > at->until ? unheard_.erase(at) : std::next(at);
      continue;
    }
    std::list<Transfer> made(1);
    Transfer& transfer = made.front();
    transfer.peer = at->peer;
    transfer.tag = at->tag;
    try {
      transfer.value = Tensor(DType::kUInt8, Shape({count}));
      transfer.left = transfer.value.bytes();
      begin(transfer, false);
      received_.splice(received_.end(), made);
    } catch (const std::exception& error) {
      log(LogLevel::kInfo, "what nobody waits for stays with MPI: ", error.what());
      unheard_.erase(at);
      return;
    }
    ++at;  // a large value comes in several messages of one tag
  }
}

void MpiValues::look(std::list<Transfer>& all, bool sends, int64_t now, News& news) {
  for (auto at = all.begin(); at != all.end();) {
    std::exception_ptr error;
    bool is_over = false;
    try {
      is_over = over(*at, sends);
    } catch (...) {
      error = std::current_exception();
      at->cancel_at = now + kUnheardNs;
      if (sends) log(LogLevel::kWarning, "a value is lost: ", text_of(error));
    }
    if (at->arrival != nullptr) {
      if (is_over || error != nullptr) {
        news.ends.push_back({std::move(at->arrival), error});
      } else if (now > at->next_word) {
        news.late.push_back(at->arrival);
        at->next_word = now + kSecond;
      }
    } else if (at->cancel_at != 0 && now > at->cancel_at) {
      for (uint64_t& ticket : at->tickets) api_.cancel(&ticket);
      at->cancel_at = 0;
    }
    // After an error other parts may be under way, into its memory.
    at = is_over || at->tickets.empty() ? all.erase(at) : std::next(at);
  }
}

// With the mutex. How long it may sleep; -1: until something begins.
int64_t MpiValues::turn(News& news) {
  const int64_t now = monotonic_ns();
  look(sent_, true, now, news);
  look(received_, false, now, news);
  take_unheard(now);
  if (sent_.empty() && received_.empty()) return unheard_.empty() ? -1 : kLongPauseNs;
  return now < hurry_until_ ? 0 : now < hurry_until_ + 10 * kSecond ? kPauseNs : kLongPauseNs;
}

void MpiValues::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    News news;
    const int64_t pause = turn(news);
    if (!news.ends.empty() || !news.late.empty() || pause == 0) {
      lock.unlock();
      for (End& end : news.ends) end.arrival->arrived(std::move(end.error));
      for (const auto& each : news.late) each->waits();
      news = {};
      for (int i = 0; pause == 0 && (i == 0 || (entering_ > 0 && i < kMostYields)); ++i)
        ::sched_yield();
      lock.lock();
    } else if (pause < 0) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, std::chrono::nanoseconds(pause));
    }
  }
}

// --- The end -------------------------------------------------------------------------------------

void MpiValues::finish() noexcept {
  if (of_parent()) return;
  uint64_t ticket = 0;
  int32_t done = 0;
  if (place_.begun_here != 0 && api_.meet(&ticket) == 0) {
    while (done == 0 && api_.test(&ticket, &done, nullptr) == 0) {
      const timespec moment{0, 10 * kMillisecond};
      if (done == 0) ::nanosleep(&moment, nullptr);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  api_.finalize();
}

}  // namespace treenail
