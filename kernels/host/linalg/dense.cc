// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/linalg/dense.h"

#include <string>
#include <utility>
#include <vector>

namespace treenail::host {

Error unsuitable_matrix(const char* words, const Shape& batch, int64_t index) {
  if (batch.rank() == 0) return invalid_argument(words);
  std::string place;
  for (int axis = batch.rank() - 1; axis >= 0; --axis) {
    const int64_t extent = batch.dim(axis);
    place = concat(index % extent, place.empty() ? "" : ",", place);
    index /= extent;
  }
  return invalid_argument(words, " The first such matrix is [", place, "] of the batch ", batch);
}

void check_refusal(int64_t i) {
  const LapackRefusal refusal = lapack().api->take_refusal();
  if (refusal.routine == nullptr) return;
  throw internal_error("LAPACK's ", refusal.routine, " has not accepted argument ",
                       refusal.argument, " for matrix ", i, " of the batch");
}

namespace {

template <class T>
void set_identities(Tensor& to, const MatrixBatch& m) {
  T* x = matrices<T>(to);
  std::fill(x, x + m.count * m.elements(), T(0));
  for (int64_t i = 0; i < m.count; ++i, x += m.elements()) {
    for (int64_t k = 0; k < std::min(m.rows, m.columns); ++k) x[k * (m.columns + 1)] = T(1);
  }
}

void set_identities(Tensor& to, DType dtype, const MatrixBatch& m) {
  switch (dtype) {
    case DType::kFloat32:
      return set_identities<float>(to, m);
    case DType::kFloat64:
      return set_identities<double>(to, m);
    case DType::kComplex64:
      return set_identities<std::complex<float>>(to, m);
    default:
      return set_identities<std::complex<double>>(to, m);
  }
}

}  // namespace

std::unique_ptr<Kernel> identity_outputs(const PrepareContext& p,
                                         std::initializer_list<int> outputs) {
  std::vector<std::pair<int, MatrixBatch>> which;
  for (const int i : outputs) which.emplace_back(i, MatrixBatch(p.output_shape(i)));
  return make_kernel([which, dtype = p.input_type(0)](RunContext& c) {
    for (const auto& [i, m] : which) set_identities(c.output(i), dtype, m);
  });
}

}  // namespace treenail::host
