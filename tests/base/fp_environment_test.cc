// SPDX-License-Identifier: Apache-2.0
// The guard makes subnormals and rounding IEEE's inside its scope and gives back what was set
// outside.
#include "framework/base/fp_environment.h"

#include <gtest/gtest.h>

#include <cfenv>

namespace treenail {
namespace {

float halve(float value) {
  volatile float input = value;
  volatile float result = input * 0.5f;
  return result;
}

constexpr float kSmallestNormal = 1.17549435e-38f;

TEST(FpEnvironment, RoundingModeIsDefaultInsideAndRestored) {
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  volatile float one = 1.0f;
  volatile float tiny = 1e-10f;
  EXPECT_GT(one + tiny, 1.0f);
  {
    const FpEnvironment ieee;
    EXPECT_EQ(one + tiny, 1.0f);
  }
  EXPECT_GT(one + tiny, 1.0f);
  ASSERT_EQ(std::fesetround(FE_TONEAREST), 0);
}

TEST(FpEnvironment, SubnormalsSurviveInside) {
#if defined(__x86_64__)
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // FTZ and DAZ
#elif defined(__aarch64__)
  uint64_t before = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  __asm__ volatile("msr fpcr, %0" : : "r"(before | (uint64_t{1} << 24)));
#else
  GTEST_SKIP() << "flush-to-zero is not set portably on this architecture";
#endif
#if defined(__x86_64__) || defined(__aarch64__)
  EXPECT_EQ(halve(kSmallestNormal), 0.0f);
  {
    const FpEnvironment ieee;
    EXPECT_GT(halve(kSmallestNormal), 0.0f);
  }
  EXPECT_EQ(halve(kSmallestNormal), 0.0f);
#endif
#if defined(__x86_64__)
  _mm_setcsr(before);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(before));
#endif
}

}  // namespace
}  // namespace treenail
