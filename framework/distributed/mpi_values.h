// SPDX-License-Identifier: Apache-2.0
// Values that go from task to task over MPI, of a process that an MPI launcher has started. They
// are asked for by message, and the receiver says where it is: its rank, what it has told all ranks
// over MPI, and a tag that nothing else has. Who sends answers by message that the elements come
// that way. Nothing is expected of MPI before that answer, so that it is looked at only while
// something is under way. One thread does so, awake more often in the first moments of a transfer.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/fork.h"
#include "framework/distributed/collectives/mpi_api.h"
#include "framework/tensor/tensor.h"

namespace treenail {

// Where a task is in MPI: its process's rank, and what that told to all ranks.
struct MpiTask {
  uint64_t rank = 0;
  std::string token;  // empty: nowhere
};

class MpiValues {
 public:
  // Values of fewer bytes go in the answer, which has to come in any case.
  static constexpr size_t kLeastBytes = 128 << 10;

  // Shared with what it brings, so that its own thread may be the last to hold it.
  // Errors: ResourceExhausted (no thread), Unimplemented where MPI has too few tags.
  static std::shared_ptr<MpiValues> make(const MpiApi& api, const MpiPlace& place);
  ~MpiValues();
  MpiValues(const MpiValues&) = delete;
  MpiValues& operator=(const MpiValues&) = delete;

  const MpiTask& own() const { return own_; }
  const std::string& version() const { return version_; }
  // Whether the process at that rank has told that token over MPI.
  bool knows(const MpiTask& task) const;

  // Whether elements of this type, so many, may go as they lie, and it is worth it.
  static bool fits(DType dtype, size_t bytes);
  // Begins to. False: it does not fit, MPI has refused, or this is the child of a fork.
  bool send(const MpiTask& to, uint64_t tag, const Tensor& value);
  // Whether it is still at it.
  bool sends(const MpiTask& to, uint64_t tag);

  // No other receive of this process has or had it.
  uint64_t new_tag();
  class Arrival {
   public:
    virtual ~Arrival();
    // Once, from any thread, with no lock held; null: all is there.
    virtual void arrived(std::exception_ptr error) noexcept = 0;
    // Each second that it takes.
    virtual void waits() noexcept = 0;
  };
  // What `from`, which is known, has begun to send is written to `value`.
  void receive(const MpiTask& from, uint64_t tag, Tensor value, std::shared_ptr<Arrival> arrival);
  // Whether it was waiting: it is told nothing then, and what comes is dropped.
  bool forget(const Arrival& arrival);
  // What comes of a value that was asked for, and whose answer nobody hears, is dropped.
  void drop(const MpiTask& from, uint64_t tag);

  // The process ends: waits until all others do so as well, as MPI needs it, and ends MPI.
  void finish() noexcept;

 private:
  struct Transfer {
    int32_t peer = 0, tag = 0;
    Tensor value;
    std::vector<uint64_t> tickets;  // of what is under way
    size_t left = 0;                // bytes that have not come
    std::shared_ptr<Arrival> arrival;
    int64_t next_word = 0;  // when it is told that it takes long
    int64_t cancel_at = 0;  // 0: never
  };
  struct Unheard {
    int32_t peer, tag;
    int64_t until;
  };
  struct End {
    std::shared_ptr<Arrival> arrival;
    std::exception_ptr error;
  };

  struct News {
    std::vector<End> ends;
    std::vector<std::shared_ptr<Arrival>> late;
  };

  MpiValues(const MpiApi& api, const MpiPlace& place);
  static void end(MpiValues* values);
  void begin(Transfer& transfer, bool sends);
  bool over(Transfer& transfer, bool sends);
  void take_unheard(int64_t now);
  void look(std::list<Transfer>& all, bool sends, int64_t now, News& news);
  int64_t turn(News& news);
  void run();
  void check(int32_t error) const;
  void hurry(size_t bytes);
  std::unique_lock<std::mutex> enter();
  bool of_parent() const { return generation_ != fork_generation(); }

  const MpiApi& api_;
  const MpiPlace place_;
  const std::string version_;
  MpiTask own_;
  std::vector<std::string> tokens_;  // by rank
  const uint32_t generation_ = fork_generation();
  std::atomic<uint64_t> last_tag_{0};

  std::atomic<int> entering_{0};  // who waits for the mutex, but the thread
  std::mutex mutex_;              // guards what follows
  std::condition_variable changed_;
  bool stopping_ = false;
  int64_t hurry_until_ = 0;
  std::list<Transfer> sent_, received_;  // none of them over
  std::list<Unheard> unheard_;
  int64_t next_unheard_ = 0;  // when they are looked at
  std::thread thread_;
};

}  // namespace treenail
