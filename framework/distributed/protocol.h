// SPDX-License-Identifier: Apache-2.0
// Which calls masters and workers answer, and the heads of their requests and replies: protocol
// buffers, whose fields stand in one place each, at the struct's fields() in protocol.cc. What a
// reader does not know it passes over; what is absent has the default below.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/io/proto_wire.h"
#include "framework/runtime/run/session.h"

namespace treenail::protocol {

// Options of a session, as its client asks for them.
struct Settings {
  bool fold_constants = true;
  bool merge_common_subexpressions = true;
  bool fuse_elementwise = true;
  bool allow_soft_placement = false;
  bool log_placement = false;
  std::string secret;  // of the server that runs in the client's own process
  // Tasks that the session knows beside the server's own: those that a name of these covers
  // ("/job:ps"); none: all.
  std::vector<std::string> device_filters;
  uint64_t sent_as = 0;   // a dtype that float32 values between tasks are rounded to; 0: none
  std::string placement;  // by cost: a message (placement/cost_model_bytes.h); "": not by cost
};

struct TaskStatus {
  std::string name;          // "/job:worker/replica:0/task:1"
  uint64_t incarnation = 0;  // of the process: another one has other state
  std::vector<std::string> devices;
  int64_t now_ns = 0;      // by its monotonic clock
  std::string figures;     // a message (placement/task_figures.h)
  uint64_t mpi_rank = 0;   // of the process
  std::string mpi_token;   // what it has told over MPI; empty: it has none
  bool mpi_sends = false;  // what the question, a ReceiveRequest, names by its tag
};

struct SessionOpened {
  std::string session;
  std::vector<std::string> devices;
  std::string figures;  // of the tasks, a message (placement/task_figures.h)
};

// A graph with the names of what is fed ("x:0"), fetched and run in it. Of a client: all that a run
// needs; of a master: what one task runs of it.
struct Program {
  std::string session;
  std::string graph;  // a graph file's bytes
  std::vector<std::string> feeds, fetches, targets;
  Settings settings;
  std::string owner;      // of a master's: whose session it is
  std::string secret;     // of a master's, whose client is of the process that the worker is in
  bool in_parts = false;  // of a client: for runs in parts
};

// What its names stand for in a graph.
struct ProgramValues {
  std::vector<Output> feeds, fetches;
  std::vector<Node*> targets;
};
// Errors: NotFound, InvalidArgument, as Graph::find_output().
ProgramValues values_of(const Program& program, const Graph& graph);

// Names what a call returned before: a session, a plan or a piece.
struct Handle {
  std::string session;
  uint64_t number = 0;
};

struct RunRequest {
  std::string session;
  uint64_t number = 0;  // of the plan, or of the piece
  int64_t timeout_ms = 0;
  uint64_t step = 0;         // of a piece
  uint64_t incarnation = 0;  // of the worker that the piece was given to
  bool trace = false;        // RunReply::nodes is wanted
  // A part of a run in parts: which of the feeds come with it, what is fetched and run, by their
  // positions in the plan or the piece. `number` is the run's for a master, the piece's for a
  // worker, which knows the run by its step.
  bool in_parts = false;
  bool begins = false;  // the first that the piece hears of it
  bool last = false;    // the whole run is over then
  std::vector<uint64_t> feeds, fetches, targets;
};

// Of a run in parts: what the fetches, targets and sends of a piece wait for.
struct PieceNeeds {
  struct End {
    std::vector<uint64_t> feeds;        // positions
    std::vector<std::string> received;  // keys of values
  };
  std::vector<End> ends;
};

struct RunReply {
  int64_t nodes_executed = 0;
  int64_t arena_bytes = 0;
  int64_t peak_bytes = 0;
  double cost_ns = 0;
  bool specialized = false;
  std::vector<DeviceMemory> devices;
  std::vector<NodeStats> nodes;
  int64_t begun_ns = 0;  // of a piece, by the worker's monotonic clock; nodes' times count from it
  int64_t clock_error_ns = 0;
  // Of a part that was refused and left the run as it was: what it asked for cannot be had without
  // feed number lacks_feed - 1. It is fetch number lacking - 1, or, beyond the fetches, a target.
  uint64_t lacks_feed = 0, lacking = 0;
};

RunReply reply_of(RunMetadata did);
RunMetadata metadata_of(RunReply reply);

struct ReceiveRequest {
  uint64_t step = 0;
  std::string key;
  // Where elements may be sent over MPI; without a token, nowhere.
  uint64_t mpi_rank = 0;
  std::string mpi_token;
  uint64_t mpi_tag = 0;
};
// An answer without a tensor: its elements are sent over MPI.
struct ReceivedByMpi {
  std::string tensor;  // its description
};

// For values of which those that are there come in one answer; the others are to be asked for
// again.
struct ReceiveSomeRequest {
  uint64_t step = 0;
  std::vector<std::string> keys;
  // Where elements may be sent over MPI; without a token, nowhere. A tag for each key.
  uint64_t mpi_rank = 0;
  std::string mpi_token;
  std::vector<uint64_t> mpi_tags;
};
struct ReceivedSome {
  std::vector<std::string> keys;  // of the values, in their order
  // Of those whose elements are sent over MPI, and their descriptions.
  std::vector<std::string> mpi_keys, mpi_tensors;
};

struct ResetRequest {
  std::vector<std::string> containers;  // none: all
  std::string owner;                    // of a master's: whose state
};

// A rank of a group of processes, as it begins; the reply says the same of who is asked.
struct RankHello {
  std::string version;  // of Treenail
  uint64_t group = 0;   // of the addresses of all ranks
  uint64_t rank = 0, size = 0;
  std::string token;  // what others have to show to this rank
  std::string host;   // equal on ranks of one kernel and one user
};

// Bytes from rank to rank: a note, or a part of a transfer.
struct RankBytes {
  std::string token;  // of the rank that is told
  uint64_t rank = 0;  // who tells
  uint64_t tag = 0;
  uint64_t number = 0;  // of the transfers of one tag, or of the notes
  uint64_t offset = 0;  // where the part belongs
  uint64_t total = 0;   // bytes of the transfer
};

// Of a message whose elements come in parts (long_message.h).
struct InParts {
  std::string token;            // by which they are sent, or asked for
  std::vector<uint64_t> bytes;  // of each tensor
};
struct Part {
  std::string token;
  uint64_t offset = 0;  // in all elements
  uint64_t bytes = 0;   // that are asked for
};

// Errors of reading: InvalidArgument.
template <class T>
ProtoWriter write(const T& value);
template <class T>
T read(ProtoReader reader);

namespace master {
inline constexpr const char* kOpenSession = "/treenail.Master/OpenSession";
inline constexpr const char* kMakePlan = "/treenail.Master/MakePlan";
inline constexpr const char* kRun = "/treenail.Master/Run";
inline constexpr const char* kPartialRunSetup = "/treenail.Master/PartialRunSetup";
inline constexpr const char* kPartialRun = "/treenail.Master/PartialRun";
inline constexpr const char* kEndPartialRun = "/treenail.Master/EndPartialRun";
inline constexpr const char* kForgetPlan = "/treenail.Master/ForgetPlan";
inline constexpr const char* kCloseSession = "/treenail.Master/CloseSession";
inline constexpr const char* kListDevices = "/treenail.Master/ListDevices";
inline constexpr const char* kReset = "/treenail.Master/Reset";
}  // namespace master

namespace worker {
inline constexpr const char* kGetStatus = "/treenail.Worker/GetStatus";
inline constexpr const char* kRegisterPiece = "/treenail.Worker/RegisterPiece";
inline constexpr const char* kRunPiece = "/treenail.Worker/RunPiece";
inline constexpr const char* kGetPartNeeds = "/treenail.Worker/GetPartNeeds";
inline constexpr const char* kEndPartialRun = "/treenail.Worker/EndPartialRun";
inline constexpr const char* kForgetPiece = "/treenail.Worker/ForgetPiece";
inline constexpr const char* kReceive = "/treenail.Worker/Receive";
inline constexpr const char* kReceiveSome = "/treenail.Worker/ReceiveSome";
inline constexpr const char* kGiveUpStep = "/treenail.Worker/GiveUpStep";
inline constexpr const char* kCloseSession = "/treenail.Worker/CloseSession";
inline constexpr const char* kReset = "/treenail.Worker/Reset";
}  // namespace worker

namespace ranks {
inline constexpr const char* kHello = "/treenail.Ranks/Hello";
inline constexpr const char* kWatch = "/treenail.Ranks/Watch";  // answered when the rank leaves
inline constexpr const char* kNote = "/treenail.Ranks/Note";
inline constexpr const char* kPart = "/treenail.Ranks/Part";
}  // namespace ranks

namespace parts {
inline constexpr const char* kBegin = "/treenail.Parts/Begin";
inline constexpr const char* kPut = "/treenail.Parts/Put";
inline constexpr const char* kGet = "/treenail.Parts/Get";
inline constexpr const char* kDrop = "/treenail.Parts/Drop";
}  // namespace parts

}  // namespace treenail::protocol
