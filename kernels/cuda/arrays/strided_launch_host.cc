// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/arrays/strided_launch_host.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/arrays/copy_space.h"
#include "kernels/cuda/language/bits.h"

namespace treenail::cuda {
namespace {

using Axis = host::StridedCopy::Axis;

bool aligned(const void* at, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(at) % static_cast<uintptr_t>(bytes) == 0;
}

constinit const GpuFunction kCopy1("copy_1"), kCopy2("copy_2"), kCopy4("copy_4"), kCopy8("copy_8"),
    kCopy16("copy_16");

template <class T>
void launch_as(CudaDevice& device, const GpuFunction& function, const gpu::CopySpace& space,
               const void* from, void* to) {
  function.launch(device, grid_for(device, space.elements), space, static_cast<const T*>(from),
                  static_cast<T*>(to));
}

void launch_one(CudaDevice& device, const gpu::CopySpace& space, int64_t bytes, const void* from,
                void* to) {
  switch (bytes) {
    case 1:
      return launch_as<uint8_t>(device, kCopy1, space, from, to);
    case 2:
      return launch_as<uint16_t>(device, kCopy2, space, from, to);
    case 4:
      return launch_as<uint32_t>(device, kCopy4, space, from, to);
    case 8:
      return launch_as<uint64_t>(device, kCopy8, space, from, to);
    default:
      return launch_as<gpu::Bits128>(device, kCopy16, space, from, to);
  }
}

// The innermost axes in one launch, whatever is beyond them one launch each.
void launch_axes(CudaDevice& device, std::span<const Axis> axes, int64_t bytes,
                 const std::byte* from, std::byte* to) {
  if (axes.size() > gpu::kCopyAxes) {
    for (int64_t i = 0; i < axes[0].extent; ++i) {
      launch_axes(device, axes.subspan(1), bytes, from + i * axes[0].from * bytes,
                  to + i * axes[0].to * bytes);
    }
    return;
  }
  gpu::CopySpace space;
  for (const Axis& axis : axes) {
    space.extent[space.rank] = axis.extent;
    space.from[space.rank] = axis.from;
    space.to[space.rank] = axis.to;
    space.elements *= axis.extent;
    ++space.rank;
  }
  launch_one(device, space, bytes, from, to);
}

// Neighbours that were taken together are taken apart again where they lie at odd addresses.
SmallVector<Axis, 8> split_axes(const host::StridedCopy& copy, int64_t parts) {
  SmallVector<Axis, 8> axes(copy.axes());
  if (parts == 1) return axes;
  for (Axis& axis : axes) axis = {axis.extent, axis.from * parts, axis.to * parts};
  axes.push_back({parts, 1, 1});
  return axes;
}

}  // namespace

void launch_copy(CudaDevice& device, const host::StridedCopy& copy, const void* from, void* to) {
  if (copy.num_elements() == 0) return;
  int64_t bytes = copy.element_bytes(), parts = 1;
  const auto* const source = static_cast<const std::byte*>(from) + copy.from_offset() * bytes;
  auto* const target = static_cast<std::byte*>(to) + copy.to_offset() * bytes;
  const std::span<const Axis> given = copy.axes();
  if (given.size() == 1 && given[0].from == 1 && given[0].to == 1)
    return device.copy(target, source, static_cast<size_t>(given[0].extent * bytes));
  for (; !aligned(source, bytes) || !aligned(target, bytes); bytes /= 2) parts *= 2;
  const SmallVector<Axis, 8> axes = split_axes(copy, parts);
  launch_axes(device, {axes.begin(), axes.end()}, bytes, source, target);
}

}  // namespace treenail::cuda
