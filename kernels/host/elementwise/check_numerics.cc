// SPDX-License-Identifier: Apache-2.0
// CheckNumerics: hands its input on unless an element is not finite. Judged by bits: an exponent of
// all ones.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/elementwise/not_finite.h"

namespace treenail::host {
namespace {

enum Finding : unsigned { kNan = 1, kInf = 2 };

template <class U>
unsigned inspect(const void* data, int64_t begin, int64_t end, U infinity) {
  const auto* x = static_cast<const U*>(data);
  constexpr U kMagnitude = static_cast<U>(~U{0}) >> 1;
  U nan = 0, inf = 0;
  for (int64_t i = begin; i < end; ++i) {
    const U magnitude = x[i] & kMagnitude;
    nan |= static_cast<U>(magnitude > infinity);
    inf |= static_cast<U>(magnitude == infinity);
  }
  return (nan ? kNan : 0u) | (inf ? kInf : 0u);
}

unsigned inspect(DType dtype, const void* data, int64_t begin, int64_t end) {
  const uint64_t infinity = infinity_bits(dtype);
  switch (dtype_size(dtype)) {
    case 2:
      return inspect(data, begin, end, static_cast<uint16_t>(infinity));
    case 4:
      return inspect(data, begin, end, static_cast<uint32_t>(infinity));
    default:
      return inspect(data, begin, end, infinity);
  }
}

std::unique_ptr<Kernel> prepare_check_numerics(const PrepareContext& c) {
  const int64_t n = c.input_shape(0).num_elements();
  const DType dtype = c.input_type(0);
  return make_kernel(
      [n, dtype, message = c.op().get_string("message")](RunContext& run) {
        std::atomic<unsigned> found{0};
        const auto size = static_cast<int64_t>(dtype_size(dtype));
        const auto* from = static_cast<const std::byte*>(run.input(0).raw());
        auto* to = static_cast<std::byte*>(run.output(0).raw());
        run.parallel_for(n, 64 * 1024, 0.2, [&](int64_t begin, int64_t end) {
          found.fetch_or(inspect(dtype, from, begin, end), std::memory_order_relaxed);
          if (from != to)
            std::memcpy(to + begin * size, from + begin * size,
                        static_cast<size_t>((end - begin) * size));
        });
        check_finite(message, (found & kNan) != 0, (found & kInf) != 0);
      },
      0.2 * static_cast<double>(n));
}

}  // namespace

void register_check_numerics_kernels(KernelRegistry& registry) {
  registry.add("CheckNumerics", {}, prepare_check_numerics);
}

}  // namespace treenail::host
