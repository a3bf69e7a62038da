// SPDX-License-Identifier: Apache-2.0
// Servers of one process that know each other over loopback, skipped without gRPC.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/distributed/client.h"
#include "framework/distributed/server.h"
#include "framework/runtime/run/session.h"

namespace treenail::test {

// Nobody listens there when this returns, though somebody may come.
inline int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(fd);
  return ntohs(address.sin_port);
}

class InProcessCluster : public ::testing::Test {
 protected:
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
    return std::make_unique<Server>(options);
  }

  // At the first worker.
  SessionOptions at_worker(const std::shared_ptr<Graph>& graph) const {
    SessionOptions options;
    options.remote = open_remote_session(servers[1]->target(), graph, options);
    return options;
  }

  ClusterSpec cluster;
  std::vector<std::unique_ptr<Server>> servers;  // the parameter server's first

 private:
  void add(const TaskName& task) { cluster.add(task, "localhost:" + std::to_string(free_port())); }
};

}  // namespace treenail::test
