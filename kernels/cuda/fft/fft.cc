// SPDX-License-Identifier: Apache-2.0
// FFT, IFFT, RFFT and IRFFT over the last one to three axes, by cuFFT.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/fft/fft_host.h"
#include "kernels/cuda/fft/fft_space.h"
#include "kernels/host/fft/boxes.h"

namespace treenail::cuda {
namespace {

using host::Boxes;

std::unique_ptr<Kernel> nothing(const PrepareContext& p) {
  return make_launching_kernel(p, [](RunContext&, CudaDevice&) {});
}

std::shared_ptr<const FftPlan> plan_of(const PrepareContext& p, cufftType type, const Boxes& boxes,
                                       int axes) {
  return std::make_shared<const FftPlan>(
      static_cast<CudaDevice&>(p.device()), type,
      std::span(boxes.extent + host::kMostAxes - axes, static_cast<size_t>(axes)), boxes.batch);
}

gpu::FftSpace space_of(const Boxes& given, const Boxes& wanted) {
  gpu::FftSpace space;
  space.batch = wanted.batch;
  std::copy_n(given.extent, 3, space.given);
  std::copy_n(wanted.extent, 3, space.wanted);
  return space;
}

template <class T>
GpuFunction function_for(const char* what) {
  return GpuFunction(kept_name(concat(what, sizeof(T) == 4 ? "_float" : "_double")));
}

template <class T>
constexpr bool kDouble = sizeof(T) == sizeof(double);

int64_t elements(const Boxes& boxes) { return boxes.lines() * boxes.last(); }

// --- Between complex numbers --------------------------------------------------------------------

template <class T>
std::unique_ptr<Kernel> complex_kernel(const PrepareContext& p, int axes, bool inverse) {
  if (p.input_shape(0).num_elements() == 0) return nothing(p);
  const Boxes boxes = Boxes::of(p.input_shape(0), axes);
  const auto plan = plan_of(p, kDouble<T> ? CUFFT_Z2Z : CUFFT_C2C, boxes, axes);
  auto kernel = make_launching_kernel(
      p, [=, scale = function_for<T>("fft_scale")](RunContext& c, CudaDevice& device) {
        void *const from = const_cast<void*>(c.input(0).raw()), *const to = c.output(0).raw();
        plan->launch(from, to, inverse, c.scratch());
        const int64_t n = elements(boxes);
        if (inverse) scale.launch(device, grid_for(device, n), n, 1 / boxes.size(), to);
      });
  kernel->scratch_bytes = plan->scratch_bytes();
  return kernel;
}

// --- Real numbers and half of their spectrum ----------------------------------------------------

// A copy that lies as the transform wants it, until what is queued has been done.
class Copy {
 public:
  Copy(CudaDevice& device, size_t bytes)
      : device_(device), bytes_(bytes), at_(device.allocate(bytes)) {}
  ~Copy() { device_.deallocate(at_, bytes_); }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  void* get() const { return at_; }

 private:
  CudaDevice& device_;
  const size_t bytes_;
  void* const at_;
};

template <class T>
std::unique_ptr<Kernel> rfft_kernel(const PrepareContext& p, int axes) {
  if (p.output_shape(0).num_elements() == 0) return nothing(p);
  const Boxes given = Boxes::of(p.input_shape(0), axes);
  Boxes wanted = Boxes::of(p.output_shape(0), axes);
  wanted.last() = p.host_value(1).data<int32_t>()[axes - 1];
  const auto plan = plan_of(p, kDouble<T> ? CUFFT_D2Z : CUFFT_R2C, wanted, axes);
  const bool fits = same_extents(given, wanted);
  auto kernel = make_launching_kernel(
      p, [=, fit = function_for<T>("fft_fit")](RunContext& c, CudaDevice& device) {
        const void* const from = c.input(0).raw();
        if (fits && reinterpret_cast<uintptr_t>(from) % (2 * sizeof(T)) == 0)
          return plan->launch(const_cast<void*>(from), c.output(0).raw(), false, c.scratch());
        const int64_t n = elements(wanted);
        const Copy fitted(device, static_cast<size_t>(n) * sizeof(T));
        fit.launch(device, grid_for(device, n), space_of(given, wanted), from, fitted.get());
        plan->launch(fitted.get(), c.output(0).raw(), false, c.scratch());
      });
  kernel->scratch_bytes = plan->scratch_bytes();
  return kernel;
}

// In a copy, for the transform spoils its input; on the way there it is normalised.
template <class T>
std::unique_ptr<Kernel> irfft_kernel(const PrepareContext& p, int axes) {
  if (p.output_shape(0).num_elements() == 0) return nothing(p);
  const Boxes real = Boxes::of(p.output_shape(0), axes), given = Boxes::of(p.input_shape(0), axes);
  Boxes wanted = real;
  wanted.last() = real.last() / 2 + 1;
  const auto plan = plan_of(p, kDouble<T> ? CUFFT_Z2D : CUFFT_C2R, real, axes);
  const int64_t n = elements(wanted);
  const int even = real.last() % 2 == 0 ? 1 : 0;
  auto kernel = make_launching_kernel(
      p, [=, fit = function_for<T>("fft_spectrum")](RunContext& c, CudaDevice& device) {
        const void* const from = c.input(0).raw();
        const Copy fitted(device, static_cast<size_t>(n) * 2 * sizeof(T));
        fit.launch(device, grid_for(device, n), space_of(given, wanted), even, 1 / real.size(),
                   from, fitted.get());
        plan->launch(fitted.get(), c.output(0).raw(), false, c.scratch());
      });
  kernel->scratch_bytes = plan->scratch_bytes();
  return kernel;
}

template <class T, int kAxes, bool kInverse>
std::unique_ptr<Kernel> prepare_complex(const PrepareContext& p) {
  return complex_kernel<T>(p, kAxes, kInverse);
}
template <class T, int kAxes>
std::unique_ptr<Kernel> prepare_rfft(const PrepareContext& p) {
  return rfft_kernel<T>(p, kAxes);
}
template <class T, int kAxes>
std::unique_ptr<Kernel> prepare_irfft(const PrepareContext& p) {
  return irfft_kernel<T>(p, kAxes);
}

template <class T, int kAxes>
void register_axes(KernelRegistrations& r, DType real, DType complex) {
  const std::string suffix = kAxes == 1 ? "" : std::to_string(kAxes) + "D";
  r.add("FFT" + suffix, {{"Tcomplex", {complex}}}, prepare_complex<T, kAxes, false>);
  r.add("IFFT" + suffix, {{"Tcomplex", {complex}}}, prepare_complex<T, kAxes, true>);
  r.add("RFFT" + suffix, {{"Treal", {real}}}, prepare_rfft<T, kAxes>);
  r.add("IRFFT" + suffix, {{"Treal", {real}}}, prepare_irfft<T, kAxes>);
}

template <class T>
void register_type(KernelRegistrations& r, DType real, DType complex) {
  register_axes<T, 1>(r, real, complex);
  register_axes<T, 2>(r, real, complex);
  register_axes<T, 3>(r, real, complex);
}

}  // namespace

void register_fft_kernels(KernelRegistrations& r) {
  register_type<float>(r, DType::kFloat32, DType::kComplex64);
  register_type<double>(r, DType::kFloat64, DType::kComplex128);
}

}  // namespace treenail::cuda
