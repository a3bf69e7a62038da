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
// The error of a call that was answered with that code, by the server (`theirs`) or by the
// connection, which names nobody itself.
Error error_of_call(const std::string& who, bool encrypted, int32_t code, bool theirs,
                    std::string_view text);

inline RpcView view_of(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace treenail
