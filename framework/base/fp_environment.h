// SPDX-License-Identifier: Apache-2.0
// For its scope, the calling thread computes as IEEE 754 says: round to nearest even, subnormals
// kept, no traps; what was set before is restored. Some program in the process may have loaded a
// library linked with -ffast-math, which turns on flush-to-zero in every thread it starts. Only
// SSE/NEON state is guarded: nothing here computes in long double.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <cfenv>
#endif

namespace treenail {

class FpEnvironment {
 public:
  FpEnvironment() : saved_(read()) { set_if_other(saved_, with_defaults(saved_)); }
  ~FpEnvironment() { set_if_other(read(), saved_); }
  FpEnvironment(const FpEnvironment&) = delete;
  FpEnvironment& operator=(const FpEnvironment&) = delete;

 private:
#if defined(__x86_64__)
  using State = uint32_t;
  static constexpr State kFlags =
      0x3f;  // sticky exception flags: not part of how results are rounded
  static constexpr State kDefaults =
      0x1f80;  // all exceptions masked, nearest even, FTZ and DAZ off
  static State read() { return _mm_getcsr(); }
  static void write(State state) { _mm_setcsr(state); }
  static State with_defaults(State state) { return kDefaults | (state & kFlags); }
  static void set_if_other(State now, State wanted) {
    if (((now ^ wanted) & ~kFlags) != 0) write(wanted);
  }
#elif defined(__aarch64__)
  using State = uint64_t;
  static State read() {
    State state = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    return state;
  }
  static void write(State state) { __asm__ volatile("msr fpcr, %0" : : "r"(state) : "memory"); }
  static State with_defaults(State) { return 0; }
  static void set_if_other(State now, State wanted) {
    if (now != wanted) write(wanted);
  }
#else
  using State = std::fenv_t;
  static State read() {
    State state;
    std::fegetenv(&state);
    return state;
  }
  static const std::fenv_t* with_defaults(const State&) { return FE_DFL_ENV; }
  static void set_if_other(const State&, const std::fenv_t* wanted) { std::fesetenv(wanted); }
  static void set_if_other(const State&, const State& wanted) { std::fesetenv(&wanted); }
#endif
  State saved_;
};

}  // namespace treenail
