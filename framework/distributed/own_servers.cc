// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/own_servers.h"

#include <map>
#include <mutex>
#include <utility>

#include "framework/distributed/server_address.h"

namespace treenail {
namespace {

struct Entries {
  std::mutex mutex;
  std::map<std::string, OwnServer> by_address;
};

Entries& entries() {
  static auto* const made = new Entries;
  return *made;
}

std::string key_of(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || !is_loopback(address.substr(0, colon))) return address;
  return address.substr(colon);
}

}  // namespace

OwnServerEntry::OwnServerEntry(std::string address, OwnServer server)
    : address_(std::move(address)) {
  Entries& all = entries();
  const std::lock_guard lock(all.mutex);
  all.by_address[key_of(address_)] = std::move(server);
}

OwnServerEntry::~OwnServerEntry() {
  Entries& all = entries();
  const std::lock_guard lock(all.mutex);
  all.by_address.erase(key_of(address_));
}

OwnServer own_server(const std::string& address) {
  Entries& all = entries();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_address.find(key_of(address));
  return found == all.by_address.end() ? OwnServer{} : found->second;
}

}  // namespace treenail
