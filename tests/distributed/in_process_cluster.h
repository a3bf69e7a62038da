// SPDX-License-Identifier: Apache-2.0
// Servers of one process that know each other, over loopback (skipped without gRPC) or by a
// transport without a network.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/distributed/client.h"
#include "framework/distributed/rpc.h"
#include "framework/distributed/server.h"
#include "framework/runtime/run/session.h"
#include "tests/support/free_port.h"
#include "tests/support/plugin_path.h"
#include "tests/transport/memory_transport.h"

namespace treenail::test {

inline const MemoryTransport& memory_transport() {
  static const auto* const kTransport = [] {
    void* const library = ::dlopen(plugin_path("memory-transport").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw internal_error(::dlerror());
    const auto entry = reinterpret_cast<const void* (*)()>(::dlsym(library, "treenail_adapter"));
    return static_cast<const MemoryTransport*>(entry());
  }();
  return *kTransport;
}

// Values between tasks are lent in shared memory, or go by messages: gRPC's, or those of a
// transport without a network.
enum class Transport { kLent, kGrpc, kMemory };

class InProcessCluster : public ::testing::TestWithParam<Transport> {
 protected:
  void SetUp() override {
    if (GetParam() != Transport::kLent) ::setenv("TREENAIL_SHARED_MEMORY", "no", 1);
    if (GetParam() == Transport::kMemory) set_rpc_api(&memory_transport().rpc);
  }
  void TearDown() override {
    servers.clear();
    if (GetParam() == Transport::kMemory) {
      EXPECT_TRUE(memory_transport().settle());
    }
    set_rpc_api(nullptr);
    ::unsetenv("TREENAIL_SHARED_MEMORY");
  }

  // A parameter server and some workers.
  void begin(int workers) {
    add({"ps", 0});
    for (int i = 0; i < workers; ++i) add({"worker", i});
    try {
      for (const auto& [task, address] : cluster.tasks()) servers.push_back(server(task));
    } catch (const Error& error) {
      if (error.code() != Code::kUnimplemented) throw;
      GTEST_SKIP() << error.message();
    }
  }

  std::unique_ptr<Server> server(const TaskName& task) const {
    ServerOptions options;
    options.cluster = cluster;
    options.task = task;
    options.patience = patience;
    options.limits = limits;
    return std::make_unique<Server>(options);
  }

  // At the first worker.
  SessionOptions at_worker(const std::shared_ptr<Graph>& graph) const {
    SessionOptions options;
    options.remote = open_remote_session(servers[1]->target(), graph, options);
    return options;
  }

  RpcPatience patience;  // of servers
  Limits limits;         // likewise
  ClusterSpec cluster;
  std::vector<std::unique_ptr<Server>> servers;  // the parameter server's first

 private:
  void add(const TaskName& task) { cluster.add(task, "localhost:" + std::to_string(free_port())); }
};

inline std::string name_of(const ::testing::TestParamInfo<Transport>& info) {
  constexpr const char* kNames[] = {"Lent", "Grpc", "Memory"};
  return kNames[static_cast<int>(info.param)];
}

}  // namespace treenail::test
