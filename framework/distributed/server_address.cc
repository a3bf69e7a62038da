// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/server_address.h"

#include "framework/base/error.h"

namespace treenail {

std::string host_of(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos)
    throw invalid_argument("cannot listen on \"", address, "\"; needed is \"host:port\"");
  return address.substr(0, colon);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

std::string listening_address(const std::string& address, bool encrypted, bool plain_text) {
  if (is_loopback(host_of(address)) || encrypted || plain_text) return address;
  throw Error(
      Code::kPermissionDenied,
      concat("refuses to listen on ", address, ": whoever reaches that port could use it, ",
             "and nothing on the way is encrypted. Give it a certificate, listen on localhost, or ",
             "say plain_text where the network and all who are in it are trusted"));
}

}  // namespace treenail
