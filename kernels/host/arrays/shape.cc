// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/shape.cc. Reshape, ExpandDims and Squeeze are views and need none;
// BroadcastTo is in layout.cc.
#include <algorithm>
#include <array>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_registry.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

template <class T>
void store(Tensor& out, std::span<const int64_t> values) {
  T* to = out.data<T>();
  for (size_t i = 0; i < values.size(); ++i) {
    to[i] = static_cast<T>(values[i]);
    if (to[i] != values[i]) {
      throw invalid_argument("output_type must be int64 since the value ", values[i],
                             " does not fit into ", out.dtype());
    }
  }
}

void store_ints(Tensor& out, std::span<const int64_t> values) {
  if (out.dtype() == DType::kInt32) {
    store<int32_t>(out, values);
  } else {
    store<int64_t>(out, values);
  }
}

KernelPtr prepare_shape(const PrepareContext& p) {
  std::vector<Shape> shapes;
  for (int i = 0; i < p.num_inputs(); ++i) shapes.push_back(p.input_shape(i));
  return make_kernel(
      [shapes = std::move(shapes)](RunContext& c) {
        for (size_t i = 0; i < shapes.size(); ++i)
          store_ints(c.output(static_cast<int>(i)), shapes[i].dims());
      },
      10);
}

KernelPtr scalar_kernel(int64_t value) {
  return make_kernel([value](RunContext& c) { store_ints(c.output(0), {&value, 1}); }, 5);
}

KernelPtr prepare_size(const PrepareContext& p) {
  return scalar_kernel(p.input_shape(0).num_elements());
}
KernelPtr prepare_rank(const PrepareContext& p) { return scalar_kernel(p.input_shape(0).rank()); }

KernelPtr prepare_broadcast_args(const PrepareContext& p) {
  std::array<int64_t, 64> storage[2];
  std::vector<int64_t> shapes[2];
  for (int i = 0; i < 2; ++i) {
    const std::span<const int64_t> given = as_int64(p.host_value(i), storage[i]);
    shapes[i].assign(given.begin(), given.end());
  }
  // The shape rule has refused what does not broadcast.
  std::vector<int64_t> result(std::max(shapes[0].size(), shapes[1].size()), 1);
  for (const std::vector<int64_t>& shape : shapes) {
    const size_t offset = result.size() - shape.size();
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] != 1) result[offset + i] = shape[i];
    }
  }
  return make_kernel(
      [result = std::move(result)](RunContext& c) { store_ints(c.output(0), result); }, 10);
}

template <class T>
void invert_permutation(RunContext& c) {
  const std::span<const T> x = c.input(0).values<T>();
  T* y = c.output(0).data<T>();
  std::fill(y, y + x.size(), T(-1));
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] < 0 || static_cast<uint64_t>(x[i]) >= x.size()) {
      throw invalid_argument("x[", i, "] = ", x[i], " is not between 0 and ", x.size());
    }
    if (y[x[i]] != T(-1))
      throw invalid_argument("x[", i, "] = ", x[i], " is duplicated in the input.");
    y[x[i]] = static_cast<T>(i);
  }
}

KernelPtr prepare_invert_permutation(const PrepareContext& p) {
  const double cost = 10 + 2.0 * static_cast<double>(p.input_shape(0).num_elements());
  if (p.input_type(0) == DType::kInt32) return make_kernel(invert_permutation<int32_t>, cost);
  return make_kernel(invert_permutation<int64_t>, cost);
}

KernelPtr prepare_concat_offset(const PrepareContext& p) {
  const int n = p.num_inputs() - 1;
  const int rank = static_cast<int>(p.input_shape(1).num_elements());
  const int64_t given = scalar_int64(p.host_value(0));
  const int axis = static_cast<int>(given < 0 ? given + rank : given);
  std::vector<int64_t> offsets;
  int64_t offset = 0;
  for (int i = 0; i < n; ++i) {
    offsets.push_back(offset);
    offset += p.host_value(i + 1).data<int32_t>()[axis];
  }
  return make_kernel(
      [offsets = std::move(offsets), rank, axis](RunContext& c) {
        for (size_t i = 0; i < offsets.size(); ++i) {
          int64_t values[kMaxRank] = {};
          values[axis] = offsets[i];
          store_ints(c.output(static_cast<int>(i)), {values, static_cast<size_t>(rank)});
        }
      },
      20);
}

template <class T>
void unravel_index(RunContext& c) {
  const std::span<const T> indices = c.input(0).values<T>();
  const std::span<const T> dims = c.input(1).values<T>();
  int64_t total = 1;
  for (T dim : dims) {
    if (dim <= 0)
      throw invalid_argument("Input dims cannot contain ", dim,
                             " <= 0: ", tensor_values(c.input(1)));
    total = checked_product(total, dim);
  }
  T* out = c.output(0).data<T>();
  for (size_t i = 0; i < indices.size(); ++i) {
    int64_t rest = indices[i];
    if (rest < 0 || rest >= total) {
      throw invalid_argument("index is out of bound as with dims: indices[", i, "] = ", rest,
                             " is not in [0, ", total, ")");
    }
    for (size_t k = dims.size(); k-- > 0;) {
      out[k * indices.size() + i] = static_cast<T>(rest % dims[k]);
      rest /= dims[k];
    }
  }
}

KernelPtr prepare_unravel_index(const PrepareContext& p) {
  const double cost = 10 + 20.0 * static_cast<double>(p.input_shape(0).num_elements());
  if (p.input_type(0) == DType::kInt32) return make_kernel(unravel_index<int32_t>, cost);
  return make_kernel(unravel_index<int64_t>, cost);
}

}  // namespace

void register_shape_kernels(KernelRegistry& r) {
  r.add("Shape", {}, prepare_shape);
  r.add("ShapeN", {}, prepare_shape);
  r.add("Size", {}, prepare_size);
  r.add("Rank", {}, prepare_rank);
  r.add("BroadcastArgs", {}, prepare_broadcast_args);
  r.add("InvertPermutation", {}, prepare_invert_permutation);
  r.add("ConcatOffset", {}, prepare_concat_offset);
  r.add("UnravelIndex", {}, prepare_unravel_index);
}

}  // namespace treenail::host
