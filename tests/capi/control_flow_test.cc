// SPDX-License-Identifier: Apache-2.0
// Bodies of calls, branches and loops by the C ABI (tn_body_*, tn_graph_add_call, _if, _while) and
// by the C++ layer over it: what they capture, their gradients, graph files, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/capi/support.h"
#include "tests/support/temporary_directory.h"
#include "treenail/control_flow.hpp"

namespace capi_test {
namespace {

using tn::Output;
using tn::Values;

Output number(tn::Graph& g, double value) { return g.constant(tn::Tensor::scalar(value)); }
Output count(tn::Graph& g, int32_t value) { return g.constant(tn::Tensor::scalar(value)); }

// x, multiplied n times by w, which is of the graph around.
Output power(tn::Graph& g, Output x, Output w, Output n) {
  return tn::while_loop(
      g, {count(g, 0), x},
      [&](tn::Graph& in, const Values& v) {
        return Values{in.add("Less", {v[0], n})};
      },
      [&](tn::Graph& in, const Values& v) {
        return Values{in.add("Add", {v[0], count(in, 1)}), in.add("Mul", {v[1], w})};
      })[1];
}

double value_of(const tn::Graph& g, Output wanted, const tn::Session::Feeds& feeds) {
  return tn::Session(g).run(feeds, {wanted})[0].values<double>()[0];
}

class ControlFlow : public ::testing::Test {
 protected:
  tn::Graph g_;
  Output x_ = g_.placeholder(tn::DType::kFloat64, tn::Shape{}, "x");
  Output w_ = g_.placeholder(tn::DType::kFloat64, tn::Shape{}, "w");
  Output n_ = g_.placeholder(tn::DType::kInt32, tn::Shape{}, "n");
  tn::Session::Feeds at(double x, double w, int32_t n) const {
    return {{x_, tn::Tensor::scalar(x)}, {w_, tn::Tensor::scalar(w)}, {n_, tn::Tensor::scalar(n)}};
  }
};

TEST_F(ControlFlow, ALoopThatCaptures) {
  const Output y = power(g_, x_, w_, n_);
  EXPECT_EQ(y.operation().type(), "StatelessWhile");
  EXPECT_EQ(y.rank(), 0);
  EXPECT_EQ(value_of(g_, y, at(3, 2, 5)), 96);
  EXPECT_EQ(value_of(g_, y, at(3, 2, 0)), 3);
}

// d(x w^n): by x w^n / x, by w n x w^(n-1), and by w twice n (n-1) x w^(n-2).
TEST_F(ControlFlow, GradientsOfALoopOfAnyOrder) {
  const Output y = power(g_, x_, w_, n_);
  const std::vector<Output> first = g_.gradients({y}, {x_, w_});
  const Output second = g_.gradients({first[1]}, {w_})[0];
  EXPECT_DOUBLE_EQ(value_of(g_, first[0], at(3, 2, 5)), 32);
  EXPECT_DOUBLE_EQ(value_of(g_, first[1], at(3, 2, 5)), 5 * 3 * 16);
  EXPECT_DOUBLE_EQ(value_of(g_, second, at(3, 2, 5)), 5 * 4 * 3 * 8);
}

TEST_F(ControlFlow, BranchesAndTheirGradients) {
  const Output y = tn::cond(
      g_, g_.add("Less", {x_, w_}),
      [&](tn::Graph& in) {
        return Values{in.add("Mul", {x_, x_})};
      },
      [&](tn::Graph&) { return Values{w_}; })[0];  // a value of the graph around, as it is
  EXPECT_EQ(value_of(g_, y, at(3, 4, 0)), 9);
  EXPECT_EQ(value_of(g_, y, at(5, 4, 0)), 4);
  const std::vector<Output> slopes = g_.gradients({y}, {x_, w_});
  EXPECT_EQ(value_of(g_, slopes[0], at(3, 4, 0)), 6);
  EXPECT_EQ(value_of(g_, slopes[0], at(5, 4, 0)), 0);
  EXPECT_EQ(value_of(g_, slopes[1], at(5, 4, 0)), 1);
}

TEST_F(ControlFlow, ACallWithArguments) {
  const Values both = tn::call(g_, {x_, w_}, [](tn::Graph& in, const Values& v) {
    return Values{in.add("Sub", {v[0], v[1]}), in.add("Exp", {v[0]})};
  });
  EXPECT_EQ(value_of(g_, both[0], at(3, 2, 0)), 1);
  EXPECT_DOUBLE_EQ(value_of(g_, g_.gradients({both[1]}, {x_})[0], at(3, 2, 0)), std::exp(3));
}

// A loop in a branch in a loop; w and n are captured through all of them.
TEST_F(ControlFlow, BodiesInBodies) {
  const Output y = tn::while_loop(
      g_, {count(g_, 0), x_},
      [&](tn::Graph& in, const Values& v) {
        return Values{in.add("Less", {v[0], count(in, 2)})};
      },
      [&](tn::Graph& in, const Values& v) {
        const Output inner = tn::cond(
            in, in.add("Less", {v[0], count(in, 1)}),
            [&](tn::Graph& yes) { return Values{power(yes, v[1], w_, n_)}; },
            [&](tn::Graph& no) {
              return Values{no.add("Add", {v[1], w_})};
            })[0];
        return Values{in.add("Add", {v[0], count(in, 1)}), inner};
      })[1];
  EXPECT_EQ(value_of(g_, y, at(3, 2, 4)), 3 * 16 + 2);
  EXPECT_EQ(value_of(g_, g_.gradients({y}, {w_})[0], at(3, 2, 4)), 4 * 3 * 8 + 1);
}

TEST_F(ControlFlow, AGraphFileKeepsThem) {
  const treenail::test::TemporaryDirectory directory;
  const Output y = power(g_, x_, w_, n_);
  const Output slope = g_.gradients({y}, {w_})[0];
  const auto name_of = [](Output value) {
    return value.operation().name() + ":" + std::to_string(value.index());
  };
  const std::string path = std::string(directory.path()) + "/loop.tng";
  g_.save(path);
  const tn::Graph loaded = tn::Graph::load(path);
  const tn::Session::Feeds feeds{{loaded.output("x"), tn::Tensor::scalar(3.0)},
                                 {loaded.output("w"), tn::Tensor::scalar(2.0)},
                                 {loaded.output("n"), tn::Tensor::scalar<int32_t>(5)}};
  EXPECT_EQ(value_of(loaded, loaded.output(name_of(y)), feeds), 96);
  EXPECT_EQ(value_of(loaded, loaded.output(name_of(slope)), feeds), 240);
}

TEST_F(ControlFlow, AVariableInALoop) {
  const Output handle = g_.add(
      "VarHandleOp", {}, tn::Attrs().set("dtype", tn::DType::kFloat64).set_shape("shape", {}));
  const tn::Operation first = g_.add("AssignVariableOp", {handle, number(g_, 1)});
  const Values last = tn::while_loop(
      g_, {count(g_, 0)},
      [&](tn::Graph& in, const Values& v) {
        return Values{in.add("Less", {v[0], n_})};
      },
      [&](tn::Graph& in, const Values& v) {
        const tn::Operation added = in.add("AssignAddVariableOp", {handle, number(in, 2)});
        return Values{in.add("Add", {v[0], count(in, 1)}, {}, {"", "", {added}})};
      });
  EXPECT_EQ(last[0].operation().type(), "While");
  const Output read =
      g_.add("ReadVariableOp", {handle}, tn::Attrs().set("dtype", tn::DType::kFloat64));
  const tn::Session session(g_);
  session.run({}, {}, {first});
  session.run({{n_, tn::Tensor::scalar<int32_t>(3)}}, {last[0]});
  EXPECT_EQ(session.run({}, {read})[0].values<double>()[0], 7);
}

TEST_F(ControlFlow, AShapeThatChangesIsDeclared) {
  const Output v = g_.placeholder(tn::DType::kFloat64, {1}, "v");
  const auto grow = [&](const std::vector<tn::Shape>& shapes) {
    return tn::while_loop(
        g_, {count(g_, 0), v},
        [&](tn::Graph& in, const Values& a) {
          return Values{in.add("Less", {a[0], n_})};
        },
        [&](tn::Graph& in, const Values& a) {
          return Values{in.add("Add", {a[0], count(in, 1)}),
                        in.add("Concat", {tn::Input{a[1], a[1]}, count(in, 0)})};
        },
        shapes)[1];
  };
  const Output grown = grow({{}, {-1}});
  const tn::Session::Feeds feeds{{v, tn::Tensor::of({1.0})}, {n_, tn::Tensor::scalar<int32_t>(3)}};
  EXPECT_EQ(tn::Session(g_).run(feeds, {grown})[0].num_elements(), 8);
}

// ---- What is refused ----

class Refused : public ::testing::Test {
 protected:
  std::string body_of_one(tn_graph* around, tn_graph** body, const tn_output** argument) {
    *body = tn_body_new(around, "f", status_);
    *argument = tn_body_add_argument(*body, "a", TN_FLOAT32, nullptr, 0, status_);
    return status_.said();
  }
  Graph g_ = graph();
  Status status_;
  const tn_output* x_ = placeholder(g_, TN_FLOAT32, {});
};

using Body = Graph;

TEST_F(Refused, NoBody) {
  EXPECT_EQ(tn_body_new(nullptr, "f", status_), nullptr);
  EXPECT_EQ(status_.said(), "InvalidArgument: graph is NULL");
  EXPECT_EQ(tn_body_add_argument(g_.get(), "a", TN_FLOAT32, nullptr, 0, status_), nullptr);
  EXPECT_EQ(status_.said(), "InvalidArgument: body is no body: tn_body_new() makes one");
  EXPECT_EQ(tn_graph_add_call(g_.get(), nullptr, g_.get(), nullptr, 0, status_), nullptr);
  EXPECT_EQ(status_.said(), "InvalidArgument: f is no body: tn_body_new() makes one");
  EXPECT_EQ(tn_graph_add_while(g_.get(), nullptr, nullptr, nullptr, nullptr, 0, status_), nullptr);
  EXPECT_EQ(status_.said(), "InvalidArgument: cond is NULL");
  tn_body_set_results(g_.get(), &x_, 1, status_);
  EXPECT_EQ(status_.code(), TN_INVALID_ARGUMENT);
}

TEST_F(Refused, WrongArguments) {
  const Body f(tn_body_new(g_.get(), "f", status_));
  const int64_t negative = -2;
  EXPECT_EQ(tn_body_add_argument(f.get(), "a", 99, nullptr, 0, status_), nullptr);
  EXPECT_EQ(status_.code(), TN_INVALID_ARGUMENT);
  EXPECT_EQ(tn_body_add_argument(f.get(), "a", TN_FLOAT32, &negative, 1, status_), nullptr);
  EXPECT_EQ(status_.code(), TN_INVALID_ARGUMENT);
  tn_body_set_results(f.get(), nullptr, 3, status_);
  EXPECT_EQ(status_.said(), "InvalidArgument: results is NULL, its count 3");
  const tn_output* none = nullptr;
  tn_body_set_results(f.get(), &none, 1, status_);
  EXPECT_EQ(status_.said(), "InvalidArgument: results[0] is NULL");
}

TEST_F(Refused, AValueOfAGraphThatIsNoneAround) {
  const Graph other = graph();
  const tn_output* stranger = placeholder(other, TN_FLOAT32, {}, "stranger");
  const Body f(tn_body_new(g_.get(), "f", status_)), inner(tn_body_new(f.get(), "inner", status_));
  EXPECT_EQ(tn_body_capture(inner.get(), stranger, status_), nullptr);
  EXPECT_EQ(status_.said(),
            "InvalidArgument: the value \"stranger:0\" is of a graph that is none around \"f\"");
  std::string said;
  EXPECT_EQ(op(f, "Neg", {stranger}, nullptr, &said), nullptr);
  EXPECT_EQ(said.rfind("InvalidArgument: [Neg node \"Neg\"] the value \"stranger:0\"", 0), 0U)
      << said;
}

TEST_F(Refused, CalledTwiceOrFromElsewhere) {
  const Body f(tn_body_new(g_.get(), "f", status_)), inner(tn_body_new(f.get(), "inner", status_));
  EXPECT_EQ(tn_graph_add_call(g_.get(), nullptr, inner.get(), nullptr, 0, status_), nullptr);
  EXPECT_EQ(status_.said(), "InvalidArgument: f \"inner\" is no body of the graph that calls it");
  const tn_output* y = op(f, "Neg", {x_});
  tn_body_set_results(f.get(), &y, 1, status_);
  EXPECT_NE(tn_graph_add_call(g_.get(), nullptr, f.get(), nullptr, 0, status_), nullptr);
  EXPECT_EQ(tn_graph_add_call(g_.get(), nullptr, f.get(), nullptr, 0, status_), nullptr);
  EXPECT_EQ(status_.said(), "FailedPrecondition: f \"f\" was called before");
  std::string said;
  EXPECT_EQ(op(f, "Neg", {y}, nullptr, &said), nullptr);
  EXPECT_EQ(said.rfind("FailedPrecondition: ", 0), 0U) << said;
  EXPECT_EQ(tn_body_add_argument(f.get(), "late", TN_FLOAT32, nullptr, 0, status_), nullptr);
  EXPECT_EQ(status_.code(), TN_FAILED_PRECONDITION);
}

TEST_F(Refused, InputsThatAreNotTheArguments) {
  tn_graph* made = nullptr;
  const tn_output* a = nullptr;
  ASSERT_EQ(body_of_one(g_.get(), &made, &a), "Ok");
  const Body f(made);
  tn_body_set_results(f.get(), &a, 1, status_);
  EXPECT_EQ(tn_graph_add_call(g_.get(), nullptr, f.get(), nullptr, 0, status_), nullptr);
  EXPECT_EQ(status_.said(), "InvalidArgument: 0 inputs are given, 1 are needed, as of f");
  const tn_output* i = placeholder(g_, TN_INT32, {}, "i");
  EXPECT_EQ(tn_graph_add_call(g_.get(), nullptr, f.get(), &i, 1, status_), nullptr);
  EXPECT_EQ(status_.said(),
            "InvalidArgument: number 0 of the inputs is int32; needed is float32, as of f");
}

TEST_F(Refused, ResultsThatDoNotFit) {
  const auto body = [&](const tn_output* result, std::vector<const tn_output*> more = {}) {
    Body f(tn_body_new(g_.get(), "f", status_));
    if (result != nullptr) more.insert(more.begin(), result);
    tn_body_set_results(f.get(), more.data(), more.size(), status_);
    return f;
  };
  const tn_output* flag = placeholder(g_, TN_BOOL, {}, "flag");
  const tn_output* i = placeholder(g_, TN_INT32, {}, "i");
  const auto choose = [&](const Body& yes, const Body& no) {
    tn_graph_add_if(g_.get(), nullptr, flag, yes.get(), no.get(), nullptr, 0, status_);
    return status_.said();
  };
  EXPECT_EQ(choose(body(x_), body(i)),
            "InvalidArgument: number 0 of the results of else_branch is int32; needed is float32, "
            "as of then_branch");
  EXPECT_EQ(choose(body(x_), body(x_, {x_})),
            "InvalidArgument: 2 results of else_branch are given, 1 are needed, as of then_branch");
  const auto repeat = [&](const Body& goes_on, const Body& step) {
    tn_graph_add_while(g_.get(), nullptr, goes_on.get(), step.get(), nullptr, 0, status_);
    return status_.said();
  };
  EXPECT_EQ(repeat(body(x_), body(nullptr)),
            "InvalidArgument: number 0 of the results of cond is float32; needed is bool, as of a "
            "condition");
  EXPECT_EQ(repeat(body(flag), body(x_)),
            "InvalidArgument: 1 results of body are given, 0 are needed, as of its arguments");
}

TEST_F(Refused, ABodyMayBeDeletedAtAnyTime) {
  const tn_operation* call = nullptr;
  {
    const Body f(tn_body_new(g_.get(), "f", status_)), unused(tn_body_new(f.get(), "u", status_));
    const tn_output* y = op(f, "Neg", {x_});
    tn_body_set_results(f.get(), &y, 1, status_);
    call = tn_graph_add_call(g_.get(), "negated", f.get(), nullptr, 0, status_);
  }
  const Tensor value = tensor<float>(TN_FLOAT32, {3}, {});
  const Tensor result = fetch(g_, tn_operation_output(call, 0), status_, x_, value.get());
  ASSERT_EQ(status_.said(), "Ok");
  EXPECT_EQ(values<float>(result.get()), std::vector<float>{-3});
}

}  // namespace
}  // namespace capi_test
