// SPDX-License-Identifier: Apache-2.0
// Sixteen blocks side by side: word k of all of them is one array, so that every round is the same
// operation on arrays. The reference, one block at a time, is framework/base/philox.h.
#include "kernels/cpu/philox_fill.h"

#include <algorithm>

namespace treenail::cpu {
namespace {

constexpr int kLanes = 16;

// Sixteen blocks from counter + `index` on, as long as adding lanes does not carry out of the
// lowest word.
void fill_lanes(const Philox::Block& counter, Philox::Key key, uint32_t* __restrict words) {
  uint32_t a[kLanes];
  uint32_t b[kLanes];
  uint32_t c[kLanes];
  uint32_t d[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    a[i] = counter[0] + static_cast<uint32_t>(i);
    b[i] = counter[1];
    c[i] = counter[2];
    d[i] = counter[3];
  }
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kLanes; ++i) {
      const uint64_t p = uint64_t{0xd2511f53u} * a[i];
      const uint64_t q = uint64_t{0xcd9e8d57u} * c[i];
      a[i] = static_cast<uint32_t>(q >> 32) ^ b[i] ^ key[0];
      b[i] = static_cast<uint32_t>(q);
      c[i] = static_cast<uint32_t>(p >> 32) ^ d[i] ^ key[1];
      d[i] = static_cast<uint32_t>(p);
    }
    key[0] += 0x9e3779b9u;
    key[1] += 0xbb67ae85u;
  }
  for (int i = 0; i < kLanes; ++i) {
    words[4 * i] = a[i];
    words[4 * i + 1] = b[i];
    words[4 * i + 2] = c[i];
    words[4 * i + 3] = d[i];
  }
}

}  // namespace

void fill_blocks(const Philox& stream, uint64_t first, int64_t blocks, uint32_t* words) {
  for (int64_t at = 0; at < blocks; at += kLanes) {
    const Philox::Block counter =
        Philox::advanced(stream.counter(), first + static_cast<uint64_t>(at));
    const int64_t count = std::min<int64_t>(kLanes, blocks - at);
    if (count == kLanes && counter[0] <= 0xffffffffu - kLanes) {
      fill_lanes(counter, stream.key(), words + 4 * at);
      continue;
    }
    for (int64_t i = 0; i < count; ++i) {
      const Philox::Block block =
          Philox::generate(Philox::advanced(counter, static_cast<uint64_t>(i)), stream.key());
      std::copy(block.begin(), block.end(), words + 4 * (at + i));
    }
  }
}

}  // namespace treenail::cpu
