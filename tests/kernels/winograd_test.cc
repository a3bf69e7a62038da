// SPDX-License-Identifier: Apache-2.0
// Winograd's algorithm: the matrices are exact in one dimension, and whole convolutions keep the
// error bounds that the choice of points promises, relative to the largest result, against sums in
// double.
#include "kernels/cpu/convolution/winograd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "framework/eager/execute.h"
#include "framework/tensor/tensor.h"

namespace treenail {
namespace {

template <int kOut, int kTaps>
void expect_exact_in_one_dimension() {
  using W = cpu::Winograd<kOut, kTaps>;
  std::mt19937 engine(7);
  std::uniform_real_distribution<double> number(-1, 1);
  double input[W::kSize], filter[kTaps];
  for (double& x : input) x = number(engine);
  for (double& x : filter) x = number(engine);
  double product[W::kSize];
  for (int j = 0; j < W::kSize; ++j) {
    double u = 0, v = 0;
    for (int k = 0; k < kTaps; ++k) u += W::g(j, k) * filter[k];
    for (int k = 0; k < W::kSize; ++k) v += W::bt(j, k) * input[k];
    product[j] = u * v;
  }
  for (int i = 0; i < kOut; ++i) {
    double got = 0, wanted = 0;
    for (int j = 0; j < W::kSize; ++j) got += W::at(i, j) * product[j];
    for (int k = 0; k < kTaps; ++k) wanted += filter[k] * input[i + k];
    EXPECT_NEAR(got, wanted, 1e-13) << "output " << i << " of F(" << kOut << ", " << kTaps << ")";
  }
}

TEST(Winograd, MatricesAreExactInOneDimension) {
  expect_exact_in_one_dimension<4, 3>();
  expect_exact_in_one_dimension<4, 5>();
}

Tensor random_tensor(const Shape& shape, unsigned seed) {
  Tensor t(DType::kFloat32, shape);
  std::mt19937 engine(seed);
  std::normal_distribution<float> number;
  for (int64_t i = 0; i < t.num_elements(); ++i) t.data<float>()[i] = number(engine);
  return t;
}

Tensor as_double(const Tensor& t) {
  Tensor wide(DType::kFloat64, t.shape());
  for (int64_t i = 0; i < t.num_elements(); ++i) wide.data<double>()[i] = t.data<float>()[i];
  return wide;
}

Tensor sizes(const Shape& shape) {
  Tensor t(DType::kInt32, Shape{shape.rank()});
  for (int i = 0; i < shape.rank(); ++i) {
    t.data<int32_t>()[i] = static_cast<int32_t>(shape.dim(i));
  }
  return t;
}

// The largest difference between float and double, relative to the largest result.
double error_of(const char* op, const std::vector<Tensor>& inputs) {
  const NamedAttrs attrs = {{"strides", std::vector<int64_t>(4, 1)}, {"padding", "SAME"}};
  std::vector<Tensor> wide;
  for (const Tensor& t : inputs) wide.push_back(t.dtype() == DType::kFloat32 ? as_double(t) : t);
  const Tensor got = execute(op, inputs, attrs)[0], exact = execute(op, wide, attrs)[0];
  double error = 0, largest = 0;
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    const double x = exact.data<double>()[i];
    error = std::max(error, std::abs(got.data<float>()[i] - x));
    largest = std::max(largest, std::abs(x));
  }
  return error / largest;
}

struct Bound {
  int64_t taps, channels, side;
  double forward, filter;
};

class WinogradError : public ::testing::TestWithParam<Bound> {};

// The direct method is near 1e-6 on these; the bounds hold for whichever algorithm the level
// chooses.
TEST_P(WinogradError, StaysWithinItsBound) {
  const Bound& b = GetParam();
  const Tensor x = random_tensor({4, b.side, b.side, b.channels}, 1);
  const Tensor w = random_tensor({b.taps, b.taps, b.channels, b.channels}, 2);
  const Tensor g = random_tensor({4, b.side, b.side, b.channels}, 3);
  EXPECT_LE(error_of("Conv2D", {x, w}), b.forward);
  EXPECT_LE(error_of("Conv2DBackpropInput", {sizes(x.shape()), w, g}), b.forward);
  EXPECT_LE(error_of("Conv2DBackpropFilter", {x, sizes(w.shape()), g}), b.filter);
  RecordProperty("forward", std::to_string(error_of("Conv2D", {x, w})));
}

INSTANTIATE_TEST_SUITE_P(Shapes, WinogradError,
                         ::testing::Values(Bound{3, 32, 17, 5e-6, 5e-6},
                                           Bound{3, 64, 28, 5e-6, 5e-6},
                                           Bound{3, 256, 14, 5e-6, 5e-6},
                                           Bound{5, 32, 14, 1e-5, 4e-5},
                                           Bound{5, 64, 23, 1e-5, 4e-5}));

// Bits of the convolution of a batch, prepared anew (no other test has this batch).
std::vector<float> convolved(int64_t batch, double* error) {
  const Tensor x = random_tensor({batch, 28, 28, 64}, 1), w = random_tensor({3, 3, 64, 64}, 2);
  *error = error_of("Conv2D", {x, w});
  const NamedAttrs attrs = {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "SAME"}};
  const Tensor y = execute("Conv2D", std::vector<Tensor>{x, w}, attrs)[0];
  const int64_t image = y.num_elements() / batch;
  return {y.data<float>(), y.data<float>() + image};
}

TEST(Winograd, IsLeftOutWhereDirectSumsAreAskedFor) {
  double fast_error = 0, direct_error = 0;
  const std::vector<float> fast = convolved(5, &fast_error);
  ::setenv("TREENAIL_CONVOLUTION", "direct", 1);
  const std::vector<float> direct = convolved(6, &direct_error);
  ::setenv("TREENAIL_CONVOLUTION", "slow", 1);
  EXPECT_THROW(convolved(7, &direct_error), Error);
  ::unsetenv("TREENAIL_CONVOLUTION");
  // Direct sums are near 1e-6 here, Winograd's algorithm near 2.5e-6; oneDNN, which levels without
  // fused multiply-adds prefer, sums directly.
  EXPECT_LE(direct_error, 1.5e-6);
  EXPECT_EQ(fast != direct, fast_error > 1.5e-6);
}

}  // namespace
}  // namespace treenail
