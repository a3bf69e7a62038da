// SPDX-License-Identifier: Apache-2.0
// MatMul and BatchMatMul on floating dtypes: cutting into pieces, BLAS or our own product, 16-bit
// operands by way of float. Integers and complex: matmul_plain.cc. The product itself: gemm.cc.
#include <algorithm>
#include <cstdint>
#include <memory>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/elementwise/half_tiles.h"
#include "kernels/cpu/products/batch_product.h"
#include "kernels/cpu/products/deep_product.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/products/matmul.h"
#include "kernels/cpu/products/micro_kernel.h"
#include "kernels/cpu/products/pooled_product.h"
#include "kernels/cpu/products/tiny_product.h"
#include "kernels/cpu/simd/aligned.h"
#include "kernels/host/fusion/block_kernel.h"

namespace treenail::cpu {
namespace {

// How the products of a batch are shared out: blocks of one product, or several small products per
// piece.
struct Pieces : PooledProduct {
  int64_t products = 1;  // per piece, when a product is one block
  bool tiny = false;     // a block is a few multiply-adds
  DepthCut depth;        // of a single block

  explicit Pieces(const BatchProduct& g) : PooledProduct(g.m, g.n, g.k, g.trans_a) {
    tiny = api == nullptr && is_tiny(g);
    if (tiny) {
      constexpr int64_t kPieceElements = 1 << 16;
      products = kPieceElements / (g.a_elements() + g.b_elements() + g.c_elements());
    } else if (cut.blocks() == 1) {
      constexpr double kPieceWork = 1 << 20;
      const double one =
          std::max(1.0, g.work() / static_cast<double>(std::max<int64_t>(1, g.batch)));
      products = static_cast<int64_t>(std::clamp(kPieceWork / one, 1.0, 65536.0));
    }
    if (api == nullptr && g.batch == 1 && cut.blocks() == 1) depth = DepthCut(g.m, g.n, g.k);
  }

  template <class T>
  double cost_ns(const BatchProduct& g) const {
    if (tiny) return static_cast<double>(g.batch) + 0.2 * g.work();
    return static_cast<double>(g.batch) * product_cost_ns<T>(g.m, g.n, g.k);
  }
};

// Blocks of a product for an epilogue. Those of the cut may be larger than what is kept on the
// stack and in the cache; bits do not depend on it.
template <class T>
void push_blocks(const RunContext& c, const BatchProduct& g, const Pieces& pieces, double cost,
                 const T* a, const T* b, const host::Epilogue& epilogue) {
  constexpr int64_t kMostElements = (192 << 10) / sizeof(T), kMostRows = 384;
  const BlockCut& cut = pieces.cut;
  c.run_chunks(cut.blocks(), cost, [&](int64_t block) {
    alignas(64) T results[kMostElements];
    const int64_t top = block / cut.column_blocks * cut.rows;
    const int64_t left = block % cut.column_blocks * cut.columns;
    const int64_t bottom = std::min(g.m, top + cut.rows);
    const int64_t right = std::min(g.n, left + cut.columns);
    for (int64_t m0 = top; m0 < bottom; m0 += kMostRows) {
      const int64_t m1 = std::min(bottom, m0 + kMostRows);
      const int64_t most = kMostElements / (m1 - m0) / kMicroColumns<T> * kMicroColumns<T>;
      for (int64_t n0 = left; n0 < right; n0 += most) {
        const int64_t n1 = std::min(right, n0 + most);
        Product<T> p = g.product<T>(a, b, results, 0);
        p.ldc = n1 - n0;
        p.c_row = m0;
        p.c_column = n0;
        multiply_block(p, m0, m1, n0, n1);
        epilogue({m0 * g.n + n0, n1 - n0, m1 - m0, g.n}, results);
      }
    }
  });
}

template <class T>
void multiply_batch(const RunContext& c, const BatchProduct& g, const Pieces& pieces, double cost,
                    const T* a, const T* b, const T* packed_b, T* out) {
  const BlasScope scope(pieces.api);
  const BlockCut& cut = pieces.cut;
  const auto product = [&](int64_t i) {
    Product<T> p = g.product(a, b, out, i);
    p.packed_b = packed_b;
    return p;
  };
  if (cut.blocks() == 1) {
    const int64_t chunks = (g.batch + pieces.products - 1) / pieces.products;
    c.run_chunks(chunks, cost, [&](int64_t chunk) {
      const int64_t end = std::min(g.batch, (chunk + 1) * pieces.products);
      const int64_t first = chunk * pieces.products;
      if (pieces.tiny) {
        multiply_tiny(g, first, end, a, b, out);
      } else {
        for (int64_t i = first; i < end; ++i) pieces.multiply(product(i), 0);
      }
    });
    return;
  }
  c.run_chunks(g.batch * cut.blocks(), cost, [&](int64_t chunk) {
    const int64_t i = chunk / cut.blocks(), block = chunk % cut.blocks();
    pieces.multiply(product(i), block);
  });
}

template <class T>
size_t packed_b_bytes(const BatchProduct& g) {
  return static_cast<size_t>(packed_b_elements(g.n, g.k)) * sizeof(T);
}

// The right operand packed once, where it is a weight that stays: our own products of several rows.
template <class T>
const T* kept_b(const RunContext& c, const BatchProduct& g, const Pieces& pieces) {
  static const char maker = 0;
  constexpr int64_t kWorthIt = 4096;  // elements
  if (pieces.api != nullptr || !g.same_b || g.m <= kMicroRows || g.n == 1 ||
      g.b_elements() < kWorthIt) {
    return nullptr;
  }
  const PackKey key = {&maker, {g.n, g.k, g.trans_b, sizeof(T)}};
  return reinterpret_cast<const T*>(c.prepacked(1, key, packed_b_bytes<T>(g), [&](std::byte* to) {
    pack_b(g.product<T>(nullptr, c.input(1).data<T>(), nullptr, 0), 0, g.n,
           reinterpret_cast<T*>(to));
  }));
}

// The scratch memory to pack a right operand in, once for all blocks of rows: 0 unless it is too
// large to stay in a cache from one of them to the next.
template <class T>
size_t bytes_to_pack_b(const BatchProduct& g, const Pieces& pieces) {
  constexpr size_t kLeast = 8 << 20;
  const size_t bytes = packed_b_bytes<T>(g);
  const bool often = pieces.cut.row_blocks > 2 && g.batch == 1 && pieces.api == nullptr;
  return often && bytes >= kLeast ? bytes : 0;
}

// The right operand in that memory, by all threads.
template <class T>
const T* packed_in_scratch(RunContext& c, const BatchProduct& g, const T* b) {
  T* const to = reinterpret_cast<T*>(c.scratch());
  const int64_t panels = (g.n + kMicroColumns<T> - 1) / kMicroColumns<T>;
  const double cost_of_panel = 0.3 * static_cast<double>(g.k * kMicroColumns<T>);
  c.parallel_for(panels, 4, cost_of_panel, [&](int64_t begin, int64_t end) {
    pack_b(g.product<T>(nullptr, b, nullptr, 0), begin * kMicroColumns<T>,
           std::min(g.n, end * kMicroColumns<T>), to);
  });
  return to;
}

template <class T>
std::unique_ptr<Kernel> deep_kernel(const BatchProduct& g, const DepthCut& cut, double cost) {
  return make_kernel(
      [g, cut, cost](RunContext& c) {
        const Product<T> p =
            g.product<T>(c.input(0).data<T>(), c.input(1).data<T>(), c.output(0).data<T>(), 0);
        multiply_deep(c, p, cut, cost, reinterpret_cast<T*>(c.scratch()));
      },
      cost, static_cast<size_t>(cut.pieces * g.c_elements()) * sizeof(T));
}

template <class T>
class FloatProduct final : public host::BlockKernel {
 public:
  FloatProduct(const BatchProduct& g, const Pieces& pieces) : g_(g), pieces_(pieces) {
    cost_ns = pieces.cost_ns<T>(g);
    scratch_bytes = bytes_to_pack_b<T>(g, pieces);
    // A BLAS computes other bits for other blocks; one row or column is read in place anyway; and a
    // small result is still in the cache when it is read, while two kernels share threads better.
    constexpr double kLeastPushed = 4 << 20;  // bytes
    const bool large =
        static_cast<double>(g.m) * static_cast<double>(g.n) * sizeof(T) >= kLeastPushed;
    if (pieces.api == nullptr && g.batch == 1 && g.m > 1 && g.n > 1 && large)
      produces = Stream::kPushed;
  }

  void run(RunContext& c) const override {
    const T *a = c.input(0).data<T>(), *b = c.input(1).data<T>();
    const T* packed = kept_b<T>(c, g_, pieces_);
    if (packed == nullptr && scratch_bytes > 0) packed = packed_in_scratch(c, g_, b);
    multiply_batch<T>(c, g_, pieces_, cost_ns, a, b, packed, c.output(0).data<T>());
  }
  void push(RunContext& c, const host::Epilogue& epilogue) const override {
    push_blocks<T>(c, g_, pieces_, cost_ns, c.input(0).data<T>(), c.input(1).data<T>(), epilogue);
  }

 private:
  BatchProduct g_;
  Pieces pieces_;
};

template <class T>
std::unique_ptr<Kernel> prepare_float(const PrepareContext& c) {
  const BatchProduct g = BatchProduct::of(c);
  const Pieces pieces(g);
  if (pieces.depth.pieces > 1) return deep_kernel<T>(g, pieces.depth, pieces.cost_ns<T>(g));
  return std::make_unique<FloatProduct<T>>(g, pieces);
}

// 16-bit operands are widened whole, once each, and summed in float.
std::unique_ptr<Kernel> prepare_half(const PrepareContext& c) {
  const BatchProduct g = BatchProduct::of(c);
  const Pieces pieces(g);
  const int64_t a_size = c.input_shape(0).num_elements(), b_size = c.input_shape(1).num_elements();
  const int64_t out_size = c.output_shape(0).num_elements();
  constexpr int64_t kGrain = 16384;
  const double cost = pieces.cost_ns<float>(g) + 0.5 * (a_size + b_size + out_size);
  return make_kernel(
      [=](RunContext& c) {
        float* const a = reinterpret_cast<float*>(c.scratch());
        float* const b = a + aligned(a_size);
        float* const out = b + aligned(b_size);
        const auto widened = [&](const Tensor& from, int64_t size, float* to) {
          c.parallel_for(size, kGrain, 0.3, [&](int64_t i, int64_t end) {
            widen(from.dtype(), from.raw(), i, end - i, to + i);
          });
        };
        widened(c.input(0), a_size, a);
        widened(c.input(1), b_size, b);
        multiply_batch<float>(c, g, pieces, cost, a, b, nullptr, out);
        Tensor& to = c.output(0);
        c.parallel_for(out_size, kGrain, 0.6, [&](int64_t i, int64_t end) {
          narrow(to.dtype(), out + i, end - i, to.raw(), i);
        });
      },
      cost,
      static_cast<size_t>(aligned(a_size) + aligned(b_size) + aligned(out_size)) * sizeof(float));
}

}  // namespace

void register_matmul_kernels(KernelRegistry& r) {
  for (const char* op : {"MatMul", "BatchMatMul"}) {
    r.add(op, {{"T", {DType::kFloat32}}}, prepare_float<float>);
    r.add(op, {{"T", {DType::kFloat64}}}, prepare_float<double>);
    r.add(op, {{"T", {DType::kFloat16, DType::kBFloat16}}}, prepare_half);
    r.add(op,
          {{"T",
            {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt8,
             DType::kUInt16, DType::kUInt32, DType::kUInt64}}},
          prepare_matmul_integer);
    r.add(op, {{"T", {DType::kComplex64}}}, prepare_matmul_complex64);
    r.add(op, {{"T", {DType::kComplex128}}}, prepare_matmul_complex128);
  }
}

}  // namespace treenail::cpu
