// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/collectives/collective.h"

#include <algorithm>
#include <cstring>

#include "framework/base/hash.h"
#include "framework/base/text.h"

namespace treenail {
namespace {

constexpr std::string_view kKinds[] = {"all_reduce",     "broadcast",  "all_gather",
                                       "reduce_scatter", "all_to_all", "barrier"};
constexpr std::string_view kReductions[] = {"sum", "mean", "min", "max", "product"};

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
}

uint64_t hash_shapes(const Collective& c) {
  uint64_t hash = c.inputs.size();
  for (const Tensor& input : c.inputs) {
    hash = hash_mix(hash ^ static_cast<uint64_t>(input.rank()));
    const int first = c.kind == CollectiveKind::kAllGather ? 1 : 0;
    for (int axis = first; axis < input.rank(); ++axis)
      hash = hash_mix(hash ^ static_cast<uint64_t>(input.dim(axis)));
  }
  return hash;
}

std::string shape_text(const Descriptor& d) {
  std::string text = "[";
  for (int axis = 0; axis < std::min<int>(d.rank, 8); ++axis)
    text += (axis > 0 ? "," : "") + std::to_string(d.dims[axis]);
  return text + (d.rank > 8 ? ",...]" : "]");
}

// "all_reduce of sum float32[2,3]".
std::string wish(const Descriptor& d) {
  std::string text(kind_name(d.kind));
  if (reduces(d.kind)) text += concat(" (", reduction_name(d.reduction), ")");
  if (d.kind == CollectiveKind::kBroadcast) text += concat(" from rank ", d.root);
  if (d.kind == CollectiveKind::kBarrier) return text;
  text += concat(" of ", dtype_name(d.dtype), shape_text(d));
  if (d.tensors > 1) text += concat(" and ", d.tensors - 1, " more, ", d.elements, " elements");
  return text;
}

// Whether it is what a rank may tell: a peer may send anything.
bool is_sound(const Descriptor& d) {
  constexpr int64_t kMostElements = int64_t{1} << 56;
  const bool dims = std::ranges::all_of(d.dims, [](int64_t dim) { return dim >= 0; });
  return d.kind <= CollectiveKind::kBarrier && d.reduction <= Reduction::kProduct && dims &&
         (d.dtype == DType::kInvalid || dtype_is_valid(static_cast<int>(d.dtype))) &&
         d.elements >= 0 && d.elements < kMostElements &&
         d.error <= static_cast<uint8_t>(Code::kUnauthenticated);
}

bool agree(const Descriptor& a, const Descriptor& b) {
  if (std::memcmp(a.key, b.key, sizeof(a.key)) != 0) return false;
  if (a.kind != b.kind || a.dtype != b.dtype || a.tensors != b.tensors) return false;
  if (reduces(a.kind) && a.reduction != b.reduction) return false;
  const bool gathers = a.kind == CollectiveKind::kAllGather;
  if (a.rank != b.rank || (!gathers && a.elements != b.elements)) return false;
  for (int axis = gathers ? 1 : 0; axis < 8; ++axis) {
    if (a.dims[axis] != b.dims[axis]) return false;
  }
  return a.root == b.root && a.shapes_hash == b.shapes_hash;
}

}  // namespace

std::string_view kind_name(CollectiveKind kind) { return kKinds[static_cast<size_t>(kind)]; }
std::string_view reduction_name(Reduction reduction) {
  return kReductions[static_cast<size_t>(reduction)];
}

Reduction reduction_from_name(std::string_view name) {
  const auto* const found = std::find(std::begin(kReductions), std::end(kReductions), name);
  if (found != std::end(kReductions))
    return static_cast<Reduction>(found - std::begin(kReductions));
  throw invalid_argument("the reduction '", name,
                         "' is none of 'sum', 'mean', 'min', 'max', 'product'");
}

size_t Collective::input_bytes() const {
  size_t bytes = 0;
  for (const Tensor& input : inputs) bytes += input.bytes();
  return bytes;
}

Descriptor describe(const Collective& c, uint64_t instance) {
  Descriptor d;
  d.key_hash = hash_bytes(c.key.data(), c.key.size());
  d.instance = instance;
  d.kind = c.kind;
  d.reduction = c.reduction;
  d.dtype = c.dtype;
  d.root = c.root;
  d.tensors = static_cast<uint32_t>(c.inputs.size());
  d.shapes_hash = hash_shapes(c);
  for (const Tensor& input : c.inputs) d.elements += input.num_elements();
  if (!c.inputs.empty()) {
    const Tensor& first = c.inputs.front();
    d.rank = static_cast<uint8_t>(first.rank());
    for (int axis = 0; axis < std::min(first.rank(), 8); ++axis) d.dims[axis] = first.dim(axis);
  }
  std::memcpy(d.key, c.key.data(), std::min(c.key.size(), sizeof(d.key) - 1));
  return d;
}

std::string called(const Descriptor& d) {
  const std::string_view key(d.key, ::strnlen(d.key, sizeof(d.key)));
  if (key.empty()) return concat(kind_name(d.kind), " number ", d.instance, " without a key");
  return concat(kind_name(d.kind), " '", key, "' (execution ", d.instance, ")");
}

Disagreement disagreement(std::span<const Descriptor> by_rank) {
  for (size_t r = 0; r < by_rank.size(); ++r) {
    if (!is_sound(by_rank[r]))
      return {Code::kInvalidArgument, concat("rank ", r, " asks for what there cannot be")};
  }
  for (size_t r = 0; r < by_rank.size(); ++r) {
    if (by_rank[r].error == 0) continue;
    return {static_cast<Code>(by_rank[r].error),
            concat(called(by_rank[r]), ": rank ", r, " has no memory for its part")};
  }
  for (size_t r = 1; r < by_rank.size(); ++r) {
    if (agree(by_rank[0], by_rank[r])) continue;
    return {Code::kInvalidArgument,
            concat(called(by_rank[0]), ": rank 0 asks for ", wish(by_rank[0]), ", rank ", r,
                   " for ", wish(by_rank[r]), "; all ranks must ask for the same")};
  }
  const Descriptor& d = by_rank[0];
  const bool parts =
      d.kind == CollectiveKind::kReduceScatter || d.kind == CollectiveKind::kAllToAll;
  const auto ranks = static_cast<int64_t>(by_rank.size());
  if (parts && (d.rank == 0 || d.dims[0] % ranks != 0)) {
    return {Code::kInvalidArgument, concat(called(d), ": the first extent of ", shape_text(d),
                                           " must be a multiple of the number of ranks, ", ranks)};
  }
  if (d.kind == CollectiveKind::kBroadcast && (d.root < 0 || d.root >= ranks)) {
    return {Code::kInvalidArgument,
            concat(called(d), ": root ", d.root, " is not in [0, ", ranks, ")")};
  }
  return {};
}

}  // namespace treenail
