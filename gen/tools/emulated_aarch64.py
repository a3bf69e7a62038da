# SPDX-License-Identifier: Apache-2.0
"""The proof of AArch64: a cross build with every kernel level, and its use on emulated CPUs.

GoogleTest is compiled from the sources that Debian installs. Python and NumPy are Debian's packages
for arm64, unpacked into a directory of the build: nothing is installed, and the emulator looks for
files there first.
"""

import concurrent.futures
import glob
import json
import os
import re
import shutil
import tempfile

from emulated_x86 import InstalledTree, told_by, used
from proving import Failed, NotRun, audited, build_info, need, other_build, run

TRIPLET = "aarch64-linux-gnu"
CPUS = {"armv8-a": "cortex-a53", "armv8.2-a": "neoverse-n1", "sve": "a64fx"}
PACKAGES = ("libpython3-dev", "python3-hypothesis", "python3-numpy", "python3-pytest",
            "python3-scipy")
# What forks while threads run, or starts itself again: the child would be no emulator's. Forced
# levels and such are seen by treenail-info.
NOT_EMULATED = "*Fork*:*Steady*:FuzzHarness.Keeps*:PluginPath.*:KernelLibraryDeathTest.*"


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


def unpacked_packages(root):
    """Debian's packages for arm64, with what they need, below `root`."""
    ready = os.path.join(root, "unpacked")
    if os.path.exists(ready):
        return
    need("apt-get", "apt")
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("state/lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(root, "apt", folder))
    place = {name: os.path.join(root, "apt", name) for name in (
        "state", "cache", "status", "sources.list")}
    sources = run(["apt-get", "indextargets", "--format",
                   "deb $(REPO_URI) $(RELEASE) $(COMPONENT)", "Origin: Debian",
                   "Created-By: Packages"])
    if "deb " not in sources:
        raise NotRun("apt knows no repository of Debian")
    for name, text in (("status", ""), ("sources.list", sources)):
        with open(place[name], "w", encoding="utf-8") as stream:
            stream.write(text)
    apt = ["apt-get", "-q", "-y"] + [word for setting in (
        "APT::Architecture=arm64", "APT::Architectures::=arm64", "APT::Install-Recommends=false",
        "APT::Sandbox::User=", "Debug::NoLocking=true", "Dir::State=" + place["state"],
        "Dir::State::status=" + place["status"], "Dir::Cache=" + place["cache"],
        "Dir::Etc::sourcelist=" + place["sources.list"], "Dir::Etc::sourceparts=/dev/null",
    ) for word in ("-o", setting)]
    run(apt + ["update"])
    run(apt + ["--download-only", "install", *PACKAGES])
    for package in sorted(glob.glob(os.path.join(place["cache"], "archives", "*.deb"))):
        run(["dpkg-deb", "-x", package, root])
    shutil.rmtree(os.path.join(root, "apt"))
    with open(ready, "w", encoding="utf-8"):
        pass


def python_headers(root, folder):
    """The machine's own headers of Python are right but for pyconfig.h; its version and where the
    other's is. Debian's Python.h takes that from <TRIPLET/pythonX.Y/pyconfig.h>."""
    found = glob.glob(os.path.join(root, "usr/include", TRIPLET, "python3.*"))
    if len(found) != 1:
        raise Failed("headers of one Python were expected: %s" % found)
    target = os.path.join(folder, TRIPLET, os.path.basename(found[0]))
    shutil.copytree(found[0], target, dirs_exist_ok=True)
    return target.rsplit("python", 1)[1]


class Emulator:
    """Programs and Python on one emulated CPU. The loader's path is given to what is emulated
    alone: the emulator itself is a program of this machine."""

    def __init__(self, root, cpu):
        self.root = root
        self.command = ["qemu-aarch64", "-cpu", cpu, "-L", root]

    def words(self, libraries=()):
        base = os.path.join(self.root, "usr/lib", TRIPLET)
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


def reported(emulator, tree, level):
    """treenail-info takes the level, and refuses another."""
    words = emulator.words([tree.environment["LD_LIBRARY_PATH"]]) + [tree.program, "--json"]
    told = told_by(words)
    if (told["best_level"], told["kernel_level"]) != (level, level):
        raise Failed("%s: %r" % (" ".join(words), told))
    # Not above, and not beside: an A64FX has no dot product.
    refused = {"armv8-a": "armv8.2-a", "armv8.2-a": "sve", "sve": "armv8.2-a"}
    told = told_by(words, {"TREENAIL_CPU_ISA": refused[level]}, 1)
    if "lacks" not in told["kernel_problem"]:
        raise Failed("TREENAIL_CPU_ISA=%s, %s: %r" % (refused[level], " ".join(words), told))


def proven_on(build, root, tree, level):
    emulator = Emulator(root, CPUS[level])
    reported(emulator, tree, level)
    with open(os.path.join(build, "gen/tests.json"), encoding="utf-8") as stream:
        programs = json.load(stream)["programs"]
    passed = 0
    for name in sorted(programs):
        text = run(emulator.words() + [
            os.path.join(build, programs[name]["path"]), "--gtest_brief=1",
            "--gtest_filter=-" + NOT_EMULATED], cwd=build, environment={
                "TREENAIL_BUILD_DIR": build})
        passed += int(re.findall(r"\[  PASSED  \] (\d+)", text)[-1])
    return "%s takes %s: %d C++ tests; %s" % (
        CPUS[level], level, passed, used(emulator.python(tree), "0/64"))


def aarch64():
    """cross-built for AArch64: levels, C++ tests, op cases, MLP on emulated CPUs; instructions"""
    need(TRIPLET + "-g++", "aarch64-compiler")
    need("qemu-aarch64", "qemu-user")
    folder = os.path.abspath("proof-aarch64-parts")
    root = os.path.join(folder, "root")
    unpacked_packages(root)
    gtest_for(TRIPLET + "-g++", folder)
    headers = os.path.join(folder, "include")
    version = python_headers(root, headers)
    build = os.path.abspath("proof-aarch64")
    directories = run(["pkg-config", "--variable", "pc_path", "pkg-config"]).strip()
    settings = {"CXX": TRIPLET + "-g++", "CC": TRIPLET + "-gcc", "PKG_CONFIG": "pkg-config",
                "PKG_CONFIG_LIBDIR": folder + ":" + directories,
                "CPPFLAGS": "-isystem " + headers}
    other_build(["--host=" + TRIPLET, "--build=x86_64-linux-gnu", "--auto-features=no",
                 "--blas=none", "--kernel-isas=armv8.2-a,sve", "--host-python=" + version], build,
                settings, targets=("all", "tests-cxx"), drop=("--with-", "--blas", "--python"))
    if build_info("kKernelLevels", build).split() != list(CPUS):
        raise Failed("levels: " + build_info("kKernelLevels", build))
    with tempfile.TemporaryDirectory() as place:
        tree = InstalledTree(place, build)
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            done = list(pool.map(lambda level: proven_on(build, root, tree, level), CPUS))
    return "; ".join(done + [audited(build, TRIPLET + "-")])
