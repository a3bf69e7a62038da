// SPDX-License-Identifier: Apache-2.0
// Calls between servers and clients of one process, behind framework/distributed/rpc_api.h as gRPC
// is: each message goes by a thread of its own, after as long as a Fates says, and connections are
// cut or fall silent where that says so. No message comes twice, and none is lost on a connection
// that goes on: TCP gives that.
#pragma once

#include <chrono>

#include "framework/distributed/rpc_api.h"

namespace treenail::test {

// What becomes of messages. Asked from any thread.
class Fates {
 public:
  struct Passing {
    const char* path;
    bool reply;
  };
  struct Fate {
    enum class Kind { kArrives, kCut, kSilent } kind = Kind::kArrives;
    std::chrono::microseconds after{0};
  };
  virtual ~Fates() = default;
  // kCut: whatever is under way on its connection ends as Unavailable, and the next call makes
  // another one. kSilent: the same, but when the connection's keep-alive has run out; until then
  // nothing comes or goes.
  virtual Fate of(const Passing& passing) = 0;
};

// The table of the library tests/plugins/libtreenail-memory-transport.so, which begins as that of
// the gRPC adapter and so may stand in its place. There TREENAIL_TEST_FAULTS, "seed cuts silences
// most_faults most_delay_us" (random_fates.h), is read whenever a server begins where there is
// none.
struct MemoryTransport {
  RpcApi rpc;
  // From here on; null: all arrives at once. It has to be there until nothing is under way.
  void (*set_fates)(Fates* fates);
  // The server goes on, but nobody reaches it any more, and what is under way to it is cut.
  void (*cut_off)(const char* address);
  // Waits until nothing is under way. False where that takes more than 30 seconds.
  bool (*settle)();
};

}  // namespace treenail::test
