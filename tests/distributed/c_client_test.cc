// SPDX-License-Identifier: Apache-2.0
// A client that knows the installed headers alone, at servers.
#include <gtest/gtest.h>
#include <treenail/treenail.hpp>

#include <string>
#include <vector>

#include "tests/distributed/in_process_cluster.h"

namespace treenail {
namespace {

class CClient : public test::InProcessCluster {};

TEST_P(CClient, RunsAGraphAtAServer) {
  begin(1);
  if (IsSkipped()) return;
  tn::Graph graph;
  const tn::Output x = graph.placeholder(tn::DType::kFloat32, {-1}, "x");
  const tn::Output y =
      graph.add("Add", {x, x}, {}, {.name = "y", .device = "/job:ps/task:0", .control_inputs = {}});
  const std::string target = servers[1]->target();
  tn_session_options options = TN_SESSION_OPTIONS_INIT;
  options.target = target.c_str();
  const tn::Session session(graph, options);
  const std::vector<tn::Tensor> got =
      session.run({{x, tn::Tensor::of<float>({1, 2.5F}, {2})}}, {y});
  EXPECT_EQ(got[0].data<float>()[1], 5);
}

INSTANTIATE_TEST_SUITE_P(By, CClient,
                         ::testing::Values(test::Transport::kGrpc, test::Transport::kMemory),
                         test::name_of);

}  // namespace
}  // namespace treenail
