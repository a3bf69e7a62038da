// SPDX-License-Identifier: Apache-2.0
// Kernels of plugins that wait: they are started, and end by host->run_done from any thread. The
// context of a started run lies on the heap from start to then.
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "framework/base/cancellation.h"
#include "framework/base/fork.h"
#include "framework/capi/guard.h"
#include "framework/capi/plugin_run.h"
#include "framework/runtime/kernel/async_kernel.h"

namespace treenail::capi {
namespace {

// Two hold it: who started the run, until start has returned, and the plugin, until run_done.
struct StartedRun final : tn_run_context {
  StartedRun(const RunContext& context, const PreparedCall& prepared, Done end)
      : tn_run_context{own, prepared, nullptr, true}, own(context), done(end) {}

  void release() {
    if (holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // Ends the run, unless it has ended.
  void end(std::exception_ptr error) noexcept {
    if (ended.exchange(true, std::memory_order_acq_rel)) return;
    forget_callbacks();
    if (failure != nullptr) error = failure;
    if (error == nullptr) error = output_error();
    if (error != nullptr) {
      done.fail(std::move(error));
    } else {
      done();
    }
  }

  RunContext own;
  const Done done;
  std::atomic<int> holders{2};
  std::atomic<bool> ended{false};
  ForkMutex mutex;
  std::vector<uint64_t> callbacks;

 private:
  void forget_callbacks() noexcept {
    std::vector<uint64_t> ids;
    {
      const std::lock_guard lock(mutex);
      ids.swap(callbacks);
    }
    for (const uint64_t id : ids) own.token()->remove_callback(id);
  }

  std::exception_ptr output_error() noexcept {
    try {
      call.check_outputs(own);
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }
};

StartedRun& started(tn_run_context& context) { return static_cast<StartedRun&>(context); }

class WaitingKernel final : public AsyncKernel {
 public:
  WaitingKernel(const PrepareContext& c, const PluginKernel& kernel) : call_(kernel, c.op()) {
    call_.prepare(c, *this);
  }

  void start(RunContext c, Done done) const override {
    auto* run = new StartedRun(c, call_, done);
    try {
      call_out("start function", [&] { call_.kernel().start(&plugin_host(), run, call_.state()); });
    } catch (...) {
      run->end(std::current_exception());
    }
    run->release();
  }

 private:
  PreparedCall call_;
};

std::exception_ptr error_in(const tn_status* status) noexcept {
  if (status == nullptr) return nullptr;
  try {
    rethrow(*status);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void run_done(tn_run_context* context, const tn_status* status) noexcept {
  if (context == nullptr || !context->started) return;
  started(*context).end(error_in(status));
  started(*context).release();
}

int32_t run_on_cancel(tn_run_context* context, void (*callback)(void*), void* argument) noexcept {
  if (context == nullptr || !context->started || callback == nullptr) return 0;
  int32_t kept = 0;
  guarded(nullptr, [&] {
    StartedRun& run = started(*context);
    const std::lock_guard lock(run.mutex);
    run.callbacks.reserve(run.callbacks.size() + 1);
    const uint64_t id = run.own.token()->add_callback(callback, argument);
    if (id == 0) return;
    run.callbacks.push_back(id);
    kept = 1;
  });
  return kept;
}

}  // namespace

std::unique_ptr<Kernel> make_waiting_kernel(const PrepareContext& c, const PluginKernel& kernel) {
  return std::make_unique<WaitingKernel>(c, kernel);
}

void fill_in_waiting_functions(tn_host& host) {
  host.run_done = run_done;
  host.run_on_cancel = run_on_cancel;
}

}  // namespace treenail::capi
