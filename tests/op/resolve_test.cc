// SPDX-License-Identifier: Apache-2.0
// resolve_op: what it infers, and a corpus of what it refuses with the sentence it says.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/op/op_def.h"
#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;
using Types = std::vector<DType>;

constexpr DType kF = DType::kFloat32;
constexpr DType kD = DType::kFloat64;
constexpr DType kI = DType::kInt32;
constexpr DType kL = DType::kInt64;

template <class F>
OpDef define(F declare) {
  OpDef def;
  def.name = "X";
  OpDeclaration declaration(def);
  declare(declaration);
  return def;
}

const OpDef& matmul() {
  static const OpDef def = define([](OpDeclaration& d) {
    d.input("a: T")
        .input("b: T")
        .output("product: T")
        .attr("T: {float, double}")
        .attr("transpose_a: bool = false");
  });
  return def;
}

const OpDef& concat_op() {
  static const OpDef def = define([](OpDeclaration& d) {
    d.input("values: N * T").input("axis: Tidx").output("output: T");
    d.attr("N: int >= 2").attr("T: type").attr("Tidx: {int32, int64} = int32");
  });
  return def;
}

const OpDef& conv() {
  static const OpDef def = define([](OpDeclaration& d) {
    d.input("x: T").output("y: T").attr("T: type").attr("strides: list(int) >= 4");
    d.attr("padding: {'SAME', 'VALID'}").attr("alpha: float = 1");
  });
  return def;
}

const OpDef& two_lists() {
  static const OpDef def = define([](OpDeclaration& d) {
    d.input("first: A")
        .input("second: B")
        .output("out: A")
        .attr("A: list(type)")
        .attr("B: list({int32, int64}) >= 1");
  });
  return def;
}

const OpDef& paired_lists() {
  static const OpDef def = define([](OpDeclaration& d) {
    d.input("xs: N * T").input("ys: N * T").output("out: N * T").attr("N: int").attr("T: type");
  });
  return def;
}

const OpDef& source() {
  static const OpDef def = define([](OpDeclaration& d) {
    d.output("out: num * T").attr("num: int").attr("T: {float, int32} = int32");
  });
  return def;
}

OpInstance resolve(const OpDef& def, const Types& types, const NamedAttrs& attrs = {},
                   std::vector<int> sizes = {}) {
  return resolve_op(def, types, attrs, sizes);
}

TEST(Resolve, InfersTypesFromInputs) {
  const OpInstance op = resolve(matmul(), {kD, kD});
  EXPECT_EQ(op.get_type("T"), kD);
  EXPECT_FALSE(op.get_bool("transpose_a"));
  EXPECT_EQ(op.output_type(0), kD);
  EXPECT_EQ(op.input_name(1), "b");
  EXPECT_EQ(op.num_outputs(), 1);
}

TEST(Resolve, InfersListLengths) {
  const OpInstance op = resolve(concat_op(), {kF, kF, kF, kL});
  EXPECT_EQ(op.get_int("N"), 3);
  EXPECT_EQ(op.get_type("Tidx"), kL);
  EXPECT_EQ(op.input_range(0), std::pair(0, 3));
  EXPECT_EQ(op.input_range(1), std::pair(3, 4));
  EXPECT_EQ(op.input_name(2), "values[2]");
  EXPECT_EQ(op.input_name(3), "axis");
  EXPECT_EQ(op.input_arg(2), 0);
  EXPECT_EQ(op.input_arg(3), 1);
}

TEST(Resolve, TakesSizesOfTwoLists) {
  const OpInstance op = resolve(two_lists(), {kF, kD, kI}, {}, {2, 1});
  EXPECT_EQ(op.get<Types>("A"), (Types{kF, kD}));
  EXPECT_EQ(op.get<Types>("B"), (Types{kI}));
  EXPECT_EQ(op.num_outputs(), 2);
  EXPECT_EQ(op.output_type(1), kD);
  const OpInstance empty = resolve(two_lists(), {kI, kL}, {}, {0, 2});
  EXPECT_EQ(empty.input_arg(0), 1);
  EXPECT_EQ(empty.input_range(0), std::pair(0, 0));
  EXPECT_EQ(empty.num_outputs(), 0);
}

TEST(Resolve, AnAttributeMayTellTheLength) {
  const OpInstance op = resolve(two_lists(), {kF, kD, kI}, {{"A", Types{kF, kD}}});
  EXPECT_EQ(op.get<Types>("B"), (Types{kI}));
}

TEST(Resolve, ListsOfOneLengthShareEvenly) {
  const OpInstance op = resolve(paired_lists(), {kF, kF, kF, kF});
  EXPECT_EQ(op.get_int("N"), 2);
  EXPECT_EQ(op.output_range(0), std::pair(0, 2));
}

TEST(Resolve, DefaultsServeWhatInputsDoNotTell) {
  const OpInstance op = resolve(source(), {}, {{"num", 3}});
  EXPECT_EQ(op.get_type("T"), kI);
  EXPECT_EQ(op.num_outputs(), 3);
  EXPECT_EQ(resolve(source(), {}, {{"num", 0}}).num_outputs(), 0);
}

TEST(Resolve, ConvertsIntsToFloats) {
  const OpInstance op =
      resolve(conv(), {kF},
              {{"strides", std::vector<int64_t>{1, 2, 2, 1}}, {"padding", "SAME"}, {"alpha", 2}});
  EXPECT_EQ(op.get_float("alpha"), 2.0);
}

TEST(Resolve, UnknownAttributeOfAnInstanceIsOurMistake) {
  const OpInstance op = resolve(matmul(), {kF, kF});
  EXPECT_EQ(error_of([&] { op.attr("transpose_q"); }),
            "Internal: op \"X\" has no attribute \"transpose_q\"");
}

TEST(Resolve, Corpus) {
  const std::vector<int64_t> strides = {1, 1, 1, 1};
  const auto failure = [](const OpDef& def, const Types& types, const NamedAttrs& attrs = {},
                          std::vector<int> sizes = {}) {
    const std::string text = error_of([&] { resolve(def, types, attrs, sizes); });
    EXPECT_EQ(text.substr(0, 17), "InvalidArgument: ") << text;
    return text.substr(17);
  };
  EXPECT_EQ(failure(matmul(), {kF}), "expects 2 inputs, got 1");
  EXPECT_EQ(failure(matmul(), {kF, kF, kF}), "expects 2 inputs, got 3");
  EXPECT_EQ(failure(concat_op(), {}), "expects at least 1 input, got 0");
  EXPECT_EQ(failure(matmul(), {kF, kI}),
            "input \"b\" has dtype int32, but input \"a\" has float32; both are T");
  EXPECT_EQ(failure(matmul(), {kI, kI}),
            "input \"a\" has dtype int32, needed is one of float32, float64");
  EXPECT_EQ(failure(matmul(), {kF, kF}, {{"T", kD}}),
            "input \"a\" has dtype float32, but attribute \"T\" = float64");
  EXPECT_EQ(failure(matmul(), {kI, kI}, {{"T", kI}}),
            "attribute \"T\" = int32 is not one of float32, float64");
  EXPECT_EQ(failure(matmul(), {kF, kF}, {{"transpose", true}}),
            "no attribute \"transpose\"; did you mean \"transpose_a\"?");
  EXPECT_EQ(failure(matmul(), {kF, kF}, {{"beta", true}}), "no attribute \"beta\"");
  EXPECT_EQ(failure(matmul(), {kF, kF}, {{"transpose_a", 1}}),
            "attribute \"transpose_a\": 1 is of kind int, needed is bool");
  EXPECT_EQ(failure(matmul(), {kF, kF}, {{"transpose_a", true}, {"transpose_a", true}}),
            "attribute \"transpose_a\" is given twice");
  EXPECT_EQ(failure(conv(), {kF}, {{"padding", "SAME"}}), "attribute \"strides\" is missing");
  EXPECT_EQ(failure(conv(), {kF}, {{"stride", strides}}),
            "no attribute \"stride\"; did you mean \"strides\"?");
  EXPECT_EQ(failure(conv(), {kF}, {{"strides", strides}, {"padding", "same"}}),
            "attribute \"padding\" = \"same\" is not one of \"SAME\", \"VALID\"");
  EXPECT_EQ(failure(conv(), {kF}, {{"strides", std::vector<int64_t>{1, 1}}, {"padding", "SAME"}}),
            "attribute \"strides\" = [1,1] has 2 elements, at least 4 are needed");
  EXPECT_EQ(failure(concat_op(), {kF, kI}),
            "input \"values\" has 1 tensors, at least 2 are needed");
  EXPECT_EQ(
      failure(concat_op(), {kF, kD, kI}),
      "input \"values[1]\" has dtype float64, but input \"values[0]\" has float32; both are T");
  EXPECT_EQ(failure(concat_op(), {kF, kF, kF}),
            "input \"axis\" has dtype float32, needed is one of int32, int64");
  EXPECT_EQ(failure(concat_op(), {kF, kF, kI}, {{"N", 3}}), "expects 4 inputs, got 3");
  EXPECT_EQ(failure(concat_op(), {kF, kF, kI}, {{"N", 3}}, {2, 1}),
            "input \"values\" has 2 tensors, but attribute \"N\" = 3");
  EXPECT_EQ(failure(concat_op(), {kF, kF, kI}, {}, {3}), "expects sizes for 2 arguments, got 1");
  EXPECT_EQ(failure(concat_op(), {kF, kF, kI}, {}, {1, 2}),
            "input \"axis\" is given as 2 tensors, needed is one");
  EXPECT_EQ(failure(concat_op(), {kF, kF, kI}, {}, {-1, 1}),
            "input \"values\" is given as -1 tensors, needed is a list");
  EXPECT_EQ(failure(concat_op(), {kF, kF, kI}, {}, {4, 1}), "expects 5 inputs, got 3");
  EXPECT_EQ(failure(two_lists(), {kF, kI}),
            "cannot tell how many inputs belong to \"first\" and how many to \"second\"; the "
            "caller must say");
  EXPECT_EQ(failure(two_lists(), {kF, kF}, {}, {1, 1}),
            "input \"second[0]\" has dtype float32, needed is one of int32, int64");
  EXPECT_EQ(failure(two_lists(), {kF, kI}, {{"A", Types{kD}}}),
            "input \"first\" has dtypes [float32], but attribute \"A\" = [float64]");
  EXPECT_EQ(failure(two_lists(), {kF}, {}, {1, 0}),
            "attribute \"B\" = [] has 0 elements, at least 1 is needed");
  EXPECT_EQ(failure(paired_lists(), {kF, kF, kF}),
            "got 3 inputs: 3 of them cannot be shared evenly by 2 lists of length N");
  EXPECT_EQ(failure(paired_lists(), {kF, kF, kF}, {}, {1, 2}),
            "input \"ys\" has 2 tensors, but input \"xs\" has 1; both are of length N");
  EXPECT_EQ(failure(paired_lists(), {}), "attribute \"T\" is missing");
  EXPECT_EQ(failure(source(), {}, {{"num", -1}}), "attribute \"num\" = -1 is not in [0, 1048576]");
  EXPECT_EQ(failure(source(), {}, {{"num", int64_t{1} << 62}}),
            "attribute \"num\" = 4611686018427387904 is not in [0, 1048576]");
  EXPECT_EQ(failure(conv(), {kF},
                    {{"T", static_cast<DType>(99)}, {"strides", strides}, {"padding", "SAME"}})
                .substr(0, 40),
            "input \"x\" has dtype float32, but attribu");
}

}  // namespace
}  // namespace treenail
