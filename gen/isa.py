# SPDX-License-Identifier: Apache-2.0
"""Instruction set levels: their names, order, compiler flags and how macros reveal them.

The names are also the directory names of the kernel libraries and what TREENAIL_CPU_ISA takes; the
core decides at start-up which of them the CPU can run (framework/base).
"""

import re
from dataclasses import dataclass
from typing import List, Optional, Sequence, Set, Tuple

from gen.errors import ConfigureError


@dataclass(frozen=True)
class Level:
    name: str
    flags: Tuple[str, ...]
    macros: Tuple[str, ...]  # all defined <=> the compiler may use everything in this level
    aliases: Tuple[str, ...] = ()
    implied: Tuple[str, ...] = ()  # extensions of this level that the ones above bring along
    lacks: Tuple[str, ...] = ()  # macros of the levels below that this one does without


X86 = (
    Level("x86-64", ("-march=x86-64",), ("__SSE2__",), ("generic",)),
    Level("x86-64-v2", ("-march=x86-64-v2",), ("__SSE4_2__", "__SSSE3__", "__POPCNT__"),
          implied=("__SSE3__", "__SSE4_1__")),
    Level("x86-64-v3", ("-march=x86-64-v3",),
          ("__AVX2__", "__FMA__", "__BMI2__", "__F16C__", "__LZCNT__", "__MOVBE__"),
          implied=("__AVX__", "__BMI__")),
    Level("x86-64-v4", ("-march=x86-64-v4",),
          ("__AVX512F__", "__AVX512BW__", "__AVX512CD__", "__AVX512DQ__", "__AVX512VL__")),
)
ARM = (
    Level("armv8-a", ("-march=armv8-a",), ("__ARM_NEON",), ("generic",)),
    Level("armv8.2-a", ("-march=armv8.2-a+fp16+dotprod",),
          ("__ARM_FEATURE_FP16_VECTOR_ARITHMETIC", "__ARM_FEATURE_DOTPROD"),
          ("armv8.2-a+fp16+dotprod",), ("__ARM_FEATURE_ATOMICS", "__ARM_FEATURE_QRDMX")),
    # The A64FX has no dot product.
    Level("sve", ("-march=armv8.2-a+fp16+sve",), ("__ARM_FEATURE_SVE",),
          lacks=("__ARM_FEATURE_DOTPROD",)),
)
OTHER = (Level("generic", (), ()),)

DEFAULT_EXTRA = {"x86_64": ("x86-64-v3", "x86-64-v4"), "aarch64": ("armv8.2-a",)}
_NAMES_AN_ISA = re.compile(
    r"^-m(arch|cpu|avx|s?sse|fma|bmi|f16c|lzcnt|movbe|popcnt|xop|tbm|gfni|apx)")

# Extensions of no level that compilers use unasked. Those that only intrinsics reach (AES, SHA,
# CRC32, RDRND, ...) are left out: Treenail has none of these, so the product does not contain them.
BEYOND = {
    "x86_64": ("__3dNOW__", "__SSE4A__", "__XOP__", "__FMA4__", "__TBM__", "__GFNI__", "__APX_F__",
               "__AVXVNNI__", "__AVXVNNIINT8__", "__AVXVNNIINT16__", "__AVXIFMA__",
               "__AVXNECONVERT__", "__AVX512VNNI__", "__AVX512IFMA__", "__AVX512VBMI__",
               "__AVX512VBMI2__", "__AVX512BITALG__", "__AVX512VPOPCNTDQ__", "__AVX512BF16__",
               "__AVX512FP16__", "__AVX512ER__", "__AVX512PF__", "__AVX512VP2INTERSECT__",
               "__AVX10_1__", "__AVX10_2__"),
    "aarch64": ("__ARM_FEATURE_SVE2", "__ARM_FEATURE_MATMUL_INT8", "__ARM_FEATURE_BF16",
                "__ARM_FEATURE_SHA3", "__ARM_FEATURE_RCPC", "__ARM_FEATURE_COMPLEX",
                "__ARM_FEATURE_JCVT", "__ARM_FEATURE_FRINT", "__ARM_FEATURE_FP16_FML",
                "__ARM_FEATURE_MOPS", "__ARM_FEATURE_SME"),
}


def levels(machine: str) -> Tuple[Level, ...]:
    return {"x86_64": X86, "aarch64": ARM}.get(machine, OTHER)


def names_isa(flags: Sequence[str]) -> bool:
    """Do these flags choose an instruction set themselves?"""
    return any(_NAMES_AN_ISA.match(flag) for flag in flags)


def up_to(machine: str, level: Level) -> Tuple[Level, ...]:
    known = levels(machine)
    return known[:known.index(level) + 1]


def detect(machine: str, macros: Set[str]) -> Level:
    """The highest level all of whose macros, and those of the levels below, are defined."""
    found = levels(machine)[0]
    for level in levels(machine):
        needed = {macro for part in up_to(machine, level) for macro in part.macros}
        if needed - set(level.lacks) <= macros:
            found = level
    return found


def extensions(machine: str, macros: Set[str]) -> Set[str]:
    """Those of the macros that name an extension compilers use unasked."""
    known = set(BEYOND.get(machine, ()))
    for level in levels(machine):
        known.update(level.macros + level.implied)
    return known & macros


def beyond(machine: str, macros: Set[str], level: Level) -> List[str]:
    """The extensions that the macros give and a CPU of this level may lack, as they are called."""
    given = {macro for part in up_to(machine, level) for macro in part.macros + part.implied}
    rest = extensions(machine, macros) - (given - set(level.lacks))
    return sorted(macro.replace("__ARM_FEATURE_", "").strip("_") for macro in rest)


def find(machine: str, name: str, option: str) -> Level:
    for level in levels(machine):
        if name == level.name or name in level.aliases:
            return level
    hint = "" if name != "native" else (
        ", and every user must know which one a build needs; kernels for the CPU that is there are "
        "chosen at start-up")
    raise ConfigureError("--%s: '%s' is not an instruction set level of %s%s; these are: %s"
                         % (option, name, machine, hint,
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


def _refuse_between(machine: str, macros: Set[str], detected: Level, words: Sequence[str],
                    source: str) -> None:
    """A baseline is a level or nothing: a label that promises too much ends in SIGILL."""
    more = beyond(machine, macros, detected)
    if not more:
        return
    known = levels(machine)
    above = known[known.index(detected) + 1:]
    advice = "say %s" % detected.flags[0]
    if above and not any(word.endswith("=native") for word in words):
        advice = "say %s where every CPU that is to run this has all of that level, else %s" % (
            above[0].flags[0], detected.flags[0])
    raise ConfigureError("%s give %s beyond %s; %s, or leave it to --isa-baseline=LEVEL" % (
        source, ", ".join(more), detected.name, advice))


def _extra_levels(machine: str, base: Level, kernel_isas: str) -> Tuple[Level, ...]:
    """The kernel levels above the baseline, in order, each once."""
    known = levels(machine)
    names = [name.strip() for name in kernel_isas.split(",") if name.strip()]
    if names == ["auto"]:
        names = list(DEFAULT_EXTRA.get(machine, ()))
    elif names == ["none"]:
        names = []
    wanted = {find(machine, name, "kernel-isas") for name in names}
    return tuple(level for level in known[known.index(base) + 1:] if level in wanted)


def of_baseline(machine: str, base: Level) -> Tuple[Level, ...]:
    """What kernels are built for with this baseline where no option says otherwise."""
    return (base,) + _extra_levels(machine, base, "auto")


def choose(machine: str, macros: Set[str], env_flags: Sequence[str], baseline: Optional[str],
           kernel_isas: str, source: str = "CXXFLAGS") -> Choice:
    """Baseline and kernel levels from options, environment and the compiler's macros.

    `source` names the variables that `env_flags` come from.
    """
    detected = detect(machine, macros)
    named = names_isa(env_flags)
    if named:
        _refuse_between(machine, macros, detected, env_flags, source)
    if baseline and baseline != "auto":
        base = find(machine, baseline, "isa-baseline")
        if named and base != detected:
            raise ConfigureError(
                "--isa-baseline=%s contradicts the compiler flags of the environment (%s), which "
                "give %s; remove one of the two" % (baseline, source, detected.name))
        exact = base == detected and not beyond(machine, macros, detected)
        flags = () if exact else base.flags
        reason = "--isa-baseline"
    else:
        if not named:
            _refuse_between(machine, macros, detected, (), "the compiler's defaults")
        base, flags = detected, ()
        reason = "named by " + source if named else "the compiler's default"
    return Choice(base, flags, _extra_levels(machine, base, kernel_isas), reason)


def refuse_disagreement(machine: str, cc_macros: Set[str], cxx_macros: Set[str]) -> None:
    """C files may do with less than the baseline; more would break its promise."""
    if extensions(machine, cc_macros) <= extensions(machine, cxx_macros):
        return
    level = detect(machine, cxx_macros)
    raise ConfigureError(
        "CFLAGS and CXXFLAGS disagree about the instruction set: CXXFLAGS give %s, CFLAGS %s "
        "beyond it; name the same -march in both"
        % (level.name, ", ".join(beyond(machine, cc_macros, level))))
