// SPDX-License-Identifier: Apache-2.0
// What an identity holds at a server: that it is counted wherever it came from, that it is refused
// beyond the limit while others work on, and that all of it is given back.
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/distributed/client.h"
#include "framework/distributed/limits.h"
#include "framework/distributed/protocol.h"
#include "framework/distributed/rpc.h"
#include "framework/distributed/server.h"
#include "framework/graph/serialize.h"
#include "framework/tensor/string_element.h"
#include "tests/distributed/in_process_cluster.h"
#include "tests/support/expect_error.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using test::GraphBuilder;
using testing::error_of;

constexpr int64_t kMebi = 1 << 20;
constexpr const char* kPs = "/job:ps/task:0";
constexpr const char* kWorker = "/job:worker/task:0";

Tensor bytes_of(int64_t count) {
  Tensor value(DType::kUInt8, Shape({count}));
  std::fill_n(value.data<uint8_t>(), count, uint8_t{7});
  return value;
}

// A value of `x` for a variable and a queue of each of two containers, in both tasks.
GraphBuilder programs() {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kUInt8, {kUnknown}, "x");
  const std::vector<DType> types = {DType::kUInt8};
  for (const std::string container : {"a", "b"}) {
    for (const char* const task : {kPs, kWorker}) {
      const std::string place = container + (task == kPs ? "ps" : "worker");
      const auto at = [&](Node& node) -> Node& {
        b.graph->set_device(node, task);
        return node;
      };
      const Output v{&at(b.node("VarHandleOp", {},
                                {{"dtype", DType::kUInt8},
                                 {"shape", PartialShape({kUnknown})},
                                 {"container", container}},
                                place + "_v")),
                     0};
      at(b.node("AssignVariableOp", {v, x}, {}, place + "_assign"));
      const Output queue{
          &at(b.node("FIFOQueueV2", {}, {{"component_types", types}, {"container", container}},
                     place + "_queue")),
          0};
      at(b.node("QueueEnqueueV2", {queue, x}, {}, place + "_put"));
      at(b.node("QueueDequeueV2", {queue}, {{"component_types", types}}, place + "_take"));
    }
  }
  return b;
}

class HeldBytes : public test::InProcessCluster {
 protected:
  void begin_limited(int64_t held_bytes) {
    for (const char* const job : {"ps", "worker"})
      cluster.add({job, 0}, concat("localhost:", test::free_port()));
    try {
      for (const auto& [task, address] : cluster.tasks()) {
        ServerOptions options;
        options.cluster = cluster;
        options.task = task;
        options.limits.held_bytes = held_bytes;
        servers.push_back(std::make_unique<Server>(options));
      }
    } catch (const Error& error) {
      if (error.code() != Code::kUnimplemented) throw;
      GTEST_SKIP() << error.message();
    }
  }
  int64_t held(size_t server) const {
    int64_t sum = 0;
    for (const auto& [owner, bytes] : servers[server]->held_bytes()) sum += bytes;
    return sum;
  }
  // What is let go on another thread may take a moment.
  void expect_comes_to(size_t server, int64_t least, int64_t most) const {
    for (int i = 0; i < 500 && (held(server) < least || held(server) > most); ++i) ::usleep(10'000);
    EXPECT_GE(held(server), least) << "at server " << server;
    EXPECT_LE(held(server), most) << "at server " << server;
  }
};

// Beside what variables and queues hold there is what plans, arenas and graphs do.
constexpr int64_t kBeside = 300'000;

TEST_P(HeldBytes, RandomProgramsAreCountedAndComeBack) {
  begin_limited(0);
  if (IsSkipped()) return;
  std::mt19937 random(3);
  const std::string places[] = {"aps", "aworker", "bps", "bworker"};
  int64_t variables[4] = {};
  std::vector<int64_t> queues[4];
  {
    GraphBuilder b = programs();
    Session session(b.graph, at_worker(b.graph));
    for (int step = 0; step < 60; ++step) {
      const size_t place = random() % 4;
      const auto count = static_cast<int64_t>(random() % 300'000);
      switch (random() % 3) {
        case 0:
          session.run({{"x:0", bytes_of(count)}}, {}, {places[place] + "_assign"});
          variables[place] = count;
          break;
        case 1:
          session.run({{"x:0", bytes_of(count)}}, {}, {places[place] + "_put"});
          queues[place].push_back(count);
          break;
        default:
          if (queues[place].empty()) break;
          EXPECT_EQ(session.run({}, {places[place] + "_take:0"})[0].num_elements(),
                    queues[place].front());
          queues[place].erase(queues[place].begin());
      }
      if (step % 20 != 19) continue;
      for (size_t server = 0; server < 2; ++server) {
        int64_t sum = 0;
        for (const size_t at : {server, server + 2}) {
          sum += variables[at];
          for (const int64_t bytes : queues[at]) sum += bytes;
        }
        expect_comes_to(server, sum, sum + kBeside);
      }
    }
  }
  // One container after the other; that of no session is left.
  reset_cluster(servers[1]->target(), {"a"});
  for (size_t server = 0; server < 2; ++server) {
    int64_t sum = variables[server + 2];
    for (const int64_t bytes : queues[server + 2]) sum += bytes;
    expect_comes_to(server, sum, sum + kBeside);
  }
  reset_cluster(servers[1]->target(), {"b"});
  for (size_t server = 0; server < 2; ++server) expect_comes_to(server, 0, 0);
}

TEST_P(HeldBytes, AQueueThatNobodyEmptiesIsRefused) {
  begin_limited(8 * kMebi);
  if (IsSkipped()) return;
  GraphBuilder b = programs();
  Session session(b.graph, at_worker(b.graph));
  const auto put = [&](const std::string& place) {
    return error_of([&] {
      for (int i = 0; i < 20; ++i) session.run({{"x:0", bytes_of(kMebi)}}, {}, {place + "_put"});
    });
  };
  for (const std::string place : {"aps", "aworker"}) {
    const std::string said = put(place);
    EXPECT_NE(said.find("ResourceExhausted: "), std::string::npos) << said;
    EXPECT_NE(said.find(concat("all sessions at /job:", place.substr(1))), std::string::npos)
        << said;
    EXPECT_NE(said.find("bytes and ask for 1048640 more; they may hold 8388608 (--max-held-bytes)"),
              std::string::npos)
        << said;
    for (int i = 0; i < 4; ++i) session.run({}, {place + "_take:0"});
    session.run({{"x:0", bytes_of(kMebi)}}, {}, {place + "_put"});
  }
}

TEST_P(HeldBytes, ATableThatGrowsWithoutEndIsRefused) {
  begin_limited(8 * kMebi);
  if (IsSkipped()) return;
  GraphBuilder b;
  const Output keys = b.placeholder(DType::kInt64, {kUnknown}, "keys");
  const NamedAttrs types = {{"key_dtype", DType::kInt64}, {"value_dtype", DType::kInt64}};
  Node& handle = b.node("MutableHashTableV2", {}, types, "table");
  b.graph->set_device(handle, kPs);
  const Output table{&handle, 0};
  b.node("LookupTableInsertV2", {table, keys, keys}, {}, "insert");
  b.node("LookupTableRemoveV2", {table, keys}, {}, "remove");
  b.node("LookupTableSizeV2", {table}, {}, "size");
  Session session(b.graph, at_worker(b.graph));
  constexpr int64_t kRows = 10'000;
  Tensor rows(DType::kInt64, Shape({kRows}));
  const auto begin_at = [&](int64_t first) {
    for (int64_t i = 0; i < kRows; ++i) rows.data<int64_t>()[i] = first + i;
  };
  int64_t taken = 0;
  const std::string said = error_of([&] {
    for (; taken < 1'000'000; taken += kRows) {
      begin_at(taken);
      session.run({{"keys:0", rows}}, {}, {"insert"});
    }
  });
  EXPECT_NE(said.find("ResourceExhausted: "), std::string::npos) << said;
  EXPECT_NE(said.find("(--max-held-bytes)"), std::string::npos) << said;
  EXPECT_GE(taken, kRows);
  EXPECT_EQ(*session.run({}, {"size:0"})[0].data<int64_t>(), taken);
  EXPECT_GE(held(0), taken * 16);
  for (int64_t first = 0; first < taken; first += kRows) {
    begin_at(first);
    session.run({{"keys:0", rows}}, {}, {"remove"});
  }
  expect_comes_to(0, 0, kBeside);
}

// At one server, by its worker's methods, as a master calls them.
class Owners : public HeldBytes {
 protected:
  struct Piece {
    std::string owner;
    uint64_t number = 0;
  };
  Piece give(const std::string& owner, const Graph& graph, const std::vector<std::string>& feeds,
             const std::string& target) const {
    const protocol::Program program{owner, graph_to_bytes(graph), feeds, {}, {target}, {}, owner,
                                    ""};
    const Message reply =
        peer->call(protocol::worker::kRegisterPiece, protocol::write(program), {}, {});
    return {owner, protocol::read<protocol::Handle>(reply.fields()).number};
  }
  std::string run(const Piece& piece, const std::vector<Tensor>& feeds) {
    const protocol::RunRequest request{piece.owner, piece.number, 0, ++step, 0};
    return error_of(
        [&] { peer->call(protocol::worker::kRunPiece, protocol::write(request), feeds, {}); });
  }
  void begin_one(int64_t held_bytes) {
    begin_limited(held_bytes);
    if (IsSkipped()) return;
    peer = std::make_unique<RpcPeer>("the server",
                                     servers[0]->target().substr(std::string("grpc://").size()));
  }
  void TearDown() override {
    peer.reset();
    HeldBytes::TearDown();
  }

  std::unique_ptr<RpcPeer> peer;
  uint64_t step = 0;
};

TEST_P(Owners, OneIsGreedyTheOtherWorksOn) {
  begin_one(4 * kMebi);
  if (IsSkipped()) return;
  GraphBuilder b;
  const Output x = b.placeholder(DType::kUInt8, {kUnknown}, "x");
  for (int i = 0; i < 8; ++i) {
    const Output v = b.variable(DType::kUInt8, {kUnknown}, concat("v", i));
    b.node("AssignVariableOp", {v, x}, {}, concat("assign", i));
  }
  std::vector<Piece> greedy;
  for (int i = 0; i < 8; ++i)
    greedy.push_back(give("greedy", *b.graph, {"x:0"}, concat("assign", i)));
  const Piece modest = give("modest", *b.graph, {"x:0"}, "assign0");
  int taken = 0;
  std::string refused;
  for (const Piece& piece : greedy) {
    const std::string said = run(piece, {bytes_of(kMebi)});
    if (said == "no error") {
      ++taken;
    } else {
      refused = said;
    }
    EXPECT_EQ(run(modest, {bytes_of(kMebi)}), "no error");
  }
  EXPECT_EQ(taken, 3);
  EXPECT_TRUE(refused.starts_with("ResourceExhausted: ")) << refused;
  peer->call(protocol::worker::kReset, protocol::write(protocol::ResetRequest{{}, "greedy"}), {},
             {});
  peer->call(protocol::worker::kCloseSession, protocol::write(protocol::Handle{"greedy", 0}), {},
             {});
  for (int i = 0; i < 500 && servers[0]->held_bytes().at("greedy") > 0; ++i) ::usleep(10'000);
  EXPECT_EQ(servers[0]->held_bytes().at("greedy"), 0);
  EXPECT_GE(servers[0]->held_bytes().at("modest"), kMebi);
  const Piece again = give("greedy", *b.graph, {"x:0"}, "assign1");
  EXPECT_EQ(run(again, {bytes_of(3 * kMebi)}), "no error");
}

// Made by a kernel, on whatever thread; a constant; strings; steps' own memory.
TEST_P(Owners, WhateverTheBytesAreTheyCount) {
  begin_one(4 * kMebi);
  if (IsSkipped()) return;
  const auto refused = [&](const std::string& what, GraphBuilder& b, const std::string& target) {
    const std::string said = error_of([&] {
      const std::string ran = run(give(what, *b.graph, {}, target), {});
      if (ran != "no error") throw resource_exhausted(ran);
    });
    EXPECT_NE(said.find("(--max-held-bytes)"), std::string::npos) << what << ": " << said;
  };
  {
    GraphBuilder b;
    b.constant(bytes_of(5 * kMebi), "large");
    refused("constant", b, "large");
  }
  {
    GraphBuilder b;
    const Output shape = b.constant(Tensor::vector<int32_t>({5, 1 << 20}), "shape");
    const Output some = b.constant(Tensor::scalar<uint8_t>(1), "some");
    const Output large = b.op("BroadcastTo", {some, shape}, {}, "large");
    const Output v = b.variable(DType::kUInt8, {kUnknown, kUnknown}, "v");
    b.node("AssignVariableOp", {v, large}, {}, "assign");
    refused("variable", b, "assign");
  }
  {
    GraphBuilder b;
    Tensor word(DType::kString, Shape());
    *word.data<StringElement>() = StringElement(std::string(500'000, 'w'));
    const Output one = b.constant(word, "one");
    const Output two = b.op("StringJoin", {one, one}, {}, "two");
    const Output four = b.op("StringJoin", {two, two}, {}, "four");
    b.op("StringJoin", {four, four, four}, {}, "many");
    refused("strings", b, "many");
  }
}

INSTANTIATE_TEST_SUITE_P(By, HeldBytes,
                         ::testing::Values(test::Transport::kLent, test::Transport::kGrpc,
                                           test::Transport::kMemory),
                         test::name_of);
INSTANTIATE_TEST_SUITE_P(By, Owners, ::testing::Values(test::Transport::kMemory), test::name_of);

TEST(HeldBytesLimit, LeavesRoomForOthersWhereThereAreOthers) {
  Limits limits;
  EXPECT_EQ(limits.most_held(false), 0);
  const int64_t some = limits.most_held(true);
  EXPECT_GT(some, 0);
  limits.set("held_bytes", 0);
  EXPECT_EQ(limits.most_held(true), 0);
  limits.set("held-bytes", 77);
  EXPECT_EQ(limits.most_held(true), 77);
  EXPECT_EQ(limits.most_held(false), 77);
}

}  // namespace
}  // namespace treenail
