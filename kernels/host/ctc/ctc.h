// SPDX-License-Identifier: Apache-2.0
// What the kernels of connectionist temporal classification share: lengths, and logits as
// logarithms of probabilities. Sums of probabilities are kept as logarithms in double precision,
// for over a thousand steps they fall below what any floating-point number holds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/tensor.h"

namespace treenail::host {

inline constexpr double kLogZero = -std::numeric_limits<double>::infinity();

// log(e^a + e^b).
inline double log_sum(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  if (low == kLogZero) return high;
  return high + std::log(1 + std::exp(low - high));
}
// log(e^a + e^b + e^c): one logarithm less than twice the above.
inline double log_sum(double a, double b, double c) {
  const double high = std::max({a, b, c});
  if (high == kLogZero) return high;
  return high + std::log(std::exp(a - high) + std::exp(b - high) + std::exp(c - high));
}

// Logits [steps, batch, classes].
template <class T>
struct CtcInputs {
  const T* logits;
  int64_t steps, batch, classes;

  explicit CtcInputs(const Tensor& inputs)
      : logits(inputs.data<T>()),
        steps(inputs.dim(0)),
        batch(inputs.dim(1)),
        classes(inputs.dim(2)) {}
  int64_t blank() const { return classes - 1; }
  const T* at(int64_t step, int64_t b) const { return logits + (step * batch + b) * classes; }
  // Logarithms of the probabilities of the classes at a step.
  void log_softmax(int64_t step, int64_t b, double* to) const {
    const T* x = at(step, b);
    const auto largest = static_cast<double>(*std::max_element(x, x + classes));
    double sum = 0;
    for (int64_t k = 0; k < classes; ++k) sum += std::exp(static_cast<double>(x[k]) - largest);
    const double offset = largest + std::log(sum);
    for (int64_t k = 0; k < classes; ++k) to[k] = static_cast<double>(x[k]) - offset;
  }
};

// A copy, for the caller may change the memory of a feed. Errors: InvalidArgument for a length
// outside [0, steps].
inline std::vector<int64_t> checked_lengths(const Tensor& lengths, int64_t steps) {
  const int32_t* given = lengths.data<int32_t>();
  std::vector<int64_t> result(given, given + lengths.num_elements());
  for (size_t b = 0; b < result.size(); ++b) {
    if (result[b] < 0 || result[b] > steps) {
      throw invalid_argument("sequence_length[", b, "] = ", result[b], " is not in [0, ", steps,
                             "], the steps of inputs");
    }
  }
  return result;
}

}  // namespace treenail::host
