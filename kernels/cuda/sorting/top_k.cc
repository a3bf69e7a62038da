// SPDX-License-Identifier: Apache-2.0
// TopK and InTopK.
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/base/error.h"
#include "framework/tensor/half.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/sorting/radix_host.h"
#include "kernels/cuda/sorting/top_k_types.h"

namespace treenail::cuda {
namespace {

struct Functions {
  DType dtype, key;
  GpuFunction keys, take;
};
#define TN_TOP_K(S, type, Key, key)                                   \
  {dtype_of<S>, dtype_of<Key>, GpuFunction("descending_keys_" #type), \
   GpuFunction("take_positions_" #type)},
constinit const Functions kFunctions[] = {TN_TOP_K_TYPES(TN_TOP_K)};
#undef TN_TOP_K

const Functions& functions_of(DType dtype) {
  for (const Functions& functions : kFunctions) {
    if (functions.dtype == dtype) return functions;
  }
  throw internal_error("no kernel sorts ", dtype);
}

void top_k(CudaDevice& device, const Functions& functions, const Tensor& x, Tensor& values,
           Tensor& indices) {
  if (values.num_elements() == 0) return;
  const int64_t row = x.dim(x.rank() - 1), k = values.dim(x.rank() - 1), n = x.num_elements();
  Tensor keys(functions.key, Shape({n / row, row}), &device);
  functions.keys.launch(device, grid_for(device, n), n, x.raw(), keys.raw());
  const int bits = static_cast<int>(8 * dtype_size(x.dtype()));
  const SortedRows sorted = sort_rows(device, std::move(keys), bits, k);
  const int64_t taken = values.num_elements();
  functions.take.launch(device, grid_for(device, taken), taken, k, row, sorted.positions.dim(1),
                        x.raw(), sorted.positions.data<uint32_t>(), values.raw(), indices.raw());
}

std::unique_ptr<Kernel> prepare_top_k(const PrepareContext& p) {
  return make_launching_kernel(
      p, [&functions = functions_of(p.input_type(0))](RunContext& c, CudaDevice& device) {
        top_k(device, functions, c.input(0), c.output(0), c.output(1));
      });
}

constinit const GpuFunction kInTopK32("in_top_k_int32"), kInTopK64("in_top_k_int64");

std::unique_ptr<Kernel> prepare_in_top_k(const PrepareContext& p) {
  const int64_t batch = p.input_shape(0).dim(0), classes = p.input_shape(0).dim(1);
  const GpuFunction& function = p.input_type(1) == DType::kInt32 ? kInTopK32 : kInTopK64;
  return make_launching_kernel(p, [&function, batch, classes, k = scalar_int64(p.host_value(2))](
                                      RunContext& c, CudaDevice& device) {
    const int lanes = lanes_for(classes, 4);
    function.launch(device, grid_for(device, batch * lanes), batch, classes, k, lanes,
                    c.input(0).raw(), c.input(1).raw(), c.output(0).raw());
  });
}

}  // namespace

void register_top_k_kernels(KernelRegistrations& r) {
  std::vector<DType> dtypes;
  for (const Functions& functions : kFunctions) dtypes.push_back(functions.dtype);
  r.add("TopK", {{"T", dtypes}}, prepare_top_k);
  r.add_plain("InTopK", prepare_in_top_k);
}

}  // namespace treenail::cuda
