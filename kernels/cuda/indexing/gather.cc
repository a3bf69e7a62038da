// SPDX-License-Identifier: Apache-2.0
// Gather, GatherNd, and rows of variables.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "framework/op/index_check.h"
#include "framework/runtime/state/variable.h"
#include "kernels/cuda/driver/fault_word.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/indexing/gather_space.h"
#include "kernels/cuda/indexing/row_order_host.h"
#include "kernels/cuda/language/bits.h"

namespace treenail::cuda {
namespace {

using gpu::GatherSpace;

#define TN_GATHER(bytes, T)                                                      \
  constinit const GpuFunction kGather##bytes##_int32("gather_" #bytes "_int32"), \
      kGather##bytes##_int64("gather_" #bytes "_int64"),                         \
      kGatherNd##bytes##_int32("gather_nd_" #bytes "_int32"),                    \
      kGatherNd##bytes##_int64("gather_nd_" #bytes "_int64");
TN_GATHER(1, uint8_t)
TN_GATHER(2, uint16_t)
TN_GATHER(4, uint32_t)
TN_GATHER(8, uint64_t)
TN_GATHER(16, Bits128)
#undef TN_GATHER

struct GatherLaunch {
  CudaDevice& device;
  const GatherSpace& space;
  const void* params;
  const Tensor& indices;
  void* y;
  unsigned long long* fault;

  template <class T>
  void run(const GpuFunction& narrow, const GpuFunction& wide) const {
    const Grid grid = grid_for(device, space.batch * space.outer * space.count * space.inner);
    const auto* const from = static_cast<const T*>(params);
    if (indices.dtype() == DType::kInt32) {
      narrow.launch(device, grid, space, from, indices.data<int32_t>(), static_cast<T*>(y), fault);
    } else {
      wide.launch(device, grid, space, from, indices.data<int64_t>(), static_cast<T*>(y), fault);
    }
  }

  void run(size_t bytes) const {
    switch (bytes) {
      case 1:
        return run<uint8_t>(kGather1_int32, kGather1_int64);
      case 2:
        return run<uint16_t>(kGather2_int32, kGather2_int64);
      case 4:
        return run<uint32_t>(kGather4_int32, kGather4_int64);
      case 8:
        return run<uint64_t>(kGather8_int32, kGather8_int64);
      default:
        return run<gpu::Bits128>(kGather16_int32, kGather16_int64);
    }
  }
};

void gather(CudaDevice& device, const GatherSpace& space, const Tensor& params,
            const Tensor& indices, Tensor& y, Failure failure) {
  if (indices.num_elements() == 0) return;
  const FaultWord fault(device);
  GatherLaunch{device, space, params.raw(), indices, y.raw(), fault.word()}.run(
      dtype_size(params.dtype()));
  report_bad_row(fault, indices, space.extent, failure);
}

std::unique_ptr<Kernel> prepare_gather(const PrepareContext& p) {
  const Shape &params = p.input_shape(0), &indices = p.input_shape(1);
  int64_t storage[1];
  const int64_t given = as_int64(p.host_value(2), storage)[0];
  const int axis = static_cast<int>(given < 0 ? given + params.rank() : given);
  const int64_t batch = p.op().get_int("batch_dims");
  const int batch_dims = static_cast<int>(batch < 0 ? batch + indices.rank() : batch);
  const GatherSpace space{params.sub(0, batch_dims).num_elements(),
                          params.sub(batch_dims, axis).num_elements(), params.dim(axis),
                          params.sub(axis + 1, params.rank()).num_elements(),
                          indices.sub(batch_dims, indices.rank()).num_elements()};
  return make_launching_kernel(p, [space](RunContext& c, CudaDevice& device, Failure failure) {
    gather(device, space, c.input(0), c.input(1), c.output(0), failure);
  });
}

// The shape of the result hangs on the variable's, which is known when it is run.
std::unique_ptr<Kernel> prepare_resource_gather(const PrepareContext& p) {
  return make_launching_kernel(
      p, [dtype = p.output_type(0)](RunContext& c, CudaDevice& device, Failure failure) {
        const Tensor value = variable_of_dtype(c.input(0), dtype).read();
        const Tensor& indices = c.input(1);
        Tensor y(dtype, indices.shape().concatenated(value.shape().removed(0)), &device);
        const GatherSpace space{1, 1, value.dim(0), value.shape().removed(0).num_elements(),
                                indices.num_elements()};
        gather(device, space, value, indices, y, failure);
        c.set_output(0, std::move(y));
      });
}

// --- Multi-dimensional indices ------------------------------------------------------------------

struct GatherNdLaunch {
  CudaDevice& device;
  const gpu::Places& places;
  int64_t width;
  const void* params;
  const Tensor& indices;
  void* y;
  unsigned long long* fault;

  template <class T>
  void run(const GpuFunction& narrow, const GpuFunction& wide) const {
    const int lanes = lanes_for(width, 1);
    const Grid grid = grid_for(device, places.n * lanes);
    const auto* const from = static_cast<const T*>(params);
    if (indices.dtype() == DType::kInt32) {
      narrow.launch(device, grid, places, width, lanes, from, indices.data<int32_t>(),
                    static_cast<T*>(y), fault);
    } else {
      wide.launch(device, grid, places, width, lanes, from, indices.data<int64_t>(),
                  static_cast<T*>(y), fault);
    }
  }

  void run(size_t bytes) const {
    switch (bytes) {
      case 1:
        return run<uint8_t>(kGatherNd1_int32, kGatherNd1_int64);
      case 2:
        return run<uint16_t>(kGatherNd2_int32, kGatherNd2_int64);
      case 4:
        return run<uint32_t>(kGatherNd4_int32, kGatherNd4_int64);
      case 8:
        return run<uint64_t>(kGatherNd8_int32, kGatherNd8_int64);
      default:
        return run<gpu::Bits128>(kGatherNd16_int32, kGatherNd16_int64);
    }
  }
};

std::unique_ptr<Kernel> prepare_gather_nd(const PrepareContext& p) {
  const Shape &params = p.input_shape(0), &indices = p.input_shape(1);
  const gpu::Places places = places_in(params, indices);
  const int64_t width = params.sub(places.depth, params.rank()).num_elements();
  return make_launching_kernel(
      p, [places, width, params](RunContext& c, CudaDevice& device, Failure failure) {
        if (places.n == 0) return;
        const FaultWord fault(device);
        GatherNdLaunch{device,      places, width, c.input(0).raw(), c.input(1), c.output(0).raw(),
                       fault.word()}
            .run(dtype_size(c.output(0).dtype()));
        report_bad_place(fault, c.input(1), params, failure);
      });
}

}  // namespace

void register_gather_kernels(KernelRegistrations& r) {
  r.add_plain("Gather", prepare_gather);
  r.add_plain("GatherNd", prepare_gather_nd);
  r.add_plain("ResourceGather", prepare_resource_gather);
}

}  // namespace treenail::cuda
