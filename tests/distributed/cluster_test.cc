// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/cluster.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;

TEST(Cluster, IsReadFromText) {
  const ClusterSpec cluster = ClusterSpec::parse("ps=host:2222;worker=[::1]:1,h2:65535");
  EXPECT_EQ(cluster.tasks().size(), 3u);
  EXPECT_EQ(cluster.address({"ps", 0}), "host:2222");
  EXPECT_EQ(cluster.address({"worker", 0}), "[::1]:1");
  EXPECT_EQ(cluster.address({"worker", 1}), "h2:65535");
  EXPECT_EQ(to_text(TaskName{"worker", 1}), "/job:worker/replica:0/task:1");
}

TEST(Cluster, TellsWhatIsNone) {
  const auto parsed = [](std::string_view text) {
    return error_of([&] { ClusterSpec::parse(text); });
  };
  EXPECT_EQ(parsed("localhost:1"),
            "InvalidArgument: a cluster is written \"ps=host:port;worker=host:port,host:port\"; "
            "\"localhost:1\" has no \"=\"");
  EXPECT_EQ(parsed("2ps=h:1"),
            "InvalidArgument: a job's name is a letter and then letters, digits and _, not "
            "\"2ps\"");
  for (const char* address : {"h", "h:", ":1", "h:x", "h:65536", "h:123456"}) {
    EXPECT_EQ(parsed(std::string("ps=") + address),
              std::string("InvalidArgument: the address of /job:ps/replica:0/task:0 is \"") +
                  address + "\"; needed is \"host:port\"");
  }
  EXPECT_EQ(parsed("ps=h:1;ps=h:2"), "InvalidArgument: /job:ps/replica:0/task:0 is given twice");
  const ClusterSpec cluster = ClusterSpec::parse("ps=h:1");
  EXPECT_EQ(error_of([&] {
              static_cast<void>(cluster.address({"ps", 1}));
            }),
            "NotFound: the cluster has no /job:ps/replica:0/task:1; it has "
            "/job:ps/replica:0/task:0");
}

}  // namespace
}  // namespace treenail
