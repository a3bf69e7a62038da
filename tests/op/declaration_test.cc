// SPDX-License-Identifier: Apache-2.0
// The declaration grammar, what it is parsed into, and the mistakes it refuses.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "framework/op/gradient.h"
#include "framework/op/op_def.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "tests/support/expect_error.h"

namespace treenail {
namespace {

using testing::error_of;

AttrDef attr_of(std::string_view spec) {
  OpDef def;
  def.name = "X";
  OpDeclaration(def).attr(spec);
  return def.attrs.at(0);
}

TEST(Declaration, PlainKinds) {
  EXPECT_EQ(attr_of("n: int").kind, AttrKind::kInt);
  EXPECT_EQ(attr_of("n:float").kind, AttrKind::kFloat);
  EXPECT_EQ(attr_of("n: bool").kind, AttrKind::kBool);
  EXPECT_EQ(attr_of("n: string").kind, AttrKind::kString);
  EXPECT_EQ(attr_of("n: type").kind, AttrKind::kType);
  EXPECT_EQ(attr_of("n: shape").kind, AttrKind::kShape);
  EXPECT_EQ(attr_of("n: tensor").kind, AttrKind::kTensor);
  EXPECT_EQ(attr_of("n: func").kind, AttrKind::kFunction);
  EXPECT_EQ(attr_of("n: list(func)").kind, AttrKind::kFunctionList);
  EXPECT_EQ(attr_of("n: list(shape)").kind, AttrKind::kShapeList);
}

TEST(Declaration, DefaultsOfEveryKind) {
  EXPECT_EQ(attr_of("n: int = -3").default_value, AttrValue(-3));
  EXPECT_EQ(attr_of("n: float = 1e-05").default_value, AttrValue(1e-5));
  EXPECT_EQ(attr_of("n: float = -inf").default_value,
            AttrValue(-std::numeric_limits<double>::infinity()));
  EXPECT_EQ(attr_of("n: float = 2").default_value, AttrValue(2.0));
  EXPECT_EQ(attr_of("n: bool = true").default_value, AttrValue(true));
  EXPECT_EQ(attr_of("n: string = 'a \\'b\\''").default_value, AttrValue("a 'b'"));
  EXPECT_EQ(attr_of("n: string = \"it's\"").default_value, AttrValue("it's"));
  EXPECT_EQ(attr_of("n: string = ''").default_value, AttrValue(""));
  EXPECT_EQ(attr_of("n: type = half").default_value, AttrValue(DType::kFloat16));
  EXPECT_EQ(attr_of("n: shape = [2,3]").default_value, AttrValue(PartialShape({2, 3})));
  EXPECT_EQ(attr_of("n: shape = [2,?]").default_value, AttrValue(PartialShape({2, kUnknown})));
  EXPECT_EQ(attr_of("n: shape = {}").default_value, AttrValue(PartialShape(Shape())));
  EXPECT_EQ(attr_of("n: shape = ?").default_value, AttrValue(PartialShape()));
  EXPECT_EQ(attr_of("n: shape = {unknown_rank: true}").default_value, AttrValue(PartialShape()));
  EXPECT_EQ(attr_of("n: list(int) = [1, 2, -1]").default_value,
            AttrValue(std::vector<int64_t>{1, 2, -1}));
  EXPECT_EQ(attr_of("n: list(float) = []").default_value, AttrValue(std::vector<double>()));
  EXPECT_EQ(attr_of("n: list(bool) = [true,false]").default_value,
            AttrValue(std::vector<bool>{true, false}));
  EXPECT_EQ(attr_of("n: list(string) = ['a', \"b\"]").default_value,
            AttrValue(std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(attr_of("n: list(type) = [float, int64]").default_value,
            AttrValue(std::vector<DType>{DType::kFloat32, DType::kInt64}));
  EXPECT_EQ(attr_of("n: list(shape) = [[], ?]").default_value,
            AttrValue(std::vector<PartialShape>{PartialShape(Shape()), PartialShape()}));
  EXPECT_EQ(attr_of("n: list(func) = []").default_value, AttrValue(std::vector<FunctionAttr>()));
}

TEST(Declaration, AllowedValuesAndMinima) {
  const AttrDef types = attr_of("T: {half, bfloat16, float, double} = float");
  EXPECT_EQ(types.allowed_types, (std::vector<DType>{DType::kFloat16, DType::kBFloat16,
                                                     DType::kFloat32, DType::kFloat64}));
  EXPECT_EQ(types.default_value, AttrValue(DType::kFloat32));
  EXPECT_EQ(attr_of("p: {'SAME', \"VALID\"}").allowed_strings,
            (std::vector<std::string>{"SAME", "VALID"}));
  const AttrDef list = attr_of("L: list({int32, int64}) >= 2");
  EXPECT_EQ(list.kind, AttrKind::kTypeList);
  EXPECT_EQ(list.allowed_types, (std::vector<DType>{DType::kInt32, DType::kInt64}));
  EXPECT_EQ(list.minimum, 2);
  EXPECT_EQ(attr_of("N: int >= 1 = 4").minimum, 1);
  EXPECT_EQ(attr_of("N: int >= -1").minimum, -1);
  EXPECT_EQ(attr_of("T: numbertype").allowed_types.size(), 14U);
  EXPECT_EQ(attr_of("T: realnumbertype").allowed_types.size(), 12U);
  EXPECT_EQ(attr_of("T: {realnumbertype, bool}").allowed_types.size(), 13U);
}

TEST(Declaration, ArgumentsMayNameAttributesDeclaredLater) {
  OpDef def;
  OpDeclaration(def)
      .input("x: T")
      .input("values: N * T")
      .input("rest: Trest")
      .input("same: N * int32")
      .input("axis: int64")
      .output("handle: resource")
      .attr("Trest: list(type)")
      .attr("N: int >= 1")
      .attr("T: type");
  EXPECT_EQ(def.inputs[0].type_attr, def.attr_index("T"));
  EXPECT_EQ(def.inputs[1].number_attr, def.attr_index("N"));
  EXPECT_EQ(def.inputs[1].type_attr, def.attr_index("T"));
  EXPECT_EQ(def.inputs[2].type_list_attr, def.attr_index("Trest"));
  EXPECT_EQ(def.inputs[2].type_attr, -1);
  EXPECT_EQ(def.inputs[3].dtype, DType::kInt32);
  EXPECT_EQ(def.inputs[4].dtype, DType::kInt64);
  EXPECT_EQ(def.outputs[0].dtype, DType::kResource);
  EXPECT_TRUE(def.inputs[3].is_list());
  EXPECT_EQ(def.input_index("axis"), 4);
  EXPECT_EQ(def.output_index("axis"), -1);
}

TEST(Declaration, PropertiesFindTheirArguments) {
  OpDef def;
  OpDeclaration(def)
      .input("a: T")
      .input("shape: int32")
      .output("y: T")
      .attr("T: type")
      .host("shape")
      .view_of("a")
      .in_place("a", "y")
      .gradient([](GradientContext&) {}, {"shape", "y"})
      .random()
      .version(2, {[](NamedAttrs&) {}});
  EXPECT_TRUE(def.inputs[1].host);
  EXPECT_EQ(def.view_of, 0);
  EXPECT_EQ(def.in_place[0], std::pair(0, 0));
  EXPECT_FALSE(def.inputs[0].gradient_reads);
  EXPECT_TRUE(def.inputs[1].gradient_reads);
  EXPECT_TRUE(def.outputs[0].gradient_reads);
  EXPECT_TRUE(def.stateful && def.random);
}

TEST(Declaration, MistakesNameOpAndText) {
  const struct {
    const char* spec;
    const char* message;
  } corpus[] = {
      {"n", "expected ':', met the end"},
      {": int", "expected a name, met ': int'"},
      {"n: integer",
       "expected a kind of attribute (int, float, bool, string, type, shape, tensor, func, "
       "list(...), "
       "{...}), met 'integer'"},
      {"T: {flot, double}", "expected a type, met 'flot, double}'"},
      {"p: {'SAME', VALID}", "expected a quoted string, met 'VALID}'"},
      {"p: {'SAME'", "expected '}', met the end"},
      {"p: string = 'abc", "expected a closing ', met the end"},
      {"n: list(int", "expected ')', met the end"},
      {"n: int = x", "expected an integer, met 'x'"},
      {"n: int = 99999999999999999999", "expected an integer, met '9999999999999999'"},
      {"n: int = 1 2", "expected the end, met '2'"},
      {"n: bool = yes", "expected true or false, met 'yes'"},
      {"n: string >= 3", "expected no minimum: only int and lists have one, met '3'"},
      {"n: tensor = 3", "expected no default: one of kind tensor cannot be written here, met '3'"},
      {"T: {float} = int32", "the default int32 is not allowed"},
      {"p: {'A'} = 'B'", "the default \"B\" is not allowed"},
      {"n: int >= 3 = 2", "the default 2 is less than 3"},
      {"n: shape = [-5]", "expected"},
      {"n: list(int) = [1,", "expected an integer, met the end"},
  };
  for (const auto& row : corpus) {
    const std::string got = error_of([&row] { attr_of(row.spec); });
    const std::string begin = concat("Internal: op \"X\": attr \"", row.spec, "\": ");
    EXPECT_EQ(got.substr(0, begin.size()), begin);
    if (std::string_view(row.spec) != "n: shape = [-5]") {
      EXPECT_EQ(got.substr(std::min(begin.size(), got.size())), row.message);
    }
  }
}

TEST(Declaration, ArgumentMistakes) {
  const auto with = [](auto declare) {
    OpDef def;
    def.name = "X";
    OpDeclaration d(def);
    return error_of([&] { declare(d); });
  };
  EXPECT_EQ(with([](auto& d) { d.input("x T"); }),
            "Internal: op \"X\": input \"x T\": expected ':', met 'T'");
  EXPECT_EQ(with([](auto& d) { d.input("x: 3 * T"); }),
            "Internal: op \"X\": input \"x: 3 * T\": expected a type or an attribute's name, met "
            "'3 * T'");
  EXPECT_EQ(with([](auto& d) { d.input("x: T").output("x: T"); }),
            "Internal: op \"X\": output \"x: T\": the name \"x\" is taken");
  EXPECT_EQ(with([](auto& d) { d.input("x: N * float").attr("N: type"); }),
            "Internal: op \"X\": attr \"N: type\": \"N\" counts \"x\" and must be an int");
  EXPECT_EQ(with([](auto& d) { d.attr("T: int").input("x: T"); }),
            "Internal: op \"X\": input \"x: T\": \"T\" is the dtype of \"x\" and must be a type or "
            "list(type)");
  EXPECT_EQ(with([](auto& d) { d.attr("T: type").attr("T: type"); }),
            "Internal: op \"X\": attr \"T: type\": it is declared twice");
  EXPECT_EQ(with([](auto& d) { d.host("x"); }), "Internal: op \"X\" has no input \"x\"");
  EXPECT_EQ(with([](auto& d) { d.input("x: float").gradient([](GradientContext&) {}, {"z"}); }),
            "Internal: op \"X\": the gradient reads \"z\", which is no input or output");
  EXPECT_EQ(with([](auto& d) { d.input("x: N * float").attr("N: int").view_of("x"); }), "no error");
  EXPECT_EQ(
      with([](auto& d) { d.input("x: N * float").input("y: float").attr("N: int").view_of("y"); }),
      "Internal: op \"X\": view_of needs \"y\" as a single argument before any list");
}

TEST(OpRegistry, FindsWhatIsFinished) {
  OpRegistry r;
  r.op("Add", HostAccess::kNone)
      .input("a: T")
      .input("b: T")
      .output("c: T")
      .attr("T: type")
      .shape(broadcast_binary_shape)
      .not_differentiable();
  EXPECT_EQ(r.find("Add"), nullptr);
  r.finish("binary");
  ASSERT_NE(r.find("Add"), nullptr);
  EXPECT_EQ(r.get("Add").family, "binary");
  r.op("Abs", HostAccess::kNone)
      .input("a: float")
      .output("b: float")
      .shape(unchanged_shape)
      .not_differentiable();
  r.finish("unary");
  std::string names;
  for (const OpDef* def : r.all()) names += def->name + " ";
  EXPECT_EQ(names, "Abs Add ");
}

TEST(OpRegistry, UnknownNamesGetANearOne) {
  OpRegistry r;
  r.op("MatMul", HostAccess::kNone).shape(no_outputs_shape).not_differentiable();
  r.finish("matmul");
  EXPECT_EQ(error_of([&] { r.get("Matmul"); }),
            "NotFound: no op \"Matmul\" is registered; did you mean \"MatMul\"?");
  EXPECT_EQ(error_of([&] { r.get("Convolve"); }), "NotFound: no op \"Convolve\" is registered");
  EXPECT_EQ(error_of([&] { r.get(""); }), "NotFound: no op \"\" is registered");
}

TEST(OpRegistry, RefusesIncompleteDeclarations) {
  const auto finish = [](auto declare) {
    OpRegistry r;
    auto d = r.op("X", HostAccess::kNone);
    declare(d);
    return error_of([&] { r.finish("x"); });
  };
  EXPECT_EQ(finish([](auto& d) { d.not_differentiable(); }),
            "Internal: op \"X\": it has no shape rule");
  EXPECT_EQ(finish([](auto& d) { d.shape(no_outputs_shape); }),
            "Internal: op \"X\": it states no gradient; say not_differentiable() if it has none by "
            "nature");
  EXPECT_EQ(finish([](auto& d) { d.input("x: Foo").shape(no_outputs_shape).not_differentiable(); }),
            "Internal: op \"X\": \"x\" names attribute \"Foo\", which is not declared (nor is it a "
            "type)");
  EXPECT_EQ(finish([](auto& d) { d.shape(no_outputs_shape).not_differentiable().version(2, {}); }),
            "Internal: op \"X\": version 2 needs 1 upgrades, 0 are given");
  EXPECT_EQ(finish([](auto& d) { d.shape(no_outputs_shape).not_differentiable(); }), "no error");
}

TEST(OpRegistry, RefusesTheSameNameTwiceAndForgetsWhatFailed) {
  OpRegistry r;
  r.op("X", HostAccess::kNone).shape(no_outputs_shape);
  EXPECT_EQ(error_of([&] { r.op("X", HostAccess::kNone); }),
            "AlreadyExists: op \"X\" is registered already");
  r.abandon();
  r.op("X", HostAccess::kNone).shape(no_outputs_shape).not_differentiable();
  r.finish("x");
  EXPECT_EQ(error_of([&] { r.op("X", HostAccess::kNone); }),
            "AlreadyExists: op \"X\" is registered already");
}

}  // namespace
}  // namespace treenail
