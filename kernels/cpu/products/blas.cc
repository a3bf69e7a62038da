// SPDX-License-Identifier: Apache-2.0
// Opening the BLAS adapter, and the measured borders between BLAS and our own product (docs:
// bench/kernels).
#include "kernels/cpu/products/blas.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "framework/base/adapter.h"
#include "framework/base/cpu_features.h"
#include "framework/base/fork.h"
#include "kernels/cpu/simd/registers.h"

namespace treenail::cpu {
namespace {

const BlasApi* open_blas() {
  const AdapterRequest request = {
      "blas", sizeof(BlasApi), "matrix products by the system's BLAS",
      "a BLAS (Debian: libopenblas0, Fedora: flexiblas-openblas-openmp)"};
  const auto* api = static_cast<const BlasApi*>(try_open_adapter(request));
  return api != nullptr && api->concurrent() != 0 ? api : nullptr;
}

template <class T>
void block(BlasProduct<T, T> gemm, const Product<T>& p, int64_t m0, int64_t m1, int64_t n0,
           int64_t n1) {
  const T* a = p.a + (p.trans_a ? m0 : m0 * p.lda);
  const T* b = p.b + (p.trans_b ? n0 * p.ldb : n0);
  gemm(p.trans_a ? kBlasTranspose : kBlasPlain, p.trans_b ? kBlasTranspose : kBlasPlain,
       static_cast<int32_t>(m1 - m0), static_cast<int32_t>(n1 - n0), static_cast<int32_t>(p.k),
       T(1), a, static_cast<int32_t>(p.lda), b, static_cast<int32_t>(p.ldb),
       p.add_to_c ? T(1) : T(0), p.c + m0 * p.ldc + n0, static_cast<int32_t>(p.ldc));
}

// Whether a BLAS may use wider vectors than a fused level of our own has.
bool wider_elsewhere() {
#if defined(__AVX512F__)
  return false;
#elif defined(__x86_64__)
  static const bool wider = full_width_avx512();
  return wider;
#else
  return true;
#endif
}

}  // namespace

const BlasApi* blas() {
  struct Opened {
    const BlasApi* api;  // null: none
  };
  static std::atomic<const Opened*> opened{nullptr};
  return made_once(opened, [] { return new const Opened{open_blas()}; }).api;
}

bool prefer_blas(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t widest = std::numeric_limits<int32_t>::max();
  if (m > widest || n > widest || k > widest) return false;
  const int64_t least = std::min({m, n, k});
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  // A fused level of our own is no slower than a BLAS of the same vector width (one quiet thread:
  // 0.93, 0.90 and 0.91 of the peak at 512^3, 1024^3 and 2048^3, OpenBLAS 0.87, 0.89 and 0.89), and
  // its bits are the same with any. Below it BLAS, which dispatches to the CPU's own instructions,
  // is up to three times faster as soon as a product outweighs the call.
  const bool large =
      kFused ? least >= 768 && wider_elsewhere() : (least >= 8 && work >= 32 * 32 * 32);
  return large && blas() != nullptr && blas()->tuned() != 0;
}

BlockCut cut_for_blas(int64_t m, int64_t n, int64_t k) {
  constexpr double kBlockWork = 4 << 20;  // multiply-adds: some 80 microseconds
  constexpr int64_t kNarrowest = 128;
  BlockCut cut{m, n, 1, 1};
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  int64_t wanted = static_cast<int64_t>(std::clamp(work / kBlockWork, 1.0, 64.0));
  auto cut_side = [&wanted](int64_t extent, int64_t& block, int64_t& blocks) {
    const int64_t most = std::max<int64_t>(1, extent / kNarrowest);
    blocks = std::min(wanted, most);
    block = ((extent + blocks - 1) / blocks + 15) / 16 * 16;
    blocks = (extent + block - 1) / block;
    wanted = (wanted + blocks - 1) / blocks;
  };
  // The longer side first: blocks stay near square, which packs least.
  if (n >= m) {
    cut_side(n, cut.columns, cut.column_blocks);
    cut_side(m, cut.rows, cut.row_blocks);
  } else {
    cut_side(m, cut.rows, cut.row_blocks);
    cut_side(n, cut.columns, cut.column_blocks);
  }
  return cut;
}

void blas_block(const BlasApi& api, const Product<float>& p, int64_t m0, int64_t m1, int64_t n0,
                int64_t n1) {
  block<float>(api.sgemm, p, m0, m1, n0, n1);
}

void blas_block(const BlasApi& api, const Product<double>& p, int64_t m0, int64_t m1, int64_t n0,
                int64_t n1) {
  block<double>(api.dgemm, p, m0, m1, n0, n1);
}

}  // namespace treenail::cpu
