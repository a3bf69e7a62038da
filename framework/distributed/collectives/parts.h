// SPDX-License-Identifier: Apache-2.0
// Which bytes of each rank a rank needs for its result, and the result of them: alike for every
// transport. A large all-reduce is cut into a slice per rank: each reduces its own, and then all
// have all slices; of a small one each rank reduces everything, which saves a message's time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "framework/distributed/collectives/collective.h"

namespace treenail {

// From how many bytes on an all-reduce is cut. Results do not depend on it.
inline constexpr size_t kSplitBytes = 64 << 10;

inline size_t input_bytes(const Descriptor& d) {
  return static_cast<size_t>(d.elements) * dtype_size(d.dtype);
}
inline bool is_split(const Descriptor& d, int ranks) {
  return d.kind == CollectiveKind::kAllReduce && ranks > 1 && input_bytes(d) > kSplitBytes;
}

// Elements of one rank's tensors, counted through them.
struct Part {
  int64_t begin = 0;
  int64_t count = 0;
};

// Rank `rank`'s slice of that many elements.
Part slice_of(int64_t elements, int rank, int ranks);
// What `rank` needs of the input that `peer` describes.
Part needed_part(const Descriptor& peers, int peer, int rank, int ranks);

// Sets the outputs. `from[r]`: where the part that is needed of rank r lies. Not for what is
// split. Errors: ResourceExhausted.
void set_outputs(Collective& c, std::span<const Descriptor> by_rank,
                 std::span<const std::byte* const> from);

// The tensors of a split all-reduce over the whole reduced value.
void set_outputs_over(Collective& c, const IntrusivePtr<Buffer>& whole);

// The inputs one after another.
void pack_inputs(const Collective& c, std::byte* to);

}  // namespace treenail
