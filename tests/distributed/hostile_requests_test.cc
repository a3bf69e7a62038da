// SPDX-License-Identifier: Apache-2.0
// Requests that no client of ours makes: a server answers each, or refuses it, and goes on.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/distributed/mpi_launch.h"
#include "framework/distributed/protocol.h"
#include "framework/distributed/rpc.h"
#include "framework/graph/serialize.h"
#include "framework/placement/cost_model_bytes.h"
#include "tests/distributed/fake_mpi.h"
#include "tests/distributed/in_process_cluster.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using namespace protocol;  // NOLINT(google-build-using-namespace): of the messages under test

class HostileRequests : public test::InProcessCluster {
 protected:
  void SetUp() override {
    set_mpi_values(MpiValues::make(test::FakeMpi::api(), test::FakeMpi::place()));
    InProcessCluster::SetUp();
  }
  void TearDown() override {
    InProcessCluster::TearDown();
    set_mpi_values(nullptr);
  }
  static ProtoWriter raw(const std::string& bytes) {
    ProtoWriter head;
    head.raw_bytes(bytes);
    return head;
  }
  // Heads that a client could send, to begin from.
  static std::vector<std::string> heads(const std::string& session) {
    test::GraphBuilder b;
    const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
    b.op("Neg", {x}, {}, "y");
    const Program program{session, graph_to_bytes(*b.graph), {"x:0"}, {"y:0"}, {"y"}, {}};
    Settings by_cost;
    by_cost.placement = cost_model_to_bytes({});
    return {
        write(Settings{}).text(),
        write(by_cost).text(),
        write(program).text(),
        write(Handle{session, 1}).text(),
        write(RunRequest{session, 1, 100, 7, 0, true}).text(),
        write(RunRequest{session, 1, 100, 7, 0, false, true, true, false, {0}, {0}, {0}}).text(),
        write(RunRequest{session, 2, 100, 7, 0, false, true, false, true, {}, {0}, {}}).text(),
        write(ReceiveRequest{7, "key"}).text(),
        write(ReceiveRequest{7, "key", 0, std::string(kMpiTokenBytes, 'x'), 40'000}).text(),
        write(ResetRequest{{"none"}}).text(),
        write(Part{"token", 0, 8}).text(),
        in_parts({session, 1, 100, 7, 0})};
  }
  // Of a run whose feed comes in parts.
  static std::string in_parts(const RunRequest& run) {
    ProtoWriter head = write(run);
    head.message(kTensorsField, write_description({DType::kFloat32, Shape({2})}));
    head.message(kInPartsField, write(InParts{"token", {8}}));
    return head.text();
  }
  static std::string mutated(std::string head, std::mt19937& random) {
    for (int change = 0; change < 1 + static_cast<int>(random() % 3); ++change) {
      const size_t at = head.empty() ? 0 : random() % head.size();
      switch (random() % 3) {
        case 0:
          if (!head.empty()) head[at] = static_cast<char>(random());
          break;
        case 1:
          head.resize(at);
          break;
        default:
          head.insert(at, 1 + random() % 4, static_cast<char>(random()));
      }
    }
    return head;
  }
};

TEST_P(HostileRequests, LeaveTheServerServing) {
  begin(1);
  if (IsSkipped()) return;
  const RpcPeer peer("the server", cluster.address({"worker", 0}));
  const auto opened =
      read<SessionOpened>(peer.call(master::kOpenSession, write(Settings{}), {}, {}).fields());
  const std::vector<std::string> sound = heads(opened.session);
  const char* const kPaths[] = {master::kOpenSession,
                                master::kMakePlan,
                                master::kRun,
                                master::kForgetPlan,
                                master::kCloseSession,
                                worker::kGetStatus,
                                worker::kRegisterPiece,
                                worker::kRunPiece,
                                worker::kForgetPiece,
                                worker::kGiveUpStep,
                                worker::kCloseSession,
                                worker::kReset,
                                worker::kReceive,
                                "/treenail.Worker/None",
                                master::kListDevices,
                                master::kPartialRunSetup,
                                master::kPartialRun,
                                master::kEndPartialRun,
                                worker::kGetPartNeeds,
                                worker::kEndPartialRun,
                                parts::kBegin,
                                parts::kPut,
                                parts::kGet,
                                parts::kDrop};
  const Tensor tensors[] = {test::floats({1, 2}), Tensor::scalar(int64_t{3})};
  std::mt19937 random(11);
  int answered = 0, refused = 0;
  for (int round = 0; round < 1500; ++round) {
    const char* const path = kPaths[random() % std::size(kPaths)];
    const std::string head = mutated(sound[random() % sound.size()], random);
    try {
      peer.call(path, raw(head), std::span(tensors, random() % 3), {.timeout_ms = 50});
      ++answered;
    } catch (const Error& error) {
      EXPECT_NE(error.code(), Code::kUnavailable) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(answered, 50);
  EXPECT_GT(refused, 50);
  test::GraphBuilder b;
  b.op("Neg", {b.constant(Tensor::scalar(2.0f), "two")}, {}, "y");
  Session session(b.graph, at_worker(b.graph));
  EXPECT_EQ(session.run({}, {"y:0"})[0].data<float>()[0], -2);
}

INSTANTIATE_TEST_SUITE_P(By, HostileRequests,
                         ::testing::Values(test::Transport::kGrpc, test::Transport::kMemory),
                         test::name_of);

}  // namespace
}  // namespace treenail
