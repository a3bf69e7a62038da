// SPDX-License-Identifier: Apache-2.0
// Where: chunks count what is true in them, running sums of the counts say where each puts it.
#include <cstdint>
#include <memory>

#include "kernels/cuda/driver/counted_kernel.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/indexing/where_space.h"
#include "kernels/cuda/scans/scan_host.h"

namespace treenail::cuda {
namespace {

using gpu::WhereSpace;

uint64_t mask_of(DType dtype) {
  constexpr uint64_t kAll = ~uint64_t{0}, kNoSign = kAll >> 1;
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBFloat16:
      return 0x7fff;
    case DType::kFloat32:
      return 0x7fffffff;
    case DType::kComplex64:
      return 0x7fffffff7fffffff;
    case DType::kFloat64:
    case DType::kComplex128:
      return kNoSign;
    default:
      return kAll;
  }
}

WhereSpace space_of(DType dtype, const Shape& shape) {
  WhereSpace s;
  s.n = shape.num_elements();
  s.chunks = (s.n + gpu::kWhereChunk - 1) / gpu::kWhereChunk;
  s.mask = mask_of(dtype);
  s.rank = shape.rank();
  if (s.n == 0) return s;
  for (int d = 0; d < s.rank; ++d) s.extent[d] = gpu::divisor_of(shape.dim(s.rank - 1 - d));
  return s;
}

// Before each chunk, and then of all, so many elements are true.
struct Counted {
  Tensor before;
  std::shared_ptr<const uint64_t> all;  // when the queue is past it
};

struct Where {
  WhereSpace space;
  GpuFunction count, put;

  Grid grid(const CudaDevice& device, int64_t chunks) const {
    return grid_for(device, chunks * gpu::kMostThreads);
  }
  Counted counted(RunContext& c, CudaDevice& device) const {
    auto all = std::make_shared<uint64_t>(0);
    if (space.n == 0) return {Tensor(), all};
    Tensor counts(DType::kUInt64, Shape({space.chunks + 1}), &device);
    count.launch(device, grid(device, space.chunks + 1), space, c.input(0).raw(), counts.raw());
    Tensor before = sums_before(device, counts);
    device.copy_out(all.get(), before.data<uint64_t>() + space.chunks, sizeof *all);
    return {before, all};
  }
  void run(RunContext& c, CudaDevice& device, const Counted& counted) const {
    const auto rows = static_cast<int64_t>(*counted.all);
    Tensor y(DType::kInt64, Shape({rows, space.rank}), &device);
    if (y.num_elements() > 0) {
      put.launch(device, grid(device, space.chunks), space, c.input(0).raw(), counted.before.raw(),
                 y.raw());
    }
    c.set_output(0, std::move(y));
  }
};

std::unique_ptr<Kernel> prepare_where(const PrepareContext& p) {
  const size_t bytes = dtype_size(p.input_type(0));
  const Where where = {space_of(p.input_type(0), p.input_shape(0)),
                       GpuFunction(kept_name(concat("where_count_", bytes))),
                       GpuFunction(kept_name(concat("where_put_", bytes)))};
  return make_counted_kernel(p, [where](RunContext& c, CudaDevice& device, const Refusal&) {
    return [&where, counted = where.counted(c, device)](RunContext& c, CudaDevice& device) {
      where.run(c, device, counted);
    };
  });
}

}  // namespace

void register_where_kernels(KernelRegistrations& r) { r.add_plain("Where", prepare_where); }

}  // namespace treenail::cuda
