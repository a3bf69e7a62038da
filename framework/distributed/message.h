// SPDX-License-Identifier: Apache-2.0
// What goes from process to process: a head, which is a protocol-buffer message (protocol.h says
// which fields it has), and behind it the bytes of tensors, sent from and read into their own
// memory. On the wire: the length of the head in four bytes, little-endian; the head; the elements
// of each tensor in turn, little-endian, a string as its length in eight bytes and its bytes. The
// head's field kTensorsField describes the tensors: dtype, dimensions. What is too long for one
// message has the field kInPartsField, and no elements behind its head: long_message.h.
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
inline constexpr int kInPartsField = 14;

// A message as it is sent.
class OutgoingMessage {
 public:
  // Errors: InvalidArgument for a tensor of resources or variants.
  OutgoingMessage(ProtoWriter head, std::span<const Tensor> tensors);
  // Each has to be given to a function of rpc_api.h once, which releases what it refers to.
  std::vector<RpcSlice> take_slices();

  // The same as one row of bytes.
  size_t bytes() const;
  size_t payload_bytes() const;  // of them, the elements
  void copy_to(std::byte* to) const;

  // From here on the message is its head alone, and says that its elements come in parts; these, as
  // they are sent.
  std::vector<Tensor> take_payload(std::string_view token);

 private:
  void frame(std::string_view head);

  std::string head_;             // with its length
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

class MessageBytes;
// The elements of one tensor. Errors: InvalidArgument where the bytes are none, ResourceExhausted.
Tensor take_tensor(MessageBytes& bytes, const TensorDescription& wanted);
// Makes elements of a plain dtype that were read as they came what they are here.
void settle_elements(Tensor& tensor);

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
  std::vector<Tensor> tensors;  // none where they come in parts
  bool in_parts = false;
};

}  // namespace treenail
