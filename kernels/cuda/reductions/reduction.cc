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
#include "framework/tensor/half.h"
#include "framework/tensor/tensor.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/elementwise/added_as_host.h"
#include "kernels/cuda/reductions/reduce_pass.h"
#include "kernels/cuda/reductions/reduction_host.h"
#include "kernels/cuda/reductions/reductions.h"
#include "kernels/host/reductions/merged_axes.h"

namespace treenail::cuda {
namespace {

using gpu::Finish;
using gpu::ReducePass;

// --- Kernels by name ----------------------------------------------------------------------------

struct Function {
  std::string_view operation;
  DType computed, read, written;
  GpuFunction rows, columns;
};

#define TN_REDUCTION(Op, C, In, in, Out, out)        \
  {#Op,                                              \
   dtype_of<C>,                                      \
   dtype_of<In>,                                     \
   dtype_of<Out>,                                    \
   GpuFunction("reduce_rows_" #Op "_" #in "_" #out), \
   GpuFunction("reduce_columns_" #Op "_" #in "_" #out)},
constinit const Function kFunctions[] = {TN_REDUCTIONS(TN_REDUCTION)};
#undef TN_REDUCTION

const Function& function_of(std::string_view operation, DType read, DType written) {
  for (const Function& function : kFunctions) {
    if (function.operation == operation && function.read == read && function.written == written)
      return function;
  }
  throw internal_error("no kernel reduces ", read, " to ", written, " by ", operation);
}

// --- Passes -------------------------------------------------------------------------------------

using Axis = host::MergedAxis;

int64_t product_of(const std::vector<Axis>& axes, size_t first, size_t last) {
  int64_t product = 1;
  for (size_t i = first; i < last; ++i) product *= axes[i].extent;
  return product;
}

// As many chunks as keep a large device busy, of no less than kShortest elements: the same on every
// device, so that all of them add in one order.
void cut(ReducePass& p) {
  constexpr int64_t kShortest = 1024, kThreads = int64_t{1} << 18;
  const int64_t results = p.outer * p.inner;
  const int64_t each = p.inner == 1 ? gpu::kMostThreads : 1;  // threads for one result
  const int64_t due = std::max<int64_t>(1, kThreads / std::max<int64_t>(1, results * each));
  p.chunks = std::clamp<int64_t>(p.extent / kShortest, 1, due);
  p.chunk = (p.extent + p.chunks - 1) / p.chunks;
  if (p.chunk > 0) p.chunks = (p.extent + p.chunk - 1) / p.chunk;
  p.lanes = lanes_for(p.chunk, 4);
}

void add_passes(std::vector<ReducePass>& passes, int64_t outer, int64_t extent, int64_t inner) {
  do {
    ReducePass p;
    p.outer = outer;
    p.extent = extent;
    p.inner = inner;
    p.mapped = passes.empty() ? 0 : 1;
    cut(p);
    passes.push_back(p);
    extent = p.chunks;
  } while (extent > 1);
}

// From the innermost reduced axis to the outermost. Where none is reduced, elements still go
// through the map.
std::vector<ReducePass> passes_of(std::vector<Axis> axes) {
  std::vector<ReducePass> passes;
  for (size_t i = axes.size(); i-- > 0;) {
    if (!axes[i].reduced) continue;
    add_passes(passes, product_of(axes, 0, i), axes[i].extent,
               product_of(axes, i + 1, axes.size()));
    axes[i] = {1, false};
  }
  if (passes.empty()) add_passes(passes, product_of(axes, 0, axes.size()), 1, 1);
  return passes;
}

// Complex numbers are added as their parts are.
AddedAs reduced_as(std::string_view operation, DType dtype) {
  if (operation == "Sum" && is_complex(dtype)) return added_as(dtype);
  return {dtype, 1};
}
// Where an element is so many numbers, which lie along an axis of their own and stay.
std::vector<Axis> with_parts(std::vector<Axis> axes, int numbers) {
  if (numbers > 1) axes.push_back({numbers, false});
  return axes;
}

// Of one of two buffers for partial results.
size_t scratch_of(const std::vector<ReducePass>& passes, size_t element_bytes) {
  int64_t most = 0;
  for (size_t i = 0; i + 1 < passes.size(); ++i)
    most = std::max(most, passes[i].outer * passes[i].chunks * passes[i].inner);
  constexpr size_t kUnit = 64;
  return (static_cast<size_t>(most) * element_bytes + kUnit - 1) / kUnit * kUnit;
}

// One for each pass: what is stored is read first and written last.
std::vector<const Function*> functions_of(std::string_view operation, DType stored, size_t passes) {
  const DType computed = function_of(operation, stored, stored).computed;
  std::vector<const Function*> functions;
  for (size_t i = 0; i < passes; ++i) {
    functions.push_back(
        &function_of(operation, i == 0 ? stored : computed, i + 1 == passes ? stored : computed));
  }
  return functions;
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

ArrayReduction::ArrayReduction(std::string_view operation, DType dtype, const Shape& shape,
                               const std::vector<bool>& reduced, Finish finish) {
  const std::vector<Axis> axes = host::merged_axes(shape, reduced);
  const AddedAs how = reduced_as(operation, dtype);
  std::vector<ReducePass> passes = passes_of(with_parts(axes, how.numbers));
  const auto functions = functions_of(operation, how.dtype, passes.size());
  ReducePass& last = passes.back();
  last.finish = finish;
  for (const Axis& axis : axes) {
    if (axis.reduced) last.divisor *= static_cast<double>(axis.extent);
  }
  bytes_ = scratch_of(passes, dtype_size(functions.front()->computed));
  for (size_t i = 0; i < passes.size(); ++i)
    passes_.push_back(
        {passes[i], passes[i].inner == 1 ? &functions[i]->rows : &functions[i]->columns});
}

void ArrayReduction::launch(CudaDevice& device, const void* from, void* to,
                            std::byte* scratch) const {
  for (size_t i = 0; i < passes_.size(); ++i) {
    const auto& [p, function] = passes_[i];
    void* const target = i + 1 == passes_.size() ? to : scratch + i % 2 * bytes_;
    const int64_t results = p.outer * p.chunks * p.inner;
    function->launch(device, grid_for(device, p.inner == 1 ? results * p.lanes : results), p, from,
                     target);
    from = target;
  }
}

std::unique_ptr<Kernel> make_reduction_kernel(const PrepareContext& p, std::string_view operation,
                                              Finish finish, const std::vector<bool>& reduced) {
  ArrayReduction reduction(operation, p.input_type(0), p.input_shape(0), reduced, finish);
  const size_t scratch = reduction.scratch_bytes();
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
      if (function.operation == operation.operation && function.read == function.written)
        dtypes.push_back(function.read);
    }
    if (operation.operation == "Sum")
      dtypes.insert(dtypes.end(), {DType::kComplex64, DType::kComplex128});
    const bool typed = dtypes[0] != DType::kBool;
    r.add(std::string(operation.op),
          typed ? std::vector<TypeConstraint>{{"T", dtypes}} : std::vector<TypeConstraint>{},
          prepare_reduction);
  }
}

}  // namespace treenail::cuda
