// SPDX-License-Identifier: Apache-2.0
// BiasAdd and BiasAddGrad of integers, which wrap around, and of complex numbers. Floating-point
// ones: bias.cc.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <memory>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"

namespace treenail::cpu {
namespace {

// value seen as [outer, channels, inner]; inner is 1 when channels come last.
struct Extents {
  int64_t outer = 1, channels, inner = 1;
  Extents(const Shape& value, const OpInstance& op) {
    const int axis = op.get_string("data_format") == "NCHW" ? 1 : value.rank() - 1;
    channels = value.dim(axis);
    for (int i = 0; i < axis; ++i) outer *= value.dim(i);
    for (int i = axis + 1; i < value.rank(); ++i) inner *= value.dim(i);
  }
};

// T has the size of the elements and adds as they do: unsigned for integers.
template <class T>
std::unique_ptr<Kernel> prepare_add(const PrepareContext& p) {
  const Extents e(p.output_shape(0), p.op());
  const double cost = 20 + 0.5 * static_cast<double>(p.output_shape(0).num_elements());
  return make_kernel(
      [=](RunContext& c) {
        const T* x = static_cast<const T*>(c.input(0).raw());
        const T* bias = static_cast<const T*>(c.input(1).raw());
        T* y = static_cast<T*>(c.output(0).raw());
        const int64_t row = e.channels * e.inner;
        const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, row));
        c.parallel_for(e.outer, grain, 0.5 * static_cast<double>(row), [&](int64_t i, int64_t end) {
          for (; i < end; ++i) {
            for (int64_t channel = 0; channel < e.channels; ++channel) {
              const int64_t at = (i * e.channels + channel) * e.inner;
              for (int64_t k = at; k < at + e.inner; ++k)
                y[k] = static_cast<T>(x[k] + bias[channel]);
            }
          }
        });
      },
      cost);
}

// The elements of a channel are added in their order.
template <class T>
std::unique_ptr<Kernel> prepare_grad(const PrepareContext& p) {
  const Extents e(p.input_shape(0), p.op());
  const double per_channel = static_cast<double>(e.outer) * static_cast<double>(e.inner);
  return make_kernel(
      [=](RunContext& c) {
        const T* x = static_cast<const T*>(c.input(0).raw());
        T* sums = static_cast<T*>(c.output(0).raw());
        c.parallel_for(e.channels, 64, per_channel, [&](int64_t channel, int64_t end) {
          std::fill(sums + channel, sums + end, T(0));
          for (int64_t i = 0; i < e.outer; ++i) {
            for (int64_t at = channel; at < end; ++at) {
              const T* from = x + (i * e.channels + at) * e.inner;
              for (int64_t k = 0; k < e.inner; ++k) sums[at] = static_cast<T>(sums[at] + from[k]);
            }
          }
        });
      },
      20 + per_channel * static_cast<double>(e.channels));
}

template <class T>
void register_type(KernelRegistry& r, std::vector<DType> types) {
  const TypeConstraint constraint = {"T", std::move(types)};
  r.add("BiasAdd", {constraint}, prepare_add<T>);
  r.add("BiasAddGrad", {constraint}, prepare_grad<T>);
}

}  // namespace

void register_bias_plain_kernels(KernelRegistry& r) {
  register_type<uint8_t>(r, {DType::kInt8, DType::kUInt8});
  register_type<uint16_t>(r, {DType::kInt16, DType::kUInt16});
  register_type<uint32_t>(r, {DType::kInt32, DType::kUInt32});
  register_type<uint64_t>(r, {DType::kInt64, DType::kUInt64});
  register_type<std::complex<float>>(r, {DType::kComplex64});
  register_type<std::complex<double>>(r, {DType::kComplex128});
}

}  // namespace treenail::cpu
