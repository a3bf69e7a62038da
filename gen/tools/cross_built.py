# SPDX-License-Identifier: Apache-2.0
"""Proofs of other architectures: cross builds, and their use on emulated CPUs.

GoogleTest is compiled from the sources that Debian installs. Python and NumPy are Debian's packages
for that architecture, unpacked into a directory of the build: nothing is installed, and the
emulator looks for files there first.
"""

import concurrent.futures
import glob
import json
import os
import re
import shutil
import tempfile
from dataclasses import dataclass, field
from typing import Dict

import abi
from emulated_x86 import InstalledTree, told_by, used
from proving import (Failed, NotRun, audited, build_info, debian_repository, need, other_build,
                     proof, run)

PACKAGES = ("libpython3-dev", "python3-hypothesis", "python3-numpy", "python3-pytest",
            "python3-scipy")
# What forks while threads run, or starts itself again: the child would be no emulator's. Forced
# levels and such are seen by treenail-info.
NOT_EMULATED = "*Fork*:*Steady*:FuzzHarness.Keeps*:PluginPath.*:KernelLibraryDeathTest.*"


@dataclass(frozen=True)
class Machine:
    """cpus: one that the emulator knows for each kernel level to be built, the baseline first.
    debian: its name where Debian has packages for it, "" where Python cannot be had."""

    triplet: str
    emulator: str
    debian: str
    compiler: str  # its row in gen/deps.py
    cpus: Dict[str, str] = field(default_factory=lambda: {"generic": ""})

    @property
    def name(self):
        return self.triplet.split("-", maxsplit=1)[0]


AARCH64 = Machine("aarch64-linux-gnu", "qemu-aarch64", "arm64", "aarch64-compiler",
                  {"armv8-a": "cortex-a53", "armv8.2-a": "neoverse-n1", "sve": "a64fx"})
S390X = Machine("s390x-linux-gnu", "qemu-s390x", "s390x", "s390x-compiler")
PPC64EL = Machine("powerpc64le-linux-gnu", "qemu-ppc64le", "ppc64el", "ppc64el-compiler")
RISCV64 = Machine("riscv64-linux-gnu", "qemu-riscv64", "", "riscv64-compiler")


def gtest_for(compiler, folder):
    """GoogleTest compiled for another machine from the sources that Debian installs."""
    source = "/usr/src/googletest/googletest"
    if not os.path.isdir(source):
        raise NotRun("no sources of GoogleTest in /usr/src/googletest")
    os.makedirs(folder, exist_ok=True)
    for name, inputs in (("gtest", "gtest-all.cc"), ("gtest_main", "gtest_main.cc")):
        library = os.path.join(folder, "lib%s.a" % name)
        if not os.path.exists(library):
            out = os.path.join(folder, name + ".o")
            run([compiler, "-std=c++17", "-O1", "-fPIC", "-I" + source, "-I" + source + "/include",
                 "-c", os.path.join(source, "src", inputs), "-o", out])
            run([compiler.replace("g++", "ar"), "rcs", library, out])
        with open(os.path.join(folder, name + ".pc"), "w", encoding="utf-8") as stream:
            stream.write("Name: %s\nDescription: x\nVersion: 1.12.1\nCflags: -I%s/include\n"
                         "Libs: -L%s -l%s\n" % (name, source, folder, name))


def links_within(root):
    """Absolute links below `root` lead to there, as they do for who has it as root directory."""
    for folder, folders, leaves in os.walk(root):
        for path in (os.path.join(folder, name) for name in folders + leaves):
            if os.path.islink(path) and os.readlink(path).startswith("/"):
                target = os.path.relpath(root + os.readlink(path), folder)
                os.unlink(path)
                os.symlink(target, path)


def unpacked_packages(root, architecture):
    """Debian's packages for an architecture, with what they need, below `root`."""
    ready = os.path.join(root, "unpacked")
    if os.path.exists(ready):
        return
    need("apt-get", "apt")
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("state/lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(root, "apt", folder))
    place = {name: os.path.join(root, "apt", name) for name in (
        "state", "cache", "status", "sources.list")}
    release, mirror = debian_repository()
    for name, text in (("status", ""), ("sources.list", "deb %s %s main\n" % (mirror, release))):
        with open(place[name], "w", encoding="utf-8") as stream:
            stream.write(text)
    apt = ["apt-get", "-q", "-y"] + [word for setting in (
        "APT::Architecture=" + architecture, "APT::Architectures::=" + architecture,
        "APT::Install-Recommends=false",
        "APT::Sandbox::User=", "Debug::NoLocking=true", "Dir::State=" + place["state"],
        "Dir::State::status=" + place["status"], "Dir::Cache=" + place["cache"],
        "Dir::Etc::sourcelist=" + place["sources.list"], "Dir::Etc::sourceparts=/dev/null",
    ) for word in ("-o", setting)]
    run(apt + ["update"])
    run(apt + ["--download-only", "install", *PACKAGES])
    for package in sorted(glob.glob(os.path.join(place["cache"], "archives", "*.deb"))):
        run(["dpkg-deb", "-x", package, root])
    shutil.rmtree(os.path.join(root, "apt"))
    links_within(root)
    with open(ready, "w", encoding="utf-8"):
        pass


def python_headers(root, folder, triplet):
    """The machine's own headers of Python are right but for pyconfig.h; its version and where the
    other's is. Debian's Python.h takes that from <TRIPLET/pythonX.Y/pyconfig.h>."""
    found = glob.glob(os.path.join(root, "usr/include", triplet, "python3.*"))
    if len(found) != 1:
        raise Failed("headers of one Python were expected: %s" % found)
    target = os.path.join(folder, triplet, os.path.basename(found[0]))
    shutil.copytree(found[0], target, dirs_exist_ok=True)
    return target.rsplit("python", 1)[1]


class Emulator:
    """Programs and Python on one emulated CPU. The loader's path is given to what is emulated
    alone: the emulator itself is a program of this machine."""

    def __init__(self, machine, root, level):
        cpu = machine.cpus[level]
        self.level, self.cpu = level, cpu or machine.name
        self.root, self.triplet = root, machine.triplet
        self.command = [machine.emulator, *(["-cpu", cpu] if cpu else []), "-L", root]

    def words(self, libraries=()):
        base = os.path.join(self.root, "usr/lib", self.triplet)
        path = os.pathsep.join([*libraries, base + "/blas", base + "/lapack"])
        return self.command + ["-E", "LD_LIBRARY_PATH=" + path]

    def python(self, tree):
        """What runs the unpacked Python with an installed tree, from the source tree."""
        environment = dict(tree.environment)
        libraries = environment.pop("LD_LIBRARY_PATH")
        interpreter, = glob.glob(os.path.join(self.root, "usr/bin/python3.[0-9]*[0-9]"))

        def call(*arguments, **more):
            return run(self.words([libraries]) + [interpreter, "-B", *arguments],
                       cwd=environment["TREENAIL_SOURCE_DIR"],
                       environment=dict(environment, **more))
        return call


# Not above, and not beside: an A64FX has no dot product.
REFUSED = {"armv8-a": "armv8.2-a", "armv8.2-a": "sve", "sve": "armv8.2-a"}


def reported(emulator, tree):
    """treenail-info takes the level, and refuses another."""
    level = emulator.level
    words = emulator.words([tree.environment["LD_LIBRARY_PATH"]]) + [tree.program, "--json"]
    told = told_by(words)
    if (told["best_level"], told["kernel_level"]) != (level, level):
        raise Failed("%s: %r" % (" ".join(words), told))
    if level in REFUSED:
        told = told_by(words, {"TREENAIL_CPU_ISA": REFUSED[level]}, 1)
        if "lacks" not in told["kernel_problem"]:
            raise Failed("TREENAIL_CPU_ISA=%s, %s: %r" % (REFUSED[level], " ".join(words), told))


def tests_passed(build, emulator):
    """How many C++ tests passed on that CPU."""
    with open(os.path.join(build, "gen/tests.json"), encoding="utf-8") as stream:
        programs = json.load(stream)["programs"]
    passed = 0
    for name in sorted(programs):
        text = run(emulator.words() + [
            os.path.join(build, programs[name]["path"]), "--gtest_brief=1",
            "--gtest_filter=-" + NOT_EMULATED], cwd=build, environment={
                "TREENAIL_BUILD_DIR": build})
        passed += int(re.findall(r"\[  PASSED  \] (\d+)", text)[-1])
    return passed


def cross_built(machine):
    """A cross build with every kernel level, without optional libraries, and its use on an emulated
    CPU of each: what treenail-info says, C++ tests and, where there is a Python, a part of the op
    cases and the smallest network."""
    need(machine.triplet + "-g++", machine.compiler)
    need(machine.emulator, "qemu-user")
    folder = os.path.abspath("proof-%s-parts" % machine.name)
    gtest_for(machine.triplet + "-g++", folder)
    directories = run(["pkg-config", "--variable", "pc_path", "pkg-config"]).strip()
    settings = {"CXX": machine.triplet + "-g++", "CC": machine.triplet + "-gcc",
                "PKG_CONFIG": "pkg-config", "PKG_CONFIG_LIBDIR": folder + ":" + directories}
    words = ["--host=" + machine.triplet, "--build=x86_64-linux-gnu", "--auto-features=no",
             "--blas=none", "--kernel-isas=" + (",".join(list(machine.cpus)[1:]) or "none")]
    root = "/usr/" + machine.triplet  # where Debian's cross compilers have their C library
    if machine.debian:
        root = os.path.join(folder, "root")
        unpacked_packages(root, machine.debian)
        headers = os.path.join(folder, "include")
        words.append("--host-python=" + python_headers(root, headers, machine.triplet))
        settings["CPPFLAGS"] = "-isystem " + headers
    build = os.path.abspath("proof-" + machine.name)
    other_build(words, build, settings, targets=("all", "tests-cxx"),
                drop=("--with-", "--blas", "--python"))
    if build_info("kKernelLevels", build).split() != list(machine.cpus):
        raise Failed("levels: " + build_info("kKernelLevels", build))

    def proven_on(level):
        emulator = Emulator(machine, root, level)
        reported(emulator, tree)
        result = "%s takes %s: %d C++ tests" % (emulator.cpu, level, tests_passed(build, emulator))
        return result + ("; " + used(emulator.python(tree), "0/64") if machine.debian else "")

    with tempfile.TemporaryDirectory() as place:
        tree = InstalledTree(place, build)
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            done = list(pool.map(proven_on, machine.cpus))
    if "generic" not in machine.cpus:
        done.append(audited(build, machine.triplet + "-"))
    try:
        done.append("C interface: " + abi.compare(build))
    except NotRun as reason:
        done.append("C interface not compared: %s" % reason)
    return "; ".join(done)


@proof
def aarch64():
    """cross-built for AArch64: levels, C++ tests, op cases, MLP on emulated CPUs; instructions"""
    return cross_built(AARCH64)


@proof
def s390x():
    """cross-built for s390x, which is big-endian: C++ tests, op cases, MLP on an emulated CPU"""
    return cross_built(S390X)


@proof
def ppc64el():
    """cross-built for ppc64el: C++ tests, op cases, MLP on an emulated CPU"""
    return cross_built(PPC64EL)


@proof
def riscv64():
    """cross-built for riscv64: C++ tests on an emulated CPU (Debian 12 has no Python for it)"""
    return cross_built(RISCV64)
