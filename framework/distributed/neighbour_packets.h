// SPDX-License-Identifier: Apache-2.0
// What two tasks on one host say to each other over a local socket: one of them, the borrower, asks
// for values of the other's steps, and the other lends it memory in which they lie. A packet is a
// kind, the number of what is asked for, and a body.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/distributed/message.h"
#include "framework/distributed/shared_memory/shared_pool.h"

namespace treenail {

enum class PacketKind : uint32_t {
  kHello = 1,    // both ways, first: the body names version and process; the answer has none
  kAsk,          // to the lender: a ReceiveRequest
  kForget,       // to the lender: nobody waits for it any more
  kSegment,      // to the borrower, with a descriptor; the number is the segment's
  kDropSegment,  // to the borrower: number is the segment's; no block of it is lent any more
  kInline,       // an answer: the body is a message with the value
  kLent,         // an answer: LentValue, the value's elements as they lie
  kLentMessage,  // an answer: LentValue, a message with the value
  kFailed,       // an answer: the body is a canonical code in decimal, a blank and a text
  kElsewhere,    // an answer: to be asked for by message, by the key that is the body
};

struct NeighbourPacket {
  PacketKind kind;
  uint64_t number;
  std::string_view body;
};

std::string write_packet(PacketKind kind, uint64_t number, std::string_view body = {});
// Views `bytes`. Errors: InvalidArgument.
NeighbourPacket read_packet(std::string_view bytes);

// Where a value lies that is lent.
struct LentValue {
  SharedAddress address;
  TensorDescription tensor;  // of kLent
};
std::string write_lent(const LentValue& value);
// Errors: InvalidArgument.
LentValue read_lent(std::string_view body);

// What kHello says of the process that is asked: its version of Treenail, and which it is.
std::string hello_text(uint64_t incarnation);

// The directory of local sockets, and a process's name in it. Empty: TREENAIL_SHARED_MEMORY=no.
std::string neighbour_directory();
std::string neighbour_name(uint64_t incarnation);

}  // namespace treenail
