// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/neighbour_packets.h"

#include <unistd.h>

#include <cstring>

#include "build_info.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"

namespace treenail {
namespace {

constexpr size_t kHeadBytes = 12;
constexpr int kSegmentField = 1, kOffsetField = 2, kBytesField = 3;  // of a LentValue

}  // namespace

std::string write_packet(PacketKind kind, uint64_t number, std::string_view body) {
  std::string packet(kHeadBytes, '\0');
  std::memcpy(packet.data(), &kind, 4);
  std::memcpy(packet.data() + 4, &number, 8);
  return packet.append(body);
}

NeighbourPacket read_packet(std::string_view bytes) {
  if (bytes.size() < kHeadBytes)
    throw invalid_argument("a packet of another task has ", bytes.size(), " bytes; at least ",
                           kHeadBytes, " are needed");
  NeighbourPacket packet{};
  std::memcpy(&packet.kind, bytes.data(), 4);
  std::memcpy(&packet.number, bytes.data() + 4, 8);
  packet.body = bytes.substr(kHeadBytes);
  return packet;
}

std::string write_lent(const LentValue& value) {
  ProtoWriter out;
  out.varint(kSegmentField, value.address.segment);
  out.varint(kOffsetField, value.address.offset);
  out.varint(kBytesField, value.address.bytes);
  if (value.tensor.dtype != DType::kInvalid)
    out.message(kTensorsField, write_description(value.tensor));
  return out.text();
}

LentValue read_lent(std::string_view body) {
  ProtoReader reader(body);
  ProtoField field;
  LentValue value;
  while (reader.next(&field)) {
    if (field.number == kSegmentField) value.address.segment = static_cast<uint32_t>(field.value);
    if (field.number == kOffsetField) value.address.offset = field.value;
    if (field.number == kBytesField) value.address.bytes = field.value;
    if (field.number == kTensorsField) value.tensor = read_description(field.bytes);
  }
  return value;
}

std::string neighbour_name(uint64_t incarnation) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string name;
  for (int i = 0; i < 16; ++i, incarnation >>= 4) name += kDigits[incarnation & 15];
  return name;
}

std::string hello_text(uint64_t incarnation) {
  return concat(build_info::kVersion, " ", neighbour_name(incarnation));
}

std::string neighbour_directory() {
  const std::string asked = env_text("TREENAIL_SHARED_MEMORY").value_or("");
  if (asked == "no") return "";
  if (!asked.empty()) return asked;
  return concat("/tmp/treenail-", ::geteuid());
}

}  // namespace treenail
