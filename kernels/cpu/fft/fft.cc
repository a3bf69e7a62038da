// SPDX-License-Identifier: Apache-2.0
// Kernels of the Fourier transforms over the last one to three axes: one axis after the other, the
// last one first where numbers come in as reals and last where they leave as such.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/fft/fft_axis.h"
#include "kernels/cpu/fft/fft_boxes.h"
#include "kernels/cpu/fft/fft_real.h"

namespace treenail::cpu {
namespace {

// Complex transforms along the axes of `boxes` before the last one.
template <class T>
std::vector<std::shared_ptr<const AxisFft<T>>> outer_axes(const Boxes& boxes, int axes) {
  std::vector<std::shared_ptr<const AxisFft<T>>> result;
  int64_t inner = boxes.last();
  for (int i = kMostAxes - 2; i >= kMostAxes - axes; --i) {
    int64_t outer = boxes.batch;
    for (int k = 0; k < i; ++k) outer *= boxes.extent[k];
    result.push_back(std::make_shared<const AxisFft<T>>(outer, boxes.extent[i], inner));
    inner *= boxes.extent[i];
  }
  return result;
}

template <class T>
struct Need {
  size_t scratch = 0;
  double cost = 1000;
  void add(size_t bytes, double ns) {
    scratch = std::max(scratch, bytes);
    cost += ns;
  }
  void add(const std::vector<std::shared_ptr<const AxisFft<T>>>& axes) {
    for (const auto& axis : axes) add(axis->scratch_bytes(), axis->cost_ns());
  }
};

std::unique_ptr<Kernel> nothing() {
  return make_kernel([](RunContext&) {});
}

template <class T>
std::unique_ptr<Kernel> complex_kernel(const PrepareContext& p, int axes, bool inverse) {
  const Shape& shape = p.input_shape(0);
  if (shape.num_elements() == 0) return nothing();
  const Boxes boxes = Boxes::of(shape, axes);
  auto last = std::make_shared<const AxisFft<T>>(boxes.lines(), boxes.last(), 1);
  auto others = outer_axes<T>(boxes, axes);
  Need<T> need;
  need.add(last->scratch_bytes(), last->cost_ns());
  need.add(others);
  const T scale = inverse ? static_cast<T>(1 / boxes.size()) : T(1);
  return make_kernel(
      [=](RunContext& c) {
        const T* const from = static_cast<const T*>(c.input(0).raw());
        T* const to = static_cast<T*>(c.output(0).raw());
        last->run(c, from, to, inverse, scale, c.scratch());
        for (const auto& axis : others) axis->run(c, to, to, inverse, T(1), c.scratch());
      },
      need.cost, need.scratch);
}

template <class T>
std::unique_ptr<Kernel> rfft_kernel(const PrepareContext& p, int axes) {
  if (p.output_shape(0).num_elements() == 0) return nothing();
  const Boxes spectrum = Boxes::of(p.output_shape(0), axes);
  const Boxes given = Boxes::of(p.input_shape(0), axes);
  Boxes wanted = spectrum;
  wanted.last() = p.host_value(1).data<int32_t>()[axes - 1];
  auto last = std::make_shared<const RealFft<T>>(wanted.lines(), wanted.last());
  auto others = outer_axes<T>(spectrum, axes);
  Need<T> need;
  need.add(last->scratch_bytes(), last->cost_ns());
  need.add(others);
  const bool fits = same_extents(given, wanted);
  const size_t before = fits ? 0 : fitted_bytes<T>(wanted, 1);
  return make_kernel(
      [=](RunContext& c) {
        const T* from = static_cast<const T*>(c.input(0).raw());
        T* const to = static_cast<T*>(c.output(0).raw());
        std::byte* const scratch = c.scratch() + before;
        if (!fits) {
          T* const fitted = reinterpret_cast<T*>(c.scratch());
          fit(c, given, wanted, 1, from, fitted);
          from = fitted;
        }
        last->forward(c, from, to, scratch);
        for (const auto& axis : others) axis->run(c, to, to, false, T(1), scratch);
      },
      need.cost, before + need.scratch);
}

template <class T>
std::unique_ptr<Kernel> irfft_kernel(const PrepareContext& p, int axes) {
  if (p.output_shape(0).num_elements() == 0) return nothing();
  const Boxes real = Boxes::of(p.output_shape(0), axes);
  const Boxes given = Boxes::of(p.input_shape(0), axes);
  Boxes wanted = real;
  wanted.last() = real.last() / 2 + 1;
  auto last = std::make_shared<const RealFft<T>>(real.lines(), real.last());
  auto others = outer_axes<T>(wanted, axes);
  Need<T> need;
  need.add(last->scratch_bytes(), last->cost_ns());
  need.add(others);
  // The other axes are transformed in a copy.
  const bool fits = same_extents(given, wanted) && axes == 1;
  const size_t before = fits ? 0 : fitted_bytes<T>(wanted, 2);
  const T scale = static_cast<T>(1 / real.size());
  return make_kernel(
      [=](RunContext& c) {
        const T* from = static_cast<const T*>(c.input(0).raw());
        std::byte* const scratch = c.scratch() + before;
        if (!fits) {
          T* const fitted = reinterpret_cast<T*>(c.scratch());
          fit(c, given, wanted, 2, from, fitted);
          for (const auto& axis : others) axis->run(c, fitted, fitted, true, T(1), scratch);
          from = fitted;
        }
        last->backward(c, from, static_cast<T*>(c.output(0).raw()), scale, scratch);
      },
      need.cost, before + need.scratch);
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
void register_axes(KernelRegistry& r, DType real, DType complex) {
  const std::string suffix = kAxes == 1 ? "" : std::to_string(kAxes) + "D";
  r.add("FFT" + suffix, {{"Tcomplex", {complex}}}, prepare_complex<T, kAxes, false>);
  r.add("IFFT" + suffix, {{"Tcomplex", {complex}}}, prepare_complex<T, kAxes, true>);
  r.add("RFFT" + suffix, {{"Treal", {real}}}, prepare_rfft<T, kAxes>);
  r.add("IRFFT" + suffix, {{"Treal", {real}}}, prepare_irfft<T, kAxes>);
}

template <class T>
void register_type(KernelRegistry& r, DType real, DType complex) {
  register_axes<T, 1>(r, real, complex);
  register_axes<T, 2>(r, real, complex);
  register_axes<T, kMostAxes>(r, real, complex);
}

}  // namespace

void register_fft_kernels(KernelRegistry& r) {
  register_type<float>(r, DType::kFloat32, DType::kComplex64);
  register_type<double>(r, DType::kFloat64, DType::kComplex128);
}

}  // namespace treenail::cpu
