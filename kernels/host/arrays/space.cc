// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/space.cc. An element of a block is a strided part of the large image and
// a dense part of the small one.
#include <algorithm>
#include <vector>

#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/copy_plan.h"
#include "kernels/host/arrays/elements.h"
#include "kernels/host/arrays/strided_copy.h"

namespace treenail::host {
namespace {

// SpaceToBatchND copies from the large image to the small ones, BatchToSpaceND the other way.
struct BlockCopy {
  DType dtype;
  const Shape& large;
  const Shape& small;
  std::vector<int64_t> block;
  std::vector<int64_t> before;  // border of the large image
  bool to_small;

  StridedCopy part(int64_t place) const;
  std::vector<CopyPlan::Part> all() const {
    int64_t places = 1;
    for (int64_t size : block) places *= size;
    std::vector<CopyPlan::Part> copies;
    for (int64_t place = 0; place < places; ++place) copies.push_back({part(place)});
    return copies;
  }
};

// The elements at one place of every block; `place` counts places row by row.
StridedCopy BlockCopy::part(int64_t place) const {
  const Strides of_large = dense_strides(large);
  const Strides of_small = dense_strides(small);
  const int m = static_cast<int>(block.size());
  StridedCopy copy(dtype);
  const auto add = [&](int64_t extent, int64_t in_large, int64_t in_small) {
    copy.axis(extent, to_small ? in_large : in_small, to_small ? in_small : in_large);
  };
  const int64_t batch = large.dim(0);
  int64_t large_offset = 0;
  int64_t small_offset = place * batch * of_small[0];
  add(batch, of_large[0], of_small[0]);
  int64_t offsets[kMaxRank];
  for (int i = m; i-- > 0;) {
    offsets[i] = place % block[static_cast<size_t>(i)];
    place /= block[static_cast<size_t>(i)];
  }
  for (int i = 0; i < m; ++i) {
    const int64_t size = block[static_cast<size_t>(i)];
    // Place h of the small image is h * size + shift in the large one, where that is inside.
    const int64_t shift = offsets[i] - before[static_cast<size_t>(i)];
    const int64_t first = shift >= 0 ? 0 : (-shift + size - 1) / size;
    const int64_t room = large.dim(i + 1) - 1 - shift;
    const int64_t last = room < 0 ? -1 : std::min(room / size, small.dim(i + 1) - 1);
    add(std::max<int64_t>(last - first + 1, 0), of_large[i + 1] * size, of_small[i + 1]);
    large_offset += (first * size + shift) * of_large[i + 1];
    small_offset += first * of_small[i + 1];
  }
  for (int i = m + 1; i < large.rank(); ++i) add(large.dim(i), of_large[i], of_small[i]);
  return copy
      .offsets(to_small ? large_offset : small_offset, to_small ? small_offset : large_offset)
      .finish();
}

CopyPlan plan_block_copy(const PrepareContext& p, bool to_small) {
  const Shape& large = to_small ? p.input_shape(0) : p.output_shape(0);
  const Shape& small = to_small ? p.output_shape(0) : p.input_shape(0);
  BlockCopy blocks{p.output_type(0), large, small, {}, {}, to_small};
  const Tensor& borders = p.host_value(2);
  bool bordered = false;
  int64_t storage[kMaxRank];
  for (int64_t size : as_int64(p.host_value(1), storage)) {
    const size_t i = blocks.block.size();
    const auto at = [&](size_t k) -> int64_t {
      return borders.dtype() == DType::kInt32 ? borders.data<int32_t>()[2 * i + k]
                                              : borders.data<int64_t>()[2 * i + k];
    };
    bordered = bordered || at(0) != 0 || at(1) != 0;
    blocks.block.push_back(size);
    blocks.before.push_back(at(0));
  }
  CopyPlan plan;
  plan.zeros = to_small && bordered;
  if (p.output_shape(0).num_elements() > 0)
    plan.parts = blocks.all();  // else the number of places has no bound
  return plan;
}

CopyPlan plan_space_to_batch(const PrepareContext& p) { return plan_block_copy(p, true); }
CopyPlan plan_batch_to_space(const PrepareContext& p) { return plan_block_copy(p, false); }

// Axes in the order (batch, height, block row, width, block column, depth), with strides in the
// wide and in the deep image.
CopyPlan plan_depth(const PrepareContext& p, bool to_depth) {
  const Shape& wide = to_depth ? p.input_shape(0) : p.output_shape(0);
  const Shape& deep = to_depth ? p.output_shape(0) : p.input_shape(0);
  const bool last = p.op().get_string("data_format") == "NHWC";
  const int h = last ? 1 : 2;
  const int w = h + 1;
  const int d = last ? 3 : 1;
  const int64_t block = p.op().get_int("block_size");
  const Strides of_wide = dense_strides(wide);
  const Strides of_deep = dense_strides(deep);
  StridedCopy copy(p.output_type(0));
  const auto add = [&](int64_t extent, int64_t in_wide, int64_t in_deep) {
    copy.axis(extent, to_depth ? in_wide : in_deep, to_depth ? in_deep : in_wide);
  };
  add(wide.dim(0), of_wide[0], of_deep[0]);
  add(deep.dim(h), of_wide[h] * block, of_deep[h]);
  add(block, of_wide[h], block * wide.dim(d) * of_deep[d]);
  add(deep.dim(w), of_wide[w] * block, of_deep[w]);
  add(block, of_wide[w], wide.dim(d) * of_deep[d]);
  add(wide.dim(d), of_wide[d], of_deep[d]);
  return {false, {{copy.finish()}}};
}

CopyPlan plan_space_to_depth(const PrepareContext& p) { return plan_depth(p, true); }
CopyPlan plan_depth_to_space(const PrepareContext& p) { return plan_depth(p, false); }

constexpr CopyOp kCopies[] = {
    {"SpaceToBatchND", plan_space_to_batch},
    {"BatchToSpaceND", plan_batch_to_space},
    {"SpaceToDepth", plan_space_to_depth},
    {"DepthToSpace", plan_depth_to_space},
};

}  // namespace

void register_space_kernels(KernelRegistry& r) { add_copy_ops(r, kCopies); }

}  // namespace treenail::host
