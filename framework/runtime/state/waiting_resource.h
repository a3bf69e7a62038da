// SPDX-License-Identifier: Apache-2.0
// State whose operations wait for one another: for an element, for room, for enough gradients.
// Kernel-side header. An operation that may wait is a Request; requests stand in lines, and are
// served with the lock held whenever something has changed: the first of a line first, and no later
// one before it has ended. In a crowd each waits for something of its own, and none for another:
// all are tried then, in the order in which they came.
#pragma once

#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/fork.h"
#include "framework/runtime/kernel/async_kernel.h"
#include "framework/tensor/resource.h"

namespace treenail {

class WaitingResource : public Resource {
 public:
  // kAdvanced: something changed that other requests may wait for, but the end is not reached.
  enum class Progress { kNone, kAdvanced, kEnded };

  class Request {
   public:
    // Of AsyncKernel::start().
    Request(RunContext context, Done done) : context_(context), done_(done) {}
    virtual ~Request();
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

   protected:
    // All with the resource's lock held. What is thrown ends the request with that error, after
    // withdraw().
    //
    // Once, before the first attempt(): may it wait at all?
    virtual void admit() {}
    // Goes as far as the state allows; once it has ended, the outputs are set.
    virtual Progress attempt() = 0;
    // Gives back what attempt() has taken so far: the request ends without a result.
    virtual void withdraw() noexcept {}

    RunContext& context() { return context_; }

   private:
    friend class WaitingResource;
    RunContext context_;
    Done done_;
    IntrusivePtr<WaitingResource> resource_;
    std::list<std::unique_ptr<Request>>* line_ = nullptr;  // null: has ended
    std::list<std::unique_ptr<Request>>::iterator place_;
    uint64_t cancellation_ = 0;  // of the run's token
    std::exception_ptr error_;
  };

  // Puts the request into a line, and serves. It ends in here, later on some thread, or when its
  // run is cancelled.
  void submit(int line, std::unique_ptr<Request> request);

  const std::string& name() const { return name_; }

 protected:
  // Crowds are numbered behind the lines.
  WaitingResource(std::string name, int lines, int crowds = 0)
      : name_(std::move(name)),
        ordered_(static_cast<size_t>(lines)),
        lines_(static_cast<size_t>(lines + crowds)) {}
  ~WaitingResource() override;

  // f() with the lock held, and then whoever can go on does. What f throws passes.
  template <class F>
  auto change(F&& f) {
    Requests ended;
    const Finish finish{ended};
    const std::unique_lock lock = locked();
    struct Serve {
      WaitingResource& self;
      Requests& ended;
      ~Serve() { self.serve(ended); }
    } serve{*this, ended};
    return f();
  }
  // f() with the lock held, which changes nothing that anybody waits for.
  template <class F>
  auto look(F&& f) const {
    const std::unique_lock lock = const_cast<WaitingResource*>(this)->locked();
    return f();
  }

  // In a child forked while a thread was changing the state: empty again, what it held is leaked.
  virtual void begin_state_anew() = 0;

 private:
  using Requests = std::list<std::unique_ptr<Request>>;
  // Tells those that have ended, once the lock is free.
  struct Finish {
    Requests& ended;
    ~Finish() { WaitingResource::finish(ended); }
  };

  std::unique_lock<ForkMutex> locked();
  void serve(Requests& ended) noexcept;
  bool serve_line(size_t line, Requests& ended) noexcept;
  static void end(Request& request, Requests& ended) noexcept;
  static void abandon(Request& request, std::exception_ptr error, Requests& ended) noexcept;
  void cancel(Request& request, Requests& ended) noexcept;
  static void finish(Requests& ended) noexcept;
  static void cancelled(void* request) noexcept;

  const std::string name_;
  ForkMutex mutex_;  // guards the lines and what subclasses hold
  uint32_t generation_ = fork_generation();
  const size_t ordered_;  // of lines_; the others are crowds
  std::vector<Requests> lines_;
};

}  // namespace treenail
