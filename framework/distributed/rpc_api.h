// SPDX-License-Identifier: Apache-2.0
// What the gRPC adapter (kernels/adapters/grpc) offers its one user, rpc.cc: calls of one request
// and one reply, each a row of slices of bytes that nobody looks into. Plain C types; neither an
// exception nor memory ownership crosses, but for the release functions of what is sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "framework/base/adapter.h"

namespace treenail {

// Bytes on their way out. With `release` they are sent from where they lie, and it is called once,
// from any thread, when they are needed no more, whatever became of the message; without one they
// are copied before the function that is given them returns.
struct RpcSlice {
  const void* data;
  size_t bytes;
  void (*release)(void* owner);
  void* owner;
};

// Bytes that came, there for as long as the function runs that is given them.
struct RpcView {
  const void* data;
  size_t bytes;
};

// Written by every call that takes one: code 0, or a canonical error code and a sentence.
struct RpcStatus {
  int32_t code;
  char text[4096];
};

inline void set_status(RpcStatus* status, int32_t code, std::string_view text) {
  status->code = code;
  status->text[text.copy(status->text, sizeof status->text - 1)] = '\0';
}

struct RpcCall;     // one request that a server has to answer
struct RpcServer;   // the adapter's own
struct RpcChannel;  // likewise
struct RpcPending;  // likewise

struct RpcMethod {
  const char* path;  // "/treenail.Worker/Receive"
  // Its answer has to wait for what others do: no thread is kept for it meanwhile. Others are
  // answered within handle() as a rule, which takes less time.
  bool deferred;
};

// Names of files, all PEM; "": none.
struct RpcTls {
  const char* certificate;  // a chain, the own one first
  const char* key;
  const char* authority;  // certificates of those who sign what others show
  const char* revoked;    // a directory of lists of revoked certificates
};

// Who calls, as his connection knows him.
struct RpcCaller {
  const RpcView* names;  // the alternative names of the certificate that he showed
  size_t num_names;
  RpcView token;
};

struct RpcService {
  void* self;
  const RpcMethod* methods;
  size_t num_methods;
  // Of each call to a server with TLS, before its message is read. The status has a refusal, or
  // code 0 and the text by which handle() is to know the caller.
  void (*admit)(void* self, const RpcCaller* caller, RpcStatus* status);
  // On a thread of the adapter. `call` is answered once, by reply() or refuse(), from any thread,
  // and is there until then; a deferred one is also told by cancelled() when nobody waits for the
  // answer any more, maybe while it is answered: after that call it still has to be answered.
  // `caller`: what admit() said of him; empty without TLS.
  void (*handle)(void* self, size_t method, RpcView caller, RpcCall* call, const RpcView* request,
                 size_t views);
  void (*cancelled)(void* self, RpcCall* call);
};

struct RpcServerOptions {
  const char* address;        // "127.0.0.1:2222"; port 0: any that is free
  int64_t keepalive_ms;       // a silent connection is asked after so long ...
  int64_t keepalive_wait_ms;  // ... and given up when it does not answer
  int64_t most_bytes;         // of one request
  const RpcTls* tls;          // null: nothing is encrypted, and nobody known
  bool certificate_needed;    // whoever shows none is refused before he can call
};

struct RpcChannelOptions {
  const char* address;
  int64_t keepalive_ms;
  int64_t keepalive_wait_ms;
  int64_t most_bytes;  // of one reply
  const RpcTls* tls;   // null: nothing is encrypted
};

struct RpcRequest {
  const char* path;
  const RpcSlice* slices;
  size_t num_slices;
  int64_t timeout_ms;   // <= 0: none
  RpcView token;        // shown over an encrypted connection alone
  bool wait_for_ready;  // for a connection, instead of Unavailable where none can be made
};

// Called once. `code` 0: `reply` is there; else `theirs`: the server said so, not the connection.
struct RpcAnswer {
  void* self;
  void (*answered)(void* self, int32_t code, bool theirs, const char* text, size_t text_bytes,
                   const RpcView* reply, size_t views);
};

struct RpcApi {
  AdapterHeader header;
  // Null where the status says so.
  RpcServer* (*serve)(const RpcServerOptions* options, const RpcService* service,
                      RpcStatus* status);
  int32_t (*port)(const RpcServer* server);
  // What runs is cancelled after `grace_ms`; returns when all is answered, and the server is gone.
  void (*stop)(RpcServer* server, int64_t grace_ms);
  void (*reply)(RpcCall* call, const RpcSlice* slices, size_t num_slices);
  void (*refuse)(RpcCall* call, int32_t code, const char* text, size_t text_bytes);
  // Whether nobody waits for the answer any more.
  bool (*abandoned)(const RpcCall* call);

  RpcChannel* (*connect)(const RpcChannelOptions* options, RpcStatus* status);
  // What was begun with it goes on.
  void (*disconnect)(RpcChannel* channel);
  // Waits; about every 50 ms it calls poll(poll_argument), which cancels by giving true. `answer`
  // is called before this returns, on this thread.
  void (*call)(RpcChannel* channel, const RpcRequest* request, const RpcAnswer* answer,
               bool (*poll)(void*), void* poll_argument);
  // Does not wait: `answer` is called from any thread, maybe before this returns. The result goes
  // by forget(), before or after.
  RpcPending* (*start)(RpcChannel* channel, const RpcRequest* request, const RpcAnswer* answer);
  void (*cancel)(RpcPending* pending);  // soon answered, with whatever
  void (*forget)(RpcPending* pending);
};

}  // namespace treenail
