// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/gather.cc that only move elements: Gather, GatherNd,
// TensorScatterUpdate, and ResourceScatterNdUpdate on variables. Those that add:
// kernels/cpu/scatter/scatter.cc.
#include <algorithm>

#include "framework/op/index_check.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/state/variable.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

// --- Gather -----------------------------------------------------------------------------------

// params is [batch, outer, extent, inner], indices [batch, count], the result [batch, outer, count,
// inner].
struct GatherSpace {
  int64_t batch, outer, extent, inner, count;
};

// Rows about to be read, that far ahead.
constexpr int64_t kAhead = 8;

template <class T, class Index>
void gather_block(const T* params, const Index* indices, T* out, int64_t inner, int64_t count) {
  if (inner == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = params[indices[i]];
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count)
      __builtin_prefetch(params + static_cast<int64_t>(indices[i + kAhead]) * inner);
    copy_elements(out + i * inner, params + static_cast<int64_t>(indices[i]) * inner, inner);
  }
}

template <class T, class Index>
KernelPtr gather_kernel(const GatherSpace& s) {
  const double cost = 1.5 + kMoveCost<T> * static_cast<double>(s.inner);
  const int64_t rows = s.batch * s.outer * s.count;
  return make_kernel(
      [s, cost, rows](RunContext& c) {
        check_indices("indices", c.input(1), s.extent);
        const T* params = elements<T>(c.input(0));
        const Index* indices = c.input(1).data<Index>();
        T* out = elements<T>(c.output(0));
        const int64_t grain = std::max<int64_t>(1, kMoveGrain<T> / std::max<int64_t>(s.inner, 1));
        c.parallel_for(rows, grain, cost, [&](int64_t begin, int64_t end) {
          while (begin < end) {  // one piece of one block of `count` rows after the other
            const int64_t block = begin / s.count;
            const int64_t first = begin % s.count;
            const int64_t n = std::min(end - begin, s.count - first);
            gather_block(params + block * s.extent * s.inner,
                         indices + block / s.outer * s.count + first, out + begin * s.inner,
                         s.inner, n);
            begin += n;
          }
        });
      },
      20 + cost * static_cast<double>(rows));
}

KernelPtr prepare_gather(const PrepareContext& p) {
  const Shape& params = p.input_shape(0);
  const Shape& indices = p.input_shape(1);
  const int64_t given = scalar_int64(p.host_value(2));
  const int axis = static_cast<int>(given < 0 ? given + params.rank() : given);
  const int64_t given_batch = p.op().get_int("batch_dims");
  const int batch_dims =
      static_cast<int>(given_batch < 0 ? given_batch + indices.rank() : given_batch);
  const GatherSpace s{params.sub(0, batch_dims).num_elements(),
                      params.sub(batch_dims, axis).num_elements(), params.dim(axis),
                      params.sub(axis + 1, params.rank()).num_elements(),
                      indices.sub(batch_dims, indices.rank()).num_elements()};
  return dispatch_element(p.output_type(0), [&]<class T>() {
    return p.input_type(1) == DType::kInt32 ? gather_kernel<T, int32_t>(s)
                                            : gather_kernel<T, int64_t>(s);
  });
}

// --- Multi-dimensional indices ----------------------------------------------------------------

// Indices [count, depth] choose rows of params: `rows` of them, each `row` elements.
struct NdSpace {
  Shape params;
  int64_t count;
  int64_t row;
};

NdSpace nd_space(const Shape& params, const Shape& indices) {
  const int depth = static_cast<int>(indices.dim(indices.rank() - 1));
  return {params, indices.sub(0, indices.rank() - 1).num_elements(),
          params.sub(depth, params.rank()).num_elements()};
}

template <class T>
KernelPtr gather_nd_kernel(const NdSpace& s) {
  const double cost = 5 + kMoveCost<T> * static_cast<double>(s.row);
  return make_kernel(
      [s, cost](RunContext& c) {
        auto* rows = reinterpret_cast<int64_t*>(c.scratch());
        flatten_indices(c.input(1), s.params, rows);
        const T* params = elements<T>(c.input(0));
        T* out = elements<T>(c.output(0));
        const int64_t grain = std::max<int64_t>(1, kMoveGrain<T> / std::max<int64_t>(s.row, 1));
        c.parallel_for(s.count, grain, cost, [&](int64_t begin, int64_t end) {
          gather_block(params, rows + begin, out + begin * s.row, s.row, end - begin);
        });
      },
      20 + cost * static_cast<double>(s.count), static_cast<size_t>(s.count) * sizeof(int64_t));
}

KernelPtr prepare_gather_nd(const PrepareContext& p) {
  const NdSpace s = nd_space(p.input_shape(0), p.input_shape(1));
  return dispatch_element(p.output_type(0), [&]<class T>() { return gather_nd_kernel<T>(s); });
}

template <class T>
KernelPtr scatter_update_kernel(const NdSpace& s) {
  const int64_t n = s.params.num_elements();
  const double cost = 20 + kMoveCost<T> * static_cast<double>(n + s.count * s.row);
  return make_kernel(
      [s, n](RunContext& c) {
        auto* rows = reinterpret_cast<int64_t*>(c.scratch());
        flatten_indices(c.input(1), s.params, rows);
        const T* from = elements<T>(c.input(0));
        const T* updates = elements<T>(c.input(2));
        T* out = elements<T>(c.output(0));
        if (out != from) {
          c.parallel_for(n, kMoveGrain<T>, kMoveCost<T>, [&](int64_t begin, int64_t end) {
            copy_elements(out + begin, from + begin, end - begin);
          });
        }
        for (int64_t i = 0; i < s.count; ++i)
          copy_elements(out + rows[i] * s.row, updates + i * s.row, s.row);
      },
      cost, static_cast<size_t>(s.count) * sizeof(int64_t));
}

KernelPtr prepare_scatter_update(const PrepareContext& p) {
  const NdSpace s = nd_space(p.input_shape(0), p.input_shape(1));
  return dispatch_element(p.output_type(0), [&]<class T>() { return scatter_update_kernel<T>(s); });
}

// The variable's shape is known when it is run.
template <class T>
KernelPtr variable_update_kernel(DType dtype, const Shape& indices, const Shape& updates) {
  const int64_t count = indices.rank() < 1 ? 0 : indices.sub(0, indices.rank() - 1).num_elements();
  const double cost = 50 + kMoveCost<T> * static_cast<double>(updates.num_elements());
  return make_kernel(
      [dtype](RunContext& c) {
        const Variable::Write write(variable_of_dtype(c.input(0), dtype));
        Tensor& value = write.value();
        check_nd_updates(value.shape(), c.input(1).shape(), c.input(2).shape());
        const NdSpace s = nd_space(value.shape(), c.input(1).shape());
        auto* rows = reinterpret_cast<int64_t*>(c.scratch());
        flatten_indices(c.input(1), s.params, rows);
        const T* updates = elements<T>(c.input(2));
        T* out = elements<T>(value);
        for (int64_t i = 0; i < s.count; ++i)
          copy_elements(out + rows[i] * s.row, updates + i * s.row, s.row);
      },
      cost, static_cast<size_t>(count) * sizeof(int64_t));
}

KernelPtr prepare_variable_update(const PrepareContext& p) {
  const DType dtype = p.op().get_type("dtype");
  return dispatch_element(dtype, [&]<class T>() {
    return variable_update_kernel<T>(dtype, p.input_shape(1), p.input_shape(2));
  });
}

}  // namespace

void register_gather_kernels(KernelRegistry& r) {
  r.add("Gather", {}, prepare_gather);
  r.add("GatherNd", {}, prepare_gather_nd);
  r.add("TensorScatterUpdate", {}, prepare_scatter_update);
  r.add("ResourceScatterNdUpdate", {}, prepare_variable_update);
}

}  // namespace treenail::host
