// SPDX-License-Identifier: Apache-2.0
// What the CPU and the operating system offer, and which ISA levels of the kernel libraries that
// allows. Levels of one architecture are ordered; each includes the ones below, but for "sve",
// which does without the dot product: an A64FX has none. Asking never executes an instruction the
// CPU may lack.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace treenail {

// The levels of this architecture, lowest first: "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4";
// "armv8-a", "armv8.2-a" (with fp16 and dotprod), "sve" (with fp16); elsewhere "generic".
std::span<const std::string_view> isa_levels();
// The highest level this CPU runs.
std::string_view best_level();
// False for a level this CPU cannot run and for names that are no level of this architecture.
bool cpu_runs(std::string_view level);
// Features `level` needs and the CPU or the operating system lacks, "avx2, fma"; "" when it runs.
// Errors: InvalidArgument when `level` is none of isa_levels().
std::string missing_features(std::string_view level);
// Names of the features found ("sse4_2", "avx2", "asimdhp", ...), as /proc/cpuinfo spells them.
std::vector<std::string> cpu_features();

// Whether 512-bit instructions do twice the work of 256-bit ones: not on a CPU without them, nor on
// AMD's Zen 4, which takes them in halves.
bool full_width_avx512();

// The level to load out of those installed: the highest that runs here, or the one TREENAIL_CPU_ISA
// names. Errors: InvalidArgument when TREENAIL_CPU_ISA is no level of this architecture,
// FailedPrecondition when it, or every installed level, cannot run here, NotFound when it is not
// installed.
std::string_view choose_level(std::span<const std::string_view> installed);

}  // namespace treenail
