// SPDX-License-Identifier: Apache-2.0
// Messages that are too long for one call: gRPC has none above 2 GiB, and holds each as a whole
// beside the tensors that it becomes. Their heads say so (kInPartsField), and the elements, as one
// row of bytes, go in calls of their own, each of which has the next of them: to the server before
// a request (Begin, Put), from it after a reply (Get). Who sends them: long_call.h; who answers:
// long_messages.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "framework/distributed/message.h"
#include "framework/distributed/protocol.h"

namespace treenail {

// What is longer goes in parts, each of at most so much.
size_t most_part_bytes();
// For tests. 0: the usual again.
void set_most_part_bytes(size_t bytes);

// What a head says of its parts. Errors: InvalidArgument.
protocol::InParts parts_of(std::string_view head);

// Elements as they are sent.
class OutgoingParts {
 public:
  explicit OutgoingParts(std::vector<Tensor> payload);
  uint64_t bytes() const { return bytes_; }
  // Bytes from there on, of which there have to be so many; they stay until they are released.
  static void add_slices(const std::shared_ptr<const OutgoingParts>& parts, uint64_t offset,
                         size_t bytes, std::vector<RpcSlice>& slices);

 private:
  const std::vector<Tensor> payload_;
  uint64_t bytes_ = 0;
};

// Elements as they come, into the tensors that they become; each of these has memory from its first
// byte on.
class IncomingParts {
 public:
  // Of a message with that head. Errors: InvalidArgument where the numbers of bytes are not those
  // of the tensors; ResourceExhausted for more than `most`.
  IncomingParts(std::string_view head, uint64_t most);

  uint64_t bytes() const { return bytes_; }
  uint64_t left() const { return bytes_ - taken_; }
  // All that there are. Errors: InvalidArgument for more than are left, or none; ResourceExhausted.
  void take(MessageBytes& from);
  // Once none is left. Errors: InvalidArgument for strings that are none.
  std::vector<Tensor> tensors();

 private:
  struct One {
    TensorDescription described;
    uint64_t bytes = 0;
    Tensor memory;
  };
  std::vector<One> all_;
  size_t current_ = 0;
  uint64_t offset_ = 0;  // in the current one
  uint64_t bytes_ = 0, taken_ = 0;
};

}  // namespace treenail
