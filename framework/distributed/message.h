// SPDX-License-Identifier: Apache-2.0
// What goes from process to process: a head, which is a protocol-buffer message (protocol.h says
// which fields it has), and behind it the bytes of tensors, sent from and read into their own
// memory. On the wire: the length of the head in four bytes, little-endian; the head; the elements
// of each tensor in turn, little-endian, a string as its length in eight bytes and its bytes. The
// head's field kTensorsField describes the tensors: dtype, dimensions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/distributed/rpc_api.h"
#include "framework/io/proto_wire.h"
#include "framework/tensor/tensor.h"

namespace treenail {

inline constexpr int kTensorsField = 15;

// A message as it is sent.
class OutgoingMessage {
 public:
  // Errors: InvalidArgument for a tensor of resources or variants.
  OutgoingMessage(ProtoWriter head, std::span<const Tensor> tensors);
  // Each has to be given to a function of rpc_api.h once, which releases what it refers to.
  std::vector<RpcSlice> take_slices();

  // The same as one row of bytes.
  size_t bytes() const;
  void copy_to(std::byte* to) const;

 private:
  std::string head_;
  std::vector<Tensor> payload_;  // bytes
};

// What a message says of a tensor whose bytes are elsewhere: the field kTensorsField.
struct TensorDescription {
  DType dtype = DType::kInvalid;
  Shape shape;
};
ProtoWriter write_description(const TensorDescription& tensor);
// Errors: InvalidArgument.
TensorDescription read_description(std::string_view bytes);

// Takes the bytes of a message that came from the slices that hold them, for who knows where its
// contents belong. Errors: InvalidArgument where it ends too soon.
class MessageBytes {
 public:
  explicit MessageBytes(std::span<const RpcView> views);
  size_t left() const { return left_; }
  void take(void* to, size_t bytes);
  // What it begins with.
  std::string take_head();

 private:
  std::span<const RpcView> views_;
  size_t offset_ = 0;  // in the first of them
  size_t left_ = 0;
};

// A message that came; of its own memory. Errors of the constructor: InvalidArgument for what is
// none (no length is believed before it has been held against the bytes that are there),
// ResourceExhausted.
struct Message {
  explicit Message(std::span<const RpcView> views);

  // The fields but those of tensors.
  ProtoReader fields() const { return ProtoReader(head); }

  std::string head;
  std::vector<Tensor> tensors;
};

}  // namespace treenail
