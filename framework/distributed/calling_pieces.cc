// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/calling_pieces.h"

#include <memory>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/distributed/shared_call.h"
#include "framework/runtime/kernel/kernel_functions.h"
#include "framework/runtime/run/call_path.h"
#include "framework/runtime/state/stored_value.h"

namespace treenail {
namespace {

class PieceCall final : public SharedCall {
 public:
  static void begin(const RpcPeer& peer, const protocol::RunRequest& request, const PieceAt& piece,
                    RunContext c, Done done) {
    std::vector<Tensor> values;
    for (int i = 0; i < piece.inputs; ++i) values.push_back(stored_value(c.take_input(i)));
    auto* const self = new PieceCall(c, done, piece.outputs);
    self->start(peer, protocol::worker::kRunPiece, protocol::write(request), values);
  }

  void answered(std::exception_ptr error, const Message* reply) noexcept override {
    unwatch();
    const Done done = done_;
    if (error == nullptr) {
      error = take(*reply);
    } else if (!context_.token()->cancelled()) {
      error = located(error);
    }
    release();
    if (error == nullptr) {
      done();
    } else {
      done.fail(std::move(error));
    }
  }

 private:
  PieceCall(RunContext c, Done done, int outputs)
      : SharedCall(*c.token()), context_(c), done_(done), outputs_(outputs) {}

  std::exception_ptr take(const Message& reply) {
    try {
      if (reply.tensors.size() != static_cast<size_t>(outputs_))
        throw data_loss("another task gave ", reply.tensors.size(), " values instead of ",
                        outputs_);
      for (int i = 0; i < outputs_; ++i)
        context_.set_output(i, reply.tensors[static_cast<size_t>(i)]);
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  std::exception_ptr located(const std::exception_ptr& error) const {
    try {
      std::rethrow_exception(error);
    } catch (const Error& found) {
      return std::make_exception_ptr(
          BodyError{std::make_exception_ptr(located_in_calls(*context_.frame_, found))});
    } catch (...) {
      return std::make_exception_ptr(BodyError{error});
    }
  }

  RunContext context_;
  const Done done_;
  const int outputs_;
};

}  // namespace

void call_piece(const RpcPeer& peer, const protocol::RunRequest& request, const PieceAt& piece,
                RunContext c, const Done& done) {
  PieceCall::begin(peer, request, piece, c, done);
}

}  // namespace treenail
