// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/server_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "framework/base/error.h"

namespace treenail {

std::string host_of(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos)
    throw invalid_argument("cannot listen on \"", address, "\"; needed is \"host:port\"");
  return address.substr(0, colon);
}

bool is_loopback(const std::string& host) {
  if (host == "localhost" || host == "[::1]") return true;
  in_addr address{};  // a name may begin like one
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 &&
         (ntohl(address.s_addr) >> 24) == IN_LOOPBACKNET;
}

std::string listening_address(const std::string& address, bool encrypted, bool plain_text) {
  if (is_loopback(host_of(address)) || encrypted || plain_text) return address;
  throw Error(
      Code::kPermissionDenied,
      concat("refuses to listen on ", address, ": whoever reaches that port could use it, ",
             "and nothing on the way is encrypted. Give it a certificate, listen on localhost, or ",
             "say --plain-text (Python: plain_text) where the network and all who are in it are ",
             "trusted"));
}

}  // namespace treenail
