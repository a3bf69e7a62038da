// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 against the known answers published with Random123 (kat_vectors).
#include "framework/base/philox.h"

#include <gtest/gtest.h>

namespace treenail {
namespace {

using Block = Philox::Block;
using Key = Philox::Key;

TEST(Philox, PublishedKnownAnswers) {
  EXPECT_EQ(Philox::generate(Block{0, 0, 0, 0}, Key{0, 0}),
            (Block{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  constexpr uint32_t kOnes = 0xffffffffu;
  EXPECT_EQ(Philox::generate(Block{kOnes, kOnes, kOnes, kOnes}, Key{kOnes, kOnes}),
            (Block{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  // Digits of pi.
  EXPECT_EQ(Philox::generate(Block{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
                             Key{0xa4093822u, 0x299f31d0u}),
            (Block{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(Philox, CounterIsOneNumberOf128Bits) {
  constexpr uint32_t kOnes = 0xffffffffu;
  EXPECT_EQ(Philox::advanced(Block{kOnes, 0, 7, 8}, 1), (Block{0, 1, 7, 8}));
  EXPECT_EQ(Philox::advanced(Block{kOnes, kOnes, 7, 8}, 1), (Block{0, 0, 8, 8}));
  EXPECT_EQ(Philox::advanced(Block{kOnes, kOnes, kOnes, 8}, 2), (Block{1, 0, 0, 9}));
  EXPECT_EQ(Philox::advanced(Block{kOnes, kOnes, kOnes, kOnes}, 1), (Block{0, 0, 0, 0}));
  EXPECT_EQ(Philox::advanced(Block{5, 6, 7, 8}, uint64_t{3} << 32 | 2), (Block{7, 9, 7, 8}));
}

TEST(Philox, SeedsEnterAsInTensorFlow) {
  const Philox stream(0x1111111122222222u, 0x3333333344444444u);
  EXPECT_EQ(stream.key(), (Key{0x22222222u, 0x11111111u}));
  EXPECT_EQ(stream.counter(), (Block{0, 0, 0x44444444u, 0x33333333u}));
}

TEST(Philox, SkippingAndIndexingAgree) {
  const Philox stream(87654321, 12345);
  EXPECT_EQ(stream.skipped(1000)(17), stream(1017));
  EXPECT_NE(stream(0), stream(1));
}

}  // namespace
}  // namespace treenail
