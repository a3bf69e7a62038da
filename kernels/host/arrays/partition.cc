// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/partition.cc.
#include <algorithm>
#include <vector>

#include "framework/op/index_check.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/elements.h"
#include "kernels/host/arrays/stitch_errors.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

template <class T>
void partition(RunContext& c, int64_t num_partitions) {
  const Tensor& data = c.input(0);
  const Tensor& numbers = c.input(1);
  check_indices("partitions", numbers, num_partitions);
  const Shape row_shape = data.shape().sub(numbers.rank(), data.rank());
  const int64_t row = row_shape.num_elements();
  std::vector<int64_t> counts(static_cast<size_t>(num_partitions));
  for (int32_t number : numbers.values<int32_t>()) ++counts[static_cast<size_t>(number)];
  std::vector<T*> ends;
  for (int64_t i = 0; i < num_partitions; ++i) {
    Tensor part(data.dtype(), row_shape.inserted(0, counts[static_cast<size_t>(i)]));
    ends.push_back(elements<T>(part));
    c.set_output(static_cast<int>(i), std::move(part));
  }
  const T* from = elements<T>(data);
  for (int32_t number : numbers.values<int32_t>()) {
    T*& end = ends[static_cast<size_t>(number)];
    copy_elements(end, from, row);
    end += row;
    from += row;
  }
}

KernelPtr prepare_dynamic_partition(const PrepareContext& p) {
  const int64_t n = p.op().get_int("num_partitions");
  const double cost = 200 + 2.0 * static_cast<double>(p.input_shape(0).num_elements());
  return dispatch_element(p.input_type(0), [&]<class T>() -> KernelPtr {
    return make_kernel([n](RunContext& c) { partition<T>(c, n); }, cost);
  });
}

// The number of rows: the largest index plus 1.
int64_t merged_rows(RunContext& c, int n) {
  int64_t rows = 0;
  for (int i = 0; i < n; ++i) {
    const std::span<const int32_t> indices = c.input(i).values<int32_t>();
    for (size_t k = 0; k < indices.size(); ++k) {
      if (indices[k] < 0) throw_negative_index(i, static_cast<int64_t>(k), indices[k]);
      rows = std::max<int64_t>(rows, int64_t{indices[k]} + 1);
    }
  }
  return rows;
}

template <class T>
void stitch(RunContext& c, int n) {
  const Tensor& first = c.input(n);
  const Shape row_shape = first.shape().sub(c.input(0).rank(), first.rank());
  const int64_t row = row_shape.num_elements();
  Tensor merged = Tensor::zeros(first.dtype(), row_shape.inserted(0, merged_rows(c, n)));
  T* to = elements<T>(merged);
  for (int i = 0; i < n; ++i) {
    const std::span<const int32_t> indices = c.input(i).values<int32_t>();
    const T* from = elements<T>(c.input(n + i));
    for (size_t k = 0; k < indices.size(); ++k)
      copy_elements(to + indices[k] * row, from + static_cast<int64_t>(k) * row, row);
  }
  c.set_output(0, std::move(merged));
}

KernelPtr prepare_dynamic_stitch(const PrepareContext& p) {
  const int n = p.num_inputs() / 2;
  double cost = 200;
  for (int i = 0; i < n; ++i)
    cost += 2.0 * static_cast<double>(p.input_shape(n + i).num_elements());
  return dispatch_element(p.output_type(0), [&]<class T>() -> KernelPtr {
    return make_kernel([n](RunContext& c) { stitch<T>(c, n); }, cost);
  });
}

}  // namespace

void register_partition_kernels(KernelRegistry& r) {
  r.add("DynamicPartition", {}, prepare_dynamic_partition);
  r.add("DynamicStitch", {}, prepare_dynamic_stitch);
}

}  // namespace treenail::host
