// SPDX-License-Identifier: Apache-2.0
// An asynchronous kernel from a callable, as make_kernel() is for the others.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "framework/runtime/kernel/async_kernel.h"

namespace treenail::host {

template <class F>
class AsyncLambda final : public AsyncKernel {
 public:
  explicit AsyncLambda(F f) : f_(std::move(f)) {}
  void start(RunContext c, Done done) const override { f_(c, done); }

 private:
  F f_;
};

// f(RunContext&, const Done&), as AsyncKernel::start().
template <class F>
std::unique_ptr<AsyncKernel> make_async_kernel(F&& f) {
  auto kernel = std::make_unique<AsyncLambda<std::decay_t<F>>>(std::forward<F>(f));
  kernel->cost_ns = 200;
  return kernel;
}

}  // namespace treenail::host
