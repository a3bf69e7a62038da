// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/long_message.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "framework/base/error.h"

namespace treenail {
namespace {

// Beside the value itself either side holds one part. Of 64 MiB and less a value is one message,
// which spares a call.
constexpr size_t kUsualPart = size_t{128} << 20;
std::atomic<size_t> part_bytes{kUsualPart};

// Of a tensor in memory that is filled with what comes.
Tensor memory_for(const TensorDescription& described, uint64_t bytes) {
  if (described.dtype != DType::kString) return Tensor(described.dtype, described.shape);
  return Tensor(DType::kUInt8, Shape({static_cast<int64_t>(bytes)}));
}

void check_bytes(const TensorDescription& described, uint64_t bytes) {
  const auto elements = static_cast<uint64_t>(described.shape.num_elements());
  const bool strings = described.dtype == DType::kString;
  const bool plain = is_plain(described.dtype);
  const uint64_t size = strings ? 8 : dtype_size(described.dtype);
  const bool fit = bytes / size == elements && bytes % size == 0;  // a product could be too large
  if ((plain && fit) || (strings && bytes / size >= elements)) return;
  throw invalid_argument("a message announces ", bytes, " bytes for a ", described.dtype,
                         described.shape,
                         (plain || strings) ? ""
                                            : ", which cannot pass between "
                                              "processes");
}

}  // namespace

size_t most_part_bytes() { return part_bytes.load(std::memory_order_relaxed); }
void set_most_part_bytes(size_t bytes) { part_bytes = bytes == 0 ? kUsualPart : bytes; }

protocol::InParts parts_of(std::string_view head) {
  ProtoReader reader(head);
  ProtoField field;
  std::string_view last;
  while (reader.next(&field))
    if (field.number == kInPartsField) last = field.bytes;
  return protocol::read<protocol::InParts>(ProtoReader(last));
}

OutgoingParts::OutgoingParts(std::vector<Tensor> payload) : payload_(std::move(payload)) {
  for (const Tensor& tensor : payload_) bytes_ += tensor.bytes();
}

void OutgoingParts::add_slices(const std::shared_ptr<const OutgoingParts>& parts, uint64_t offset,
                               size_t bytes, std::vector<RpcSlice>& slices) {
  using Kept = std::shared_ptr<const OutgoingParts>;
  const auto release = [](void* owner) { delete static_cast<Kept*>(owner); };
  for (const Tensor& tensor : parts->payload_) {
    if (offset >= tensor.bytes()) {
      offset -= tensor.bytes();
      continue;
    }
    const size_t here = std::min<uint64_t>(bytes, tensor.bytes() - offset);
    if (here == 0) return;
    slices.push_back(
        {static_cast<const char*>(tensor.raw()) + offset, here, release, new Kept(parts)});
    bytes -= here;
    offset = 0;
  }
}

IncomingParts::IncomingParts(std::string_view head, uint64_t most) {
  const protocol::InParts parts = parts_of(head);
  ProtoReader reader(head);
  ProtoField field;
  while (reader.next(&field))
    if (field.number == kTensorsField) all_.push_back({read_description(field.bytes), 0, {}});
  if (parts.bytes.size() != all_.size())
    throw invalid_argument("a message announces the bytes of ", parts.bytes.size(),
                           " tensors and describes ", all_.size());
  for (size_t i = 0; i < all_.size(); ++i) {
    all_[i].bytes = parts.bytes[i];
    check_bytes(all_[i].described, all_[i].bytes);
    if (all_[i].bytes > most - bytes_)
      throw resource_exhausted("a message of more than ", most, " bytes, which is the limit here");
    bytes_ += all_[i].bytes;
  }
}

void IncomingParts::take(MessageBytes& from) {
  if (from.left() == 0 || from.left() > left())
    throw invalid_argument("a part of ", from.left(), " bytes of a message of which ", left(),
                           " are left");
  while (from.left() > 0) {
    One& one = all_[current_];
    if (offset_ == 0) one.memory = memory_for(one.described, one.bytes);
    const size_t here = std::min<uint64_t>(from.left(), one.bytes - offset_);
    if (here > 0) from.take(static_cast<char*>(one.memory.raw()) + offset_, here);
    offset_ += here;
    taken_ += here;
    if (offset_ < one.bytes) continue;
    ++current_;
    offset_ = 0;
  }
}

std::vector<Tensor> IncomingParts::tensors() {
  std::vector<Tensor> made;
  for (One& one : all_) {
    if (one.bytes == 0) one.memory = memory_for(one.described, 0);  // maybe after the last byte
    if (one.described.dtype == DType::kString) {
      const RpcView view{one.memory.raw(), one.memory.bytes()};
      MessageBytes bytes(std::span(&view, 1));
      made.push_back(take_tensor(bytes, one.described));
      if (bytes.left() > 0)
        throw invalid_argument("a message goes on after its strings, for ", bytes.left(), " bytes");
      one.memory = {};
    } else {
      settle_elements(one.memory);
      made.push_back(std::move(one.memory));
    }
  }
  return made;
}

}  // namespace treenail
