// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/message.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "framework/base/byte_order.h"
#include "framework/base/error.h"
#include "framework/distributed/protocol.h"
#include "framework/tensor/string_element.h"

namespace treenail {
namespace {

constexpr size_t kLengthBytes = 4;
// Of less a copy costs less than to keep the tensor until it is sent.
constexpr size_t kCopiedBytes = 1024;

// Fields of a tensor's description.
constexpr int kDTypeField = 1, kDimsField = 2;

size_t unit_bytes(DType dtype) { return dtype_size(dtype) / (is_complex(dtype) ? 2 : 1); }

// The elements of a string tensor one after the other.
Tensor joined_strings(const Tensor& strings) {
  size_t bytes = 0;
  for (const StringElement& each : strings.values<StringElement>()) bytes += 8 + each.view().size();
  Tensor joined(DType::kUInt8, Shape({static_cast<int64_t>(bytes)}));
  auto* at = joined.data<uint8_t>();
  for (const StringElement& each : strings.values<StringElement>()) {
    uint64_t size = each.view().size();
    std::memcpy(at, &size, 8);
    swap_units(at, 1, 8);
    if (size > 0) std::memcpy(at + 8, each.view().data(), size);
    at += 8 + size;
  }
  return joined;
}

// In the order of bytes that messages have.
Tensor payload_of(const Tensor& tensor) {
  if (tensor.dtype() == DType::kString) return joined_strings(tensor);
  if (!is_plain(tensor.dtype()))
    throw invalid_argument("a ", tensor, " cannot pass between processes");
  if (std::endian::native == std::endian::little || unit_bytes(tensor.dtype()) == 1) return tensor;
  Tensor swapped = tensor.deep_copy();
  swap_units(swapped.raw(), swapped.bytes() / unit_bytes(tensor.dtype()),
             unit_bytes(tensor.dtype()));
  return swapped;
}

uint64_t take_number(MessageBytes& bytes, size_t size) {
  unsigned char raw[8] = {};
  bytes.take(raw, size);
  uint64_t number = 0;
  for (size_t i = size; i-- > 0;) number = number << 8 | raw[i];
  return number;
}

void take_strings(MessageBytes& bytes, Tensor& tensor) {
  for (StringElement& each :
       std::span(tensor.data<StringElement>(), static_cast<size_t>(tensor.num_elements()))) {
    const uint64_t size = take_number(bytes, 8);
    if (size > bytes.left()) throw invalid_argument("a message ends within a string");
    if (size == 0) continue;
    char* memory = nullptr;
    each = StringElement::of_size(size, &memory);
    bytes.take(memory, size);
  }
}

// Kernels rely on it that a bool is 0 or 1, and a peer may send anything.
void make_truth_values(Tensor& tensor) {
  auto* const bytes = static_cast<uint8_t*>(tensor.raw());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) bytes[i] = bytes[i] != 0 ? 1 : 0;
}

}  // namespace

void settle_elements(Tensor& tensor) {
  const size_t unit = unit_bytes(tensor.dtype());
  swap_units(tensor.raw(), tensor.bytes() / unit, unit);
  if (tensor.dtype() == DType::kBool) make_truth_values(tensor);
}

Tensor take_tensor(MessageBytes& bytes, const TensorDescription& wanted) {
  const bool strings = wanted.dtype == DType::kString;
  if (!strings && !is_plain(wanted.dtype))
    throw invalid_argument("a message holds a tensor of dtype ", wanted.dtype,
                           ", which cannot pass between processes");
  const size_t least = strings ? 8 : dtype_size(wanted.dtype);
  const auto elements = static_cast<uint64_t>(wanted.shape.num_elements());
  if (elements > bytes.left() / least)
    throw invalid_argument("a message describes a ", wanted.dtype, wanted.shape,
                           ", and ends after ", bytes.left(), " bytes of it");
  Tensor tensor(wanted.dtype, wanted.shape);
  if (strings) {
    take_strings(bytes, tensor);
  } else {
    bytes.take(tensor.raw(), tensor.bytes());
    settle_elements(tensor);
  }
  return tensor;
}

ProtoWriter write_description(const TensorDescription& tensor) {
  ProtoWriter description;
  description.varint(kDTypeField, static_cast<uint64_t>(tensor.dtype));
  for (const int64_t dim : tensor.shape.dims()) description.signed_number(kDimsField, dim);
  return description;
}

TensorDescription read_description(std::string_view bytes) {
  ProtoReader reader(bytes);
  ProtoField field;
  TensorDescription found;
  std::vector<int64_t> dims;
  while (reader.next(&field)) {
    if (field.number == kDTypeField && field.value < kNumDTypes &&
        dtype_is_valid(static_cast<int>(field.value)))
      found.dtype = static_cast<DType>(field.value);
    if (field.number == kDimsField) dims.push_back(static_cast<int64_t>(field.value));
  }
  const bool fits = std::ranges::all_of(dims, [](int64_t dim) { return dim >= 0; });
  if (found.dtype == DType::kInvalid || !fits || dims.size() > kMaxRank)
    throw invalid_argument("a message describes a tensor that there cannot be");
  found.shape = Shape(dims);
  return found;
}

MessageBytes::MessageBytes(std::span<const RpcView> views) : views_(views) {
  for (const RpcView& view : views) left_ += view.bytes;
}

void MessageBytes::take(void* to, size_t bytes) {
  if (bytes > left_)
    throw invalid_argument("a message ends within its contents: ", bytes,
                           " more bytes are announced, ", left_, " are there");
  left_ -= bytes;
  for (auto* at = static_cast<char*>(to); bytes > 0;) {
    const RpcView& view = views_.front();
    const size_t part = std::min(bytes, view.bytes - offset_);
    if (part > 0) std::memcpy(at, static_cast<const char*>(view.data) + offset_, part);
    at += part;
    bytes -= part;
    offset_ += part;
    if (offset_ < view.bytes) continue;
    views_ = views_.subspan(1);
    offset_ = 0;
  }
}

std::string MessageBytes::take_head() {
  const uint64_t length = take_number(*this, kLengthBytes);
  if (length > left_) throw invalid_argument("a message ends within its head");
  std::string head(length, '\0');
  take(head.data(), head.size());
  return head;
}

OutgoingMessage::OutgoingMessage(ProtoWriter head, std::span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors) {
    head.message(kTensorsField, write_description({tensor.dtype(), tensor.shape()}));
    payload_.push_back(payload_of(tensor));
  }
  frame(head.text());
}

void OutgoingMessage::frame(std::string_view head) {
  ProtoWriter framed;
  framed.raw_fixed(head.size(), kLengthBytes);
  framed.raw_bytes(head);
  head_ = framed.text();
}

std::vector<Tensor> OutgoingMessage::take_payload(std::string_view token) {
  protocol::InParts parts{std::string(token), {}};
  for (const Tensor& tensor : payload_) parts.bytes.push_back(tensor.bytes());
  ProtoWriter head;
  head.raw_bytes(std::string_view(head_).substr(kLengthBytes));
  head.message(kInPartsField, protocol::write(parts));
  frame(head.text());
  return std::exchange(payload_, {});
}

size_t OutgoingMessage::bytes() const { return head_.size() + payload_bytes(); }

size_t OutgoingMessage::payload_bytes() const {
  size_t bytes = 0;
  for (const Tensor& tensor : payload_) bytes += tensor.bytes();
  return bytes;
}

void OutgoingMessage::copy_to(std::byte* to) const {
  std::memcpy(to, head_.data(), head_.size());
  to += head_.size();
  for (const Tensor& tensor : payload_) {
    if (tensor.bytes() > 0) std::memcpy(to, tensor.raw(), tensor.bytes());
    to += tensor.bytes();
  }
}

std::vector<RpcSlice> OutgoingMessage::take_slices() {
  std::vector<RpcSlice> slices{{head_.data(), head_.size(), nullptr, nullptr}};
  for (Tensor& tensor : payload_) {
    if (tensor.bytes() == 0) continue;
    if (tensor.bytes() <= kCopiedBytes) {
      slices.push_back({tensor.raw(), tensor.bytes(), nullptr, nullptr});
      continue;
    }
    auto* const kept = new Tensor(tensor);
    const auto release = [](void* owner) { delete static_cast<Tensor*>(owner); };
    slices.push_back({kept->raw(), kept->bytes(), release, kept});
  }
  return slices;
}

Message::Message(std::span<const RpcView> views) {
  MessageBytes bytes(views);
  head = bytes.take_head();
  std::vector<TensorDescription> described;
  ProtoReader reader = fields();
  ProtoField field;
  while (reader.next(&field)) {
    if (field.number == kTensorsField) described.push_back(read_description(field.bytes));
    if (field.number == kInPartsField) in_parts = true;
  }
  if (!in_parts)
    for (const TensorDescription& each : described) tensors.push_back(take_tensor(bytes, each));
  if (bytes.left() > 0)
    throw invalid_argument("a message goes on after its contents, for ", bytes.left(), " bytes");
}

}  // namespace treenail
