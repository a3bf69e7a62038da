// SPDX-License-Identifier: Apache-2.0
// The BLAS and oneDNN adapters as guests: products against the definition, and thread counts of
// libraries that the process shares with others (NumPy) as they were.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/adapter.h"
#include "framework/eager/execute.h"
#include "framework/tensor/tensor.h"
#include "kernels/adapters/blas/blas_api.h"
#include "kernels/adapters/onednn/onednn_api.h"

namespace treenail {
namespace {

template <class Api>
const Api* open(const char* name, std::string* why) {
  const AdapterRequest request = {name, sizeof(Api), "tests", "its library"};
  return static_cast<const Api*>(try_open_adapter(request, why));
}

template <class T>
T conjugated(T x) {
  return x;
}
template <class F>
std::complex<F> conjugated(std::complex<F> x) {
  return std::conj(x);
}

template <class T>
std::vector<T> random_values(size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> number(-1, 1);
  std::vector<T> values(count);
  for (T& x : values) {
    if constexpr (std::is_floating_point_v<T>) {
      x = static_cast<T>(number(engine));
    } else {
      x = T(static_cast<typename T::value_type>(number(engine)),
            static_cast<typename T::value_type>(number(engine)));
    }
  }
  return values;
}

template <class T>
T element(const std::vector<T>& matrix, int ld, int32_t transform, int row, int column) {
  if (transform == kBlasPlain) return matrix[static_cast<size_t>(int64_t{row} * ld + column)];
  const T x = matrix[static_cast<size_t>(int64_t{column} * ld + row)];
  return transform == kBlasAdjoint ? conjugated(x) : x;
}

// gemm(ta, tb, a, lda, b, ldb, c) computes C = op(A) op(B).
template <class T, class F>
void expect_products(F gemm) {
  constexpr int m = 5, n = 7, k = 9;
  for (const int32_t ta : {kBlasPlain, kBlasTranspose, kBlasAdjoint}) {
    for (const int32_t tb : {kBlasPlain, kBlasTranspose, kBlasAdjoint}) {
      const int lda = ta == kBlasPlain ? k : m, ldb = tb == kBlasPlain ? n : k;
      const std::vector<T> a = random_values<T>(m * k, 1), b = random_values<T>(k * n, 2);
      std::vector<T> c(m * n);
      gemm(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, c.data());
      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
          T sum(0);
          for (int q = 0; q < k; ++q) sum += element(a, lda, ta, i, q) * element(b, ldb, tb, q, j);
          EXPECT_LT(std::abs(c[static_cast<size_t>(i * n + j)] - sum), 1e-5) << ta << tb;
        }
      }
    }
  }
}

TEST(BlasAdapter, MultipliesWithEveryTransform) {
  std::string why;
  const auto* api = open<BlasApi>("blas", &why);
  if (api == nullptr) GTEST_SKIP() << why;
  const float one_f = 1, zero_f = 0;
  expect_products<float>(
      [&](int32_t ta, int32_t tb, int m, int n, int k, const float* a, int lda, const float* b,
          int ldb, float* c) { api->sgemm(ta, tb, m, n, k, one_f, a, lda, b, ldb, zero_f, c, n); });
  expect_products<double>(
      [&](int32_t ta, int32_t tb, int m, int n, int k, const double* a, int lda, const double* b,
          int ldb, double* c) { api->dgemm(ta, tb, m, n, k, 1, a, lda, b, ldb, 0, c, n); });
  const std::complex<float> one_c(1), zero_c(0);
  expect_products<std::complex<float>>(
      [&](int32_t ta, int32_t tb, int m, int n, int k, const void* a, int lda, const void* b,
          int ldb,
          void* c) { api->cgemm(ta, tb, m, n, k, &one_c, a, lda, b, ldb, &zero_c, c, n); });
  const std::complex<double> one_z(1), zero_z(0);
  expect_products<std::complex<double>>(
      [&](int32_t ta, int32_t tb, int m, int n, int k, const void* a, int lda, const void* b,
          int ldb,
          void* c) { api->zgemm(ta, tb, m, n, k, &one_z, a, lda, b, ldb, &zero_z, c, n); });
}

// A product that goes to BLAS at every level.
void multiply_large() {
  const Tensor a = Tensor::zeros(DType::kFloat32, {800, 800});
  execute("MatMul", std::vector<Tensor>{a, a});
}

TEST(BlasAdapter, LeavesTheThreadCountAsItWas) {
  std::string why;
  const auto* api = open<BlasApi>("blas", &why);
  if (api == nullptr) GTEST_SKIP() << why;
  const int32_t before = api->threads();
  if (before == 0) GTEST_SKIP() << api->name() << " has no thread count that can be asked";
  multiply_large();
  EXPECT_EQ(api->threads(), before);
  api->begin();
  EXPECT_EQ(api->threads(), 1);
  api->begin();
  api->end();
  EXPECT_EQ(api->threads(), 1) << "somebody still computes";
  std::thread other([api] {
    api->begin();
    api->end();
  });
  other.join();
  EXPECT_EQ(api->threads(), 1);
  api->end();
  EXPECT_EQ(api->threads(), before);
}

// OpenMP's count belongs to a thread: it is that of the caller which must come back.
TEST(Adapters, LeaveOpenMpsThreadCountAsItWas) {
  std::string why;
  if (open<OneDnnApi>("onednn", &why) == nullptr) GTEST_SKIP() << why;
  void* library = ::dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) GTEST_SKIP() << "oneDNN came without libgomp";
  const auto get = reinterpret_cast<int (*)()>(::dlsym(library, "omp_get_max_threads"));
  const auto set = reinterpret_cast<void (*)(int)>(::dlsym(library, "omp_set_num_threads"));
  ASSERT_NE(get, nullptr);
  ASSERT_NE(set, nullptr);
  const int before = get();
  set(3);
  const Tensor x = Tensor::zeros(DType::kFloat32, {10, 20, 20, 64});
  const Tensor w = Tensor::zeros(DType::kFloat32, {1, 1, 64, 64});
  execute("Conv2D", std::vector<Tensor>{x, w},
          {{"strides", std::vector<int64_t>(4, 1)}, {"padding", "SAME"}});
  multiply_large();
  EXPECT_EQ(get(), 3);
  set(before);
}

TEST(OneDnnAdapter, RefusesAConvolutionItDoesNotHave) {
  std::string why;
  const auto* api = open<OneDnnApi>("onednn", &why);
  if (api == nullptr) GTEST_SKIP() << why;
  OneDnnConvolution c = {};
  c.batch = c.channels = c.filters = 1;
  c.input[0] = c.input[1] = 4;
  c.output[0] = c.output[1] = 9;  // does not follow from the rest
  c.taps[0] = c.taps[1] = c.stride[0] = c.stride[1] = c.dilation[0] = c.dilation[1] = 1;
  OneDnnSizes sizes;
  char text[200] = "";
  EXPECT_EQ(api->create(&c, &sizes, text, sizeof text), nullptr);
  EXPECT_NE(std::string(text).find("oneDNN: "), std::string::npos) << text;
}

}  // namespace
}  // namespace treenail
