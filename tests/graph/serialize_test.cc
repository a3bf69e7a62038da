// SPDX-License-Identifier: Apache-2.0
// Graph files keep what they are given. Files that must be refused: serialize_bad_test.cc.
#include "framework/graph/serialize.h"

#include <gtest/gtest.h>

#include <complex>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "framework/graph/function.h"
#include "framework/tensor/resource.h"
#include "framework/tensor/string_element.h"
#include "tests/graph/graph_text.h"
#include "tests/graph/serialize_ops.h"
#include "tests/support/expect_error.h"
#include "tests/support/graph_builder.h"
#include "tests/support/graph_file.h"
#include "tests/support/temporary_directory.h"

namespace treenail {
namespace {

using test::floats;
using test::graph_text;
using test::GraphBuilder;
using test::TemporaryDirectory;
using testing::error_of;

std::unique_ptr<Graph> again(const Graph& graph) { return graph_from_bytes(graph_to_bytes(graph)); }

void expect_kept(const Graph& graph) { EXPECT_EQ(graph_text(*again(graph)), graph_text(graph)); }

GraphBuilder small_graph() {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown, 2}, "x");
  const Output w = b.constant(floats({1, 2}), "w");
  b.op("Mul", {x, w}, {}, "scope/product");
  return b;
}

TEST(GraphFile, KeepsAnEmptyGraph) { expect_kept(Graph()); }

TEST(GraphFile, KeepsNodesEdgesDevicesAndColocations) {
  GraphBuilder b = small_graph();
  Node& before = b.node("NoOp", {}, {}, "before");
  Node& product = *b.graph->find("scope/product");
  Node& sum = b.node("Add", {{&product, 0}, {&product, 0}}, {}, "sum", {&before, &product});
  b.graph->set_device(sum, "/job:worker/device:CPU:1");
  b.graph->set_colocated(sum, std::vector<std::string>{"scope/product", "gone"});
  b.graph->has_seed = true;
  b.graph->seed = -5;
  expect_kept(*b.graph);
}

TEST(GraphFile, KeepsEveryKindOfAttribute) {
  test::register_serialize_ops();
  GraphBuilder b;
  b.op("TestEveryAttr", {}, test::every_attr(), "all");
  expect_kept(*b.graph);
}

TEST(GraphFile, KeepsHowInputsAreSharedAmongLists) {
  test::register_serialize_ops();
  GraphBuilder b;
  const Output x = b.constant(floats({1}), "x");
  const Output inputs[] = {x, x, x};
  for (const auto& sizes : {std::vector<int>{0, 3}, {1, 2}, {3, 0}}) {
    b.graph->add(
        {.op = "TestTwoLists", .name = "lists", .inputs = inputs, .attrs = {}, .arg_sizes = sizes});
  }
  expect_kept(*b.graph);
}

TEST(GraphFile, KeepsShapesThatWereRefined) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, PartialShape(), "x");
  b.graph->set_shape(x, {3, kUnknown});
  expect_kept(*b.graph);
}

TEST(GraphFile, KeepsEdgesThatAgeDoesNotOrder) {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {2}, "x");
  Node& early = b.node("Neg", {x}, {}, "early");
  Node& late = b.node("NoOp", {}, {}, "late");
  b.graph->add_control_input(early, late);
  const std::unique_ptr<Graph> loaded = again(*b.graph);
  ASSERT_EQ(loaded->find("early")->control_inputs().size(), 1U);
  EXPECT_EQ(loaded->find("early")->control_inputs()[0], loaded->find("late"));
}

template <class T>
void keep_values(std::initializer_list<T> values) {
  GraphBuilder b;
  const Tensor tensor = Tensor::vector(values);
  b.constant(tensor, "c");
  const std::unique_ptr<Graph> loaded = again(*b.graph);
  // Equality of attributes is equality of dtype, shape and bits.
  EXPECT_EQ(loaded->find("c")->op().attr("value"), AttrValue(tensor)) << to_text(tensor);
}

TEST(GraphFile, KeepsTensorsOfEveryDtype) {
  keep_values<float>({0.1F, -0.0F, std::numeric_limits<float>::quiet_NaN(),
                      std::numeric_limits<float>::infinity()});
  keep_values<double>({1e-310, 3.14});
  keep_values<Float16>({Float16(1.5F), Float16(-65504.0F)});
  keep_values<BFloat16>({BFloat16(1.5F)});
  keep_values<int8_t>({-128, 127});
  keep_values<int16_t>({-32768, 1});
  keep_values<int32_t>({INT32_MIN, 7});
  keep_values<int64_t>({INT64_MIN, 7});
  keep_values<uint8_t>({255});
  keep_values<uint16_t>({65535, 1});
  keep_values<uint32_t>({UINT32_MAX});
  keep_values<uint64_t>({UINT64_MAX, 2});
  keep_values<std::complex<float>>({{1, -2}});
  keep_values<std::complex<double>>({{1, -2}});
  keep_values<StringElement>(
      {StringElement(""), StringElement(std::string_view("a\0b", 3)), StringElement("\xff")});
  GraphBuilder b;
  Tensor flags(DType::kBool, Shape({2, 1}));
  flags.data<bool>()[0] = true;
  flags.data<bool>()[1] = false;
  b.constant(flags, "c");
  b.constant(Tensor(DType::kFloat64, Shape({0, 3})), "empty");
  b.constant(Tensor::scalar(2.5F), "scalar");
  expect_kept(*b.graph);
}

TEST(GraphFile, BytesAreLittleEndian) {
  GraphBuilder b;
  b.constant(Tensor::vector<int32_t>({0x01020304}), "c");
  const std::vector<test::FileSection> sections = test::split_file(graph_to_bytes(*b.graph));
  ASSERT_EQ(sections[1].tag, "TENS");
  // dtype 3, rank 1, one extent of 8 bytes, one element of 4.
  EXPECT_EQ(sections[1].payload, std::string("\x03\x01\x01\0\0\0\0\0\0\0\x04\x03\x02\x01", 14));
}

TEST(GraphFile, ATensorInUseTwiceIsStoredOnce) {
  GraphBuilder b;
  const Tensor shared = floats({1, 2, 3});
  b.constant(shared, "a");
  b.constant(shared, "b");
  const std::string bytes = graph_to_bytes(*b.graph);
  int tensors = 0;
  for (const test::FileSection& section : test::split_file(bytes))
    tensors += section.tag == "TENS" ? 1 : 0;
  EXPECT_EQ(tensors, 1);
  expect_kept(*b.graph);
}

TEST(GraphFile, TheSameGraphGivesTheSameBytes) {
  EXPECT_EQ(graph_to_bytes(*small_graph().graph), graph_to_bytes(*small_graph().graph));
}

TEST(GraphFile, KeepsFunctions) {
  auto f = std::make_shared<Function>();
  f->name = "double_it";
  f->doc = "Twice x.";
  f->gradient = "double_it_gradient";
  f->inputs = {{"x", DType::kFloat32, PartialShape({kUnknown})}};
  f->outputs = {{"y", DType::kFloat32, PartialShape()}};
  f->body = std::make_unique<Graph>();
  f->body->add(
      {.op = "Placeholder", .name = "x", .inputs = {}, .attrs = test::float_placeholder()});
  const Output from[] = {{f->body->find("x"), 0}, {f->body->find("x"), 0}};
  f->body->add({.op = "Add", .name = "y", .inputs = from, .attrs = {}});
  f->input_nodes = {"x"};
  f->output_values = {"y:0"};
  auto declared = std::make_shared<Function>();
  declared->name = "elsewhere";
  GraphBuilder b = small_graph();
  b.graph->functions()["double_it"] = f;
  b.graph->functions()["elsewhere"] = declared;
  expect_kept(*b.graph);
}

TEST(GraphFile, ManyNodesComeInSeveralSections) {
  GraphBuilder b;
  Output v = b.placeholder(DType::kFloat32, {2}, "x");
  for (int i = 0; i < 20000; ++i) v = b.op("Neg", {v}, {}, "n");
  const std::string bytes = graph_to_bytes(*b.graph);
  int sections = 0;
  for (const test::FileSection& section : test::split_file(bytes))
    sections += section.tag == "NODE" ? 1 : 0;
  EXPECT_GT(sections, 1);
  EXPECT_EQ(graph_text(*graph_from_bytes(bytes)), graph_text(*b.graph));
}

TEST(GraphFile, OlderOpsAreUpgraded) {
  test::register_serialize_ops();
  GraphBuilder b;
  b.op("TestVersioned", {}, {{"axes", std::vector<int64_t>{4}}}, "v");
  // The file as version 1 wrote it: attribute "axis" of kind int instead of "axes", and no "keep".
  std::vector<test::FileSection> sections = test::split_file(graph_to_bytes(*b.graph));
  const std::string head = test::little(1, 8) + test::text_field("TestVersioned") +
                           test::little(1, 4) + test::text_field("v") + test::text_field("");
  const std::string edges = test::little(0, 8) + test::little(0, 8) + test::little(0, 8);
  const std::string attrs =
      test::little(1, 8) + test::text_field("axis") + "\x01" + test::little(4, 8);
  sections[1].payload = head + edges + attrs + test::little(0, 8);
  const std::unique_ptr<Graph> loaded = graph_from_bytes(test::join_file(sections));
  EXPECT_EQ(loaded->find("v")->op().get_ints("axes"), std::vector<int64_t>{4});
  EXPECT_TRUE(loaded->find("v")->op().get_bool("keep"));
}

TEST(GraphFile, UnknownOptionalSectionsAreSkipped) {
  std::vector<test::FileSection> sections = test::split_file(graph_to_bytes(*small_graph().graph));
  sections.insert(sections.begin() + 1, {"xtra", std::string(100000, 'x')});
  EXPECT_EQ(graph_text(*graph_from_bytes(test::join_file(sections))),
            graph_text(*small_graph().graph));
}

TEST(GraphFile, StateCannotBeStored) {
  GraphBuilder b;
  b.op("Const", {},
       {{"value", Tensor::zeros(DType::kResource, Shape())}, {"dtype", DType::kResource}},
       "handle");
  EXPECT_EQ(error_of([&] { graph_to_bytes(*b.graph); }),
            "InvalidArgument: [Const node \"handle\"] a tensor of dtype resource cannot be stored "
            "in a file");
}

TEST(GraphFile, GoesToDiskAndBack) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("g.tng");
  GraphBuilder b = small_graph();
  b.constant(Tensor::zeros(DType::kFloat32, Shape({1 << 20})), "large");
  save_graph(*b.graph, path);
  EXPECT_EQ(graph_text(*load_graph(path)), graph_text(*b.graph));
  save_graph(*small_graph().graph, path);
  EXPECT_EQ(graph_text(*load_graph(path)), graph_text(*small_graph().graph));
}

TEST(GraphFile, AFailedSaveLeavesTheOldFileAndNothingElse) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("g.tng");
  save_graph(*small_graph().graph, path);
  GraphBuilder bad = small_graph();
  bad.op("Const", {},
         {{"value", Tensor::zeros(DType::kResource, Shape())}, {"dtype", DType::kResource}},
         "handle");
  EXPECT_NE(error_of([&] { save_graph(*bad.graph, path); }), "no error");
  EXPECT_EQ(graph_text(*load_graph(path)), graph_text(*small_graph().graph));
  EXPECT_EQ(directory.entries(), 1);
}

TEST(GraphFile, PathsThatCannotBe) {
  const TemporaryDirectory directory;
  const Graph graph;
  EXPECT_EQ(error_of([&] { load_graph(directory.file("none")); }),
            "NotFound: cannot open " + directory.file("none") + ": No such file or directory");
  EXPECT_EQ(error_of([&] { load_graph(directory.path()); }),
            "FailedPrecondition: cannot read " + directory.path() + ": it is a directory");
  EXPECT_EQ(error_of([&] { save_graph(graph, directory.path() + "/no/where"); }).substr(0, 9),
            "NotFound:");
}

// Written by release 0.1.0; stays as it is for ever.
std::string release_file() {
  const char* source = std::getenv("TREENAIL_SOURCE_DIR");
  return std::string(source != nullptr ? source : ".") + "/tests/graph/data/release-0.1.0.tng";
}

std::unique_ptr<Graph> release_graph() {
  auto g = std::make_unique<Graph>();
  const auto add = [&g](std::string_view op, std::vector<Output> inputs, NamedAttrs attrs,
                        std::string_view name) {
    return Output{&g->add({.op = op, .name = name, .inputs = inputs, .attrs = attrs}), 0};
  };
  const Output x = add("Placeholder", {}, test::float_placeholder(), "x");
  const Output w =
      add("Const", {}, {{"value", Tensor::vector({0.5F, -1.0F})}, {"dtype", DType::kFloat32}}, "w");
  const Output s =
      add("Const", {},
          {{"value", Tensor::scalar(StringElement("text"))}, {"dtype", DType::kString}}, "s");
  const Output sum = add("Add", {x, w}, {}, "sum");
  add("Identity", {s}, {}, "hand_on");
  Node& done = g->add({.op = "NoOp", .name = "done", .inputs = {}, .attrs = {}});
  g->add_control_input(done, *sum.node);
  g->set_device(done, "/device:CPU:0");
  g->has_seed = true;
  g->seed = 87654321;
  return g;
}

TEST(GraphFile, FilesOfEveryReleaseAreRead) {
  EXPECT_EQ(graph_text(*load_graph(release_file())), graph_text(*release_graph()));
}

}  // namespace
}  // namespace treenail
