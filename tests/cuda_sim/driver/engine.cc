// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_sim/driver/engine.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "tests/simulated/memory.h"
#include "tests/simulated/violation.h"

namespace treenail::cuda_sim {
namespace {

constexpr size_t kStackBytes =
    256 << 10;  // AddressSanitizer's frames are large; unused ones cost nothing
constexpr size_t kGuardBytes = 64 << 10;  // a multiple of every system's page
constexpr size_t kOrderBytes = 8;         // apart, for ThreadSanitizer

// The one whose launch this thread is running.
constinit thread_local Engine* running = nullptr;

char* map_stack() {
  void* const at = ::mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw resource_exhausted("no memory for a stack of a simulated thread");
  ::mprotect(at, kGuardBytes, PROT_NONE);
  return static_cast<char*>(at) + kGuardBytes;
}

// A step through 0..n-1 that meets each once.
int64_t random_step(std::minstd_rand& random, int64_t n) {
  for (;;) {
    const int64_t step = 1 + static_cast<int64_t>(random()) % n;
    if (std::gcd(step, n) == 1) return step;
  }
}

}  // namespace

constinit thread_local Place place;

void sync() { Engine::sync(); }
void sync_warp() { Engine::sync_warp(); }
uint64_t shuffle(uint64_t bits, int lane) { return Engine::shuffle(bits, lane); }
void* shared(const void* site, size_t bytes) { return Engine::shared(site, bytes); }
void* dynamic_shared() { return Engine::dynamic_shared(); }

int warp_size_from_environment() {
  const char* const given = ::getenv("TREENAIL_CUDA_SIM_WARP");
  if (given == nullptr || std::strcmp(given, "32") == 0) return 32;
  if (std::strcmp(given, "64") == 0) return 64;
  simulated::violation(concat("TREENAIL_CUDA_SIM_WARP is ", given, "; it is to be 32 or 64"));
  return 32;
}

Engine::Engine(int warp_size, uint64_t seed) : warp_size_(warp_size) { this->seed(seed); }

Engine::~Engine() {
  for (const auto& stack : stacks_)
    ::munmap(stack->memory - kGuardBytes, kGuardBytes + kStackBytes);
}

void Engine::seed(uint64_t seed) {
  random_.seed(static_cast<std::minstd_rand::result_type>(2 * seed + 1));
}

void Engine::launch(const char* name, const Grid& grid, const Call& call) {
  name_ = name;
  grid_ = grid;
  call_ = &call;
  running = this;
  scheduler_watched_ = watch::current();
  watch::release(&launch_order_);
  order_threads();
  const int64_t blocks = grid.blocks * grid.blocks_y;
  const int64_t step = random_step(random_, blocks);
  int64_t at = static_cast<int64_t>(random_()) % blocks;
  for (int64_t i = 0; i < blocks; ++i, at = (at + step) % blocks) {
    block_ = at % grid.blocks;
    block_y_ = static_cast<int>(at / grid.blocks);
    threads_ = sets_[watch::kThreads ? static_cast<size_t>(i & 1) : 0].data();
    const bool whole = run_block();
    end_block();
    if (!whole) break;
  }
  running = nullptr;
}

void Engine::order_threads() {
  const auto n = static_cast<size_t>(grid_.threads);
  for (std::vector<Thread>& set : sets_) {
    if (&set != &sets_[0] && (!watch::kThreads || grid_.blocks * grid_.blocks_y == 1)) break;
    for (size_t i = set.size(); i < n; ++i) set.emplace_back().index = static_cast<int>(i);
    // Before the first block: whoever is created later is ordered after what has run by then.
    for (size_t i = 0; i < n; ++i) {
      if (set[i].watched == nullptr) set[i].watched = watch::create();
    }
  }
  order_storage_.resize(n);
  const int64_t step = random_step(random_, grid_.threads);
  int64_t at = static_cast<int64_t>(random_()) % grid_.threads;
  for (int& index : order_storage_) {
    index = static_cast<int>(at);
    at = (at + step) % grid_.threads;
  }
  order_ = order_storage_.data();
}

// False where a barrier diverges.
bool Engine::run_block() {
  const int warps = (grid_.threads + warp_size_ - 1) / warp_size_;
  if (watch::kThreads) barrier_orders_ = new char[kOrderBytes * 2 * static_cast<size_t>(1 + warps)];
  if (grid_.dynamic_bytes != 0) dynamic_ = make_shared(grid_.dynamic_bytes);
  shared_bytes_ = grid_.dynamic_bytes;
  started_ = 0;
  alive_ = grid_.threads;
  set_place();
  while (started_ < grid_.threads) begin_stack();
  while (alive_ > 0) {
    if (!open_barriers()) {
      const std::string text = divergence();
      abandon_block();
      simulated::violation(text);
      return false;
    }
    for (const int index : order_storage_) {
      if (threads_[index].at == At::kRuns) resume(threads_[index]);
    }
  }
  return true;
}

void Engine::end_block() {
  watch::acquire(&end_order_);
  delete[] std::exchange(barrier_orders_, nullptr);
  watch::ignore_begin();
  for (int i = 0; i < sites_; ++i) ::free(shared_[static_cast<size_t>(i)].memory);
  ::free(std::exchange(dynamic_, nullptr));
  watch::ignore_end();
  sites_ = 0;
}

// Threads that will never go on: what they had is not used again as it is.
void Engine::abandon_block() {
  for (int i = 0; i < grid_.threads; ++i) {
    Thread& thread = threads_[i];
    if (thread.at == At::kEnd) continue;
    release_end_of(thread);
    watch::clean(thread.stack->memory, kStackBytes);
    thread.at = At::kEnd;
    thread.watched = nullptr;
    if (!watch::kThreads) thread.stack->next = std::exchange(free_, thread.stack);
  }
}

TN_UNSEEN void Engine::release_end_of(const Thread& thread) {
  watch::switch_to(thread.watched);
  watch::release(&end_order_);
  watch::switch_to(scheduler_watched_);
}

int Engine::count(At at) const {
  return static_cast<int>(std::count_if(threads_, threads_ + grid_.threads,
                                        [at](const Thread& t) { return t.at == at; }));
}

// Whether anyone can go on.
bool Engine::open_barriers() {
  if (count(At::kBlock) == grid_.threads) {
    std::for_each(threads_, threads_ + grid_.threads, [](Thread& t) { t.at = At::kRuns; });
    return true;
  }
  bool opened = false;
  for (int first = 0; first < grid_.threads; first += warp_size_)
    opened |= open_warp(first, std::min(first + warp_size_, grid_.threads));
  return opened;
}

bool Engine::open_warp(int first, int last) {
  const At at = threads_[first].at;
  if (at != At::kWarp && at != At::kShuffle) return false;
  const bool all =
      std::all_of(threads_ + first, threads_ + last, [at](const Thread& t) { return t.at == at; });
  if (all) std::for_each(threads_ + first, threads_ + last, [](Thread& t) { t.at = At::kRuns; });
  return all;
}

std::string Engine::divergence() const {
  return concat("simulated CUDA: kernel ", name_, ": divergent barrier in block ", block_, ", ",
                block_y_, ": of ", grid_.threads, " threads ", count(At::kBlock),
                " wait for their block, ", count(At::kWarp), " for their warp, ",
                count(At::kShuffle), " in a shuffle, and ", count(At::kEnd), " have ended");
}

Engine::Stack* Engine::take_stack() {
  Stack*& kept = watch::kThreads ? threads_[order_[started_]].stack : free_;
  if (kept == nullptr) kept = new_stack();
  return watch::kThreads ? kept : std::exchange(free_, free_->next);
}

// Their ends are apart by more than pages, or all would want the same lines of a cache.
Engine::Stack* Engine::new_stack() {
  stacks_.push_back(std::make_unique<Stack>());
  Stack* const made = stacks_.back().get();
  made->memory = map_stack();
  made->bytes = kStackBytes - stacks_.size() % 16 * 256;
  return made;
}

// Begins the next thread, and those after it until one waits.
void Engine::begin_stack() {
  fresh_ = take_stack();
  fresh_point_ = first_point(fresh_->memory, fresh_->bytes, &Engine::on_stack);
  switch_to(threads_[order_[started_]], fresh_point_, *fresh_);
}

void Engine::resume(Thread& thread) {
  enter(thread);
  switch_to(thread, thread.point, *thread.stack);
}

TN_UNSEEN void Engine::switch_to(Thread& thread, const StackPoint& point, const Stack& stack) {
  ended_ = nullptr;
  watch::leave(&scheduler_fake_, stack.memory, stack.bytes);
  watch::switch_to(thread.watched);
  switch_stack(scheduler_, point);
  watch::arrive(scheduler_fake_, nullptr, nullptr);
  if (ended_ == nullptr || watch::kThreads) return;
  ended_->next = free_;
  free_ = ended_;
}

TN_UNSEEN void Engine::enter(Thread& thread) {
  current_ = &thread;
  place.thread = thread.index;
}

TN_UNSEEN void Engine::set_place() {
  place.threads = grid_.threads;
  place.block = block_;
  place.blocks = grid_.blocks;
  place.block_y = block_y_;
  place.blocks_y = grid_.blocks_y;
  place.warp_size = warp_size_;
}

TN_UNSEEN void Engine::on_stack() {
  Engine& engine = *running;
  Stack* const own = engine.fresh_;
  const StackPoint point = engine.fresh_point_;
  watch::arrive(nullptr, &engine.scheduler_stack_, &engine.scheduler_bytes_);
  do {
    Thread& thread = engine.threads_[engine.order_[engine.started_++]];
    thread.at = At::kRuns;
    thread.block_phase = thread.warp_phase = thread.lane_phase = 0;
    thread.stack = own;
    thread.point = point;
    engine.enter(thread);
    watch::acquire(&engine.launch_order_);
    engine.call_->run();
    watch::release(&engine.end_order_);
    thread.at = At::kEnd;
    --engine.alive_;
  } while (!watch::kThreads && engine.started_ < engine.grid_.threads);
  engine.ended_ = own;
  StackPoint nowhere = point;
  engine.to_scheduler(nullptr, nowhere);
  ::abort();
}

TN_UNSEEN void Engine::to_scheduler(void** fake, StackPoint& point) {
  watch::leave(fake, scheduler_stack_, scheduler_bytes_);
  watch::switch_to(scheduler_watched_);
  switch_stack(point, scheduler_);
}

TN_UNSEEN void Engine::wait(At at) {
  Thread& thread = *current_;
  thread.at = at;
  to_scheduler(&thread.fake, thread.point);
  watch::arrive(thread.fake, nullptr, nullptr);
}

TN_UNSEEN void Engine::sync() {
  Engine& engine = *running;
  const size_t phase = engine.current_->block_phase++ & 1;
  char* const order = engine.barrier_orders_ + kOrderBytes * phase;
  watch::release(order);
  engine.wait(At::kBlock);
  watch::acquire(order);
}

TN_UNSEEN void Engine::sync_warp() {
  Engine& engine = *running;
  const Thread& thread = *engine.current_;
  const size_t phase = engine.current_->warp_phase++ & 1;
  const auto warp = static_cast<size_t>(thread.index / engine.warp_size_);
  char* const order = engine.barrier_orders_ + kOrderBytes * (2 + 2 * warp + phase);
  watch::release(order);
  engine.wait(At::kWarp);
  watch::acquire(order);
}

// Nobody is two shuffles ahead of another lane, so two values each are enough.
TN_UNSEEN uint64_t Engine::shuffle(uint64_t bits, int lane) {
  Engine& engine = *running;
  Thread& thread = *engine.current_;
  const size_t phase = thread.lane_phase++ & 1;
  (&thread.lane[0])[phase] = bits;
  engine.wait(At::kShuffle);
  const int from = thread.index / engine.warp_size_ * engine.warp_size_ + lane;
  if (lane < 0 || from >= engine.grid_.threads) return 0xa5a5a5a5a5a5a5a5;  // undefined
  return (&engine.threads_[from].lane[0])[phase];
}

// For ThreadSanitizer the memory is nobody's: whoever is the first to ask did not write it.
TN_UNSEEN void* Engine::make_shared(size_t bytes) {
  void* memory = nullptr;
  watch::ignore_begin();
  if (::posix_memalign(&memory, 64, bytes) != 0) ::abort();
  ::memset(memory, simulated::kPoison, bytes);
  watch::ignore_end();
  return memory;
}

TN_UNSEEN void* Engine::shared(const void* site, size_t bytes) {
  Engine& engine = *running;
  Shared* const known = &engine.shared_[0];
  for (int i = 0; i < engine.sites_; ++i) {
    if (known[i].site == site) return known[i].memory;
  }
  const size_t all = engine.shared_bytes_ += bytes;
  if (all > kMostShared || engine.sites_ == kMostSites) {
    const char* const name = engine.name_;
    simulated::violation(concat("simulated CUDA: kernel ", name, " wants ", all,
                                " bytes of shared memory or more; a block has ", kMostShared));
  }
  void* const memory = engine.make_shared(bytes);
  known[engine.sites_++] = {site, memory, bytes};
  return memory;
}

TN_UNSEEN void* Engine::dynamic_shared() { return running->dynamic_; }

}  // namespace treenail::cuda_sim
