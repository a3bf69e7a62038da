// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/runtime/run/session.h"
#include "tests/support/expect_error.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

using test::floats;
using test::GraphBuilder;
using testing::error_of;

float first(const Tensor& t) { return t.data<float>()[0]; }

class PartialRun : public ::testing::Test {
 protected:
  // a, b, c fed; ab = a + b, abc = ab * c; both add to the variable `total` when they run.
  PartialRun() {
    for (const char* name : {"a", "b", "c"}) b.placeholder(DType::kFloat32, {kUnknown}, name);
    const auto at = [&](const char* name) { return b.graph->find_output(name); };
    b.op("Add", {at("a"), at("b")}, {}, "ab");
    b.op("Mul", {at("ab"), at("c")}, {}, "abc");
  }
  Output out(const char* name) { return b.graph->find_output(name); }
  std::shared_ptr<Session::Signature> all(Session& session) {
    const Output feeds[] = {out("a"), out("b"), out("c")}, fetches[] = {out("ab"), out("abc")};
    return session.signature(feeds, fetches, {});
  }

  GraphBuilder b;
};

TEST_F(PartialRun, GivesWhatIsFedSoFar) {
  Session session(b.graph);
  for (int round = 0; round < 3; ++round) {
    const std::string run = session.partial_run_setup(all(session));
    const std::vector<Tensor> sum = session.partial_run(
        run, {{{out("a"), floats({1})}, {out("b"), floats({2})}}, {out("ab")}, {}});
    EXPECT_EQ(first(sum[0]), 3);
    const std::vector<Tensor> product =
        session.partial_run(run, {{{out("c"), floats({first(sum[0]) * 5})}}, {out("abc")}, {}});
    EXPECT_EQ(first(product[0]), 45);
    EXPECT_EQ(first(sum[0]), 3);
    EXPECT_NE(error_of([&] { session.partial_run(run, {}); }).find("has ended"), std::string::npos);
  }
}

TEST_F(PartialRun, ComputesEachNodeOnce) {
  const Output v = b.variable(DType::kFloat32, {1}, "v");
  Node& add = b.node("AssignAddVariableOp", {v, out("ab")}, {}, "add");
  Session session(b.graph);
  b.node("AssignVariableOp", {v, b.constant(floats({0}))}, {}, "init");
  b.read(v, DType::kFloat32, "read");
  session.run({}, {}, {"init"});
  const Output feeds[] = {out("a"), out("b"), out("c")}, fetches[] = {out("abc")};
  Node* const targets[] = {&add};
  const std::string run = session.partial_run_setup(session.signature(feeds, fetches, targets));
  session.partial_run(run, {{{out("a"), floats({1})}}, {}, {}});
  session.partial_run(run, {{{out("b"), floats({2})}}, {}, {&add}});
  EXPECT_EQ(first(session.run({}, {"read"})[0]), 3);
  session.partial_run(run, {{{out("c"), floats({2})}}, {out("abc")}, {}});
  EXPECT_EQ(first(session.run({}, {"read"})[0]), 3);
}

TEST_F(PartialRun, RefusesWhatCannotBeComputedYetAndGoesOn) {
  Session session(b.graph);
  const std::string run = session.partial_run_setup(all(session));
  const auto part = [&](Session::Part p) { return error_of([&] { session.partial_run(run, p); }); };
  const auto contains = [](const std::string& text, const char* what) {
    EXPECT_NE(text.find(what), std::string::npos) << text;
    EXPECT_EQ(text.find("InvalidArgument"), 0u) << text;
  };
  contains(part({{{out("a"), floats({1})}}, {out("ab")}, {}}), "it needs \"b:0\"");
  contains(part({{}, {out("abc")}, {}}), "it needs \"a:0\"");
  contains(part({{{out("ab"), floats({1})}}, {}, {}}), "was not named in partial_run_setup");
  contains(part({{}, {out("a")}, {}}), "was not named in partial_run_setup");
  contains(part({{{out("a"), Tensor::scalar(1.0f)}}, {}, {}}), "Cannot feed");
  contains(part({{{out("a"), floats({1})}, {out("a"), floats({1})}}, {}, {}}),
           "in an earlier part");
  session.partial_run(run, {{{out("a"), floats({1})}, {out("b"), floats({2})}}, {}, {}});
  contains(part({{{out("a"), floats({1})}}, {}, {}}), "in an earlier part");
  EXPECT_EQ(first(session.partial_run(run, {{}, {out("ab")}, {}})[0]), 3);
  contains(part({{}, {out("ab")}, {}}), "in an earlier part");
  contains(error_of([&] { session.partial_run("nothing", {}); }), "\"nothing\"");
  Session other(b.graph);
  contains(error_of([&] { other.partial_run(run, {}); }), "no partial run");
}

TEST_F(PartialRun, AnErrorEndsIt) {
  Session session(b.graph);
  const std::string run = session.partial_run_setup(all(session));
  const std::string error = error_of([&] {
    session.partial_run(
        run, {{{out("a"), floats({1, 2})}, {out("b"), floats({1, 2, 3})}}, {out("ab")}, {}});
  });
  EXPECT_NE(error.find("[Add node \"ab\"]"), std::string::npos) << error;
  EXPECT_NE(error_of([&] { session.partial_run(run, {}); }).find("has ended"), std::string::npos);
}

TEST_F(PartialRun, AnAbandonedOneEndsWithTheSession) {
  Session session(b.graph);
  const std::string run = session.partial_run_setup(all(session));
  session.partial_run(run, {{{out("a"), floats({1})}}, {}, {}});
  for (int i = 0; i < 100; ++i) session.partial_run_setup(all(session));
  session.close();
  EXPECT_NE(error_of([&] { session.partial_run(run, {}); }).find("closed"), std::string::npos);
}

TEST_F(PartialRun, AFeedMayBeFetchedAndOneBeNeededByNothing) {
  b.placeholder(DType::kFloat32, {1}, "unused");
  Session session(b.graph);
  const Output feeds[] = {out("a"), out("unused")}, fetches[] = {out("a")};
  const std::string run = session.partial_run_setup(session.signature(feeds, fetches, {}));
  EXPECT_NE(error_of([&] {
              session.partial_run(run, {{}, {out("a")}, {}});
            }).find("it needs"),
            std::string::npos);
  EXPECT_EQ(first(session.partial_run(run, {{{out("a"), floats({9})}}, {out("a")}, {}})[0]), 9);
  session.partial_run(run, {{{out("unused"), floats({1})}}, {}, {}});
  EXPECT_NE(error_of([&] { session.partial_run(run, {}); }).find("has ended"), std::string::npos);
}

}  // namespace
}  // namespace treenail
