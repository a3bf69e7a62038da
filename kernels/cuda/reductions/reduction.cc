// SPDX-License-Identifier: Apache-2.0
// Sum, Mean, Prod, Max, Min, EuclideanNorm, All, Any and L2Loss: passes over the innermost reduced
// axis until none is left. A long axis with few results is cut into chunks, whose results are
// reduced by one more pass.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/tensor/tensor.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/reductions/reduce_pass.h"
#include "kernels/cuda/reductions/reduction_host.h"
#include "kernels/host/reductions/merged_axes.h"

namespace treenail::cuda {
namespace {

using gpu::Finish;
using gpu::ReducePass;

// --- Kernels by name ----------------------------------------------------------------------------

struct Function {
  std::string_view operation;
  DType dtype;
  GpuFunction rows, columns;
};

template <class T>
constexpr DType kDType = DType::kFloat32;
template <>
constexpr DType kDType<double> = DType::kFloat64;
template <>
constexpr DType kDType<int32_t> = DType::kInt32;
template <>
constexpr DType kDType<int64_t> = DType::kInt64;
template <>
constexpr DType kDType<uint8_t> = DType::kBool;

#define TN_REDUCTION(Op, T)                                \
  {#Op, kDType<T>, GpuFunction("reduce_rows_" #Op "_" #T), \
   GpuFunction("reduce_columns_" #Op "_" #T)},
constinit const Function kFunctions[] = {
#include "kernels/cuda/reductions/reductions.h"
};
#undef TN_REDUCTION

const Function& function_of(std::string_view operation, DType dtype) {
  for (const Function& function : kFunctions) {
    if (function.operation == operation && function.dtype == dtype) return function;
  }
  throw internal_error("no kernel reduces ", dtype, " by ", operation);
}

// --- Passes -------------------------------------------------------------------------------------

using Axis = host::MergedAxis;

int64_t product_of(const std::vector<Axis>& axes, size_t first, size_t last) {
  int64_t product = 1;
  for (size_t i = first; i < last; ++i) product *= axes[i].extent;
  return product;
}

// As many chunks as keep the device busy, of no less than kShortest elements.
void cut(ReducePass& p, const CudaDevice& device) {
  constexpr int64_t kShortest = 1024, kThreads = 2048;
  const int64_t results = p.outer * p.inner;
  const int64_t wanted = device.processors() * kThreads;
  const int64_t each = p.inner == 1 ? gpu::kMostThreads : 1;  // threads for one result
  const int64_t due = std::max<int64_t>(1, wanted / std::max<int64_t>(1, results * each));
  p.chunks = std::clamp<int64_t>(p.extent / kShortest, 1, due);
  p.chunk = (p.extent + p.chunks - 1) / p.chunks;
  if (p.chunk > 0) p.chunks = (p.extent + p.chunk - 1) / p.chunk;
  p.lanes = lanes_for(p.chunk, 4);
}

void add_passes(std::vector<ReducePass>& passes, int64_t outer, int64_t extent, int64_t inner,
                const CudaDevice& device) {
  do {
    ReducePass p;
    p.outer = outer;
    p.extent = extent;
    p.inner = inner;
    p.mapped = passes.empty() ? 0 : 1;
    cut(p, device);
    passes.push_back(p);
    extent = p.chunks;
  } while (extent > 1);
}

// From the innermost reduced axis to the outermost. Where none is reduced, elements still go
// through the map.
std::vector<ReducePass> passes_of(std::vector<Axis> axes, const CudaDevice& device) {
  std::vector<ReducePass> passes;
  for (size_t i = axes.size(); i-- > 0;) {
    if (!axes[i].reduced) continue;
    add_passes(passes, product_of(axes, 0, i), axes[i].extent, product_of(axes, i + 1, axes.size()),
               device);
    axes[i] = {1, false};
  }
  if (passes.empty()) add_passes(passes, product_of(axes, 0, axes.size()), 1, 1, device);
  return passes;
}

// Of one of two buffers for partial results.
size_t scratch_of(const std::vector<ReducePass>& passes, size_t element_bytes) {
  int64_t most = 0;
  for (size_t i = 0; i + 1 < passes.size(); ++i)
    most = std::max(most, passes[i].outer * passes[i].chunks * passes[i].inner);
  constexpr size_t kUnit = 64;
  return (static_cast<size_t>(most) * element_bytes + kUnit - 1) / kUnit * kUnit;
}

struct Reduction {
  const Function* function;
  std::vector<ReducePass> passes;
  size_t bytes = 0;  // of each of two buffers for partial results

  void launch(CudaDevice& device, const void* from, void* to, std::byte* scratch) const;
  template <class T>
  void launch_as(CudaDevice& device, const void* from, void* to, std::byte* scratch) const;
};

template <class T>
void Reduction::launch_as(CudaDevice& device, const void* from, void* to,
                          std::byte* scratch) const {
  for (size_t i = 0; i < passes.size(); ++i) {
    const ReducePass& p = passes[i];
    void* const target = i + 1 == passes.size() ? to : scratch + i % 2 * bytes;
    const int64_t results = p.outer * p.chunks * p.inner;
    const bool rows = p.inner == 1;
    const Grid grid = grid_for(device, rows ? results * p.lanes : results);
    (rows ? function->rows : function->columns)
        .launch(device, grid, p, static_cast<const T*>(from), static_cast<T*>(target));
    from = target;
  }
}

void Reduction::launch(CudaDevice& device, const void* from, void* to, std::byte* scratch) const {
  if (function->dtype == DType::kBool) return launch_as<uint8_t>(device, from, to, scratch);
  dispatch<float, double, int32_t, int64_t>(
      function->dtype, [&]<class T>() { launch_as<T>(device, from, to, scratch); });
}

// --- Ops ----------------------------------------------------------------------------------------

std::vector<bool> axes_of(const PrepareContext& p) {
  const int rank = p.input_shape(0).rank();
  if (p.num_inputs() == 1) return std::vector<bool>(static_cast<size_t>(rank), true);
  std::vector<bool> reduced(static_cast<size_t>(rank));
  int64_t storage[kMaxRank];
  for (int64_t axis : as_int64(p.host_value(1), storage))
    reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  return reduced;
}

struct Operation {
  std::string_view op;
  std::string_view operation;
  Finish finish;
};
constexpr Operation kOperations[] = {
    {"Sum", "Sum", Finish::kNone},
    {"Mean", "Sum", Finish::kDivide},
    {"Prod", "Prod", Finish::kNone},
    {"Max", "Max", Finish::kNone},
    {"Min", "Min", Finish::kNone},
    {"EuclideanNorm", "SumOfSquares", Finish::kRoot},
    {"L2Loss", "SumOfSquares", Finish::kHalve},
    {"All", "And", Finish::kNone},
    {"Any", "Or", Finish::kNone},
};

std::unique_ptr<Kernel> prepare_reduction(const PrepareContext& p) {
  const auto& operation =
      *std::ranges::find(kOperations, std::string_view(p.op().name()), &Operation::op);
  return make_reduction_kernel(p, operation.operation, operation.finish, axes_of(p));
}

}  // namespace

std::unique_ptr<Kernel> make_reduction_kernel(const PrepareContext& p, std::string_view operation,
                                              Finish finish, const std::vector<bool>& reduced) {
  const auto& device = static_cast<const CudaDevice&>(p.device());
  const std::vector<Axis> axes = host::merged_axes(p.input_shape(0), reduced);
  Reduction reduction{&function_of(operation, p.input_type(0)), passes_of(axes, device)};
  ReducePass& last = reduction.passes.back();
  last.finish = finish;
  for (const Axis& axis : axes) {
    if (axis.reduced) last.divisor *= static_cast<double>(axis.extent);
  }
  reduction.bytes = scratch_of(reduction.passes, dtype_size(p.input_type(0)));
  const size_t scratch = 2 * reduction.bytes;
  auto kernel =
      make_launching_kernel(p, [reduction = std::move(reduction)](RunContext& c, CudaDevice& gpu) {
        reduction.launch(gpu, c.input(0).raw(), c.output(0).raw(), c.scratch());
      });
  kernel->scratch_bytes = scratch;
  return kernel;
}

void register_reduction_kernels(KernelRegistrations& r) {
  for (const Operation& operation : kOperations) {
    std::vector<DType> dtypes;
    for (const Function& function : kFunctions) {
      const bool rounds = operation.finish == Finish::kDivide && is_integer(function.dtype);
      if (function.operation == operation.operation && !rounds) dtypes.push_back(function.dtype);
    }
    const bool typed = dtypes[0] != DType::kBool;
    r.add(std::string(operation.op),
          typed ? std::vector<TypeConstraint>{{"T", dtypes}} : std::vector<TypeConstraint>{},
          prepare_reduction);
  }
}

}  // namespace treenail::cuda
