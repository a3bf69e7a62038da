// SPDX-License-Identifier: Apache-2.0
// Two kinds of methods: those that a thread waits for, by gRPC's synchronous interface, which
// answers sooner, and deferred ones by its callback interface, which keeps no thread.
#include "kernels/adapters/grpc/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/method_handler.h>
#include <grpcpp/impl/codegen/rpc_service_method.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/codegen/service_type.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "kernels/adapters/grpc/buffers.h"
#include "kernels/adapters/grpc/callback_threads.h"
#include "kernels/adapters/grpc/tls.h"

namespace treenail {

struct RpcCall {
  virtual ~RpcCall() = default;
  virtual void answer(grpc::ByteBuffer reply, const grpc::Status& status) = 0;
  virtual bool abandoned() const = 0;
};

namespace {

constexpr int kHandshakeMs = 10'000;

// The thread that it came on waits for the answer.
class WaitedCall final : public RpcCall {
 public:
  explicit WaitedCall(grpc::ServerContext& context) : context_(context) {}

  void answer(grpc::ByteBuffer reply, const grpc::Status& status) override {
    const std::lock_guard lock(mutex_);
    reply_ = std::move(reply);
    status_ = status;
    answered_ = true;
    changed_.notify_one();
  }
  bool abandoned() const override { return context_.IsCancelled(); }

  grpc::Status wait(grpc::ByteBuffer* reply) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answered_; });
    *reply = std::move(reply_);
    return status_;
  }

 private:
  grpc::ServerContext& context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  grpc::ByteBuffer reply_;
  grpc::Status status_;
  bool answered_ = false;
};

// Nobody waits; gRPC says when it is done with it.
class DeferredCall final : public grpc::ServerUnaryReactor, public RpcCall {
 public:
  DeferredCall(const RpcService& service, grpc::CallbackServerContext& context,
               grpc::ByteBuffer* reply)
      : service_(service), context_(context), reply_(reply) {}

  void answer(grpc::ByteBuffer reply, const grpc::Status& status) override {
    *reply_ = std::move(reply);
    Finish(status);
  }
  bool abandoned() const override { return context_.IsCancelled(); }
  void OnCancel() override { service_.cancelled(service_.self, this); }
  void OnDone() override { delete this; }

 private:
  const RpcService& service_;
  grpc::CallbackServerContext& context_;
  grpc::ByteBuffer* const reply_;
};

class Methods final : public grpc::Service {
 public:
  Methods(const RpcService& service, bool encrypted) : service_(service), encrypted_(encrypted) {
    for (size_t i = 0; i < service_.num_methods; ++i) {
      const RpcMethod& method = service_.methods[i];
      AddMethod(new grpc::internal::RpcServiceMethod(method.path,
                                                     grpc::internal::RpcMethod::NORMAL_RPC,
                                                     method.deferred ? nullptr : waited(i)));
      if (method.deferred) MarkMethodCallback(static_cast<int>(i), deferred(i));
    }
  }

 private:
  using Buffer = grpc::ByteBuffer;

  grpc::internal::MethodHandler* waited(size_t method) {
    return new grpc::internal::RpcMethodHandler<Methods, Buffer, Buffer>(
        [method](Methods* self, grpc::ServerContext* context, const Buffer* request,
                 Buffer* reply) {
          WaitedCall call(*context);
          self->handle(method, *context, &call, *request);
          return call.wait(reply);
        },
        this);
  }

  grpc::internal::MethodHandler* deferred(size_t method) {
    return new grpc::internal::CallbackUnaryHandler<Buffer, Buffer>(
        [this, method](grpc::CallbackServerContext* context, const Buffer* request, Buffer* reply) {
          auto* const call = new DeferredCall(service_, *context, reply);
          handle(method, *context, call, *request);
          return call;
        });
  }

  void handle(size_t method, const grpc::ServerContextBase& context, RpcCall* call,
              const Buffer& request) {
    const std::string caller = encrypted_ ? grpc_adapter::caller_of(*context.auth_context()) : "";
    const Views views(request);
    service_.handle(service_.self, method, {caller.data(), caller.size()}, call, views.data(),
                    views.size());
  }

  const RpcService service_;
  const bool encrypted_;
};

}  // namespace

struct RpcServer {
  std::unique_ptr<Methods> methods;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

namespace grpc_adapter {

RpcServer* serve(const RpcServerOptions* options, const RpcService* service, RpcStatus* status) {
  keep_callback_threads();
  auto made = std::make_unique<RpcServer>();
  made->methods = std::make_unique<Methods>(*service, options->tls != nullptr);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options->address, server_credentials(*options, *service), &made->port);
  builder.RegisterService(made->methods.get());
  builder.SetMaxReceiveMessageSize(static_cast<int>(options->most_bytes));
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(options->keepalive_ms));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             static_cast<int>(options->keepalive_wait_ms));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  made->server = builder.BuildAndStart();
  if (made->server == nullptr) {
    set_status(
        status, static_cast<int32_t>(grpc::StatusCode::UNAVAILABLE),
        std::string("cannot listen on ") + options->address +
            ": the address is in use, or none of this machine, or its name is not known here");
    return nullptr;
  }
  status->code = 0;
  return made.release();
}

int32_t port(const RpcServer* server) { return server->port; }

void stop(RpcServer* server, int64_t grace_ms) {
  server->server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(grace_ms));
  server->server->Wait();
  delete server;
}

void reply(RpcCall* call, const RpcSlice* slices, size_t num_slices) {
  call->answer(buffer_of(slices, num_slices), grpc::Status::OK);
}

void refuse(RpcCall* call, int32_t code, const char* text, size_t text_bytes) {
  const std::string said(text, std::min(text_bytes, size_t{kMostMetadata / 4}));
  call->answer({}, {static_cast<grpc::StatusCode>(code), said, kRefusal});
}

bool abandoned(const RpcCall* call) { return call->abandoned(); }

}  // namespace grpc_adapter
}  // namespace treenail
