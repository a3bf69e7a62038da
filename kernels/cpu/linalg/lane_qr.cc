// SPDX-License-Identifier: Apache-2.0
// QR factors of small matrices. Larger ones: kernels/host/linalg/qr.cc.
#include "kernels/cpu/linalg/lane_qr.h"

#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/linalg/lane_types.h"
#include "kernels/host/linalg/dense_kernels.h"

namespace treenail::cpu {
namespace {

template <class T>
std::unique_ptr<Kernel> prepare_qr(const PrepareContext& p) {
  const host::MatrixBatch a(p.input_shape(0)), q(p.output_shape(0));
  const int64_t longer = std::max(a.rows, a.columns);
  if (longer > kMostLaneRows || a.count * a.elements() == 0) return host::dense_qr(p);
  const auto order = static_cast<double>(longer);
  const double cost = group_cost(4 * order * order, 3 * order * order * order);
  return make_kernel(
      [=](RunContext& c) {
        const T* const from = host::matrices<T>(c.input(0));
        T* const to_q = host::matrices<T>(c.output(0));
        T* const to_r = host::matrices<T>(c.output(1));
        each_group<T>(c, a.count, cost, [&](int64_t first, int64_t count) {
          LaneQr<T> qr(a.rows, a.columns, q.columns);
          pack_lanes(from + first * a.elements(), count, a.elements(), qr.a);
          qr.factor();
          const int64_t of_r = q.columns * a.columns;
          unpack_lanes(qr.q, count, q.elements(), to_q + first * q.elements());
          unpack_lanes(qr.a, count, of_r, to_r + first * of_r);
        });
      },
      cost * static_cast<double>(a.count) / kGroup<T>);
}

}  // namespace

void register_lane_qr_kernels(KernelRegistry& r) {
  for_lane_types([&]<class T>(DType dtype) { r.add("Qr", {{"T", {dtype}}}, prepare_qr<T>); });
}

}  // namespace treenail::cpu
