// SPDX-License-Identifier: Apache-2.0
// gRPC ends the threads of its callbacks with the last channel or server that has used them, and
// crashes where that goes in a callback of its own, as one does whose last call ends after it. So
// they are kept for the life of the process.
#pragma once

namespace treenail::grpc_adapter {

// Before anything that uses callbacks.
void keep_callback_threads();

}  // namespace treenail::grpc_adapter
