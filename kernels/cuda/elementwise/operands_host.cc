// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/operands_host.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "framework/base/error.h"
#include "kernels/cuda/elementwise/chain.h"

namespace treenail::cuda {
namespace {

using Strides = std::array<int64_t, gpu::kMostChainInputs>;

// One dimension of the result, with what each operand steps by in it.
struct Dimension {
  int64_t size = 1;
  Strides stride = {};
};

// Of dimension `axis` of the result; `dense`: the elements of each operand inside of it, of which
// there are more afterwards.
Dimension dimension_of(const Shape& result, std::span<const Shape> operands, int axis,
                       Strides& dense) {
  Dimension d{result.dim(axis), {}};
  for (size_t k = 0; k < operands.size(); ++k) {
    const int own = axis - (result.rank() - operands[k].rank());
    const int64_t size = own < 0 ? 1 : operands[k].dim(own);
    d.stride[k] = size == 1 ? 0 : dense[k];
    dense[k] *= size;
  }
  return d;
}

bool continues(const Dimension& inner, const Dimension& outer, size_t operands) {
  for (size_t k = 0; k < operands; ++k) {
    if (outer.stride[k] != inner.stride[k] * inner.size) return false;
  }
  return true;
}

template <int kOperands>
void add(gpu::BroadcastOf<kOperands>& how, const Dimension& d, const Shape& result,
         size_t operands) {
  if (how.rank == gpu::kMostDimensions) {
    throw unimplemented("a GPU broadcasts to at most ", gpu::kMostDimensions,
                        " dimensions that differ between the operands; the result is ", result);
  }
  gpu::add_dimension(how, d.size, d.stride.data(), static_cast<int>(operands));
}

}  // namespace

template <int kOperands>
gpu::BroadcastOf<kOperands> broadcast_of(const Shape& result, std::span<const Shape> operands) {
  gpu::BroadcastOf<kOperands> how;
  if (result.num_elements() == 0) return how;  // nothing is launched
  Strides dense;
  dense.fill(1);
  Dimension joined;
  bool any = false;
  for (int axis = result.rank(); axis-- > 0;) {
    const Dimension d = dimension_of(result, operands, axis, dense);
    if (d.size == 1) continue;
    if (any && continues(joined, d, operands.size())) {
      joined.size *= d.size;
      continue;
    }
    if (any) add(how, joined, result, operands.size());
    joined = d;
    any = true;
  }
  add(how, joined, result, operands.size());
  return how;
}

template gpu::BroadcastOf<gpu::kMostOperands> broadcast_of(const Shape&, std::span<const Shape>);
template gpu::BroadcastOf<gpu::kMostChainInputs> broadcast_of(const Shape&, std::span<const Shape>);

}  // namespace treenail::cuda
