// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/protocol.h"

#include <bit>
#include <utility>

#include "framework/base/error.h"

namespace treenail::protocol {
namespace {

// Each struct's fields with their numbers, which never change: f(number, field).
template <class F>
void fields(Settings& s, F&& f) {
  f(1, s.fold_constants);
  f(2, s.merge_common_subexpressions);
  f(3, s.fuse_elementwise);
  f(4, s.allow_soft_placement);
  f(5, s.log_placement);
  f(6, s.secret);
  f(7, s.device_filters);
  f(8, s.sent_as);
  f(9, s.placement);
}
template <class F>
void fields(TaskStatus& s, F&& f) {
  f(1, s.name);
  f(2, s.incarnation);
  f(3, s.devices);
  f(4, s.now_ns);
  f(5, s.figures);
  f(6, s.mpi_rank);
  f(7, s.mpi_token);
  f(8, s.mpi_sends);
}
template <class F>
void fields(SessionOpened& s, F&& f) {
  f(1, s.session);
  f(2, s.devices);
  f(3, s.figures);
}
template <class F>
void fields(Program& s, F&& f) {
  f(1, s.session);
  f(2, s.graph);
  f(3, s.feeds);
  f(4, s.fetches);
  f(5, s.targets);
  f(6, s.settings);
  f(7, s.owner);
  f(8, s.secret);
  f(9, s.in_parts);
}
template <class F>
void fields(Handle& s, F&& f) {
  f(1, s.session);
  f(2, s.number);
}
template <class F>
void fields(RunRequest& s, F&& f) {
  f(1, s.session);
  f(2, s.number);
  f(3, s.timeout_ms);
  f(4, s.step);
  f(5, s.incarnation);
  f(6, s.trace);
  f(7, s.in_parts);
  f(8, s.begins);
  f(9, s.last);
  f(10, s.feeds);
  f(11, s.fetches);
  f(12, s.targets);
}
template <class F>
void fields(PieceNeeds::End& s, F&& f) {
  f(1, s.feeds);
  f(2, s.received);
}
template <class F>
void fields(PieceNeeds& s, F&& f) {
  f(1, s.ends);
}
template <class F>
void fields(DeviceMemory& s, F&& f) {
  f(1, s.device);
  f(2, s.arena_bytes);
  f(3, s.peak_bytes);
}
using NameAndOp = std::pair<std::string, std::string>;
template <class F>
void fields(NameAndOp& s, F&& f) {
  f(1, s.first);
  f(2, s.second);
}
template <class F>
void fields(NodeStats& s, F&& f) {
  f(1, s.name);
  f(2, s.op);
  f(3, s.fused);
  f(4, s.device);
  f(5, s.start_ns);
  f(6, s.end_ns);
  f(7, s.thread);
  f(8, s.bytes_allocated);
  f(9, s.bytes_in_use);
  f(10, s.flops);
}
template <class F>
void fields(RunReply& s, F&& f) {
  f(1, s.nodes_executed);
  f(2, s.arena_bytes);
  f(3, s.peak_bytes);
  f(4, s.cost_ns);
  f(5, s.specialized);
  f(6, s.devices);
  f(7, s.nodes);
  f(8, s.begun_ns);
  f(9, s.clock_error_ns);
  f(10, s.lacks_feed);
  f(11, s.lacking);
}
template <class F>
void fields(ReceiveRequest& s, F&& f) {
  f(1, s.step);
  f(2, s.key);
  f(3, s.mpi_rank);
  f(4, s.mpi_token);
  f(5, s.mpi_tag);
}
template <class F>
void fields(ReceivedByMpi& s, F&& f) {
  f(1, s.tensor);
}
template <class F>
void fields(ReceiveSomeRequest& s, F&& f) {
  f(1, s.step);
  f(2, s.keys);
  f(3, s.mpi_rank);
  f(4, s.mpi_token);
  f(5, s.mpi_tags);
}
template <class F>
void fields(ReceivedSome& s, F&& f) {
  f(1, s.keys);
  f(2, s.mpi_keys);
  f(3, s.mpi_tensors);
}
template <class F>
void fields(ResetRequest& s, F&& f) {
  f(1, s.containers);
  f(2, s.owner);
}
template <class F>
void fields(RankHello& s, F&& f) {
  f(1, s.version);
  f(2, s.group);
  f(3, s.rank);
  f(4, s.size);
  f(5, s.token);
  f(6, s.host);
}
template <class F>
void fields(RankBytes& s, F&& f) {
  f(1, s.token);
  f(2, s.rank);
  f(3, s.tag);
  f(4, s.number);
  f(5, s.offset);
  f(6, s.total);
}
template <class F>
void fields(InParts& s, F&& f) {
  f(1, s.token);
  f(2, s.bytes);
}
template <class F>
void fields(Part& s, F&& f) {
  f(1, s.token);
  f(2, s.offset);
  f(3, s.bytes);
}

struct FieldWriter {
  ProtoWriter& out;
  void operator()(int number, bool value) { out.varint(number, value ? 1 : 0); }
  void operator()(int number, uint64_t value) { out.varint(number, value); }
  void operator()(int number, int64_t value) { out.signed_number(number, value); }
  void operator()(int number, double value) { out.real(number, value); }
  void operator()(int number, const std::string& value) { out.bytes(number, value); }
  void operator()(int number, const std::vector<std::string>& values) {
    for (const std::string& value : values) out.bytes(number, value);
  }
  void operator()(int number, const std::vector<uint64_t>& values) {
    for (const uint64_t value : values) out.varint(number, value);
  }
  void operator()(int number, const Settings& value) { out.message(number, write(value)); }
  template <class T>
  void operator()(int number, const std::vector<T>& values) {
    for (const T& value : values) out.message(number, write(value));
  }
};

// Takes the field that was read where it has the number.
struct FieldReader {
  const ProtoField& found;
  void operator()(int number, bool& value) {
    if (found.number == number) value = found.value != 0;
  }
  void operator()(int number, uint64_t& value) {
    if (found.number == number) value = found.value;
  }
  void operator()(int number, int64_t& value) {
    if (found.number == number) value = static_cast<int64_t>(found.value);
  }
  void operator()(int number, double& value) {
    if (found.number == number) value = std::bit_cast<double>(found.value);
  }
  void operator()(int number, std::string& value) {
    if (found.number == number) value = found.bytes;
  }
  void operator()(int number, std::vector<std::string>& values) {
    if (found.number == number) values.emplace_back(found.bytes);
  }
  void operator()(int number, std::vector<uint64_t>& values) {
    if (found.number == number) values.push_back(found.value);
  }
  void operator()(int number, Settings& value) {
    if (found.number == number) value = read<Settings>(ProtoReader(found.bytes));
  }
  template <class T>
  void operator()(int number, std::vector<T>& values) {
    if (found.number == number) values.push_back(read<T>(ProtoReader(found.bytes)));
  }
};

}  // namespace

ProgramValues values_of(const Program& program, const Graph& graph) {
  ProgramValues values;
  for (const std::string& name : program.feeds) values.feeds.push_back(graph.find_output(name));
  for (const std::string& name : program.fetches) values.fetches.push_back(graph.find_output(name));
  for (const std::string& name : program.targets) {
    values.targets.push_back(graph.find(name));
    if (values.targets.back() == nullptr)
      throw not_found("the graph has no node \"", name, "\" to run");
  }
  return values;
}

RunReply reply_of(RunMetadata did) {
  return {did.nodes_executed,   did.arena_bytes, did.peak_bytes,
          did.cost_ns,          did.specialized, std::move(did.devices),
          std::move(did.nodes), did.begun_ns,    did.clock_error_ns};
}

RunMetadata metadata_of(RunReply reply) {
  return {reply.nodes_executed,   reply.arena_bytes, reply.cost_ns,
          reply.specialized,      reply.peak_bytes,  std::move(reply.devices),
          std::move(reply.nodes), reply.begun_ns,    reply.clock_error_ns};
}

template <class T>
ProtoWriter write(const T& value) {
  ProtoWriter out;
  fields(const_cast<T&>(value), FieldWriter{out});
  return out;
}

template <class T>
T read(ProtoReader reader) {
  T value;
  ProtoField field;
  while (reader.next(&field)) fields(value, FieldReader{field});
  return value;
}

#define TREENAIL_MESSAGE(type)                   \
  template ProtoWriter write(const type& value); \
  template type read(ProtoReader reader);
TREENAIL_MESSAGE(Settings)
TREENAIL_MESSAGE(TaskStatus)
TREENAIL_MESSAGE(SessionOpened)
TREENAIL_MESSAGE(Program)
TREENAIL_MESSAGE(Handle)
TREENAIL_MESSAGE(RunRequest)
TREENAIL_MESSAGE(RunReply)
TREENAIL_MESSAGE(PieceNeeds)
TREENAIL_MESSAGE(ReceiveRequest)
TREENAIL_MESSAGE(ReceivedByMpi)
TREENAIL_MESSAGE(ReceiveSomeRequest)
TREENAIL_MESSAGE(ReceivedSome)
TREENAIL_MESSAGE(ResetRequest)
TREENAIL_MESSAGE(RankHello)
TREENAIL_MESSAGE(RankBytes)
TREENAIL_MESSAGE(InParts)
TREENAIL_MESSAGE(Part)
#undef TREENAIL_MESSAGE

}  // namespace treenail::protocol
