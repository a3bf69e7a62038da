// SPDX-License-Identifier: Apache-2.0
// Values between servers over MPI, of which there is no more than its calls (fake_mpi.h): they keep
// their bits; what is given up, late, lost or refused ends runs as it should and leaves nothing
// that a later value could be taken for.
#include "framework/distributed/mpi_values.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/distributed/mpi_launch.h"
#include "framework/distributed/protocol.h"
#include "tests/distributed/fake_mpi.h"
#include "tests/distributed/in_process_cluster.h"
#include "tests/support/expect_error.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::FakeMpi;
using test::GraphBuilder;
using testing::error_of;

constexpr int64_t kElements = 50'000;  // more than MpiValues::kLeastBytes

class ValuesOverMpi : public test::InProcessCluster {
 protected:
  void SetUp() override {
    InProcessCluster::SetUp();
    fake.begin_anew();
    values = MpiValues::make(FakeMpi::api(), FakeMpi::place());
    set_mpi_values(values);
    patience = patience_of(2000);
    begin(1);
    if (IsSkipped()) return;
    const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
    const Output there = b.op("Neg", {x}, {}, "there");
    const Output here = b.op("Neg", {there}, {}, "here");
    b.graph->set_device(*there.node, "/job:ps/task:0");
    b.graph->set_device(*here.node, "/job:worker/task:0");
    session = std::make_unique<Session>(b.graph, at_worker(b.graph));
    for (int i = 0; i < 500 && !known(); ++i) {
      run(made(8));
      std::this_thread::sleep_for(milliseconds(10));
    }
    ASSERT_TRUE(known());
  }
  void TearDown() override {
    fake.held = fake.lost = fake.refuses = false;
    session.reset();
    InProcessCluster::TearDown();
    test::memory_transport().set_fates(nullptr);
    set_mpi_values(nullptr);
    values.reset();
  }

  bool known() const {
    const std::vector<treenail::Transport> all = servers[1]->transports();
    return !all.empty() && all[0].mpi;
  }
  Tensor made(int64_t elements) {
    Tensor value(DType::kFloat32, Shape({elements}));
    for (float& each : std::span(value.data<float>(), static_cast<size_t>(elements)))
      each = static_cast<float>(random() % 1000);
    return value;
  }
  Tensor run(const Tensor& value, int64_t timeout_ms = 0) {
    RunOptions options;
    options.timeout_ms = timeout_ms;
    const std::vector<std::pair<std::string, Tensor>> feeds{{"x:0", value}};
    return session->run(feeds, {"here:0"}, {}, options).at(0);
  }
  void expect_same(const Tensor& value) {
    const Tensor found = run(value);
    ASSERT_EQ(found.bytes(), value.bytes());
    EXPECT_EQ(std::memcmp(found.raw(), value.raw(), value.bytes()), 0);
  }
  // Nothing is left with MPI, soon.
  bool drained() {
    const auto until = steady_clock::now() + std::chrono::seconds(10);
    while (fake.under_way() > 0 && steady_clock::now() < until)
      std::this_thread::sleep_for(milliseconds(5));
    return fake.under_way() == 0;
  }

  FakeMpi& fake = FakeMpi::instance();
  std::shared_ptr<MpiValues> values;
  GraphBuilder b;
  std::unique_ptr<Session> session;
  std::mt19937 random{3};
};

TEST_P(ValuesOverMpi, KeepTheirBits) {
  if (IsSkipped()) return;
  for (const int64_t elements :
       {int64_t{0}, int64_t{1}, int64_t{32'767}, int64_t{32'768}, kElements, int64_t{1'000'003}})
    expect_same(made(elements));
  EXPECT_EQ(fake.sent, 3);
  const treenail::Transport from = servers[1]->transports()[0];
  EXPECT_EQ(from.mpi_values, 3u);
  EXPECT_EQ(from.mpi_bytes, 4u * (32'768 + kElements + 1'000'003));
  EXPECT_TRUE(drained());
}

TEST_P(ValuesOverMpi, GoByMessageWhereMpiRefuses) {
  if (IsSkipped()) return;
  fake.refuses = true;
  expect_same(made(kElements));
  EXPECT_EQ(fake.sent, 0);
}

TEST_P(ValuesOverMpi, ThatAreLateEndWithTheRunsTimeAndAreNotTakenForLaterOnes) {
  if (IsSkipped()) return;
  fake.held = true;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(error_of([&] { run(made(kElements), 100); }).starts_with("DeadlineExceeded"));
  }
  fake.held = false;
  for (int i = 0; i < 5; ++i) expect_same(made(kElements));
  EXPECT_TRUE(drained());
}

TEST_P(ValuesOverMpi, ThatWereSentToNobodyAreDropped) {
  if (IsSkipped()) return;
  for (int i = 0; i < 60; ++i) {
    try {
      run(made(kElements), 1 + i % 4);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kDeadlineExceeded) << error.message();
    }
  }
  expect_same(made(kElements));
  EXPECT_TRUE(drained());
}

TEST_P(ValuesOverMpi, OfATaskThatIsLostEndWithItsName) {
  if (IsSkipped() || GetParam() != test::Transport::kMemory) return;
  fake.held = true;
  std::thread cutter([&] {
    while (fake.under_way() < 2) std::this_thread::sleep_for(milliseconds(5));
    const std::string& address = cluster.address({"ps", 0});
    test::memory_transport().cut_off(address.c_str());
  });
  const std::string error = error_of([&] { run(made(kElements)); });
  cutter.join();
  EXPECT_TRUE(error.starts_with("Unavailable")) << error;
  EXPECT_NE(error.find("/job:ps/replica:0/task:0"), std::string::npos) << error;
}

TEST_P(ValuesOverMpi, ThatMpiLosesEndWithTheNameOfTheSender) {
  if (IsSkipped() || GetParam() != test::Transport::kMemory) return;
  fake.lost = true;
  EXPECT_TRUE(error_of([&] { run(made(kElements)); }).find("/job:ps/replica:0/task:0") !=
              std::string::npos);
  fake.lost = false;
  expect_same(made(kElements));
}

// What a task might say that is not true.
TEST_P(ValuesOverMpi, GoToNoRankThatHasNotToldTheToken) {
  if (IsSkipped()) return;
  const std::string token(kMpiTokenBytes, 'x');
  const Tensor value = made(kElements);
  EXPECT_FALSE(values->send({0, "y" + token.substr(1)}, kMpiGroupTags, value));
  EXPECT_FALSE(values->send({0, ""}, kMpiGroupTags, value));
  EXPECT_FALSE(values->send({1, token}, kMpiGroupTags, value));
  EXPECT_FALSE(values->send({~uint64_t{0}, token}, kMpiGroupTags, value));
  EXPECT_FALSE(values->send({0, token}, kMpiGroupTags - 1, value));
  EXPECT_FALSE(values->send({0, token}, (1 << 24) + 1, value));
  EXPECT_FALSE(values->send({0, token}, uint64_t{1} << 32, value));
  EXPECT_EQ(fake.sent, 0);
  EXPECT_FALSE(MpiValues::fits(DType::kBool, 1 << 20));
  EXPECT_FALSE(MpiValues::fits(DType::kString, 1 << 20));
}

// Of values of known size several are asked for by one request.
class SeveralOverMpi : public ValuesOverMpi {
 protected:
  static constexpr int kValues = 150;  // more than one request takes

  void SetUp() override {
    ValuesOverMpi::SetUp();
    if (IsSkipped()) return;
    const Output x = several.placeholder(DType::kFloat32, {kElements}, "x");
    for (int i = 0; i < kValues; ++i) {
      const Output own = several.constant(test::floats({static_cast<float>(i)}), concat("c", i));
      const Output there = several.op("Add", {x, own}, {}, concat("there", i));
      put(there, "/job:ps/task:0");
      put(several.op("Neg", {there}, {}, concat("here", i)), "/job:worker/task:0");
      fetches.push_back(concat("here", i, ":0"));
    }
    // A value of each task is made of the one before, which the other task has made.
    Output value = x;
    for (int i = 0; i < 12; ++i) {
      value = several.op("Neg", {value}, {}, concat("turn", i));
      put(value, i % 2 == 0 ? "/job:ps/task:0" : "/job:worker/task:0");
    }
    session = std::make_unique<Session>(several.graph, at_worker(several.graph));
  }
  static void put(Output value, const char* device) {
    value.node->graph().set_device(*value.node, device);
  }
  std::vector<Tensor> run_all(const Tensor& x, int64_t timeout_ms = 0) {
    RunOptions options;
    options.timeout_ms = timeout_ms;
    return session->run({{"x:0", x}}, fetches, {}, options);
  }
  void expect_all(const Tensor& x) {
    const std::vector<Tensor> got = run_all(x);
    for (int i = 0; i < kValues; ++i) {
      const auto* const found = got[static_cast<size_t>(i)].data<float>();
      for (int64_t at = 0; at < kElements; at += 997)
        ASSERT_EQ(found[at], -(x.data<float>()[at] + static_cast<float>(i))) << i << ", " << at;
    }
  }

  GraphBuilder several;
  std::vector<std::string> fetches;
};

TEST_P(SeveralOverMpi, BringEachItsOwnBits) {
  if (IsSkipped()) return;
  const int before = fake.sent;
  for (int round = 0; round < 3; ++round) expect_all(made(kElements));
  EXPECT_EQ(fake.sent - before, 3 * kValues);
  EXPECT_TRUE(drained());
}

TEST_P(SeveralOverMpi, DoNotWaitForAnother) {
  if (IsSkipped()) return;
  const Tensor x = made(kElements);
  for (int round = 0; round < 3; ++round) {
    const Tensor got = session->run({{"x:0", x}}, {"turn11:0"}).at(0);
    EXPECT_EQ(std::memcmp(got.raw(), x.raw(), x.bytes()), 0);
  }
}

TEST_P(SeveralOverMpi, GoByMessageWhereMpiRefuses) {
  if (IsSkipped()) return;
  const int before = fake.sent;
  fake.refuses = true;
  expect_all(made(kElements));
  EXPECT_EQ(fake.sent, before);
}

TEST_P(SeveralOverMpi, ThatNobodyWaitsForAreDropped) {
  if (IsSkipped()) return;
  fake.held = true;
  EXPECT_TRUE(error_of([&] { run_all(made(kElements), 100); }).starts_with("DeadlineExceeded"));
  fake.held = false;
  for (int i = 0; i < 20; ++i) {
    try {
      run_all(made(kElements), 1 + i);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kDeadlineExceeded) << error.message();
    }
  }
  expect_all(made(kElements));
  EXPECT_TRUE(drained());
}

INSTANTIATE_TEST_SUITE_P(By, SeveralOverMpi,
                         ::testing::Values(test::Transport::kGrpc, test::Transport::kMemory),
                         test::name_of);

INSTANTIATE_TEST_SUITE_P(By, ValuesOverMpi,
                         ::testing::Values(test::Transport::kGrpc, test::Transport::kMemory),
                         test::name_of);

TEST(MpiValues, NeedTags) {
  MpiPlace few = FakeMpi::place();
  few.tag_limit = 32767;
  EXPECT_EQ(error_of([&] { MpiValues::make(FakeMpi::api(), few); }),
            "Unimplemented: a fake has tags up to 32767; needed are 1081344");
}

}  // namespace
}  // namespace treenail
