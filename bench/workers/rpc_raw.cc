// SPDX-License-Identifier: Apache-2.0
// What gRPC itself takes between two processes: an empty call, by its synchronous and its callback
// interface, and a stream of byte buffers that the receiver copies out. `serve` prints its port;
// `ask PORT` prints a line of JSON for each figure.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/method_handler.h>
#include <grpcpp/impl/codegen/rpc_service_method.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/codegen/service_type.h>
#include <grpcpp/impl/codegen/sync_stream.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

using grpc::ByteBuffer;
using grpc::internal::RpcMethod;
using grpc::internal::RpcServiceMethod;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ByteBuffer empty() {
  const grpc::Slice nothing;
  return {&nothing, 1};
}

class Service final : public grpc::Service {
 public:
  Service() {
    AddMethod(new RpcServiceMethod(
        "/raw/Waited", RpcMethod::NORMAL_RPC,
        new grpc::internal::RpcMethodHandler<Service, ByteBuffer, ByteBuffer>(
            [](Service*, grpc::ServerContext*, const ByteBuffer*, ByteBuffer* reply) {
              *reply = empty();
              return grpc::Status::OK;
            },
            this)));
    AddMethod(new RpcServiceMethod("/raw/Called", RpcMethod::NORMAL_RPC, nullptr));
    MarkMethodCallback(
        1, new grpc::internal::CallbackUnaryHandler<ByteBuffer, ByteBuffer>(
               [](grpc::CallbackServerContext* context, const ByteBuffer*, ByteBuffer* reply) {
                 *reply = empty();
                 auto* const reactor = context->DefaultReactor();
                 reactor->Finish(grpc::Status::OK);
                 return reactor;
               }));
    AddMethod(new RpcServiceMethod(
        "/raw/Stream", RpcMethod::BIDI_STREAMING,
        new grpc::internal::BidiStreamingHandler<Service, ByteBuffer, ByteBuffer>(
            [this](Service*, grpc::ServerContext*,
                   grpc::ServerReaderWriter<ByteBuffer, ByteBuffer>* stream) {
              return take(*stream);
            },
            this)));
  }

 private:
  // Answers each buffer when it has been copied out.
  static grpc::Status take(grpc::ServerReaderWriter<ByteBuffer, ByteBuffer>& stream) {
    std::vector<char> to(size_t{64} << 20);
    ByteBuffer buffer;
    while (stream.Read(&buffer)) {
      std::vector<grpc::Slice> slices;
      if (!buffer.Dump(&slices).ok()) break;
      size_t at = 0;
      for (const grpc::Slice& slice : slices) {
        std::memcpy(to.data() + at, slice.begin(), slice.size());
        at += slice.size();
      }
      stream.Write(empty());
    }
    return grpc::Status::OK;
  }
};

int serve() {
  Service service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  builder.SetMaxReceiveMessageSize(-1);
  const auto server = builder.BuildAndStart();
  std::printf("%d\n", port);
  std::fflush(stdout);
  server->Wait();
  return 0;
}

void print(const char* name, size_t bytes, std::vector<double>& took) {
  std::sort(took.begin(), took.end());
  std::printf("{\"name\": \"%s\", \"bytes\": %zu, \"seconds\": %.9f}\n", name, bytes,
              took[took.size() / 2]);
}

void ask_waited(grpc::GenericStub& stub) {
  std::vector<double> took;
  for (int i = 0; i < 2000; ++i) {
    const double begun = now();
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    ByteBuffer reply;
    grpc::Status status;
    const auto reader = stub.PrepareUnaryCall(&context, "/raw/Waited", empty(), &queue);
    reader->StartCall();
    reader->Finish(&reply, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    took.push_back(now() - begun);
  }
  print("empty, synchronous", 0, took);
}

void ask_called(grpc::GenericStub& stub) {
  std::vector<double> took;
  const ByteBuffer request = empty();
  for (int i = 0; i < 2000; ++i) {
    const double begun = now();
    grpc::ClientContext context;
    ByteBuffer reply;
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    stub.UnaryCall(&context, "/raw/Called", grpc::StubOptions(), &request, &reply,
                   [&](const grpc::Status&) {
                     const std::lock_guard<std::mutex> lock(mutex);
                     done = true;
                     changed.notify_one();
                   });
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return done; });
    took.push_back(now() - begun);
  }
  print("empty, callback", 0, took);
}

void ask_stream(grpc::GenericStub& stub, size_t bytes) {
  const std::vector<char> from(bytes, 1);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  void* tag = nullptr;
  bool ok = false;
  const auto stream = stub.PrepareCall(&context, "/raw/Stream", &queue);
  stream->StartCall(nullptr);
  queue.Next(&tag, &ok);
  std::vector<double> took;
  for (int i = 0; i < 40; ++i) {
    const double begun = now();
    const grpc::Slice slice(from.data(), bytes, grpc::Slice::STATIC_SLICE);
    stream->Write(ByteBuffer(&slice, 1), nullptr);
    queue.Next(&tag, &ok);
    ByteBuffer reply;
    stream->Read(&reply, nullptr);
    queue.Next(&tag, &ok);
    took.push_back(now() - begun);
  }
  context.TryCancel();
  grpc::Status status;
  stream->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
  print("stream", bytes, took);
}

int ask(const std::string& port) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  grpc::GenericStub stub(grpc::CreateCustomChannel("127.0.0.1:" + port,
                                                   grpc::InsecureChannelCredentials(), arguments));
  ask_waited(stub);
  ask_called(stub);
  for (const size_t bytes : {size_t{1} << 20, size_t{16} << 20, size_t{64} << 20})
    ask_stream(stub, bytes);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "serve") return serve();
  if (what == "ask" && argc > 2) return ask(argv[2]);
  std::fprintf(stderr, "usage: rpc_raw serve | ask PORT\n");
  return 2;
}
