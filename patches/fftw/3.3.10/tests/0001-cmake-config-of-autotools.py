# SPDX-License-Identifier: Apache-2.0
"""A program finds FFTW by the CMake package of a build by configure and make, and links it."""

import os
import re

import patchtest

PROJECT = """cmake_minimum_required(VERSION 3.13)
project(consumer C)
find_package(FFTW3{p} CONFIG REQUIRED)
add_executable(by-target main.c)
target_link_libraries(by-target FFTW3::fftw3{p})
add_executable(by-variables main.c)
target_include_directories(by-variables PRIVATE ${{FFTW3{p}_INCLUDE_DIRS}})
target_link_directories(by-variables PRIVATE ${{FFTW3{p}_LIBRARY_DIRS}})
target_link_libraries(by-variables ${{FFTW3{p}_LIBRARIES}} m)
"""
MAIN = """#include <fftw3.h>
#include <stdio.h>
int main(void) {{
  void *memory = fftw{p}_malloc(16);
  puts(fftw{p}_version);
  fftw{p}_free(memory);
  return memory == 0;
}}
"""
# The functions of the program, for a tree that is not built.
LIBRARY = """#include <stdlib.h>
const char fftw{p}_version[] = "fftw-made-up";
void *fftw{p}_malloc(size_t size) {{ return malloc(size); }}
void fftw{p}_free(void *memory) {{ free(memory); }}
"""


def consumer(prefix, letter):
    """Configures, builds and runs the project against a prefix."""
    os.makedirs("consumer" + letter)
    for name, text in (("CMakeLists.txt", PROJECT), ("main.c", MAIN)):
        with open(os.path.join("consumer" + letter, name), "w", encoding="utf-8") as stream:
            stream.write(text.format(p=letter))
    build = "build" + letter
    made = patchtest.run(["cmake", "-S", "consumer" + letter, "-B", build, "-G", "Unix Makefiles",
                          "-DCMAKE_PREFIX_PATH=" + prefix, "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF",
                          "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF"], status=None)
    if made.returncode:
        patchtest.failed("find_package(FFTW3%s): %s" % (
            letter, " ".join(made.stdout.partition("CMake Error")[2].split())[:300]))
    made = patchtest.run(["cmake", "--build", build], status=None)
    if made.returncode:
        patchtest.failed("FFTW3::fftw3%s cannot be linked:\n%s" % (letter, made.stdout[-2000:]))
    settings = {"LD_LIBRARY_PATH": os.path.join(prefix, "lib")}
    for name in ("by-target", "by-variables"):
        patchtest.run([os.path.join(build, name)], environment=settings)


def installed_by_make(tree, prefix, letter):
    """Lets the makefile's own lines, which need nothing that configure finds out, make and place
    the package of one precision."""
    with open(os.path.join(tree, "Makefile.in"), encoding="utf-8") as stream:
        text = stream.read()
    rule = re.search(r"^FFTW3@PREC_SUFFIX@Config\.cmake:.*\n(?:\t.*\n)+", text, re.MULTILINE)
    folder = re.search(r"^cmakedir = .*\n", text, re.MULTILINE)
    if not rule or not folder:
        patchtest.cannot_tell("Makefile.in has no rule for FFTW3Config.cmake")
    makefile = "rule%s.mk" % letter
    with open(makefile, "w", encoding="utf-8") as stream:
        # As config.status would write it; what the rule replaces is written [@]NAME@.
        stream.write("SED = sed\ntop_srcdir = %s\nlibdir = %s/lib\nincludedir = %s/include\n" % (
            tree, prefix, prefix))
        stream.write((folder.group() + rule.group()).replace("@PREC_SUFFIX@", letter))
        stream.write("install: FFTW3%sConfig.cmake\n" % letter)
        stream.write("\tmkdir -p $(cmakedir)\n\tcp $< $(cmakedir)\n")
    patchtest.run(["make", "-f", makefile, "install"])


def tree(path):
    for program, package in (("cmake", "cmake"), ("make", "make"), ("cc", "gcc")):
        patchtest.need(program, package)
    installed = os.path.abspath("prefix")
    os.makedirs(os.path.join(installed, "include"))
    os.symlink(os.path.join(path, "api/fftw3.h"), os.path.join(installed, "include/fftw3.h"))
    for letter in ("", "f"):
        installed_by_make(path, installed, letter)
        with open("library.c", "w", encoding="utf-8") as stream:
            stream.write(LIBRARY.format(p=letter))
        patchtest.run(["cc", "-shared", "-fPIC", "library.c", "-o",
                       os.path.join(installed, "lib/libfftw3%s.so" % letter)])
        consumer(installed, letter)


def prefix(path):
    patchtest.need("cmake", "cmake")
    letters = [letter for letter in ("", "f", "l")
               if os.path.exists(os.path.join(path, "lib/libfftw3%s.so" % letter))]
    if not letters:
        patchtest.cannot_tell("there is no lib/libfftw3.so")
    for letter in letters:
        consumer(path, letter)


patchtest.main(tree=tree, prefix=prefix)
