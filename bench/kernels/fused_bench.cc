// SPDX-License-Identifier: Apache-2.0
// Groups of element-wise ops that run as one kernel: on 16 M elements, which are more than the
// caches hold, and on 16 K, time and time again. Beside them loops that read and write as many
// streams, past the caches: what the machine's memory permits.
#include "bench/kernels/fused_bench.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/text.h"
#include "framework/base/thread_pool.h"
#include "framework/runtime/run/session.h"
#include "framework/tensor/tensor.h"
#include "tests/support/graph_builder.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace treenail {
namespace {

constexpr int64_t kLarge = int64_t{1} << 24, kSmall = int64_t{1} << 14;

struct Graphs {
  test::GraphBuilder b;
  std::vector<Output> feeds;
  std::vector<Tensor> values;
  DType dtype;
  int64_t elements;
  int64_t row_elements;

  Output input(const Shape& shape) {
    Tensor value(dtype, shape);
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      const int64_t number = i * 7919 % 2001 - 1000;
      if (dtype == DType::kInt32) {
        value.data<int32_t>()[i] = static_cast<int32_t>(number);
      } else {
        value.data<float>()[i] = static_cast<float>(number) * 0.002f;
      }
    }
    feeds.push_back(b.placeholder(dtype, shape, concat("input", feeds.size())));
    values.push_back(std::move(value));
    return feeds.back();
  }
  Output whole() { return input({elements / row_elements, row_elements}); }
  Output row() { return input({row_elements}); }
  Output number(float x) { return b.constant(Tensor::scalar(x)); }
  Output number(int32_t x) { return b.constant(Tensor::scalar(x)); }
  Output op(const char* name, std::vector<Output> inputs) { return b.op(name, std::move(inputs)); }
};

Output add(Graphs& g) { return g.op("Add", {g.whole(), g.whole()}); }
Output chain(Graphs& g) {
  const Output x = g.whole();
  Output y = g.op("Add", {g.op("Mul", {x, g.number(1.1f)}), g.number(0.5f)});
  y = g.op("Add", {g.op("Mul", {g.op("Relu", {y}), g.number(0.9f)}), x});
  return g.op("Mul", {g.op("Tanh", {g.op("Sub", {y, g.number(0.3f)})}), g.number(2.0f)});
}
Output choice(Graphs& g) {
  const Output x = g.whole(), y = g.whole();
  const Output e = g.op("Exp", {g.op("Mul", {x, g.number(0.5f)})});
  const Output t = g.op("Add", {g.op("Mul", {y, y}), g.number(1.0f)});
  return g.op("Select", {g.op("Greater", {e, g.number(1.0f)}), g.op("Add", {t, e}), y});
}
Output bias(Graphs& g) {
  return g.op("Relu", {g.op("Add", {g.op("Mul", {g.whole(), g.row()}), g.row()})});
}
Output halves(Graphs& g) {
  const auto cast = [&](Output x, DType to) { return g.b.op("Cast", {x}, {{"DstT", to}}); };
  const auto half = [&](float x) { return cast(g.number(x), DType::kBFloat16); };
  Output y = g.op("Mul", {cast(g.whole(), DType::kBFloat16), half(1.5f)});
  return cast(g.op("Relu", {g.op("Add", {y, half(0.5f)})}), DType::kFloat32);
}
Output integers(Graphs& g) {
  const Output x = g.whole();
  const Output y = g.op("Add", {g.op("Mul", {x, g.number(int32_t{3})}), g.number(int32_t{7})});
  return g.op("Maximum", {y, g.op("Sub", {x, g.number(int32_t{5})})});
}
Output gelu(Graphs& g) {
  const Output x = g.whole();
  const Output erf = g.op("Erf", {g.op("Mul", {x, g.number(0.70710678f)})});
  return g.op("Mul", {g.op("Mul", {x, g.number(0.5f)}), g.op("Add", {g.number(1.0f), erf})});
}
Output reduced(Graphs& g, const char* name, Output x) {
  return g.b.op(name, {x, g.number(int32_t{-1})}, {{"keep_dims", true}});
}
Output softmax(Graphs& g) {
  const Output x = g.whole();
  const Output e = g.op("Exp", {g.op("Sub", {x, reduced(g, "Max", x)})});
  return g.op("Div", {e, reduced(g, "Sum", e)});
}
Output layer_norm(Graphs& g) {
  const Output x = g.whole();
  const Output d = g.op("Sub", {x, reduced(g, "Mean", x)});
  const Output variance = reduced(g, "Mean", g.op("Square", {d}));
  const Output scale = g.op("Rsqrt", {g.op("Add", {variance, g.number(1e-5f)})});
  return g.op("Add", {g.op("Mul", {g.op("Mul", {d, scale}), g.row()}), g.row()});
}

struct Group {
  const char* name;
  Output (*build)(Graphs&);
  DType dtype = DType::kFloat32;
  int64_t row_elements = 1024;
};

void run_group(benchmark::State& state, const Group& group, int64_t elements) {
  ThreadPool::instance().set_num_threads(static_cast<int>(state.range(0)));
  Graphs g;
  g.dtype = group.dtype;
  g.elements = elements;
  g.row_elements = group.row_elements;
  const Output result = group.build(g);
  Session session(g.b.graph);
  const auto signature = session.signature(g.feeds, std::vector{result}, {});
  for (auto _ : state) benchmark::DoNotOptimize(session.run(signature, g.values));
}

// y = a, or a + b, past the caches.
void stream(float* y, const float* a, const float* b, int64_t n) {
#if defined(__SSE2__)
  for (int64_t i = 0; i < n; i += 4) {
    const __m128 x = _mm_loadu_ps(a + i);
    _mm_stream_ps(y + i, b == nullptr ? x : _mm_add_ps(x, _mm_loadu_ps(b + i)));
  }
  _mm_sfence();
#else
  for (int64_t i = 0; i < n; ++i) y[i] = b == nullptr ? a[i] : a[i] + b[i];
#endif
}

constexpr int64_t kPiece = 1 << 16;

void run_loop(benchmark::State& state, bool two) {
  ThreadPool::instance().set_num_threads(static_cast<int>(state.range(0)));
  Tensor a(DType::kFloat32, {kLarge}), b(DType::kFloat32, {kLarge}), y(DType::kFloat32, {kLarge});
  for (Tensor* t : {&a, &b, &y}) std::fill_n(t->data<float>(), kLarge, 1.0f);
  for (auto _ : state) {
    const auto piece = [&](int64_t chunk) {
      const int64_t begin = chunk * kPiece;
      stream(y.data<float>() + begin, a.data<float>() + begin,
             two ? b.data<float>() + begin : nullptr, kPiece);
    };
    ThreadPool::instance().run_chunks(kLarge / kPiece, piece, 1e7);
  }
}

template <class F>
void add_benchmark(const std::string& name, F&& f) {
  auto* bench = benchmark::RegisterBenchmark(name.c_str(), std::forward<F>(f));
  bench->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMicrosecond);
}

}  // namespace

void register_fused_benchmarks() {
  for (const bool two : {false, true}) {
    add_benchmark(two ? "Streams/3" : "Streams/2",
                  [two](benchmark::State& s) { run_loop(s, two); });
  }
  const Group groups[] = {{"add", add},
                          {"chain", chain},
                          {"choice", choice},
                          {"bias", bias},
                          {"halves", halves},
                          {"integers", integers, DType::kInt32},
                          {"gelu", gelu},
                          {"softmax_1000", softmax, DType::kFloat32, 1000},
                          {"softmax_1001", softmax, DType::kFloat32, 1001},
                          {"layer_norm_1000", layer_norm, DType::kFloat32, 1000},
                          {"layer_norm_1001", layer_norm, DType::kFloat32, 1001}};
  for (const Group& group : groups) {
    for (const int64_t n : {kLarge, kSmall}) {
      add_benchmark(concat("Fused/", group.name, "/", n),
                    [group, n](benchmark::State& s) { run_group(s, group, n); });
    }
  }
}

}  // namespace treenail
