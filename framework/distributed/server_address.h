// SPDX-License-Identifier: Apache-2.0
// Addresses to listen on, "host:port".
#pragma once

#include <string>

namespace treenail {

// "host" of "host:port". Errors: InvalidArgument.
std::string host_of(const std::string& address);
// Whether it is reached from this machine alone.
bool is_loopback(const std::string& host);

// The address, if it may be listened on. Errors: InvalidArgument; PermissionDenied beyond this
// machine, unless all is encrypted or plain_text says that the network is trusted.
std::string listening_address(const std::string& address, bool encrypted, bool plain_text);

}  // namespace treenail
