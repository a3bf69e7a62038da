// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/exchange.cc.
#include "framework/runtime/kernel/kernel_exchange.h"

#include <string>

#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/state/stored_value.h"
#include "kernels/host/state/async_lambda.h"

namespace treenail::host {
namespace {

std::unique_ptr<Kernel> prepare_send(const PrepareContext& p) {
  return make_async_kernel([key = p.op().get_string("key")](RunContext c, const Done& done) {
    exchange_of(c).send(key, stored_value(c.take_input(0)));
    done();
  });
}

std::unique_ptr<Kernel> prepare_receive(const PrepareContext& p) {
  return make_async_kernel(
      [key = p.op().get_string("key"), from = p.op().get_string("from")](
          const RunContext& c, const Done& done) { exchange_of(c).receive(key, from, c, done); });
}

}  // namespace

void register_exchange_kernels(KernelRegistry& r) {
  r.add("_Send", {}, prepare_send);
  r.add("_Recv", {}, prepare_receive);
}

}  // namespace treenail::host
