// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/sparse.cc.
#include <algorithm>
#include <complex>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_poll.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

template <class Index>
std::string row_text(const Index* row, int64_t depth) {
  std::string text = "[";
  for (int64_t k = 0; k < depth; ++k) text += concat(k == 0 ? "" : ",", int64_t{row[k]});
  return text + "]";
}

// Walks the rows of indices [n, depth] and checks them against a shape. Each row is read once: its
// memory may be the user's.
class IndexRows {
 public:
  IndexRows(const char* name, std::span<const int64_t> shape, bool ordered)
      : name_(name), shape_(shape), ordered_(ordered), now_(shape.size()), last_(shape.size()) {}

  // The row's place in row-major order. Errors: InvalidArgument (outside, out of order, repeated).
  template <class Index>
  int64_t next(const Index* row) {
    const auto depth = static_cast<int64_t>(shape_.size());
    now_.swap(last_);
    std::copy_n(row, depth, now_.begin());
    int64_t place = 0;
    for (int64_t k = 0; k < depth; ++k) {
      if (now_[k] < 0 || now_[k] >= shape_[k]) {
        throw invalid_argument(name_, "[", number_, "] = ", row_text(now_.data(), depth),
                               " is out of bounds: need 0 <= index < ",
                               row_text(shape_.data(), depth));
      }
      place = place * shape_[k] + now_[k];
    }
    if (ordered_ && number_ > 0 && !(last_ < now_)) {
      throw invalid_argument(name_, "[", number_, "] = ", row_text(now_.data(), depth),
                             last_ == now_ ? " is repeated" : " is out of order");
    }
    ++number_;
    return place;
  }
  const std::vector<int64_t>& row() const { return now_; }

 private:
  const char* name_;
  std::span<const int64_t> shape_;
  bool ordered_;
  std::vector<int64_t> now_, last_;
  int64_t number_ = 0;
};

// --- SparseToDense ----------------------------------------------------------------------------

template <class T, class Index>
void sparse_to_dense(RunContext& c, bool validate) {
  const Tensor& indices = c.input(0);
  const Index* const rows = indices.data<Index>();
  const T* const values = elements<T>(c.input(2));
  T* const out = elements<T>(c.output(0));
  const T fallback = *elements<T>(c.input(3));
  c.parallel_for(
      c.output(0).num_elements(), kMoveGrain<T>, kMoveCost<T>,
      [&](int64_t begin, int64_t end) { fill_elements(out + begin, fallback, end - begin); });
  const std::span<const int64_t> shape = c.output(0).shape().dims();
  const auto depth = static_cast<int64_t>(shape.size());
  const int64_t count = indices.rank() == 0 ? 1 : indices.dim(0);
  const bool one_value = c.input(2).rank() == 0;
  IndexRows checked("indices", shape, validate);
  for (int64_t i = 0; i < count; ++i) {
    out[checked.next(rows + i * depth)] = values[one_value ? 0 : i];
  }
}

KernelPtr prepare_sparse_to_dense(const PrepareContext& p) {
  const bool validate = p.op().get_bool("validate_indices");
  const double cost = 50 + 0.5 * static_cast<double>(p.output_shape(0).num_elements()) +
                      5 * static_cast<double>(p.input_shape(0).num_elements());
  return dispatch_element(p.output_type(0), [&]<class T>() -> KernelPtr {
    const bool narrow = p.input_type(0) == DType::kInt32;
    return make_kernel(
        [=](RunContext& c) {
          narrow ? sparse_to_dense<T, int32_t>(c, validate)
                 : sparse_to_dense<T, int64_t>(c, validate);
        },
        cost);
  });
}

// --- EditDistance -----------------------------------------------------------------------------

// The rows of a sparse tensor that hold something: which place in the output, and which values.
struct Row {
  int64_t place, begin, end;
};

std::vector<Row> rows_of(const char* name, const Tensor& indices, std::span<const int64_t> shape,
                         std::span<const int64_t> output) {
  std::vector<Row> rows;
  IndexRows checked(name, shape, true);
  const auto depth = static_cast<int64_t>(shape.size());
  for (int64_t i = 0; i < indices.dim(0); ++i) {
    checked.next(indices.data<int64_t>() + i * depth);
    int64_t place = 0;
    for (size_t k = 0; k < output.size(); ++k) place = place * output[k] + checked.row()[k];
    if (rows.empty() || rows.back().place != place) rows.push_back({place, i, i});
    rows.back().end = i + 1;
  }
  return rows;
}

template <class T, class Equal>
int64_t levenshtein(const RunContext& c, std::span<const T> a, std::span<const T> b, Equal equal) {
  std::vector<int64_t> distance(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) distance[j] = static_cast<int64_t>(j);
  for (size_t i = 0; i < a.size(); ++i) {
    poll(c);
    int64_t diagonal = distance[0];
    distance[0] = static_cast<int64_t>(i) + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t substituted = diagonal + (equal(a[i], b[j]) ? 0 : 1);
      diagonal = distance[j + 1];
      distance[j + 1] = std::min({substituted, diagonal + 1, distance[j] + 1});
    }
  }
  return distance[b.size()];
}

// Values as they compare: numbers by value, so that no NaN equals another.
template <class T>
bool equal_values(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, StringElement>) {
    return a.view() == b.view();
  } else {
    return comparable(a) == comparable(b);
  }
}

float quotient(int64_t distance, size_t truth, bool normalize) {
  if (!normalize) return static_cast<float>(distance);
  if (truth == 0) return distance == 0 ? 0.0F : std::numeric_limits<float>::infinity();
  return static_cast<float>(static_cast<double>(distance) / static_cast<double>(truth));
}

template <class T>
void edit_distance(RunContext& c, const std::vector<int64_t>& hypothesis_shape,
                   const std::vector<int64_t>& truth_shape, bool normalize) {
  const std::span<const int64_t> output = c.output(0).shape().dims();
  const auto hypotheses = rows_of("hypothesis_indices", c.input(0), hypothesis_shape, output);
  const auto truths = rows_of("truth_indices", c.input(3), truth_shape, output);
  float* const out = c.output(0).data<float>();
  std::fill_n(out, c.output(0).num_elements(), 0.0F);
  const auto values = [&c](int input, const Row& row) {
    return std::span<const T>(c.input(input).data<T>() + row.begin,
                              static_cast<size_t>(row.end - row.begin));
  };
  // Both lists ascend: they are walked together.
  auto h = hypotheses.begin();
  auto t = truths.begin();
  while (h != hypotheses.end() || t != truths.end()) {
    const bool only_truth = h == hypotheses.end() || (t != truths.end() && t->place < h->place);
    const bool only_hypothesis =
        t == truths.end() || (h != hypotheses.end() && h->place < t->place);
    const auto a = only_truth ? std::span<const T>() : values(1, *h);
    const auto b = only_hypothesis ? std::span<const T>() : values(4, *t);
    const int64_t distance = levenshtein<T>(c, a, b, equal_values<T>);
    out[only_truth ? t->place : h->place] = quotient(distance, b.size(), normalize);
    if (!only_truth) ++h;
    if (!only_hypothesis) ++t;
  }
}

std::vector<int64_t> vector_of(const Tensor& shape) {
  const int64_t* values = shape.data<int64_t>();
  return {values, values + shape.num_elements()};
}

KernelPtr prepare_edit_distance(const PrepareContext& p) {
  const bool normalize = p.op().get_bool("normalize");
  std::vector<int64_t> hypothesis = vector_of(p.host_value(2)), truth = vector_of(p.host_value(5));
  const double cost = 1000 + 20 * static_cast<double>(p.input_shape(1).num_elements());
  return dispatch<bool, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t,
                  Float16, BFloat16, float, double, std::complex<float>, std::complex<double>,
                  StringElement>(p.input_type(1), [&]<class T>() -> KernelPtr {
    return make_kernel([=](RunContext& c) { edit_distance<T>(c, hypothesis, truth, normalize); },
                       cost);
  });
}

}  // namespace

void register_sparse_kernels(KernelRegistry& r) {
  r.add("SparseToDense", {}, prepare_sparse_to_dense);
  r.add("EditDistance", {}, prepare_edit_distance);
}

}  // namespace treenail::host
