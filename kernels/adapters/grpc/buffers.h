// SPDX-License-Identifier: Apache-2.0
// Between slices as rpc_api.h has them and gRPC's byte buffers, without a copy of what is large.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <vector>

#include "framework/distributed/rpc_api.h"

namespace treenail {

// Stands in a status that a server's own answer is, as against one that gRPC made.
inline constexpr const char* kRefusal = "treenail";
// Of texts of errors, each of whose bytes may take three.
inline constexpr int kMostMetadata = 1 << 16;

// Takes what can be released.
inline grpc::ByteBuffer buffer_of(const RpcSlice* slices, size_t count) {
  std::vector<grpc::Slice> made;
  made.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const RpcSlice& slice = slices[i];
    if (slice.release == nullptr) {
      made.emplace_back(slice.data, slice.bytes);
    } else {
      made.emplace_back(const_cast<void*>(slice.data), slice.bytes, slice.release, slice.owner);
    }
  }
  if (made.empty()) made.emplace_back();
  return {made.data(), made.size()};
}

// What a byte buffer holds, for as long as this is there.
class Views {
 public:
  explicit Views(const grpc::ByteBuffer& buffer) {
    if (!buffer.Valid() || !buffer.Dump(&slices_).ok()) return;
    for (const grpc::Slice& slice : slices_) views_.push_back({slice.begin(), slice.size()});
  }
  const RpcView* data() const { return views_.data(); }
  size_t size() const { return views_.size(); }

 private:
  std::vector<grpc::Slice> slices_;
  std::vector<RpcView> views_;
};

}  // namespace treenail
