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

std::unique_ptr<Kernel> prepare_run_piece(const PrepareContext& p) {
  return make_async_kernel(
      [piece = PieceAt{p.op().get_string("task"), static_cast<uint64_t>(p.op().get_int("piece")),
                       static_cast<uint64_t>(p.op().get_int("incarnation")), p.op().num_inputs(),
                       p.op().num_outputs()}](const RunContext& c, const Done& done) {
        exchange_of(c).run_piece(piece, c, done);
      });
}

}  // namespace

void register_exchange_kernels(KernelRegistry& r) {
  r.add("_Send", {}, prepare_send);
  r.add("_Recv", {}, prepare_receive);
  r.add("_RunPiece", {}, prepare_run_piece);
}

}  // namespace treenail::host
