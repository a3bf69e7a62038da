// SPDX-License-Identifier: Apache-2.0
// Files that must be refused: a corpus with its sentences, every truncation, every flipped bit, and
// random mutations with correct checksums, so that they reach the parser. Refused means an Error,
// whatever the bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/graph/function.h"
#include "framework/graph/serialize.h"
#include "framework/tensor/string_element.h"
#include "tests/graph/serialize_ops.h"
#include "tests/support/expect_error.h"
#include "tests/support/graph_builder.h"
#include "tests/support/graph_file.h"

namespace treenail {
namespace {

using test::FileSection;
using test::GraphBuilder;
using test::join_file;
using test::little;
using test::split_file;
using test::text_field;
using testing::error_of;

std::string loading(const std::string& bytes) {
  return error_of([&] { graph_from_bytes(bytes); });
}

// META, a tensor, a batch of two nodes, the end.
std::vector<FileSection> sections() {
  GraphBuilder b;
  const Output c = b.constant(Tensor::vector<float>({1, 2, 3}), "c");
  b.op("Neg", {c}, {}, "n");
  return split_file(graph_to_bytes(*b.graph));
}

// A file of a few of everything, for mutations.
std::string rich_file() {
  test::register_serialize_ops();
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown, 4}, "x");
  const Output w = b.constant(Tensor::vector<float>({1, 2, 3, 4}), "w");
  const Output s = b.constant(Tensor::vector({StringElement("abc"), StringElement("")}), "s");
  const Output shape = b.constant(Tensor::vector<int32_t>({2, -1}), "shape");
  b.op("TestEveryAttr", {}, test::every_attr(), "attrs");
  const Output product = b.op("Mul", {x, w}, {}, "product");
  b.op("Reshape", {product, shape}, {}, "r", {s.node});
  b.graph->set_colocated(*b.op("IdentityN", {x, s, w}, {}, "all").node,
                         std::vector<std::string>{"x", "product"});
  auto f = std::make_shared<Function>();
  f->name = "f";
  f->inputs = f->outputs = {{"x", DType::kFloat32, PartialShape({kUnknown})}};
  f->body = std::make_unique<Graph>();
  f->body->add(
      {.op = "Placeholder", .name = "x", .inputs = {}, .attrs = test::float_placeholder()});
  f->input_nodes = {"x"};
  f->output_values = {"x:0"};
  b.graph->functions()["f"] = f;
  return graph_to_bytes(*b.graph);
}

std::string node_record(std::string_view op, uint32_t version, std::string_view name,
                        std::string_view rest) {
  return text_field(op) + little(version, 4) + text_field(name) + text_field("") +
         std::string(rest);
}

// No arguments, inputs, control inputs, attributes, outputs.
std::string bare() {
  return little(0, 8) + little(0, 8) + little(0, 8) + little(0, 8) + little(0, 8);
}

std::string file_of_nodes(const std::vector<std::string>& records) {
  std::vector<FileSection> s = sections();
  std::string payload = little(records.size(), 8);
  for (const std::string& record : records) payload += record;
  return join_file({s[0], {"NODE", payload}, {"ENDG", little(records.size(), 8) + little(0, 8)}});
}

std::string file_of_tensor(const std::string& payload) {
  return join_file({sections()[0], {"TENS", payload}, {"ENDG", little(0, 8) + little(1, 8)}});
}

TEST(BadGraphFile, FilesOfOtherKinds) {
  const std::string foreign =
      "InvalidArgument: it is not a Treenail graph: it does not begin with the signature of one";
  EXPECT_EQ(loading(""), foreign);
  EXPECT_EQ(loading("x"), foreign);
  EXPECT_EQ(loading(std::string(1000, '\0')), foreign);
  EXPECT_EQ(loading("\x89HDF\r\n\x1a\n" + std::string(1000, '\0')), foreign);
}

TEST(BadGraphFile, OtherVersions) {
  std::string file = join_file(sections());
  file[8] = 2;
  EXPECT_EQ(loading(file),
            "Unimplemented: it has format version 2, this Treenail reads versions up to 1: it was "
            "written by "
            "a newer one");
  file[8] = 0;
  EXPECT_EQ(loading(file), "DataLoss: it has format version 0");
  EXPECT_EQ(loading(file_of_nodes({node_record("NoOp", 9, "n", bare())})),
            "Unimplemented: [NoOp node \"n\"] the file holds version 9 of this op, this Treenail "
            "knows version 1: it was "
            "written by a newer one");
  EXPECT_EQ(loading(file_of_nodes({node_record("NoOp", 0, "n", bare())})),
            "DataLoss: [NoOp node \"n\"] an op has version 0");
}

TEST(BadGraphFile, ColocationsThatDoNotFit) {
  const std::vector<FileSection> s = sections();
  const auto with = [&](const std::string& payload) {
    return loading(join_file({s[0], s[1], s[2], {"COLO", payload}, s[3]}));
  };
  const std::string one = little(1, 8), names = one + text_field("c");
  EXPECT_EQ(with(one + little(1, 8) + names), "no error");
  EXPECT_EQ(with(one + little(2, 8) + names),
            "DataLoss: node 2 is colocated with others and is not there");
  EXPECT_EQ(with(little(9, 8) + little(1, 8) + names),
            "DataLoss: a list of 9 entries does not fit in the 25 bytes left of its section");
  EXPECT_EQ(with(one + little(1, 8) + little(7, 8) + text_field("c")),
            "DataLoss: a list of 7 entries does not fit in the 9 bytes left of its section");
  EXPECT_EQ(with(one + little(1, 8) + names + "x"),
            "DataLoss: 1 bytes are left over at the end of a section");
}

TEST(BadGraphFile, SectionsThatDoNotFit) {
  const std::vector<FileSection> s = sections();
  EXPECT_EQ(loading(join_file({})), "DataLoss: it ends without an end section: it is truncated");
  EXPECT_EQ(loading(join_file({s[1]})), "DataLoss: its first section is TENS, not META");
  EXPECT_EQ(loading(join_file({s[0]})),
            "DataLoss: it ends without an end section: it is truncated");
  EXPECT_EQ(loading(join_file({s[0], s[1], s[3]})),
            "DataLoss: its end tells other numbers of nodes and tensors than it holds: sections "
            "are missing");
  EXPECT_EQ(loading(join_file(s) + "x"), "DataLoss: 1 bytes follow its end");
  EXPECT_EQ(loading(join_file({s[0], {"QQQQ", "abc"}, s[1], s[2], s[3]})),
            "Unimplemented: it holds a section QQQQ that this Treenail does not know here");
  EXPECT_EQ(loading(join_file({s[0], s[1], {"NODE", s[2].payload + "x"}, s[3]})),
            "DataLoss: 1 bytes are left over at the end of a section");
  std::string huge = join_file({s[0]});
  huge += "NODE" + little(std::numeric_limits<uint64_t>::max(), 8) + "abcdefgh";
  EXPECT_EQ(
      loading(huge),
      "DataLoss: section NODE claims 18446744073709551615 bytes, 8 are left: it is truncated");
}

TEST(BadGraphFile, ChangedBytes) {
  std::string file = join_file(sections());
  const size_t at = file.find("TENS") + 12 + 12;
  file[at] = static_cast<char>(file[at] ^ 1);
  EXPECT_EQ(loading(file),
            "DataLoss: the checksum of section TENS does not match: its bytes were changed");
}

TEST(BadGraphFile, Tensors) {
  const auto head = [](int dtype, const std::vector<int64_t>& dims) {
    std::string bytes = little(static_cast<uint64_t>(dtype), 1) + little(dims.size(), 1);
    for (int64_t dim : dims) bytes += little(static_cast<uint64_t>(dim), 8);
    return bytes;
  };
  EXPECT_EQ(loading(file_of_tensor(head(1, {3}) + "12345678")),
            "DataLoss: a tensor float32[3] has 8 bytes of data");
  EXPECT_EQ(loading(file_of_tensor(head(1, {int64_t{1} << 40}))),
            "DataLoss: a tensor float32[1099511627776] has 0 bytes of data");
  EXPECT_EQ(loading(file_of_tensor(head(1, {int64_t{1} << 40, int64_t{1} << 40}))).substr(0, 16),
            "InvalidArgument:");
  EXPECT_EQ(loading(file_of_tensor(head(1, {-1}))), "DataLoss: a tensor has the shape [?]");
  EXPECT_EQ(loading(file_of_tensor(head(1, {-2}))).substr(0, 16), "InvalidArgument:");
  EXPECT_EQ(loading(file_of_tensor(head(99, {}))), "DataLoss: there is no dtype number 99");
  EXPECT_EQ(loading(file_of_tensor(head(20, {}) + "12345678")),
            "DataLoss: a tensor of dtype resource cannot stand in a file");
  EXPECT_EQ(loading(file_of_tensor(head(10, {2}) + std::string("\x01\x02"))),
            "DataLoss: a tensor of truth values holds other bytes than 0 and 1");
  EXPECT_EQ(loading(file_of_tensor("\x01\xff")), "DataLoss: a tensor has rank 255");
  EXPECT_EQ(loading(file_of_tensor(head(7, {int64_t{1} << 40}))),
            "DataLoss: a string tensor of shape [1099511627776] does not fit in its section");
  EXPECT_EQ(loading(file_of_tensor(head(7, {1}) + little(uint64_t{1} << 60, 8))),
            "DataLoss: a string ends beyond its section");
}

TEST(BadGraphFile, Nodes) {
  const std::string noop = node_record("NoOp", 1, "n", bare());
  EXPECT_EQ(loading(file_of_nodes({noop})), "no error");
  EXPECT_EQ(loading(file_of_nodes({noop, noop})), "DataLoss: two nodes are called \"n\"");
  EXPECT_EQ(loading(file_of_nodes({node_record("NoSuchOp", 1, "n", bare())})),
            "NotFound: [NoSuchOp node \"n\"] no op \"NoSuchOp\" is registered");
  EXPECT_EQ(loading(file_of_nodes({node_record("_Arg", 1, "n", bare())})),
            "DataLoss: [_Arg node \"n\"] op \"_Arg\" is internal and never stands in a file");
  EXPECT_EQ(loading(file_of_nodes({node_record("NoOp", 1, "n b", bare())})).substr(0, 16),
            "InvalidArgument:");
  const auto with = [](const std::string& edges) {
    return loading(file_of_nodes({node_record("NoOp", 1, "n", edges)}));
  };
  EXPECT_EQ(with(little(0, 8) + little(1, 8) + little(0, 8) + little(0, 4)),
            "DataLoss: node \"n\" uses node 0, which comes later or never");
  EXPECT_EQ(with(little(0, 8) + little(0, 8) + little(1, 8) + little(7, 8)),
            "DataLoss: node \"n\" uses node 7, which comes later or never");
  EXPECT_EQ(with(little(uint64_t{1} << 62, 8)),
            "DataLoss: a list of 4611686018427387904 entries does not fit in the 0 bytes left of "
            "its section");
  EXPECT_EQ(with(little(0, 8) + little(0, 8) + little(0, 8) + little(0, 8) + little(1, 8) + "\xff"),
            "DataLoss: [NoOp node \"n\"] the file tells 1 output shapes, the op has 0 outputs");
  const std::string no_edges = little(0, 8) + little(0, 8) + little(0, 8);
  EXPECT_EQ(with(no_edges + little(1, 8) + text_field("a") + "\x63"),
            "DataLoss: there is no kind of attribute number 99");
  EXPECT_EQ(with(no_edges + little(1, 8) + text_field("a") + "\x01" + little(5, 8) + little(0, 8)),
            "InvalidArgument: [NoOp node \"n\"] no attribute \"a\"");
  EXPECT_EQ(with(no_edges + little(1, 8) + text_field("a") + "\x07" + little(0, 8)),
            "DataLoss: tensor 0 is named before it comes");
  EXPECT_EQ(with(no_edges + little(1, 8) + text_field("a") + "\x03\x02" + little(0, 8)),
            "DataLoss: a truth value is 2");
}

TEST(BadGraphFile, FunctionsNestedWithoutEnd) {
  std::string attr = "\x01" + little(1, 8);
  for (int i = 0; i < 1000; ++i)
    attr = "\x08" + text_field("f") + little(1, 8) + text_field("a") + attr;
  const std::string edges =
      little(0, 8) + little(0, 8) + little(0, 8) + little(1, 8) + text_field("a") + attr;
  EXPECT_EQ(loading(file_of_nodes({node_record("NoOp", 1, "n", edges)})),
            "DataLoss: function attributes are nested too deeply");
}

TEST(BadGraphFile, AnAbsurdNumberOfOutputsTakesNoMemory) {
  test::register_serialize_ops();
  const std::string edges = little(0, 8) + little(0, 8) + little(0, 8) + little(1, 8) +
                            text_field("num") + "\x01" + little(1 << 20, 8) + little(0, 8);
  EXPECT_EQ(loading(file_of_nodes({node_record("TestManyOutputs", 1, "n", edges)})),
            "DataLoss: [TestManyOutputs node \"n\"] the file tells 0 output shapes, the op has "
            "1048576 outputs");
}

TEST(BadGraphFile, EveryTruncationIsNoticed) {
  const std::string file = rich_file();
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string error = loading(file.substr(0, size));
    ASSERT_TRUE(error.starts_with("DataLoss: ") || error.starts_with("InvalidArgument: it is not"))
        << size << error;
  }
}

TEST(BadGraphFile, EveryFlippedBitIsNoticed) {
  std::string file = rich_file();
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    const char flip = static_cast<char>(1 << (bit % 8));
    file[bit / 8] = static_cast<char>(file[bit / 8] ^ flip);
    ASSERT_NE(loading(file), "no error") << bit;
    file[bit / 8] = static_cast<char>(file[bit / 8] ^ flip);
  }
}

// A small generator of its own: the same sequence with every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t below(uint64_t n) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state_ >> 33) % n;
  }

 private:
  uint64_t state_;
};

void mutate(std::string& bytes, Random& random) {
  if (bytes.empty()) return;
  static constexpr uint64_t kInteresting[] = {0,
                                              1,
                                              0x7f,
                                              0x80,
                                              0xff,
                                              0x7fffffff,
                                              0x80000000,
                                              0xffffffff,
                                              uint64_t{1} << 62,
                                              uint64_t{1} << 63,
                                              ~uint64_t{0}};
  const size_t at = random.below(bytes.size());
  switch (random.below(5)) {
    case 0:
      bytes[at] = static_cast<char>(random.below(256));
      break;
    case 1:
      bytes.erase(at, 1 + random.below(16));
      break;
    case 2:
      bytes.insert(at, bytes.substr(random.below(bytes.size()), 1 + random.below(32)));
      break;
    case 3:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      break;
    default: {
      const std::string number = little(kInteresting[random.below(std::size(kInteresting))], 8);
      bytes.replace(at, std::min<size_t>(8, bytes.size() - at), number);
    }
  }
}

TEST(BadGraphFile, MutationsNeverDoMoreThanFail) {
  const std::vector<FileSection> original = split_file(rich_file());
  Random random(20);
  int refused = 0;
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<FileSection> changed = original;
    for (uint64_t n = 1 + random.below(3); n > 0; --n) {
      FileSection& section = changed[random.below(changed.size())];
      mutate(random.below(20) == 0 ? section.tag : section.payload, random);
      section.tag.resize(4, 'x');
    }
    if (random.below(10) == 0)
      std::swap(changed[random.below(changed.size())], changed[random.below(changed.size())]);
    refused += loading(join_file(changed)) == "no error" ? 0 : 1;
  }
  EXPECT_GT(refused, kRounds / 2);  // the mutations do hit what matters
}

}  // namespace
}  // namespace treenail
