// SPDX-License-Identifier: Apache-2.0
// Gradients are right: against finite differences in float64, by the same rules in a graph (run by
// a session) and on a recording, with shapes known and unknown, and once more for gradients of
// gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "framework/eager/recording.h"
#include "framework/graph/gradients.h"
#include "framework/graph/graph_emitter.h"
#include "framework/runtime/run/session.h"

namespace treenail {
namespace {

using Values = std::vector<Value>;
// A scalar function of tensors, written once for every Emitter.
using Function = Value (*)(Emitter& e, const Values& xs);

Tensor filled(const Shape& shape, double from, double step) {
  Tensor t(DType::kFloat64, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i)
    t.data<double>()[i] = from + step * static_cast<double>(i);
  return t;
}

Value total(Emitter& e, Value x) {
  const int rank = e.shape(x).rank();
  std::vector<int64_t> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  return e.call("Sum", {x, e.const_ints(DType::kInt32, axes)});
}

double evaluate(Function f, const std::vector<Tensor>& xs) {
  Recording r;
  Values values;
  for (const Tensor& x : xs) values.push_back(r.input(x));
  return *r.tensor(f(r, values)).data<double>();
}

std::vector<Tensor> finite_differences(Function f, std::vector<Tensor> xs) {
  std::vector<Tensor> result;
  for (Tensor& x : xs) {
    Tensor d(DType::kFloat64, x.shape());
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const double kept = x.data<double>()[i];
      constexpr double kStep = 1e-6;
      x.data<double>()[i] = kept + kStep;
      const double above = evaluate(f, xs);
      x.data<double>()[i] = kept - kStep;
      const double below = evaluate(f, xs);
      x.data<double>()[i] = kept;
      d.data<double>()[i] = (above - below) / (2 * kStep);
    }
    result.push_back(d);
  }
  return result;
}

std::vector<Tensor> recorded(Function f, const std::vector<Tensor>& xs) {
  Recording r;
  Values values;
  for (const Tensor& x : xs) values.push_back(r.input(x));
  const Value y[] = {f(r, values)};
  std::vector<Tensor> result;
  for (const Gradient& g : r.gradients(y, values)) result.push_back(r.tensor(r.densified(g)));
  return result;
}

// `known`: whether the placeholders tell their shapes, or their ranks only.
std::vector<Tensor> in_a_graph(Function f, const std::vector<Tensor>& xs, bool known) {
  auto graph = std::make_shared<Graph>();
  GraphEmitter e(*graph);
  Values values;
  std::vector<Output> feeds;
  for (const Tensor& x : xs) {
    const PartialShape shape =
        known ? PartialShape(x.shape()) : PartialShape::unknown_with_rank(x.rank());
    values.push_back(
        e.call("Placeholder", Values(), {{"dtype", DType::kFloat64}, {"shape", shape}}));
    feeds.push_back(e.output_of(values.back()));
  }
  const Output y[] = {e.output_of(f(e, values))};
  std::vector<Output> fetches;
  for (const GraphGradient& g : add_gradients(*graph, y, feeds)) {
    EXPECT_EQ(g.kind, Gradient::Kind::kDense);
    fetches.push_back(g.dense);
  }
  Session session(graph);
  return session.run(session.signature(feeds, fetches, {}), xs);
}

void expect_near(const std::vector<Tensor>& got, const std::vector<Tensor>& wanted,
                 const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].shape(), wanted[k].shape()) << what;
    for (int64_t i = 0; i < got[k].num_elements(); ++i) {
      const double w = wanted[k].data<double>()[i];
      EXPECT_NEAR(got[k].data<double>()[i], w, 1e-6 * (1 + std::abs(w)))
          << what << " x" << k << "[" << i << "]";
    }
  }
}

void check(Function f, const std::vector<Tensor>& xs) {
  const std::vector<Tensor> wanted = finite_differences(f, xs);
  expect_near(recorded(f, xs), wanted, "recording");
  expect_near(in_a_graph(f, xs, true), wanted, "graph");
  expect_near(in_a_graph(f, xs, false), wanted, "graph of unknown shapes");
}

TEST(Gradients, OfAChain) {
  check([](Emitter& e,
           const Values& x) { return total(e, e.call("Tanh", {e.call("Exp", {e.square(x[0])})})); },
        {filled(Shape({3}), -0.4, 0.3)});
}

TEST(Gradients, OfAValueUsedOften) {
  check(
      [](Emitter& e, const Values& x) {
        const Value a = e.call("Exp", {x[0]});
        return total(e, e.add(e.mul(a, x[0]), e.sub(e.mul(a, a), x[0])));
      },
      {filled(Shape({2, 2}), -0.5, 0.25)});
}

TEST(Gradients, AreSummedOverWhatWasBroadcast) {
  const Function product = [](Emitter& e, const Values& x) {
    return total(e, e.mul(e.mul(x[0], x[1]), x[2]));
  };
  check(product,
        {filled(Shape({2, 3}), 0.5, 0.1), filled(Shape({3}), 1, 0.2), filled(Shape(), 2, 0)});
  check(product, {filled(Shape({2, 1}), 0.5, 0.1), filled(Shape({1, 3}), 1, 0.2),
                  filled(Shape({1, 1, 1}), 2, 0)});
}

TEST(Gradients, OfMatrixProducts) {
  check(
      [](Emitter& e, const Values& x) {
        const Value y = e.call("MatMul", {x[0], x[1]}, {{"transpose_b", true}});
        return total(e, e.square(y));
      },
      {filled(Shape({2, 3}), -0.5, 0.2), filled(Shape({4, 3}), 0.3, -0.1)});
}

// The first layer of a network: product, bias, nonlinearity, mean of squares.
Value layer(Emitter& e, const Values& x) {
  const Value y = e.call("Tanh", {e.add(e.call("MatMul", {x[0], x[1]}), x[2])});
  return e.call("Mean", {e.square(y), e.const_ints(DType::kInt32, std::vector<int64_t>{0, 1})});
}

TEST(Gradients, OfALayer) {
  check(layer, {filled(Shape({5, 3}), -0.5, 0.1), filled(Shape({3, 2}), 0.3, -0.1),
                filled(Shape({2}), 0.1, 0.1)});
}

// d/dx of the sum of squares of the gradient of f: needs gradients of gradients.
TEST(Gradients, OfGradients) {
  const std::vector<Tensor> xs = {filled(Shape({3}), -0.4, 0.3)};
  const auto inner = [](Emitter& e, Value x) {
    return total(e, e.call("Tanh", {e.mul(x, e.call("Exp", {x}))}));
  };
  const auto squared_slope = [&](Recording& r, Value x) {
    const Value y[] = {inner(r, x)};
    const Value over[] = {x};
    return total(r, r.square(r.gradients(y, over)[0].dense));
  };
  Recording r;
  const Value x[] = {r.input(xs[0])};
  const Value y[] = {squared_slope(r, x[0])};
  const Tensor got = r.tensor(r.gradients(y, x)[0].dense);
  for (int64_t i = 0; i < 3; ++i) {
    const auto at = [&](double step) {
      Tensor moved = xs[0].deep_copy();
      moved.data<double>()[i] += step;
      Recording s;
      return *s.tensor(squared_slope(s, s.input(moved))).data<double>();
    };
    EXPECT_NEAR(got.data<double>()[i], (at(1e-6) - at(-1e-6)) / 2e-6, 1e-5);
  }
}

TEST(Gradients, OfARecordingThatTellsNoShapes) {
  const Tensor a = filled(Shape({2, 3}), 0.5, 0.1);
  const Tensor b = filled(Shape({3}), 1, 0.2);
  const auto run = [&](Recording::Known known) {
    Recording r(nullptr, known);
    const Value xs[] = {r.input(a), r.input(b)};
    const Value y[] = {r.mul(xs[0], xs[1])};
    std::vector<Tensor> result;
    for (const Gradient& g : r.gradients(y, xs)) result.push_back(r.tensor(g.dense));
    return result;
  };
  expect_near(run(Recording::Known::kConstantsOnly), run(Recording::Known::kValues), "unknown");
}

TEST(Gradients, OfRowsOfAVariable) {
  Recording r;
  const NamedAttrs attrs = {{"dtype", DType::kFloat64},
                            {"shape", PartialShape({4, 2})},
                            {"shared_name", "gradients_test"}};
  const Value v = r.call("VarHandleOp", Values(), attrs);
  const Value initial[] = {v, r.input(filled(Shape({4, 2}), 1, 1))};
  r.emit("AssignVariableOp", initial, {});
  const Value rows =
      r.call("ResourceGather", {v, r.const_ints(DType::kInt32, std::vector<int64_t>{2, 0, 2})},
             {{"dtype", DType::kFloat64}});
  const Value y[] = {r.square(rows)};
  const Value x[] = {v};
  const Gradient g = r.gradients(y, x)[0];
  ASSERT_EQ(g.kind, Gradient::Kind::kSlices);
  const Tensor dense = r.tensor(r.densified(g));
  // d/dv sum(rows^2): 2v per use of a row; row 2 is used twice.
  const double wanted[] = {2, 4, 0, 0, 20, 24, 0, 0};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(dense.data<double>()[i], wanted[i]);
}

}  // namespace
}  // namespace treenail
