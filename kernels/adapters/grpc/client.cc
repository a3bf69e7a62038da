// SPDX-License-Identifier: Apache-2.0
// A call that is waited for polls the connection on the caller's own thread; one that is started
// goes by gRPC's threads.
#include "kernels/adapters/grpc/client.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "kernels/adapters/grpc/buffers.h"
#include "kernels/adapters/grpc/callback_threads.h"
#include "kernels/adapters/grpc/tls.h"

namespace treenail {

struct RpcChannel {
  explicit RpcChannel(const std::shared_ptr<grpc::Channel>& channel) : stub(channel) {}
  grpc::GenericStub stub;
};

namespace {

constexpr std::chrono::milliseconds kPollPeriod{50};

void prepare(grpc::ClientContext& context, const RpcRequest& request) {
  context.set_wait_for_ready(request.wait_for_ready);
  if (request.token.bytes > 0) {
    context.AddMetadata(
        grpc_adapter::kTokenKey,
        std::string(static_cast<const char*>(request.token.data), request.token.bytes));
  }
  if (request.timeout_ms > 0) {
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(request.timeout_ms));
  }
}

void give(const RpcAnswer& answer, const grpc::Status& status, const grpc::ByteBuffer& reply) {
  if (status.ok()) {
    const Views views(reply);
    answer.answered(answer.self, 0, true, "", 0, views.data(), views.size());
  } else {
    answer.answered(answer.self, static_cast<int32_t>(status.error_code()),
                    status.error_details() == kRefusal, status.error_message().data(),
                    status.error_message().size(), nullptr, 0);
  }
}

}  // namespace

// Shared by who started it and by who answers it.
struct RpcPending {
  RpcPending(const RpcRequest& wanted, const RpcAnswer& told)
      : answer(told), request(buffer_of(wanted.slices, wanted.num_slices)) {
    prepare(context, wanted);
  }
  void release() {
    if (shares.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  const RpcAnswer answer;
  grpc::ClientContext context;
  const grpc::ByteBuffer request;
  grpc::ByteBuffer reply;
  std::atomic<int> shares{2};
};

namespace grpc_adapter {

RpcChannel* connect(const RpcChannelOptions* options, RpcStatus* status) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(options->most_bytes));
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(options->keepalive_ms));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(options->keepalive_wait_ms));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMostMetadata);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // In truth how long an attempt may take, handshakes included: no longer than other silence.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   static_cast<int>(std::max<int64_t>(options->keepalive_ms, 1000)));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Channels of one process to one server are connections of their own.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  status->code = 0;
  return new RpcChannel(
      grpc::CreateCustomChannel(options->address, channel_credentials(options->tls), arguments));
}

void disconnect(RpcChannel* channel) { delete channel; }

void call(RpcChannel* channel, const RpcRequest* request, const RpcAnswer* answer,
          bool (*poll)(void*), void* poll_argument) {
  grpc::ByteBuffer reply;
  grpc::Status status;
  {
    grpc::ClientContext context;
    prepare(context, *request);
    grpc::CompletionQueue queue;
    const auto reader = channel->stub.PrepareUnaryCall(
        &context, request->path, buffer_of(request->slices, request->num_slices), &queue);
    reader->StartCall();
    reader->Finish(&reply, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    const auto soon = [] { return std::chrono::system_clock::now() + kPollPeriod; };
    while (queue.AsyncNext(&tag, &ok, soon()) == grpc::CompletionQueue::TIMEOUT) {
      if (poll(poll_argument)) context.TryCancel();
    }
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
  }
  give(*answer, status, reply);
}

RpcPending* start(RpcChannel* channel, const RpcRequest* request, const RpcAnswer* answer) {
  // Not earlier: where these threads are, they are woken for what others wait for, and a client of
  // call() alone hears of its answer a hand-over later.
  keep_callback_threads();
  auto* const pending = new RpcPending(*request, *answer);
  channel->stub.UnaryCall(&pending->context, request->path, grpc::StubOptions(), &pending->request,
                          &pending->reply, [pending](const grpc::Status& status) {
                            give(pending->answer, status, pending->reply);
                            pending->release();
                          });
  return pending;
}

void cancel(RpcPending* pending) { pending->context.TryCancel(); }
void forget(RpcPending* pending) { pending->release(); }

}  // namespace grpc_adapter
}  // namespace treenail
