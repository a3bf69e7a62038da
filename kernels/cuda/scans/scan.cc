// SPDX-License-Identifier: Apache-2.0
// Cumsum and Cumprod.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/error.h"
#include "framework/tensor/half.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/elementwise/added_as_host.h"
#include "kernels/cuda/scans/scan_host.h"
#include "kernels/cuda/scans/scan_pass.h"
#include "kernels/host/arrays/axis_split.h"

namespace treenail::cuda {
namespace {

using gpu::ScanPass;

struct Function {
  std::string_view operation;
  DType computed, stored;
  GpuFunction rows, columns;
};
#define TN_SCAN(Op, C, S, type)                                            \
  {#Op, dtype_of<C>, dtype_of<S>, GpuFunction("scan_rows_" #Op "_" #type), \
   GpuFunction("scan_columns_" #Op "_" #type)},
constinit const Function kFunctions[] = {TN_SCANS(TN_SCAN)};
#undef TN_SCAN

const Function* find(std::string_view operation, DType stored) {
  for (const Function& function : kFunctions) {
    if (function.operation == operation && function.stored == stored) return &function;
  }
  return nullptr;
}

// As what the elements are run over, and how many numbers each is.
struct Combination {
  const Function* function;
  int numbers;
};
Combination combination_of(std::string_view operation, DType dtype) {
  const AddedAs how = added_as(dtype);
  const bool known = how.numbers == 1 || operation == "Sum";
  return {known ? find(operation, how.dtype) : nullptr, how.numbers};
}

// As many chunks as keep a large device busy, of no less than kShortest elements: the same on every
// device, so that all of them combine in one order.
void cut(ScanPass& p) {
  constexpr int64_t kShortest = 2048, kThreads = int64_t{1} << 18;
  const int64_t each = p.inner == 1 ? gpu::kMostThreads : 1;  // threads for one chunk
  const int64_t due =
      std::max<int64_t>(1, kThreads / std::max<int64_t>(1, p.outer * p.inner * each));
  p.chunks = std::clamp<int64_t>(p.extent / kShortest, 1, due);
  p.chunk = (p.extent + p.chunks - 1) / p.chunks;
  p.chunks = (p.extent + p.chunk - 1) / p.chunk;
  p.lanes = lanes_for(p.chunk, gpu::kScanEach);
}

struct Scan {
  CudaDevice& device;
  std::string_view operation;

  // before, totals: of chunks, or null.
  void pass(const Function& function, const ScanPass& p, const void* x, const void* before,
            void* totals, void* y) const {
    const int64_t results = p.outer * p.chunks * p.inner;
    const bool rows = p.inner == 1;
    (rows ? function.rows : function.columns)
        .launch(device, grid_for(device, rows ? results * p.lanes : results), p, x, before, totals,
                y);
  }

  void run(const Function& function, ScanPass p, const void* x, void* y) const {
    cut(p);
    if (p.chunks == 1) return pass(function, p, x, nullptr, nullptr, y);
    Tensor totals(function.computed, Shape({p.outer, p.chunks, p.inner}), &device);
    pass(function, p, x, nullptr, totals.raw(), nullptr);
    Tensor before(function.computed, totals.shape(), &device);
    ScanPass over_chunks;
    over_chunks.outer = p.outer;
    over_chunks.extent = p.chunks;
    over_chunks.inner = p.inner;
    over_chunks.exclusive = 1;
    run(*find(operation, function.computed), over_chunks, totals.raw(), before.raw());
    pass(function, p, x, before.raw(), nullptr, y);
  }
};

std::unique_ptr<Kernel> prepare(const PrepareContext& p, std::string_view operation) {
  const Combination how = combination_of(operation, p.input_type(0));
  const host::AxisSplit split = host::split_at_axis(p, 1);
  ScanPass pass;
  pass.outer = split.outer;
  pass.extent = split.extent;
  pass.inner = split.inner * how.numbers;
  pass.exclusive = p.op().get_bool("exclusive") ? 1 : 0;
  pass.reverse = p.op().get_bool("reverse") ? 1 : 0;
  return make_launching_kernel(p, [pass, operation, how](RunContext& c, CudaDevice& device) {
    if (c.output(0).num_elements() == 0) return;
    Scan{device, operation}.run(*how.function, pass, c.input(0).raw(), c.output(0).raw());
  });
}

std::unique_ptr<Kernel> prepare_sum(const PrepareContext& p) { return prepare(p, "Sum"); }
std::unique_ptr<Kernel> prepare_product(const PrepareContext& p) { return prepare(p, "Product"); }

std::vector<DType> types_of(std::string_view operation) {
  constexpr DType kAll[] = {DType::kFloat32,   DType::kFloat64,   DType::kFloat16, DType::kBFloat16,
                            DType::kInt8,      DType::kInt16,     DType::kInt32,   DType::kInt64,
                            DType::kUInt8,     DType::kUInt16,    DType::kUInt32,  DType::kUInt64,
                            DType::kComplex64, DType::kComplex128};
  std::vector<DType> types;
  for (const DType dtype : kAll) {
    if (combination_of(operation, dtype).function != nullptr) types.push_back(dtype);
  }
  return types;
}

}  // namespace

Tensor sums_before(CudaDevice& device, const Tensor& counts) {
  Tensor before(counts.dtype(), counts.shape(), &device);
  ScanPass pass;
  pass.extent = counts.num_elements();
  pass.exclusive = 1;
  Scan{device, "Sum"}.run(*find("Sum", counts.dtype()), pass, counts.raw(), before.raw());
  return before;
}

void register_scan_kernels(KernelRegistrations& r) {
  r.add("Cumsum", {{"T", types_of("Sum")}}, prepare_sum);
  r.add("Cumprod", {{"T", types_of("Product")}}, prepare_product);
}

}  // namespace treenail::cuda
