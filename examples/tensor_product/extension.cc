// SPDX-License-Identifier: Apache-2.0
// The tensor product of SO(3) in PyTorch's style: a module with a function forward and a function
// backward, which take tensors of Treenail, NumPy and PyTorch alike. check_extension.py makes an op
// with a gradient of them.
#include <algorithm>
#include <vector>

#include <treenail/extension.hpp>

#include "clebsch_gordan.h"

using tn::ext::Tensor;

namespace {

void check(bool condition, const char* what) {
  if (!condition) throw pybind11::value_error(what);
}

std::vector<int64_t> with_last(std::vector<int64_t> sizes, int degree) {
  check(!sizes.empty(), "x, y and dz have an axis of 2 l + 1 elements each");
  sizes.back() = 2 * degree + 1;
  return sizes;
}

void check_sizes(const Tensor& x, int l1, const Tensor& y, int l2, int l) {
  check(l1 >= 0 && l2 >= 0 && l >= std::abs(l1 - l2) && l <= l1 + l2, "|l1 - l2| <= L <= l1 + l2");
  check(std::max({l1, l2, l}) <= so3::kMostDegree, "degrees are 20 at most");
  check(x.sizes() == with_last(x.sizes(), l1), "the last axis of x has 2 l1 + 1 elements");
  check(y.sizes() == with_last(x.sizes(), l2), "y has the shape of x, but for 2 l2 + 1 elements");
}

// All three passes are sums over the same terms: to[i] += coefficient * a[j] * b[k].
template <class T>
Tensor sum(const Tensor& a, const Tensor& b, int degree, const std::vector<so3::Term>& terms,
           int so3::Term::*i, int so3::Term::*j, int so3::Term::*k) {
  Tensor result = Tensor::empty<T>(with_last(a.sizes(), degree));
  const int64_t na = a.size(-1), nb = b.size(-1), n = result.size(-1), rows = a.numel() / na;
  const T *as = a.data<T>(), *bs = b.data<T>();
  T* to = result.mutable_data<T>();
  const pybind11::gil_scoped_release no_gil;
  std::fill(to, to + rows * n, T(0));
  for (int64_t row = 0; row < rows; ++row)
    for (const so3::Term& term : terms)
      to[row * n + term.*i] +=
          static_cast<T>(term.coefficient) * as[row * na + term.*j] * bs[row * nb + term.*k];
  return result;
}

template <class... Args>
Tensor sum_of_type(const Tensor& a, const Args&... args) {
  return a.is<float>() ? sum<float>(a, args...) : sum<double>(a, args...);
}

Tensor forward(const Tensor& x, const Tensor& y, int l1, int l2, int l) {
  check_sizes(x, l1, y, l2, l);
  const auto terms = so3::tensor_product_terms(l1, l2, l);
  return sum_of_type(x, y, l, terms, &so3::Term::c, &so3::Term::a, &so3::Term::b);
}

std::pair<Tensor, Tensor> backward(const Tensor& x, const Tensor& y, const Tensor& dz, int l1,
                                   int l2, int l) {
  check_sizes(x, l1, y, l2, l);
  check(dz.sizes() == with_last(x.sizes(), l), "dz has the shape of x, but for 2 L + 1 elements");
  const auto terms = so3::tensor_product_terms(l1, l2, l);
  return {sum_of_type(y, dz, l1, terms, &so3::Term::a, &so3::Term::b, &so3::Term::c),
          sum_of_type(x, dz, l2, terms, &so3::Term::b, &so3::Term::a, &so3::Term::c)};
}

}  // namespace

PYBIND11_MODULE(tensor_product_extension, m) {
  using pybind11::operator""_a;
  m.def("forward", &forward, "x"_a, "y"_a, "l1"_a, "l2"_a, "L"_a);
  m.def("backward", &backward, "x"_a, "y"_a, "dz"_a, "l1"_a, "l2"_a, "L"_a);
}
