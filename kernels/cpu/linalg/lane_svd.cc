// SPDX-License-Identifier: Apache-2.0
// Singular values and vectors of small matrices. Larger ones: kernels/host/linalg/svd.cc.
#include "kernels/cpu/linalg/lane_svd.h"

#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/linalg/lane_types.h"
#include "kernels/host/linalg/dense_kernels.h"

namespace treenail::cpu {
namespace {

struct SvdShape {
  host::MatrixBatch m;
  bool vectors, full;
  // Of the matrix that has at least as many rows as columns: this one or its adjoint.
  bool wide() const { return m.rows < m.columns; }
  int64_t longer() const { return std::max(m.rows, m.columns); }
  int64_t shorter() const { return std::min(m.rows, m.columns); }
};

template <class T>
void decompose(const SvdShape& s, RunContext& c, int64_t first, int64_t count) {
  const int64_t rows = s.longer(), columns = s.shorter(), size = rows * columns;
  LaneSvd<T> lanes(rows, columns, s.full ? rows : columns);
  const T* const from = host::matrices<T>(c.input(0)) + first * size;
  pack_upright(from, count, s.m, lanes.qr.a);
  lanes.solve();
  refuse_lanes(lanes.turned, count, first, host::kNoSingularValues, s.m.batch);
  unpack_lanes(lanes.values, count, columns, host::matrices<T>(c.output(0)) + first * columns);
  if (!s.vectors) return;
  const int64_t of_long = rows * lanes.qr.columns, of_short = columns * columns;
  unpack_lanes(lanes.qr.q, count, of_long,
               host::matrices<T>(c.output(s.wide() ? 2 : 1)) + first * of_long);
  unpack_lanes(lanes.v, count, of_short,
               host::matrices<T>(c.output(s.wide() ? 1 : 2)) + first * of_short);
}

template <class T>
std::unique_ptr<Kernel> prepare_svd(const PrepareContext& p) {
  const bool vectors = p.op().get_bool("compute_uv");
  const SvdShape s = {host::MatrixBatch(p.input_shape(0)), vectors,
                      vectors && p.op().get_bool("full_matrices")};
  if (s.longer() > kMostLaneRows || s.m.count * s.m.elements() == 0) return host::dense_svd(p);
  const auto order = static_cast<double>(s.longer());
  const double cost = group_cost(3 * order * order, 80 * order * order * order);
  return make_kernel(
      [s, cost](RunContext& c) {
        each_group<T>(c, s.m.count, cost,
                      [&](int64_t first, int64_t count) { decompose<T>(s, c, first, count); });
      },
      cost * static_cast<double>(s.m.count) / kGroup<T>);
}

}  // namespace

void register_lane_svd_kernels(KernelRegistry& r) {
  for_lane_types([&]<class T>(DType dtype) { r.add("Svd", {{"T", {dtype}}}, prepare_svd<T>); });
}

}  // namespace treenail::cpu
