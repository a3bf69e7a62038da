// SPDX-License-Identifier: Apache-2.0
// AddN, in launches of so many terms each.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/elementwise/add_n_host.h"
#include "kernels/cuda/elementwise/add_n_terms.h"
#include "kernels/cuda/elementwise/added_as_host.h"

namespace treenail::cuda {
namespace {

struct Function {
  DType dtype;
  GpuFunction function;
};
constinit const Function kFunctions[] = {
    {DType::kFloat32, GpuFunction("add_n_float32")},
    {DType::kFloat64, GpuFunction("add_n_float64")},
    {DType::kFloat16, GpuFunction("add_n_float16")},
    {DType::kBFloat16, GpuFunction("add_n_bfloat16")},
    {DType::kUInt8, GpuFunction("add_n_uint8")},
    {DType::kUInt16, GpuFunction("add_n_uint16")},
    {DType::kUInt32, GpuFunction("add_n_uint32")},
    {DType::kUInt64, GpuFunction("add_n_uint64")},
};
const GpuFunction& function_of(DType dtype) {
  return std::ranges::find(kFunctions, dtype, &Function::dtype)->function;
}

bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

std::unique_ptr<Kernel> prepare_add_n(const PrepareContext& p) {
  return make_launching_kernel(p, [inputs = p.num_inputs()](RunContext& c, CudaDevice& device) {
    std::vector<const void*> terms;
    for (int i = 0; i < inputs; ++i) terms.push_back(c.input(i).raw());
    add_arrays(device, terms, c.output(0));
  });
}

}  // namespace

const std::vector<DType>& added_types() {
  static const auto* const types = new std::vector<DType>{
      DType::kFloat32, DType::kFloat64, DType::kFloat16,   DType::kBFloat16,  DType::kInt8,
      DType::kInt16,   DType::kInt32,   DType::kInt64,     DType::kUInt8,     DType::kUInt16,
      DType::kUInt32,  DType::kUInt64,  DType::kComplex64, DType::kComplex128};
  return *types;
}

void add_arrays(CudaDevice& device, std::span<const void* const> terms, Tensor& y) {
  if (y.num_elements() == 0) return;
  const AddedAs how = added_as(y.dtype());
  const GpuFunction& function = function_of(how.dtype);
  const int64_t n = y.num_elements() * how.numbers;
  Tensor carried;  // floats, where y cannot hold what is added
  if (is_half(y.dtype()) && terms.size() > gpu::kMostTerms)
    carried = Tensor(DType::kFloat32, y.shape(), &device);
  const void* before = nullptr;
  while (!terms.empty()) {
    const size_t count = std::min(terms.size(), size_t{gpu::kMostTerms});
    std::array<const void*, gpu::kMostTerms> x = {};
    std::copy_n(terms.begin(), count, x.begin());
    terms = terms.subspan(count);
    void* const sum = carried.defined() && !terms.empty() ? carried.raw() : nullptr;
    function.launch(device, grid_for(device, n, 4), n, static_cast<int>(count), before, x[0], x[1],
                    x[2], x[3], x[4], x[5], x[6], x[7], sum, y.raw());
    before = carried.defined() ? carried.raw() : y.raw();
  }
}

void register_add_n_kernels(KernelRegistrations& r) {
  r.add("AddN", {{"T", added_types()}}, prepare_add_n);
}

}  // namespace treenail::cuda
