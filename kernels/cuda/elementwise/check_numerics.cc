// SPDX-License-Identifier: Apache-2.0
// CheckNumerics: what was found is read when the queue is past it.
#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>

#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/host/elementwise/not_finite.h"

namespace treenail::cuda {
namespace {

using Found = std::array<int32_t, 2>;  // a NaN, an infinity

void report(CudaDevice& device, const void* word, const std::string& message, Failure failure) {
  auto found = std::make_shared<Found>();
  device.copy_out(found->data(), word, sizeof(Found));
  device.when_done([found, failure, message](const std::exception_ptr& lost) {
    if (lost != nullptr) return;
    try {
      host::check_finite(message, (*found)[0] != 0, (*found)[1] != 0);
    } catch (...) {
      failure(std::current_exception());
    }
  });
}

const char* kernel_name(DType dtype) {
  switch (dtype_size(dtype)) {
    case 2:
      return "check_numerics_2";
    case 4:
      return "check_numerics_4";
    default:
      return "check_numerics_8";
  }
}

std::unique_ptr<Kernel> prepare_check_numerics(const PrepareContext& p) {
  const DType dtype = p.input_type(0);
  auto kernel = make_launching_kernel(
      p,
      [function = GpuFunction(kernel_name(dtype)), infinity = host::infinity_bits(dtype),
       message = p.op().get_string("message")](RunContext& c, CudaDevice& device, Failure failure) {
        const int64_t n = c.output(0).num_elements();
        if (n == 0) return;
        std::byte* const found = c.scratch();
        device.zero(found, sizeof(Found));
        const void* const x = c.input(0).raw();
        function.launch(device, grid_for(device, n, 4), n, infinity, x, c.output(0).raw(), found);
        report(device, found, message, failure);
      });
  kernel->scratch_bytes = sizeof(Found);
  return kernel;
}

}  // namespace

void register_check_numerics_kernels(KernelRegistrations& r) {
  r.add_plain("CheckNumerics", prepare_check_numerics);
}

}  // namespace treenail::cuda
