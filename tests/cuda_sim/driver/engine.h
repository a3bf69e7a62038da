// SPDX-License-Identifier: Apache-2.0
// Runs kernels, block after block. Each thread of a block is a fiber, switched where it waits for
// others; ThreadSanitizer takes each for a thread that only sync() and sync_warp() order, so that
// it finds races by logic, whatever the order. Threads of neighbouring blocks are different ones,
// too. A thread that never waits needs no stack of its own: the next one runs on the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/cuda_sim/driver/stack_switch.h"
#include "tests/cuda_sim/driver/watch.h"
#include "tests/cuda_sim/language.h"

namespace treenail::cuda_sim {

inline constexpr size_t kMostShared = 48 << 10;  // bytes of a block, of all kinds

struct Grid {
  int64_t blocks = 1;
  int blocks_y = 1;
  int threads = 1;
  size_t dynamic_bytes = 0;
};

// 32 or 64: TREENAIL_CUDA_SIM_WARP.
int warp_size_from_environment();

// One runs one launch at a time; it is its thread's.
class Engine {
 public:
  Engine(int warp_size, uint64_t seed);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void seed(uint64_t seed);
  // A barrier that not all threads reach is a violation; where those are recorded the rest of the
  // launch does not happen.
  void launch(const char* name, const Grid& grid, const Call& call);

  // Of the thread that is running, on its fiber.
  static void sync();
  static void sync_warp();
  static uint64_t shuffle(uint64_t bits, int lane);
  static void* shared(const void* site, size_t bytes);
  static void* dynamic_shared();

 private:
  enum class At : uint8_t { kRuns, kBlock, kWarp, kShuffle, kEnd };
  struct Stack {
    char* memory = nullptr;
    size_t bytes = 0;
    Stack* next = nullptr;  // of those that are free
  };
  struct Thread {
    int index = 0;
    At at = At::kEnd;
    uint8_t block_phase = 0, warp_phase = 0, lane_phase = 0;
    std::array<uint64_t, 2> lane = {};
    StackPoint point;
    void* fake = nullptr;     // watch::leave()
    void* watched = nullptr;  // watch::create()
    Stack* stack = nullptr;   // its own for ever, where threads are watched
  };
  struct Shared {
    const void* site;
    void* memory;
    size_t bytes;
  };
  static constexpr int kMostSites = 64;

  void order_threads();
  bool run_block();
  void end_block();
  void abandon_block();
  void release_end_of(const Thread& thread);
  bool open_barriers();
  bool open_warp(int first, int last);
  [[nodiscard]] std::string divergence() const;
  int count(At at) const;
  Stack* take_stack();
  Stack* new_stack();

  void begin_stack();
  void resume(Thread& thread);
  void switch_to(Thread& thread, const StackPoint& point, const Stack& stack);
  void enter(Thread& thread);
  void set_place();
  static void on_stack();
  void to_scheduler(void** fake, StackPoint& point);
  void wait(At at);
  void* make_shared(size_t bytes);

  const int warp_size_;
  std::minstd_rand random_;
  Grid grid_;
  const char* name_ = "";
  const Call* call_ = nullptr;
  int64_t block_ = 0;
  int block_y_ = 0;

  // Plain memory: fibers read and write it unseen.
  std::array<std::vector<Thread>, 2> sets_;  // the second where threads are watched
  Thread* threads_ = nullptr;                // the block's
  std::vector<int> order_storage_;
  const int* order_ = nullptr;
  int started_ = 0, alive_ = 0;
  Thread* current_ = nullptr;
  Stack* fresh_ = nullptr;
  StackPoint fresh_point_;
  Stack* ended_ = nullptr;
  Stack* free_ = nullptr;
  std::vector<std::unique_ptr<Stack>> stacks_;
  std::array<Shared, kMostSites> shared_ = {};
  int sites_ = 0;
  size_t shared_bytes_ = 0;
  void* dynamic_ = nullptr;

  StackPoint scheduler_;
  void* scheduler_fake_ = nullptr;
  void* scheduler_watched_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  size_t scheduler_bytes_ = 0;

  // Addresses that order. Those of barriers are the block's: one that outlived it would order the
  // next one, too. Two each, which alternate: whoever is at the next barrier already must not order
  // those that only leave this one.
  char launch_order_ = 0, end_order_ = 0;
  char* barrier_orders_ = nullptr;
};

}  // namespace treenail::cuda_sim
