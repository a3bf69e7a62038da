# SPDX-License-Identifier: Apache-2.0
"""have_simd_neon(), compiled for AArch64, handles no signal and runs no odd instruction."""

import os
import platform
import re
import shutil

import patchtest

# What configure would have found out.
CONFIG = """#define FFTW_SINGLE 1
#define HAVE_NEON 1
#define SIZEOF_VOID_P 8
#define SIZEOF_INT 4
#define SIZEOF_UNSIGNED_INT 4
#define SIZEOF_UNSIGNED_LONG 8
#define SIZEOF_SIZE_T 8
#define HAVE_STDINT_H 1
#define HAVE_STDDEF_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRING_H 1
"""


def tree(path):
    triplet = "" if platform.machine() == "aarch64" else "aarch64-linux-gnu-"
    package = "gcc-aarch64-linux-gnu" if triplet else "gcc"
    compiler, names = (patchtest.need(triplet + word, package) for word in ("gcc", "nm"))
    objdump = shutil.which(triplet + "objdump") or patchtest.need("objdump", "binutils")
    with open("config.h", "w", encoding="utf-8") as stream:
        stream.write(CONFIG)
    # gnu11, for then the macros `unix` and `linux` are there, as they are for FFTW's configure.
    patchtest.run([compiler, "-std=gnu11", "-O2", "-I.", "-I" + path, "-I" + os.path.join(
        path, "kernel"), "-c", os.path.join(path, "simd-support/neon.c"), "-o", "neon.o"])
    defined = patchtest.run([names, "neon.o"]).stdout
    if not re.search(r" T fftwf_have_simd_neon$", defined, re.MULTILINE):
        raise RuntimeError("neon.o has no fftwf_have_simd_neon:\n" + defined)
    wrong = sorted(set(re.findall(r" U (signal|_?setjmp|longjmp)$", defined, re.MULTILINE)))
    if wrong:
        patchtest.failed("it calls " + ", ".join(wrong))
    # An instruction written as a number is data to the assembler, and so to objdump.
    code = patchtest.run([objdump, "-d", "neon.o"]).stdout
    words = re.findall(r"\.(?:inst|word)\s+(0x\w+)", code)
    if words:
        patchtest.failed("it runs the words " + ", ".join(words))


patchtest.main(tree=tree)
