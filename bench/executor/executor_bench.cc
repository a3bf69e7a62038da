// SPDX-License-Identifier: Apache-2.0
// What running a graph costs beside its kernels: chains and rows of tiny ops, from C++. Read by
// bench/figure_executor.py.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "framework/eager/execute.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/run/session.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

// Runs with one fed float and one fetched one, prepared as a training loop would.
void run_graph(benchmark::State& state, const test::GraphBuilder& b, Output x, Output y) {
  SessionOptions options;
  options.fuse_elementwise = false;
  Session session(b.graph, options);
  const auto signature = session.signature(std::vector{x}, std::vector{y}, {});
  const std::vector<Tensor> feeds = {test::floats({1.5F})};
  for (auto _ : state) {
    benchmark::DoNotOptimize(session.run(signature, feeds));
  }
}

void run_chain(benchmark::State& state) {
  test::GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {1}, "x");
  Output y = x;
  for (int64_t i = 0; i < state.range(0); ++i) y = b.op("Neg", {y});
  run_graph(state, b, x, y);
}
BENCHMARK(run_chain)->Arg(1)->Arg(1000);

// Nodes that depend on nothing but the feed, and one that takes them all.
void run_wide(benchmark::State& state) {
  test::GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {1}, "x");
  std::vector<Output> row;
  for (int64_t i = 0; i < state.range(0); ++i) {
    const Output factor = b.constant(test::floats({static_cast<float>(i)}));
    row.push_back(b.op("Mul", {x, factor}));
  }
  run_graph(state, b, x, b.op("AddN", row));
}
BENCHMARK(run_wide)->Arg(1)->Arg(1000);

void execute_one(benchmark::State& state) {
  const OpDef& neg = OpRegistry::instance().get("Neg");
  const std::vector<Tensor> inputs = {test::floats({1.5F})};
  for (auto _ : state) benchmark::DoNotOptimize(execute(neg, inputs));
}
BENCHMARK(execute_one)->Name("execute");

}  // namespace
}  // namespace treenail

BENCHMARK_MAIN();
