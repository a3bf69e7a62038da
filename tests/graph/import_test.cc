// SPDX-License-Identifier: Apache-2.0
#include "framework/graph/import.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "framework/graph/function.h"
#include "tests/graph/graph_text.h"
#include "tests/support/expect_error.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using test::floats;
using test::graph_text;
using test::GraphBuilder;
using testing::error_of;

GraphBuilder model() {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown}, "x");
  const Output y = b.op("Mul", {x, b.constant(floats({2}), "w")}, {}, "y");
  Node& done = b.node("NoOp", {}, {}, "done", {y.node});
  b.graph->set_device(done, "/device:CPU:0");
  return b;
}

TEST(Import, IntoAnEmptyGraphIsACopy) {
  Graph to;
  EXPECT_EQ(import_graph(to, *model().graph).size(), 4U);
  EXPECT_EQ(graph_text(to), graph_text(*model().graph));
}

TEST(Import, PutsNodesUnderThePrefix) {
  GraphBuilder to;
  to.constant(floats({1}), "m/w");
  const auto added = import_graph(*to.graph, *model().graph, {.prefix = "m"});
  EXPECT_EQ(added.at("x")->name(), "m/x");
  EXPECT_EQ(added.at("w")->name(), "m/w_1");
  EXPECT_EQ(added.at("done")->control_inputs()[0], added.at("y"));
}

TEST(Import, ReplacesValues) {
  GraphBuilder to;
  const Output mine = to.constant(floats({1, 2, 3}), "mine");
  const auto added = import_graph(*to.graph, *model().graph, {.replacements = {{"x:0", mine}}});
  EXPECT_FALSE(added.contains("x"));
  EXPECT_EQ(added.at("y")->input(0), mine);
  EXPECT_EQ(added.at("y")->info(0).shape, PartialShape({3}));
}

TEST(Import, BringsFunctions) {
  GraphBuilder from = model();
  from.graph->functions()["f"] = std::make_shared<Function>();
  Graph to;
  import_graph(to, *from.graph);
  EXPECT_EQ(to.functions().at("f"), from.graph->functions().at("f"));
  to.functions()["f"] = std::make_shared<Function>();
  EXPECT_EQ(error_of([&] { import_graph(to, *from.graph); }),
            "AlreadyExists: the graph has a function \"f\" already");
}

TEST(Import, Corpus) {
  GraphBuilder to;
  const Output mine = to.constant(Tensor::vector<int32_t>({1}), "mine");
  GraphBuilder from = model();
  const auto failure = [&](const char* name, Output value) {
    return error_of([&] {
      import_graph(*to.graph, *from.graph, {.replacements = {{name, value}}});
    });
  };
  EXPECT_EQ(failure("nothing:0", mine).substr(0, 9), "NotFound:");
  EXPECT_EQ(failure("x:0", mine),
            "InvalidArgument: \"x:0\" has dtype float32, its replacement mine:0 has int32");
  EXPECT_EQ(failure("x:0", from.graph->find_output("w:0")),
            "InvalidArgument: the replacement of \"x:0\" (w:0) is not a value of the graph "
            "imported into");
}

}  // namespace
}  // namespace treenail
