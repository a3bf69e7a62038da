// SPDX-License-Identifier: Apache-2.0
// Kernels that wait, for a message, a file, another thread: ComputeAsync begins and returns;
// whoever has the results calls done(), on any thread. Nobody in Treenail's thread pool waits
// meanwhile.
#ifndef TREENAIL_OP_ASYNC_KERNEL_HPP_
#define TREENAIL_OP_ASYNC_KERNEL_HPP_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "treenail/op/kernel.hpp"

namespace tn {
namespace op {

class AsyncOpKernel : public OpKernel {
 public:
  using DoneCallback = std::function<void()>;
  using OpKernel::OpKernel;

  // Calls done() once, when outputs or context->SetStatus() tell how it went; the context is gone
  // then. If the run is cancelled (context->OnCancel), soon after. The op's outputs are allocated
  // by allocate_output. When the last copy of `done` ends without a call, that is the op's error.
  virtual void ComputeAsync(OpKernelContext* context, DoneCallback done) = 0;
  void Compute(OpKernelContext*) final {}

  // By the registration.
  void Start(tn_run_context* context) {
    const Status started = detail::Guarded("starting the kernel", [&] {
      Begin(std::make_shared<Running>(context));
      return Status();
    });
    if (!started.ok()) Running::End(context, started);
  }

 private:
  struct Running {
    explicit Running(tn_run_context* run) : run_context(run), context(run) {}
    ~Running() {
      if (ended.exchange(true)) return;
      context.SetStatus(errors::Internal("the kernel let its `done` go without calling it"));
      End(run_context, context.status());
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    void Done() {
      if (ended.exchange(true)) return;
      End(run_context, context.status());
      context.callbacks_.clear();  // they may hold `done`, and so this
    }
    static void End(tn_run_context* run, const Status& result) noexcept {
      tn_status* status = result.ok() ? nullptr : host()->status_new();
      detail::Store(result, status);
      host()->run_done(run, status);
      host()->status_delete(status);
    }

    tn_run_context* run_context;
    OpKernelContext context;
    std::atomic<bool> ended{false};
  };

  // Once there is a Running, it alone ends the run.
  void Begin(const std::shared_ptr<Running>& running) noexcept {
    const Status status = detail::Guarded("ComputeAsync", [&] {
      ComputeAsync(&running->context, [running] { running->Done(); });
      return Status();
    });
    if (status.ok() || running->ended.load()) return;
    running->context.SetStatus(status);
    running->Done();
  }
};

}  // namespace op
}  // namespace tn

#define TREENAIL_OP_REQUIRES_ASYNC(context, condition, failure, done) \
  do {                                                                \
    if (!(condition)) {                                               \
      (context)->CtxFailure(failure);                                 \
      (done)();                                                       \
      return;                                                         \
    }                                                                 \
  } while (0)
#define TREENAIL_OP_REQUIRES_OK_ASYNC(context, expression, done) \
  do {                                                           \
    const ::tn::op::Status treenail_status_ = (expression);      \
    if (!treenail_status_.ok()) {                                \
      (context)->CtxFailure(treenail_status_);                   \
      (done)();                                                  \
      return;                                                    \
    }                                                            \
  } while (0)

#endif  // TREENAIL_OP_ASYNC_KERNEL_HPP_
