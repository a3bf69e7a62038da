// SPDX-License-Identifier: Apache-2.0
#include "tests/graph/serialize_ops.h"

#include <vector>

#include "framework/base/text.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail::test {
namespace {

// Version 1 had one int "axis" and always kept the axis.
void axis_to_axes(NamedAttrs& attrs) {
  for (auto& [name, value] : attrs) {
    if (name != "axis") continue;
    name = "axes";
    value = std::vector<int64_t>{value.get<int64_t>()};
  }
}

void declare() {
  OpRegistry& r = OpRegistry::instance();
  OpDeclaration every = r.op("TestEveryAttr", HostAccess::kNone);
  for (const char* kind : {"int", "float", "bool", "string", "type", "shape", "tensor", "func"}) {
    every.attr(concat("one_", kind, ": ", kind)).attr(concat("some_", kind, ": list(", kind, ")"));
  }
  every.shape(no_outputs_shape).not_differentiable();
  r.op("TestTwoLists", HostAccess::kNone)
      .input("a: A")
      .input("b: B")
      .attr("A: list(type)")
      .attr("B: list(type)")
      .shape(no_outputs_shape)
      .not_differentiable();
  r.op("TestVersioned", HostAccess::kNone)
      .attr("axes: list(int)")
      .attr("keep: bool = true")
      .version(2, {axis_to_axes})
      .shape(no_outputs_shape)
      .not_differentiable();
  r.op("TestManyOutputs", HostAccess::kNone)
      .output("out: num * float")
      .attr("num: int")
      .shape(unknown_shape)
      .not_differentiable();
  r.finish("test");
}

}  // namespace

void register_serialize_ops() {
  static const bool once = (declare(), true);
  static_cast<void>(once);
}

NamedAttrs every_attr() {
  const FunctionAttr inner{"inner", {{"n", 1}}};
  const FunctionAttr outer{"outer", {{"f", inner}, {"T", DType::kInt8}}};
  return {{"one_int", -7},
          {"some_int", std::vector<int64_t>{1, -2}},
          {"one_float", 1e-300},
          {"some_float", std::vector<double>{0.1, -0.0}},
          {"one_bool", true},
          {"some_bool", std::vector<bool>{true, false, true}},
          {"one_string", "caf\xc3\xa9"},
          {"some_string", std::vector<std::string>{"", "b"}},
          {"one_type", DType::kBFloat16},
          {"some_type", std::vector<DType>{DType::kString, DType::kVariant}},
          {"one_shape", PartialShape({2, kUnknown})},
          {"some_shape", std::vector<PartialShape>{PartialShape(), Shape(), PartialShape({0})}},
          {"one_tensor", Tensor::vector<double>({1, 2})},
          {"some_tensor", std::vector<Tensor>{Tensor::scalar(1.5F), Tensor()}},
          {"one_func", outer},
          {"some_func", std::vector<FunctionAttr>{inner, outer}}};
}

NamedAttrs float_placeholder() {
  return {{"dtype", DType::kFloat32}, {"shape", PartialShape({kUnknown})}};
}

}  // namespace treenail::test
