// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/beam_search.cc.
#include <algorithm>
#include <memory>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/tensor.h"

namespace treenail::host {
namespace {

struct Extents {
  int64_t time, batch, beams;

  [[nodiscard]] int64_t at(int64_t t, int64_t b, int64_t k) const {
    return (t * batch + b) * beams + k;
  }
};

// Of one beam: from step `last` back, then nothing behind the first end. A parent out of range
// means that the tensors belong to no search.
void gather_beam(RunContext& c, const Extents& e, int64_t b, int64_t k, int64_t last) {
  const int32_t* steps = c.input(0).data<int32_t>();
  const int32_t* parents = c.input(1).data<int32_t>();
  const int32_t end = *c.input(3).data<int32_t>();
  int32_t* out = c.output(0).data<int32_t>();
  int64_t beam = k;
  for (int64_t t = last; t >= 0; --t) {
    out[e.at(t, b, k)] = steps[e.at(t, b, beam)];
    if (t == 0) break;
    const int32_t parent = parents[e.at(t, b, beam)];
    if (parent < 0 || parent >= e.beams) {
      throw invalid_argument("Saw invalid parent id ", parent, " at (batch, time, beam) == (", b,
                             ", ", t, ", ", beam, "): it is not in [0, ", e.beams, ")");
    }
    beam = parent;
  }
  bool ended = false;
  for (int64_t t = 0; t < e.time; ++t) {
    int32_t& id = out[e.at(t, b, k)];
    if (ended || t > last) id = end;
    ended = ended || id == end;
  }
}

std::unique_ptr<Kernel> prepare_gather_tree(const PrepareContext& p) {
  const Shape& shape = p.input_shape(0);
  const Extents e{shape.dim(0), shape.dim(1), shape.dim(2)};
  return make_kernel(
      [e](RunContext& c) {
        const int32_t* lengths = c.input(2).data<int32_t>();
        for (int64_t b = 0; b < e.batch; ++b) {
          const int64_t last = std::min<int64_t>(lengths[b], e.time) - 1;
          for (int64_t k = 0; k < e.beams; ++k) gather_beam(c, e, b, k, last);
        }
      },
      20 + 3.0 * static_cast<double>(shape.num_elements()));
}

}  // namespace

void register_beam_search_kernels(KernelRegistry& r) {
  r.add("GatherTree", {}, prepare_gather_tree);
}

}  // namespace treenail::host
