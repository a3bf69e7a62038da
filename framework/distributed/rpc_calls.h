// SPDX-License-Identifier: Apache-2.0
// What rpc.cc and started_call.cc both need of the adapter.
#pragma once

#include <string>
#include <string_view>

#include "framework/base/error.h"
#include "framework/distributed/rpc_api.h"

namespace treenail {

// Errors: Unimplemented.
const RpcApi& rpc_api();
// A server that ends cancels its calls; for who has not cancelled the call himself, it is lost.
inline int32_t code_of_call(int32_t code, bool theirs, bool cancelled) {
  const bool ended = !theirs && !cancelled && code == static_cast<int32_t>(Code::kCancelled);
  return ended ? static_cast<int32_t>(Code::kUnavailable) : code;
}
// The error of a call that was answered with that code, by the server (`theirs`) or by the
// connection, which names nobody itself.
Error error_of_call(const std::string& who, bool encrypted, int32_t code, bool theirs,
                    std::string_view text);

inline RpcView view_of(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace treenail
