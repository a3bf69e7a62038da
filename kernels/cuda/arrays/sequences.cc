// SPDX-License-Identifier: Apache-2.0
// Range and LinSpace.
#include <cstdint>
#include <memory>
#include <type_traits>

#include "framework/tensor/half.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"

namespace treenail::cuda {
namespace {

template <class T>
std::unique_ptr<Kernel> range_kernel(const PrepareContext& p) {
  using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  const auto wide = [&p](int i) {
    const T value = *p.host_value(i).data<T>();
    if constexpr (sizeof(T) == 2) {
      return static_cast<Wide>(static_cast<float>(value));
    } else {
      return static_cast<Wide>(value);
    }
  };
  return make_launching_kernel(
      p, [start = wide(0), delta = wide(2), function = function_for("range", p.output_type(0))](
             RunContext& c, CudaDevice& device) {
        const int64_t n = c.output(0).num_elements();
        function.launch(device, grid_for(device, n), n, start, delta, c.output(0).raw());
      });
}

std::unique_ptr<Kernel> prepare_range(const PrepareContext& p) {
  return dispatch<float, double, Float16, BFloat16, int32_t, int64_t>(
      p.output_type(0), [&p]<class T>() { return range_kernel<T>(p); });
}

std::unique_ptr<Kernel> prepare_line(const PrepareContext& p) {
  return make_launching_kernel(
      p, [function = function_for("line", p.output_type(0))](RunContext& c, CudaDevice& device) {
        const int64_t n = c.output(0).num_elements();
        const void* const start = c.input(0).raw();
        function.launch(device, grid_for(device, n), n, start, c.input(1).raw(), c.output(0).raw());
      });
}

}  // namespace

void register_sequences_kernels(KernelRegistrations& r) {
  r.add_plain("Range", prepare_range);
  r.add_plain("LinSpace", prepare_line);
}

}  // namespace treenail::cuda
