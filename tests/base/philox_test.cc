// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 against the known answers published with Random123 (tests/random123/kat_vectors;
// `ninja random123-scoreboard` keeps the score).
#include "framework/base/philox.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace treenail {
namespace {

using Block = Philox::Block;
using Key = Philox::Key;

struct KnownAnswer {
  Block counter;
  Key key;
  Block answer;
};

// The lines of tests/random123/kat_vectors; none where the file does not open.
std::vector<KnownAnswer> known_answers() {
  const char* source = std::getenv("TREENAIL_SOURCE_DIR");
  std::ifstream file(std::string(source != nullptr ? source : ".") +
                     "/tests/random123/kat_vectors");
  std::vector<KnownAnswer> found;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string generator;
    int rounds = 0;
    KnownAnswer answer{};
    if (!(words >> generator >> rounds) || generator != "philox4x32" || rounds != 10) continue;
    words >> std::hex;
    for (uint32_t& word : answer.counter) words >> word;
    for (uint32_t& word : answer.key) words >> word;
    for (uint32_t& word : answer.answer) words >> word;
    if (words) found.push_back(answer);
  }
  return found;
}

class KnownAnswers : public ::testing::TestWithParam<KnownAnswer> {};

TEST_P(KnownAnswers, AreGenerated) {
  EXPECT_EQ(Philox::generate(GetParam().counter, GetParam().key), GetParam().answer);
}

INSTANTIATE_TEST_SUITE_P(Random123, KnownAnswers, ::testing::ValuesIn(known_answers()));

TEST(Philox, EveryPublishedAnswerIsRead) { EXPECT_EQ(known_answers().size(), 3U); }

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
