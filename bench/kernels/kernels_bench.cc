// SPDX-License-Identifier: Apache-2.0
// Speed of the heavy kernels, shape by shape: GFLOP/s of the direct method for products and
// convolutions (so an algorithm of fewer multiplications may pass the machine's peak), GB/s for
// what moves memory. Products run one behind the other in a graph, the others by immediate
// execution, which adds a microsecond. Arguments of a benchmark: threads. TREENAIL_CPU_ISA picks
// the level, which the context line names.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/kernels/fused_bench.h"
#include "framework/base/text.h"
#include "framework/base/thread_pool.h"
#include "framework/eager/execute.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/kernel/kernel_library.h"
#include "framework/runtime/run/session.h"
#include "framework/tensor/tensor.h"
#include "tests/support/graph_builder.h"

namespace treenail {
namespace {

Tensor random_tensor(const Shape& shape) {
  Tensor t(DType::kFloat32, shape);
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> number(-1, 1);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.data<float>()[i] = number(engine);
  return t;
}

struct Measured {
  std::string name, op;
  std::vector<Tensor> inputs;
  NamedAttrs attrs;
  double flops = 0, bytes = 0;
};

void measure(benchmark::State& state, const Measured& m) {
  ThreadPool::instance().set_num_threads(static_cast<int>(state.range(0)));
  std::vector<DType> types;
  for (const Tensor& input : m.inputs) types.push_back(input.dtype());
  const OpInstance op = resolve_op(OpRegistry::instance().get(m.op), types, m.attrs);
  for (auto _ : state) benchmark::DoNotOptimize(execute(op, m.inputs));
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  if (m.flops > 0) state.counters["GFLOP/s"] = benchmark::Counter(m.flops * 1e-9, rate);
  if (m.bytes > 0) state.counters["GB/s"] = benchmark::Counter(m.bytes * 1e-9, rate);
}

template <class F>
void add(const std::string& name, F&& f) {
  auto* bench = benchmark::RegisterBenchmark(name.c_str(), std::forward<F>(f));
  bench->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMicrosecond);
}

void add(const Measured& m) {
  add(m.name, [m](benchmark::State& s) { measure(s, m); });
}

struct Product {
  int64_t m, n, k;
  bool trans_a = false, trans_b = false;
  bool constant = false;  // B: packed once
};

void measure_product(benchmark::State& state, const Product& p) {
  ThreadPool::instance().set_num_threads(static_cast<int>(state.range(0)));
  const double flops = 2.0 * static_cast<double>(p.m * p.n * p.k);
  const int64_t count = std::clamp<int64_t>(static_cast<int64_t>(1e8 / flops), 1, 64);
  const std::vector<Tensor> values = {random_tensor(p.trans_a ? Shape{p.k, p.m} : Shape{p.m, p.k}),
                                      random_tensor(p.trans_b ? Shape{p.n, p.k} : Shape{p.k, p.n})};
  test::GraphBuilder b;
  std::vector<Output> feeds, operands;
  for (size_t i = 0; i < 2; ++i) {
    const bool constant = i == 1 && p.constant;
    operands.push_back(constant
                           ? b.constant(values[i])
                           : b.placeholder(DType::kFloat32, values[i].shape(), i == 0 ? "a" : "b"));
    if (!constant) feeds.push_back(operands[i]);
  }
  Node* last = nullptr;
  for (int64_t i = 0; i < count; ++i) {
    last = &b.node("MatMul", operands, {{"transpose_a", p.trans_a}, {"transpose_b", p.trans_b}}, {},
                   last == nullptr ? std::vector<Node*>{} : std::vector<Node*>{last});
  }
  Session session(b.graph);
  const auto signature = session.signature(feeds, std::vector{Output{last, 0}}, {});
  const std::vector<Tensor> fed(values.begin(),
                                values.begin() + static_cast<int64_t>(feeds.size()));
  session.run(signature, fed);  // compiles, and meets memory for the first time
  while (state.KeepRunningBatch(count)) benchmark::DoNotOptimize(session.run(signature, fed));
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void product(const Product& p) {
  const std::string name =
      concat("MatMul/", p.m, "x", p.n, "x", p.k, p.trans_a ? "/a_transposed" : "",
             p.trans_b ? "/b_transposed" : "", p.constant ? "/b_kept" : "");
  add(name, [p](benchmark::State& s) { measure_product(s, p); });
}

struct Convolution {
  int64_t batch, side, channels, filters, taps, stride;
  const char* padding;
};

Tensor int32_vector(const Shape& shape) {
  Tensor t(DType::kInt32, Shape{shape.rank()});
  for (int i = 0; i < shape.rank(); ++i) t.data<int32_t>()[i] = static_cast<int32_t>(shape.dim(i));
  return t;
}

void convolution(const Convolution& c, bool depthwise) {
  const Shape image = {c.batch, c.side, c.side, c.channels};
  const Shape filter = {c.taps, c.taps, c.channels, c.filters};
  const std::string forward = depthwise ? "DepthwiseConv2dNative" : "Conv2D";
  Measured x;
  x.attrs = {{"strides", std::vector<int64_t>{1, c.stride, c.stride, 1}}, {"padding", c.padding}};
  x.inputs = {random_tensor(image), random_tensor(filter)};
  const Tensor out = execute(forward, x.inputs, x.attrs)[0];
  const std::string shape =
      concat("/", c.batch, "x", c.side, "x", c.side, "x", c.channels, "/", c.taps, "x", c.taps, "x",
             c.filters, "/", c.padding, "/stride_", c.stride);
  x.flops = 2.0 * static_cast<double>(out.num_elements() * c.taps * c.taps) *
            static_cast<double>(depthwise ? 1 : c.channels);
  x.op = forward;
  x.name = forward + shape;
  add(x);
  const Tensor gradient = random_tensor(out.shape());
  x.op = forward + "BackpropInput";
  x.name = x.op + shape;
  Measured to_input = x;
  to_input.inputs = {int32_vector(image), x.inputs[1], gradient};
  add(std::move(to_input));
  x.op = forward + "BackpropFilter";
  x.name = x.op + shape;
  x.inputs = {x.inputs[0], int32_vector(filter), gradient};
  add(std::move(x));
}

// An op bound by memory: bytes are those of inputs and outputs.
void streaming(const std::string& op, std::vector<Tensor> inputs, NamedAttrs attrs = {}) {
  Measured x;
  x.op = op;
  x.inputs = std::move(inputs);
  x.attrs = std::move(attrs);
  x.name = op;
  for (const Tensor& input : x.inputs) x.bytes += static_cast<double>(input.bytes());
  for (const Tensor& output : execute(op, x.inputs, x.attrs))
    x.bytes += static_cast<double>(output.bytes());
  x.name += concat("/", x.inputs[0].shape());
  add(std::move(x));
}

#if defined(__x86_64__)
// The machine's own limit: independent fused multiply-adds on registers of so many bits and nothing
// else, as many chains as hide their latency. On zeros: the time does not depend on normal numbers.
#define TN_ZERO(n) "vxorps %%xmm" #n ", %%xmm" #n ", %%xmm" #n "\n"
#define TN_CHAIN_256(n) "vfmadd231ps %%ymm12, %%ymm13, %%ymm" #n "\n"
#define TN_CHAIN_512(n) "vfmadd231ps %%zmm12, %%zmm13, %%zmm" #n "\n"
#define TN_TWELVE(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)
#define TN_CHAINS(chain)                                                                           \
  asm volatile(TN_TWELVE(TN_ZERO) TN_ZERO(12) TN_ZERO(13) "1:\n" TN_TWELVE(chain) "dec %0\njnz 1b" \
               : "+r"(steps)                                                                       \
               :                                                                                   \
               : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",     \
                 "xmm9", "xmm10", "xmm11", "xmm12", "xmm13")
template <int kBits>
void fma_peak(benchmark::State& state) {
  constexpr int kChains = 12, kSteps = 1000;
  for (auto _ : state) {
    int steps = kSteps;
    if constexpr (kBits == 512) {
      TN_CHAINS(TN_CHAIN_512);
    } else {
      TN_CHAINS(TN_CHAIN_256);
    }
  }
  state.counters["GFLOP/s"] = benchmark::Counter(2e-9 / 32 * kBits * kChains * kSteps,
                                                 benchmark::Counter::kIsIterationInvariantRate);
}
#undef TN_CHAINS
#undef TN_TWELVE
#undef TN_CHAIN_512
#undef TN_CHAIN_256
#undef TN_ZERO

template <int kBits>
void register_peak() {
  const std::string name = concat("Peak/fused_multiply_add/", kBits, "_bits");
  benchmark::RegisterBenchmark(name.c_str(), fma_peak<kBits>)
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}
#endif

void register_all() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) register_peak<256>();
  if (__builtin_cpu_supports("avx512f")) register_peak<512>();
#endif
  // The products of an MLP 784-512-512-10 at batch 64, of a dense layer behind a convolution, and
  // square ones.
  for (const auto& [n, k] :
       {std::pair<int64_t, int64_t>{512, 784}, {512, 512}, {10, 512}, {1024, 3136}}) {
    product({64, n, k});
    product({64, k, n, false, true});
    product({k, n, 64, true, false});
  }
  product({64, 512, 784, false, false, true});
  product({1, 512, 784});
  product({1, 512, 784, false, true});
  // Few elements of the result and a long inner axis; a batch of tiny ones.
  for (const int64_t side : {1, 2, 16}) product({side, side, 1000000});
  for (const int64_t side : {1, 4}) {
    streaming("BatchMatMul", {random_tensor({100000, side, 8}), random_tensor({100000, 8, side})});
  }
  for (const int64_t side : {32, 64, 128, 256, 512, 1024, 2048}) product({side, side, side});

  const Convolution convolutions[] = {
      {64, 28, 1, 32, 5, 1, "SAME"},   {64, 14, 32, 64, 5, 1, "SAME"},
      {64, 28, 1, 6, 5, 1, "SAME"},    {64, 14, 6, 16, 5, 1, "VALID"},
      {8, 56, 64, 64, 3, 1, "SAME"},   {8, 28, 128, 128, 3, 1, "SAME"},
      {8, 14, 256, 256, 3, 1, "SAME"}, {8, 7, 512, 512, 3, 1, "SAME"},
      {8, 56, 64, 128, 3, 2, "SAME"},  {8, 28, 128, 512, 1, 1, "SAME"},
      {2, 224, 3, 64, 7, 2, "SAME"},
  };
  for (const Convolution& c : convolutions) convolution(c, false);
  convolution({8, 56, 64, 1, 3, 1, "SAME"}, true);

  const Tensor image = random_tensor({64, 28, 28, 32}), channels = random_tensor({32});
  Tensor ones(DType::kFloat32, Shape{32});
  for (int i = 0; i < 32; ++i) ones.data<float>()[i] = 1;
  const NamedAttrs window = {{"ksize", std::vector<int64_t>{1, 2, 2, 1}},
                             {"strides", std::vector<int64_t>{1, 2, 2, 1}},
                             {"padding", "SAME"}};
  const Tensor pooled = execute("MaxPool", std::vector<Tensor>{image}, window)[0];
  streaming("MaxPool", {image}, window);
  streaming("MaxPoolGrad", {image, pooled, pooled}, window);
  streaming("AvgPool", {image}, window);
  streaming("BiasAdd", {image, channels});
  streaming("BiasAddGrad", {image});
  streaming("FusedBatchNorm", {image, channels, channels, channels, channels});
  streaming("FusedBatchNormGrad", {image, image, channels, channels, ones});
  streaming("LRN", {image});
  for (const char* op : {"Exp", "Tanh", "Gelu"}) streaming(op, {random_tensor({1 << 16})});
  streaming("Softmax", {random_tensor({1024, 1024})});
  streaming("LogSoftmax", {random_tensor({1024, 1024})});
  streaming("SoftmaxCrossEntropyWithLogits",
            {random_tensor({1024, 1024}), random_tensor({1024, 1024})});
}

}  // namespace
}  // namespace treenail

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::AddCustomContext("kernels", std::string(treenail::kernel_level_in_use()));
  treenail::register_all();
  treenail::register_fused_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
}
