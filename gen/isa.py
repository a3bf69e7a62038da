# SPDX-License-Identifier: Apache-2.0
"""Instruction set levels: their names, order, compiler flags and how macros reveal them.

The names are also the directory names of the kernel libraries and what TREENAIL_CPU_ISA takes; the
core decides at start-up which of them the CPU can run (framework/base).
"""

import re
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Set, Tuple

from gen.errors import ConfigureError


@dataclass(frozen=True)
class Level:
    name: str
    flags: Tuple[str, ...]
    macros: Tuple[str, ...]  # all defined <=> the compiler may use everything in this level
    aliases: Tuple[str, ...] = ()


X86 = (
    Level("x86-64", ("-march=x86-64",), ("__SSE2__",), ("generic",)),
    Level("x86-64-v2", ("-march=x86-64-v2",), ("__SSE4_2__", "__SSSE3__", "__POPCNT__")),
    Level("x86-64-v3", ("-march=x86-64-v3",),
          ("__AVX2__", "__FMA__", "__BMI2__", "__F16C__", "__LZCNT__", "__MOVBE__")),
    Level("x86-64-v4", ("-march=x86-64-v4",),
          ("__AVX512F__", "__AVX512BW__", "__AVX512CD__", "__AVX512DQ__", "__AVX512VL__")),
)
ARM = (
    Level("armv8-a", ("-march=armv8-a",), ("__ARM_NEON",), ("generic",)),
    Level("armv8.2-a", ("-march=armv8.2-a+fp16+dotprod",),
          ("__ARM_FEATURE_FP16_VECTOR_ARITHMETIC", "__ARM_FEATURE_DOTPROD"),
          ("armv8.2-a+fp16+dotprod",)),
    Level("sve", ("-march=armv8.2-a+fp16+dotprod+sve",), ("__ARM_FEATURE_SVE",)),
)
OTHER = (Level("generic", (), ()),)

DEFAULT_EXTRA = {"x86_64": "x86-64-v3", "aarch64": "armv8.2-a"}
_NAMES_AN_ISA = re.compile(r"^-m(arch|cpu|avx|sse|fma|bmi|f16c)")


def levels(machine: str) -> Tuple[Level, ...]:
    return {"x86_64": X86, "aarch64": ARM}.get(machine, OTHER)


def names_isa(flags: Sequence[str]) -> bool:
    """Do these flags choose an instruction set themselves?"""
    return any(_NAMES_AN_ISA.match(flag) for flag in flags)


def detect(machine: str, macros: Set[str]) -> Level:
    """The highest level all of whose macros, and those of the levels below, are defined."""
    found = levels(machine)[0]
    for level in levels(machine):
        if not all(macro in macros for macro in level.macros):
            break
        found = level
    return found


def find(machine: str, name: str, option: str) -> Level:
    for level in levels(machine):
        if name == level.name or name in level.aliases:
            return level
    raise ConfigureError("--%s: '%s' is not an instruction set level of %s; these are: %s"
                         % (option, name, machine,
                            ", ".join(level.name for level in levels(machine))))


@dataclass(frozen=True)
class Choice:
    """The levels of one build. `core_flags` is empty where the environment's flags decide."""

    baseline: Level
    core_flags: Tuple[str, ...]
    extra: Tuple[Level, ...]
    reason: str

    @property
    def all(self) -> Tuple[Level, ...]:
        return (self.baseline,) + self.extra

    def kernel_flags(self, level: Level) -> Tuple[str, ...]:
        return self.core_flags if level == self.baseline else level.flags


def choose(machine: str, macros: Set[str], env_flags: Sequence[str], baseline: Optional[str],
           kernel_isas: str) -> Choice:
    """Baseline and kernel levels from options, environment and the compiler's macros."""
    known = levels(machine)
    detected = detect(machine, macros)
    named = names_isa(env_flags)
    if baseline and baseline != "auto":
        base = find(machine, baseline, "isa-baseline")
        if named and base != detected:
            raise ConfigureError(
                "--isa-baseline=%s contradicts the compiler flags of the environment, which give "
                "%s; remove one of the two" % (baseline, detected.name))
        flags = () if base == detected else base.flags
        reason = "--isa-baseline"
    else:
        base, flags = detected, ()
        reason = "named by CXXFLAGS" if named else "the compiler's default"
    order = {level.name: i for i, level in enumerate(known)}
    extra: Dict[str, Level] = {}
    if kernel_isas == "auto":
        if machine in DEFAULT_EXTRA:
            extra[DEFAULT_EXTRA[machine]] = find(machine, DEFAULT_EXTRA[machine], "kernel-isas")
    elif kernel_isas != "none":
        for name in [n for n in kernel_isas.split(",") if n]:
            level = find(machine, name, "kernel-isas")
            extra[level.name] = level
    kept: List[Level] = [extra[n] for n in sorted(extra, key=lambda n: order[n])
                         if order[n] > order[base.name]]
    return Choice(base, flags, tuple(kept), reason)
