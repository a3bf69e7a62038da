// SPDX-License-Identifier: Apache-2.0
// What communicators have in common: executions of several ranks are brought together by key, in
// whatever order each rank submits them; those for which every rank has come go on, and their ends
// are told. One thread does it, asleep when nothing is to do; for small messages the submitting
// thread lends a hand for some microseconds, so that no thread need be woken.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/fork.h"
#include "framework/distributed/collectives/communicator.h"

namespace treenail {

class Engine : public Communicator {
 public:
  void submit(IntrusivePtr<Collective> collective) final;
  void close() noexcept final;

 protected:
  // What the transport keeps of one execution; staged by the submitting thread.
  struct Execution {
    virtual ~Execution();
    IntrusivePtr<Collective> collective;  // null: no local part yet
    std::vector<Descriptor> by_rank;
    std::vector<uint64_t> place;  // by rank: the transport's own
    std::vector<bool> arrived;
    int missing = 0;
    int64_t submitted_ns = 0;
    bool posted = false;
    bool agreed = false;
    bool told = false;  // it was late: the local caller has had its error
    int phase = 0;
  };

  Engine(int rank, int size, int64_t timeout_ns);
  ~Engine() override;
  // To be called at the end of the constructor, and stop() at the beginning of the destructor.
  void start();
  void stop() noexcept;

  // --- Of the transport; all but stage() are called with the engine's lock held. ---

  virtual std::unique_ptr<Execution> make_execution() = 0;
  // Copies the inputs to where they stay: on the submitting thread, unlocked. Sets what the
  // transport says in `own`. Errors: ResourceExhausted.
  virtual void stage(Execution& execution, Descriptor& own) = 0;
  // Tells the peers; false: no room now, it is tried again.
  virtual bool post(Execution& execution) = 0;
  // Calls arrived() for what peers have posted, departed() for those that are gone. True where
  // anything was there. `all`: looks where that takes a system call, too.
  virtual bool poll(bool all) = 0;
  // All ranks are there and agree. True once the outputs are set.
  virtual bool advance(Execution& execution) = 0;
  // Whether it waits for what the peer has still to do, all ranks being there.
  virtual bool awaits(Execution& execution, int peer) = 0;
  // Whether all that a peer did is there once it is known to have left.
  virtual bool has_all_of_who_left() const { return true; }
  // Nothing of the peers' memory is needed any more, whatever the outcome.
  virtual void finished(Execution& execution) noexcept = 0;
  // Sleeps, unlocked, until something may have come, wake() was called, or that many ms are over;
  // below 0: as long as it takes.
  virtual void sleep(int milliseconds) = 0;
  // Makes a present or the next sleep() return. From any thread.
  virtual void wake() noexcept = 0;
  // Before and after a sleep with executions outstanding: peers must wake this rank.
  virtual void announce_sleep(bool /*asleep*/) {}
  // Tells the peers that this rank leaves.
  virtual void leave() noexcept = 0;

  // Whether this is a child of the process that joined.
  bool forked() const { return generation_ != fork_generation(); }
  void arrived(int peer, uint64_t place, const Descriptor& descriptor);
  // Executions that miss the peer, all where it ended without leaving, fail.
  void departed(int peer, bool left, const std::string& why);

 private:
  using Key = std::pair<uint64_t, uint64_t>;
  struct End {
    IntrusivePtr<Collective> collective;
    std::exception_ptr error;
  };
  using Ends = std::vector<End>;

  Execution& execution_of(uint64_t hash, uint64_t instance);
  void enqueue(std::unique_ptr<Execution> execution);
  void help(size_t bytes, const Collective* collective);
  bool turn(bool small_only, bool all, Ends& ends);
  void take_queue();
  bool go_on(Execution& execution, bool small_only, Ends& ends);
  void finish(Execution& execution, std::exception_ptr error, Ends& ends) noexcept;
  bool lacks(Execution& execution, int peer);
  void fail_lost(Ends& ends);
  std::string late_ranks(Execution& execution);
  void fail_late(Ends& ends);
  bool outstanding() const;
  bool under_way() const;
  void run();
  void rest(int64_t* spin_until);
  void tell(Ends& ends) noexcept;

  const int64_t timeout_ns_;
  const uint32_t generation_ = fork_generation();

  std::mutex queue_mutex_;  // held shortly; guards the next four
  std::deque<std::unique_ptr<Execution>> queue_;
  std::map<uint64_t, uint64_t> instances_;  // by hash of the key: the next one
  std::string failure_;  // once a rank is gone; written under both mutexes, so read under either
  bool closed_ = false;

  std::mutex mutex_;  // guards the executions and the transport's state
  std::map<Key, std::unique_ptr<Execution>> executions_;
  std::deque<Key> unposted_;
  std::vector<std::string> gone_;  // by rank: why, or empty
  bool lost_ = false;              // one ended without leaving

  std::atomic<bool> asleep_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> unfinished_{0};  // submitted, and not yet told
  std::thread thread_;
};

}  // namespace treenail
