# SPDX-License-Identifier: Apache-2.0
"""Which instructions of a library a CPU of a given level lacks, and in which functions they stand.

The judge is the assembler: what objdump prints is assembled again for the level, and what it then
calls unsupported is beyond it. So there is no list of mnemonics here to forget one in. Two things
are allowed, each by name:

  * encodings that older CPUs execute as another instruction, to the same end (HARMLESS);
  * instructions of functions that run only after the CPU was asked (GUARDED): function and
    mnemonic together, so that nothing else in such a function passes.
"""

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Dict, List, Sequence, Tuple

# The assembler's name for each level of gen/isa.py.
ARCHITECTURE: Dict[str, str] = {
    "x86-64": "generic64",
    "x86-64-v2": "generic64+sse4.2+popcnt+cx16",
    "x86-64-v3": "generic64+sse4.2+popcnt+cx16+avx2+bmi+bmi2+f16c+fma+lzcnt+movbe+xsave",
    "x86-64-v4": "generic64+sse4.2+popcnt+cx16+avx2+bmi+bmi2+f16c+fma+lzcnt+movbe+xsave"
                 "+avx512f+avx512bw+avx512cd+avx512dq+avx512vl",
    "armv8-a": "armv8-a",
    "armv8.2-a": "armv8.2-a+fp16+dotprod",
    "sve": "armv8.2-a+fp16+sve",
}

# tzcnt is rep bsf: without BMI the same for all but 0, and compilers emit it where 0 is excluded.
# pause is rep nop. endbr64, bti and the signing of return addresses lie where older CPUs read hints
# or nops.
HARMLESS = frozenset((
    "tzcnt", "pause", "endbr64", "endbr32", "bti", "paciasp", "autiasp", "pacibsp", "autibsp",
    "xpaclri"))
# Prefixes that older CPUs pass over; the linker pads with some.
PADDING = re.compile(r"^(?:(?:data16|cs|ds|es|ss|rex(?:\.[WRXB]+)?|notrack|bnd)\s+)+(?=[a-z])")

# Demangled function -> mnemonics that it may hold.
GUARDED: Tuple[Tuple[str, str], ...] = (
    # framework/base/cpu_features.cc: after cpuid said that the system saves extended state.
    (r"treenail::\(anonymous namespace\)::detect\(\)", r"xgetbv"),
    # framework/base/crc32c.cc: chosen when SSE 4.2 (on AArch64 CRC) is there.
    (r"treenail::\(anonymous namespace\)::by_instruction\(.*\)", r"crc32\w*"),
    # libgcc's outline atomics ask __aarch64_have_lse_atomics first; so does its start-up code.
    (r"__aarch64_(cas|swp|ldadd|ldclr|ldeor|ldset)(1|2|4|8|16)_(relax|acq|rel|acq_rel|sync)",
     r"(cas|swp|ldadd|ldclr|ldeor|ldset)\w*"),
    # libgcc's answer to __builtin_cpu_supports.
    (r"(__cpu_indicator_init|get_available_features)(\.\w+)*", r"xgetbv"),
)

_FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
_TARGET = re.compile(r"\b[0-9a-f]+\s+<.*$")
_X86_BRANCH = re.compile(r"^((?:j\w+(?:,p[nt])?|call\w*|loop\w*|xbegin))\s+[0-9a-f]+$")
_X86_NUMBER = re.compile(r"0x[0-9a-f]+")
_ERROR = re.compile(r"^[^\n]*?:(\d+): Error: (.*)$", re.MULTILINE)


class Unusable(Exception):
    """The tools at hand cannot judge; the text says why."""


@dataclass(frozen=True)
class Finding:
    """An instruction that the level lacks."""

    path: str
    function: str
    instruction: str
    reason: str

    def __str__(self) -> str:
        return "%s: %s: %s (%s)" % (self.path, self.function, self.instruction, self.reason)


def normal(text: str, x86: bool) -> str:
    """An instruction as the assembler takes it, free of addresses and of numbers that do not decide
    what it is; so a library's half a million become some ten thousand."""
    text = text.split("\t//" if not x86 else "#", 1)[0].replace("\t", " ").strip()
    text = _TARGET.sub(".", text)
    if not x86:
        return text.split(" //", 1)[0].strip()
    text = PADDING.sub("", text)
    return _X86_NUMBER.sub("0x10", _X86_BRANCH.sub(r"\1 .", text))


def mnemonic(text: str) -> str:
    """The first word that is no prefix of repetition or locking."""
    words = text.split()
    while len(words) > 1 and words[0] in ("lock", "rep", "repz", "repnz", "xacquire", "xrelease"):
        words.pop(0)
    return words[0] if words else ""


def instructions(path: str, objdump: str, x86: bool) -> Tuple[int, Dict[Tuple[str, str], str]]:
    """How many there are, and (normal form, function) -> the line, for each pair once."""
    command = [objdump, "-d", "-C", "-w", "--no-show-raw-insn", path]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise Unusable("%s: %s" % (" ".join(command), done.stderr.decode(errors="replace")[-500:]))
    count, function = 0, "?"
    found: Dict[Tuple[str, str], str] = {}
    for line in done.stdout.decode(errors="replace").splitlines():
        at = line.find(":\t")
        if at < 0:
            match = _FUNCTION.match(line)
            function = match.group(1) if match else function
            continue
        count += 1
        text = normal(line[at + 2:], x86)
        if text and text != "...":
            found.setdefault((text, function), line.strip())
    return count, found


def unsupported(texts: Sequence[str], level: str, assembler: str) -> Dict[str, str]:
    """Those that the assembler refuses for the level -> what it says."""
    with tempfile.TemporaryDirectory() as scratch:
        source = os.path.join(scratch, "a.s")
        with open(source, "w", encoding="utf-8", errors="replace") as stream:
            stream.write("\n".join(texts) + "\n")
        command = [assembler, "-march=" + ARCHITECTURE[level], "-o", os.devnull, source]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        errors = done.stderr.decode(errors="replace")
    found = {texts[int(line) - 1]: said for line, said in _ERROR.findall(errors)
             if 0 < int(line) <= len(texts)}
    if done.returncode and not found:
        raise Unusable("%s -march=%s: %s" % (assembler, ARCHITECTURE[level], errors[-500:]))
    return found


def allowed(text: str, function: str) -> bool:
    word = mnemonic(text)
    return word in HARMLESS or any(
        re.fullmatch(names, function) and re.fullmatch(words, word) for names, words in GUARDED)


def audit(paths: Sequence[str], level: str, prefix: str = "") -> Tuple[int, List[Finding]]:
    """How many instructions the files hold, and those that `level` lacks, one per function and
    kind. prefix: of the tools for another machine (`aarch64-linux-gnu-`). Raises Unusable."""
    x86 = level.startswith("x86")
    total, where = 0, {}
    for path in paths:
        count, found = instructions(path, prefix + "objdump", x86)
        total += count
        for (text, function), line in found.items():
            where.setdefault(text, []).append((path, function, line))
    texts = sorted(where)
    findings = []
    for text, said in sorted(unsupported(texts, level, prefix + "as").items()):
        findings += [Finding(path, function, line, said) for path, function, line in where[text]
                     if not allowed(text, function)]
    return total, findings
