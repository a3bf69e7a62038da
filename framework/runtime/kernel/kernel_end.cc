// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/kernel/kernel_end.h"

#include <utility>

#include "framework/base/cancellation.h"
#include "framework/base/error.h"

namespace treenail {

void CancellableEnd::watch(const RefCounted& owner) {
  owner_ = &owner;
  owner_->ref();
  cancellation_ = context_.token()->add_callback(cancelled, this);
  if (cancellation_ != 0) return;
  owner_->unref();
  throw treenail::cancelled("the run was cancelled");
}

void CancellableEnd::end(std::vector<Tensor> outputs) {
  const Done done = done_;
  RunContext context = context_;
  if (!forget()) return;
  for (size_t i = 0; i < outputs.size(); ++i)
    context.set_output(static_cast<int>(i), std::move(outputs[i]));
  done();
}

void CancellableEnd::fail(std::exception_ptr error) {
  const Done done = done_;
  if (forget()) done.fail(std::move(error));
}

bool CancellableEnd::forget() {
  if (!claim()) return false;
  context_.token()->remove_callback(cancellation_);
  owner_->unref();
  return true;
}

void CancellableEnd::cancelled(void* end) noexcept {
  auto* const self = static_cast<CancellableEnd*>(end);
  if (!self->claim()) return;
  self->done_.fail(std::make_exception_ptr(treenail::cancelled("the run was cancelled")));
  self->owner_->unref();
}

}  // namespace treenail
