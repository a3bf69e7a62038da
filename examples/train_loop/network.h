// SPDX-License-Identifier: Apache-2.0
// A point goes eight times through one layer, h = h + tanh(h W + b) / 4. The graph holds all that
// is done with the network, found by name: w/init, w/train, w/restore, save, loss, turned.
#pragma once

#include <string>
#include <vector>

#include <treenail/control_flow.hpp>

namespace turning {

using tn::Attrs, tn::DType, tn::Graph, tn::Output, tn::Tensor, tn::Values;

inline Output variable(Graph& g, const std::string& name, const Tensor& first) {
  const Output handle = g.add("VarHandleOp", {},
                              Attrs()
                                  .set("dtype", first.dtype())
                                  .set("shared_name", name)
                                  .set_shape("shape", first.shape()),
                              {name, {}, {}});
  g.add("AssignVariableOp", {handle, g.constant(first)}, {}, {name + "/init", {}, {}});
  const auto text = [&](const std::string& s) { return g.constant(Tensor::of_strings({s}, {1})); };
  const Output file = g.output("file");
  const Output restored = g.add("Restore", {file, text(name), text("")},
                                Attrs().set("dtypes", std::vector<DType>{first.dtype()}));
  g.add("AssignVariableOp", {handle, Values{restored}[0]}, {}, {name + "/restore", {}, {}});
  return g.add("ReadVariableOp", {handle}, Attrs().set("dtype", first.dtype()),
               {name + "/read", {}, {}});
}

inline Graph network() {
  Graph g;
  const auto number = [](Graph& in, float x) { return Output(in.constant(Tensor::scalar(x))); };
  const Output file = g.placeholder(DType::kString, tn::Shape{}, "file");
  const Output x = g.placeholder(DType::kFloat32, {-1, 2}, "x"),
               y = g.placeholder(DType::kFloat32, {-1, 2}, "y");
  const Output w = variable(g, "w", Tensor::of<float>({0.1F, 0.2F, -0.1F, 0.1F}, {2, 2}));
  const Output b = variable(g, "b", Tensor::of<float>({0, 0}));
  const Values last = tn::while_loop(
      g, {g.constant(Tensor::scalar<int32_t>(0)), x},
      [](Graph& in, const Values& v) {
        return Values{in.add("Less", {v[0], in.constant(Tensor::scalar<int32_t>(8))})};
      },
      [&](Graph& in, const Values& v) {  // w and b are of the graph around: they are passed along
        const Output layer = in.add("Tanh", {in.add("Add", {in.add("MatMul", {v[1], w}), b})});
        return Values{in.add("Add", {v[0], in.constant(Tensor::scalar<int32_t>(1))}),
                      in.add("Add", {v[1], in.add("Mul", {layer, number(in, 0.25F)})})};
      });
  const Output turned = g.add("Identity", {last[1]}, {}, {"turned", {}, {}});
  const Output axes = g.constant(Tensor::of<int32_t>({0, 1}));
  const Output loss =
      g.add("Mean", {g.add("SquaredDifference", {turned, y}), axes}, {}, {"loss", {}, {}});
  const std::vector<Output> slopes = g.gradients({loss}, {w, b});
  for (const int i : {0, 1}) {
    const std::string name = i == 0 ? "w" : "b";
    g.add("AssignSubVariableOp", {g.output(name), g.add("Mul", {slopes[i], number(g, 0.3F)})}, {},
          {name + "/train", {}, {}});
  }
  g.add("Save",
        {file, g.constant(Tensor::of_strings({"w", "b"}, {2})),
         g.constant(Tensor::of_strings({"", ""}, {2})), Values{w, b}},
        {}, {"save", {}, {}});
  return g;
}

}  // namespace turning
