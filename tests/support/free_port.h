// SPDX-License-Identifier: Apache-2.0
// Ports for servers of tests, several of which run at a time on one machine.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <random>
#include <string>

#include "framework/base/error.h"

namespace treenail::test {

// Keeps a port to this process, in the eyes of other tests (free_ports.py), by an abstract name
// that goes with it. False where another has it, or somebody listens there.
inline bool keep_port(int port) {
  const int mark = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const std::string name = "treenail-tests-port-" + std::to_string(port);
  sockaddr_un kept{};
  kept.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), kept.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  const bool is_free = ::bind(mark, reinterpret_cast<sockaddr*>(&kept), size) == 0 &&
                       ::bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(probe);
  if (!is_free) ::close(mark);
  return is_free;
}

// At which nobody listens, and which nobody takes before who asked does: below the ports that the
// kernel gives to connections of its own accord.
inline int free_port() {
  int first = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  constexpr int kLowest = 10000, kTries = 1000;
  static std::mt19937 random{std::random_device{}()};
  std::uniform_int_distribution<int> ports(kLowest, std::max(first, kLowest + 1000) - 1);
  for (int i = 0; i < kTries; ++i) {
    const int port = ports(random);
    if (keep_port(port)) return port;
  }
  throw internal_error("no port is free below ", first);
}

}  // namespace treenail::test
