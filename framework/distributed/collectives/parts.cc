// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/collectives/parts.h"

#include <algorithm>
#include <cstring>

#include "framework/base/error.h"
#include "framework/distributed/collectives/rank_order.h"

namespace treenail {
namespace {

// Slices begin at whole cache lines, so that no two ranks write one.
constexpr int64_t kSliceStep = 64;

void copy_bytes(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void reduce_all(Collective& c, std::span<const std::byte* const> from) {
  std::vector<const std::byte*> at(from.begin(), from.end());
  for (const Tensor& input : c.inputs) {
    Tensor out(c.dtype, input.shape());
    reduce_in_rank_order(c.dtype, c.reduction, at, static_cast<std::byte*>(out.raw()),
                         out.num_elements());
    for (const std::byte*& rank : at) rank += out.bytes();
    c.outputs.push_back(std::move(out));
  }
}

void gather(Collective& c, std::span<const Descriptor> by_rank,
            std::span<const std::byte* const> from) {
  int64_t rows = 0;
  for (const Descriptor& d : by_rank) rows += d.dims[0];
  Tensor out(c.dtype, c.inputs[0].shape().with_dim(0, rows));
  size_t bytes = 0;
  for (const Descriptor& d : by_rank) bytes += input_bytes(d);
  if (bytes != out.bytes())
    throw invalid_argument("the ranks' values have ", bytes, " bytes; their shapes say ",
                           out.bytes());
  auto* to = static_cast<std::byte*>(out.raw());
  for (size_t r = 0; r < by_rank.size(); ++r) {
    copy_bytes(to, from[r], input_bytes(by_rank[r]));
    to += input_bytes(by_rank[r]);
  }
  c.outputs.push_back(std::move(out));
}

void reduce_own_part(Collective& c, std::span<const std::byte* const> from) {
  const Shape& whole = c.inputs[0].shape();
  Tensor out(c.dtype, whole.with_dim(0, whole.dim(0) / static_cast<int64_t>(from.size())));
  reduce_in_rank_order(c.dtype, c.reduction, from, static_cast<std::byte*>(out.raw()),
                       out.num_elements());
  c.outputs.push_back(std::move(out));
}

void exchange(Collective& c, std::span<const std::byte* const> from) {
  Tensor out(c.dtype, c.inputs[0].shape());
  const size_t part = out.bytes() / from.size();
  for (size_t r = 0; r < from.size(); ++r)
    copy_bytes(static_cast<std::byte*>(out.raw()) + r * part, from[r], part);
  c.outputs.push_back(std::move(out));
}

void take_roots(Collective& c, std::span<const std::byte* const> from) {
  Tensor out(c.dtype, c.inputs[0].shape());
  copy_bytes(out.raw(), from[static_cast<size_t>(c.root)], out.bytes());
  c.outputs.push_back(std::move(out));
}

}  // namespace

Part slice_of(int64_t elements, int rank, int ranks) {
  const int64_t even = (elements + ranks - 1) / ranks;
  const int64_t step = (even + kSliceStep - 1) / kSliceStep * kSliceStep;
  const int64_t begin = std::min(elements, rank * step);
  return {begin, std::min(elements, begin + step) - begin};
}

Part needed_part(const Descriptor& d, int peer, int rank, int ranks) {
  switch (d.kind) {
    case CollectiveKind::kAllReduce:
      return is_split(d, ranks) ? slice_of(d.elements, rank, ranks) : Part{0, d.elements};
    case CollectiveKind::kBroadcast:
      return {0, peer == d.root ? d.elements : 0};
    case CollectiveKind::kAllGather:
      return {0, d.elements};
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
      return {d.elements / ranks * rank, d.elements / ranks};
    case CollectiveKind::kBarrier:
      break;
  }
  return {};
}

void set_outputs(Collective& c, std::span<const Descriptor> by_rank,
                 std::span<const std::byte* const> from) {
  switch (c.kind) {
    case CollectiveKind::kAllReduce:
      return reduce_all(c, from);
    case CollectiveKind::kBroadcast:
      return take_roots(c, from);
    case CollectiveKind::kAllGather:
      return gather(c, by_rank, from);
    case CollectiveKind::kReduceScatter:
      return reduce_own_part(c, from);
    case CollectiveKind::kAllToAll:
      return exchange(c, from);
    case CollectiveKind::kBarrier:
      return;
  }
}

void set_outputs_over(Collective& c, const IntrusivePtr<Buffer>& whole) {
  size_t at = 0;
  for (const Tensor& input : c.inputs) {
    c.outputs.emplace_back(c.dtype, input.shape(), whole, at);
    at += input.bytes();
  }
}

void pack_inputs(const Collective& c, std::byte* to) {
  for (const Tensor& input : c.inputs) {
    copy_bytes(to, input.raw(), input.bytes());
    to += input.bytes();
  }
}

}  // namespace treenail
