# SPDX-License-Identifier: Apache-2.0
"""The audit of instructions: small assembled objects that it must refuse, naming the function, and
ones that must pass, for x86-64 and (with a cross assembler) AArch64."""

import shutil
import subprocess
import sys

import pytest
from small_tree import SOURCE

sys.path.insert(0, str(SOURCE / "gen" / "tools"))
import audit  # noqa: E402  (the path must be set first)

CROSS = "aarch64-linux-gnu-"
EVERYTHING = {"": (), CROSS: ("-march=armv8.5-a+sve+fp16+dotprod",)}


def assembled(tmp_path, prefix, text):
    """An object file of the functions `name: instructions`, one a line."""
    if not shutil.which(prefix + "as") or not shutil.which(prefix + "objdump"):
        pytest.skip("no %sas" % prefix)
    lines = []
    for line in text.splitlines():
        name, body = line.split(": ", 1)
        lines += [".globl " + name, ".type %s, %%function" % name, name + ":"] + body.split(";")
    source, target = tmp_path / "a.s", tmp_path / "a.o"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    machine = subprocess.run([prefix + "as", "--version"], stdout=subprocess.PIPE, check=True,
                             universal_newlines=True).stdout
    if ("x86_64" in machine) != (prefix == ""):
        pytest.skip("%sas is for another machine" % prefix)
    subprocess.run([prefix + "as", *EVERYTHING[prefix], "-o", str(target), str(source)], check=True)
    return str(target)


def refused(tmp_path, level, text, prefix=""):
    """The functions in which the audit found something."""
    return {f.function for f in audit.audit([assembled(tmp_path, prefix, text)], level, prefix)[1]}


@pytest.mark.parametrize("instruction, lowest", [
    ("addps %xmm0, %xmm1", "x86-64"), ("movaps %xmm15, (%rax)", "x86-64"),
    ("cvttsd2si %xmm0, %rax", "x86-64"), ("lock cmpxchg %rax, (%rbx)", "x86-64"),
    ("fldt 8(%rsp)", "x86-64"), ("cmovne %rax, %rbx", "x86-64"), ("cpuid", "x86-64"),
    ("rep stosb", "x86-64"), ("nopw %cs:0(%rax,%rax,1)", "x86-64"), ("mfence", "x86-64"),
    ("popcnt %rax, %rbx", "x86-64-v2"), ("pshufb %xmm0, %xmm1", "x86-64-v2"),
    ("haddps %xmm0, %xmm1", "x86-64-v2"), ("roundsd $1, %xmm0, %xmm1", "x86-64-v2"),
    ("pcmpistri $0, %xmm0, %xmm1", "x86-64-v2"), ("lock cmpxchg16b (%rdi)", "x86-64-v2"),
    ("vaddss %xmm0, %xmm1, %xmm2", "x86-64-v3"), ("vmovaps %ymm0, %ymm1", "x86-64-v3"),
    ("vpermq $1, %ymm0, %ymm1", "x86-64-v3"), ("vfmadd213ps %ymm0, %ymm1, %ymm2", "x86-64-v3"),
    ("lzcnt %rax, %rbx", "x86-64-v3"), ("andn %rax, %rbx, %rcx", "x86-64-v3"),
    ("mulx %rax, %rbx, %rcx", "x86-64-v3"), ("movbe (%rax), %rbx", "x86-64-v3"),
    ("vcvtph2ps %xmm0, %ymm1", "x86-64-v3"), ("xgetbv", "x86-64-v3"),
    ("vaddps %zmm0, %zmm1, %zmm2", "x86-64-v4"), ("vmovdqu64 %ymm16, (%rax)", "x86-64-v4"),
    ("vaddps %ymm0, %ymm1, %ymm2{%k1}", "x86-64-v4"),
    ("vpdpbusd %zmm0, %zmm1, %zmm2", None), ("aesenc %xmm0, %xmm1", None), ("rdrand %rax", None),
    ("sha1msg1 %xmm0, %xmm1", None), ("adcx %rax, %rbx", None), ("gf2p8mulb %xmm0, %xmm1", None)])
def test_x86_levels(tmp_path, instruction, lowest):
    """Each instruction belongs to the levels from `lowest` on, and to none where that is None."""
    levels = [level for level in audit.ARCHITECTURE if level.startswith("x86")]
    below = levels[:levels.index(lowest)] if lowest else levels
    for level in levels:
        found = refused(tmp_path, level, "calm: nop;ret\nculprit: %s;ret" % instruction)
        assert found == ({"culprit"} if level in below else set()), level


@pytest.mark.parametrize("instruction", [
    "tzcnt %rax, %rbx", "pause", "endbr64", "notrack jmp *%rax",
    ".byte 0xf2, 0xff, 0xe0",  # bnd jmp *%rax, whose name newer assemblers do not know
    "data16; data16; rex.W; call elsewhere"])
def test_what_older_cpus_execute_as_another_instruction(tmp_path, instruction):
    assert not refused(tmp_path, "x86-64", "f: %s;ret" % instruction)


def test_lzcnt_is_no_such_instruction(tmp_path):
    """Older CPUs execute it as bsr, whose result differs."""
    assert refused(tmp_path, "x86-64", "f: lzcnt %rax, %rbx;ret") == {"f"}


DETECT = "_ZN8treenail12_GLOBAL__N_16detectEv"
BY_INSTRUCTION = "_ZN8treenail12_GLOBAL__N_114by_instructionEPKhmj"


@pytest.mark.parametrize("function, instruction, passes", [
    (DETECT, "xgetbv", True), (DETECT, "popcnt %rax, %rbx", False), ("other", "xgetbv", False),
    (BY_INSTRUCTION, "crc32q (%rdi), %rax", True), (BY_INSTRUCTION, "xgetbv", False),
    ("other", "crc32b (%rdi), %eax", False), ("__cpu_indicator_init", "xgetbv", True)])
def test_functions_behind_a_cpu_check(tmp_path, function, instruction, passes):
    found = refused(tmp_path, "x86-64", "%s: %s;ret" % (function, instruction))
    assert bool(found) != passes


def test_a_finding_names_library_function_and_instruction(tmp_path):
    path = assembled(tmp_path, "", "_ZN8treenail4wideEPf: vaddps %ymm0, %ymm1, %ymm2;ret")
    count, findings = audit.audit([path], "x86-64")
    assert count == 2 and len(findings) == 1
    assert str(findings[0]).startswith(path + ": treenail::wide(float*): ")
    assert "vaddps" in str(findings[0]) and "not supported" in str(findings[0])


def test_sve_has_no_dot_product(tmp_path):
    """An A64FX lacks it, though the level below has it."""
    text = "culprit: sdot v0.4s, v1.16b, v2.16b;ret"
    assert not refused(tmp_path, "armv8.2-a", text, CROSS)
    assert refused(tmp_path, "sve", text, CROSS) == {"culprit"}


@pytest.mark.parametrize("instruction, lowest", [
    ("fmla v0.4s, v1.4s, v2.4s", "armv8-a"), ("ldxr w0, [x1]", "armv8-a"),
    ("fcvt h0, s0", "armv8-a"), ("bti c", "armv8-a"), ("paciasp", "armv8-a"),
    ("cas w0, w1, [x2]", "armv8.2-a"), ("ldaddal w0, w1, [x2]", "armv8.2-a"),
    ("fadd v0.8h, v0.8h, v1.8h", "armv8.2-a"),
    ("add z0.s, z0.s, z1.s", "sve"), ("cntd x0", "sve"), ("ldapr x0, [x1]", None),
    ("fjcvtzs w0, d0", None)])
def test_arm_levels(tmp_path, instruction, lowest):
    levels = ["armv8-a", "armv8.2-a", "sve"]
    below = levels[:levels.index(lowest)] if lowest else levels
    for level in levels:
        found = refused(tmp_path, level, "calm: nop;ret\nculprit: %s;ret" % instruction, CROSS)
        assert found == ({"culprit"} if level in below else set()), level


@pytest.mark.parametrize("function, instruction, passes", [
    ("__aarch64_cas4_acq_rel", "casal w0, w1, [x2]", True),
    ("__aarch64_ldadd8_relax", "ldadd x0, x1, [x2]", True),
    ("__aarch64_swp1_sync", "swpal w0, w1, [x2]", True),
    ("__aarch64_cas4_acq_rel", "sdot v0.4s, v1.16b, v2.16b", False),
    ("cas4", "casal w0, w1, [x2]", False)])
def test_outline_atomics(tmp_path, function, instruction, passes):
    found = refused(tmp_path, "armv8-a", "%s: %s;ret" % (function, instruction), CROSS)
    assert bool(found) != passes


def test_a_file_that_is_no_library(tmp_path):
    path = tmp_path / "text"
    path.write_text("not an object", encoding="utf-8")
    with pytest.raises(audit.Unusable, match="text"):
        audit.audit([str(path)], "x86-64")
