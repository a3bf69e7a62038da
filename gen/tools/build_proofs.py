# SPDX-License-Identifier: Apache-2.0
"""Proofs of the build: what it depends on, what it makes, and other builds of the same tree."""

import concurrent.futures
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time

import audit
from emulated_x86 import told_by
from gen import isa, sanitizers
from proving import (SOURCE, TOOLS, Failed, NotRun, audited, build_info, configured,
                     debian_repository, manifest, need, other_build, proof, run, tracked_files)


@proof(quick=True)
def missing_deps():
    """no compile step reads a generated file that it does not depend on"""
    text = run(["ninja", "-n", "-t", "missingdeps"])
    if "No missing dependencies" not in text:
        raise Failed(text)
    return text.strip().splitlines()[-1]


@proof(quick=True)
def nothing_to_do():
    """`ninja` after a build finds no work, in 0.1 s of processor time (the best of five)"""
    best = 9.0
    for _ in range(5):
        begin = os.times()
        text = run(["ninja", "-n", "all"])
        end = os.times()
        best = min(best, end.children_user + end.children_system
                   - begin.children_user - begin.children_system)
    if "no work to do" not in text:
        raise Failed(text)
    if best > 0.1:
        raise Failed("%.2f s" % best)
    return "%.3f s" % best


@proof(quick=True)
def layers():
    """the tests of each layer of the core link with it and the layers below it alone"""
    # The kernels' own have no such program: one kernel library per level is all they are.
    names = sorted(name for name in manifest()["programs"] if name != "kernels")
    run(["ninja"] + ["layer-" + name for name in names])
    return ", ".join(names)


@proof(quick=True)
def baseline_instructions():
    """disassembled, no library holds an instruction beyond the level it is built for"""
    if build_info("kIsaBaseline") not in audit.ARCHITECTURE:
        raise NotRun("audit.py knows no assembler's name for " + build_info("kIsaBaseline"))
    need("objdump", "binutils")
    return audited(".")


def cases_at(level, shard, build="."):
    folder = os.path.join(SOURCE, "tests", "cases")
    if not any(n.startswith("test_") for n in os.listdir(folder)):
        raise NotRun("tests/cases has no test module")
    text = run([manifest()["python"], "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p",
                "pytest_shard", "--rootdir=.", "tests/cases"], cwd=SOURCE, environment={
                    "PYTHONPATH": os.pathsep.join([os.path.join(os.path.abspath(build), "python"),
                                                   TOOLS]),
                    "TREENAIL_TEST_SHARD": shard, "TREENAIL_CPU_ISA": level,
                    "TREENAIL_SOURCE_DIR": SOURCE, "TREENAIL_BUILD_DIR": os.path.abspath(build)})
    return "%s: %s" % (level, text.strip().splitlines()[-1])


def subbuilt(directory, target, *options):
    """What ninja said about a target of a build below this one."""
    return run([sys.executable, "-B", os.path.join(TOOLS, "subbuild.py"), "--directory", directory,
                "--target", target, "--", *options])


def sanitizer(check):
    text = subbuilt("sanitize-" + check, "run-" + check, *sanitizers.CHECKS[check].configured)
    return text.strip().splitlines()[-1]


@proof
def address_undefined():
    """the C++ tests are clean under the address and undefined behaviour sanitizers"""
    return sanitizer("address-undefined")


@proof
def thread():
    """the tests of thread pool, executor and servers are clean under the thread sanitizer"""
    return sanitizer("thread")


@proof
def every_level():
    """built with each level, none goes beyond itself; all op cases, modes, devices at this CPU's"""
    names = [level.name for level in isa.levels(build_info("kMachine"))]
    for target in ("all", "tests/plugins/libtreenail-simulated-device.so"):
        subbuilt("every-level", target, "--kernel-isas=" + ",".join(names))
    built = build_info("kKernelLevels", "every-level").split()
    best = told_by(["every-level/bin/treenail-info", "--json"])["best_level"]
    width = len(os.sched_getaffinity(0))
    results = [audited("every-level")]
    with concurrent.futures.ThreadPoolExecutor(width) as pool:
        for level in built:
            if names.index(level) > names.index(best):
                results.append("%s: this CPU lacks it" % level)
                continue
            results += pool.map(lambda index, at=level: cases_at(
                at, "%d/%d" % (index, width), "every-level"), range(width))
    return "; ".join(results)


def tree_digest(root):
    found = {}
    for folder, _, leaves in os.walk(root):
        for leaf in leaves:
            path = os.path.join(folder, leaf)
            name = os.path.relpath(path, root)
            if os.path.islink(path):
                found[name] = "-> " + os.readlink(path)
                continue
            with open(path, "rb") as stream:
                found[name] = "%o %s" % (os.stat(path).st_mode & 0o7777,
                                         hashlib.sha256(stream.read()).hexdigest())
    return found


def installed(source, place, umask, jobs, settings):
    """The digest of what the tree `source` installs, built below itself in such surroundings."""
    build = os.path.join(source, "b")
    settings = dict(settings, CCACHE_DISABLE="1")
    # With debug information, as packages are built.
    flags = "-g -ffile-prefix-map=%s=." % source.replace(" ", "\\ ")
    words, stored = configured(["--prefix=/usr", "CFLAGS=" + flags, "CXXFLAGS=" + flags],
                               build, ("CFLAGS=", "CXXFLAGS="))
    run([sys.executable, "-B", os.path.join(source, "configure.py")] + words,
        environment=dict(stored, **settings), umask=umask)
    run(["ninja", "-j", jobs, "-C", build], environment=settings, umask=umask)
    run(["ninja", "-C", build, "install"], environment=dict(settings, DESTDIR=place), umask=umask)
    return tree_digest(place)


@proof
def reproducible():
    """two builds in directories of other names, times, locales, umasks and -j: the same bytes"""
    with tempfile.TemporaryDirectory() as scratch:
        return same_bytes(scratch)


def same_bytes(scratch):
    surroundings = (("one", 0o022, "1", {"LC_ALL": "C", "TZ": "UTC"}),
                    ("second longer", 0o077, "3", {"LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"}))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        going = []
        for index, (name, umask, jobs, settings) in enumerate(surroundings):
            source = os.path.join(scratch, name, "tree%d" % index)
            tracked_files(source)
            going.append(pool.submit(installed, source, os.path.join(scratch, "d%d" % index),
                                     umask, jobs, settings))
        one, two = [build.result() for build in going]
    differing = sorted(n for n in set(one) | set(two) if one.get(n) != two.get(n))
    if differing:
        raise Failed("these differ: " + ", ".join(differing))
    return "%d files" % len(one)


# What `ninja test` never reads.
NOT_FOR_TESTS = (".ci", "ansible", "ci", "contrib", "debian", "debian-cuda", "patches", "rpm",
                 "tests/site")


@proof
def without_features():
    """without optional features, and without packaging and site in the tree, the tests pass"""
    tree = os.path.abspath("proof-bare-source")
    shutil.rmtree(tree, ignore_errors=True)
    tracked_files(tree)
    for name in NOT_FOR_TESTS:
        shutil.rmtree(os.path.join(tree, name))
    other_build(["--auto-features=no", "--blas=none"], "proof-bare", source=tree, targets=("test",),
                drop=("--with-", "--blas"))
    return "passed"


@proof
def clang():
    """Clang builds everything without a warning, and the C++ tests pass"""
    need("clang++", "clang-tidy")
    other_build(["--werror"], "proof-clang", {"CXX": "clang++", "CC": "clang"},
                targets=("test-cxx",))
    return "passed"


@proof
def oldest_compilers():
    """the oldest GCC and Clang that are supported build all without a warning, and pass in C++"""
    pairs = [("oldest-gcc", "gcc-11", "g++-11"), ("oldest-clang", "clang-14", "clang++-14")]
    for name, _, program in pairs:  # before the first build, which takes long
        need(program, name)
    for name, cc, program in pairs:
        other_build(["--werror"], "proof-" + name, {"CXX": program, "CC": cc},
                    targets=("all", "test-cxx"))
    return "%s passed" % " and ".join(program for _, _, program in pairs)


@proof
def documentation():
    """the documentation builds without a warning"""
    text = run(["ninja", "docs"], status=None)
    if "has no module" in text:
        raise NotRun(text.strip().splitlines()[1])
    if "FAILED" in text:
        raise Failed(text)
    return "html/index.html"


@proof
def fresh_machine():
    """in a new Debian with git and Python alone, ci/smoke trains and ci/test passes"""
    if not shutil.which("debootstrap") or not shutil.which("apt-get"):
        raise NotRun("it needs Debian's debootstrap")
    if os.getuid() != 0:
        raise NotRun("only root can enter another root directory")
    release, mirror = debian_repository()
    with tempfile.TemporaryDirectory() as root:
        run(["debootstrap", "--variant=minbase", "--include=ca-certificates,git,python3", release,
             root, mirror])
        shutil.copy("/etc/resolv.conf", os.path.join(root, "etc/resolv.conf"))
        tracked_files(os.path.join(root, "treenail"))
        # In a mount namespace of their own these mounts end with the process. The linters ask git
        # which files there are.
        inside = ("mount -t proc proc \"$0/proc\" && mount --rbind /dev \"$0/dev\" && "
                  "mount -t sysfs sysfs \"$0/sys\" && "
                  "exec chroot \"$0\" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "
                  "LC_ALL=C.UTF-8 sh -c 'cd /treenail && git init -q && git add -A && "
                  "ci/smoke && ci/test'")
        text = run(["unshare", "--mount", "--propagation", "private", "sh", "-c", inside, root])
        accuracies = re.findall(r"^ok +(\w+: test accuracy [\d.]+)", text, re.MULTILINE)
        tests = re.findall(r"^\d+ passed, 0 failed.*", text, re.MULTILINE)
        return "%s; %s; %s" % (mirror, ", ".join(accuracies), ", ".join(tests))


@proof(quick=True)
def mutated_models(seconds=10):
    """mutated ONNX files, for ten seconds, load or are refused by an error of ours"""
    return run([manifest()["python"], "-B", os.path.join(SOURCE, "tests/onnx/fuzz.py"),
                "--seconds", seconds], environment={
                    "PYTHONPATH": os.path.abspath("python")}).strip().splitlines()[-1]


@proof
def mutated_models_long():
    """mutated ONNX files, for ten minutes, load or are refused by an error of ours"""
    return mutated_models(600)


@proof(quick=True)
def mutated_inputs(seconds=10, seed=1):
    """under the address sanitizer each C++ parser bears ten seconds of mutated inputs"""
    # The parsers alone: no runtime, no kernels.
    build = os.path.abspath("sanitize-fuzz")
    subbuilt("sanitize-fuzz", "layer-fuzz", "--sanitize=address,undefined", "--kernel-isas=none",
             "--buildtype=debug", "CXXFLAGS=-g1")
    settings = {"TREENAIL_BUILD_DIR": build, "TREENAIL_SOURCE_DIR": SOURCE,
                "TREENAIL_LIBRARY_DIR": os.path.join(build, "tests/fuzz_layer"),
                "TREENAIL_FUZZ_SECONDS": str(seconds), "TREENAIL_FUZZ_SEED": str(seed),
                "ASAN_OPTIONS": "intercept_tls_get_addr=0:max_allocation_size_mb=2048:"
                                "allocator_may_return_null=1", "UBSAN_OPTIONS": "halt_on_error=1"}
    width = len(os.sched_getaffinity(0))  # GoogleTest deals its tests out to so many processes

    def part(index):
        return run(["tests/fuzz_layer_test", "--gtest_brief=1"], cwd=build, environment=dict(
            settings, GTEST_TOTAL_SHARDS=str(width), GTEST_SHARD_INDEX=str(index)))

    with concurrent.futures.ThreadPoolExecutor(width) as pool:
        text = "\n".join(pool.map(part, range(width)))
    found = re.findall(r"^([\w-]+): (\d+) inputs, (\d+) accepted", text, re.MULTILINE)
    if not found:
        raise Failed(text[-4000:])
    return "from seed %d: %s" % (seed, ", ".join("%s %s inputs" % row[:2] for row in found))


@proof
def mutated_inputs_long():
    """under the address sanitizer each C++ parser bears ten minutes of mutated inputs"""
    return mutated_inputs(600, int(time.time()) % 10 ** 6)


def preloaded(library):
    """The sanitizer's runtime, as a program that was built without it must load it; and C++'s, in
    which it looks for what throws before the program has it."""
    found = re.findall(r"=> (\S*lib(?:asan|stdc\+\+)\S*)", run(["ldd", library]))
    if not any("libasan" in path for path in found):
        raise NotRun("%s brings its sanitizer's runtime along: Python cannot load it" % library)
    return " ".join(sorted(found))  # the sanitizer's first


@proof
def random_graphs(seconds=600, seed=None):
    """under the address sanitizer random graphs agree with NumPy and in every way they are run"""
    seed = int(time.time()) % 10 ** 6 * 1000 if seed is None else seed
    levels = sorted({build_info("kIsaBaseline"),
                     told_by(["bin/treenail-info", "--json"])["best_level"]})
    subbuilt("sanitize-graphs", "all", "--sanitize=address", "--kernel-isas=" + ",".join(levels),
             "--buildtype=debugoptimized", "CXXFLAGS=-g1")
    build = os.path.abspath("sanitize-graphs")
    settings = {
        "PYTHONPATH": os.path.join(build, "python"), "PYTHONMALLOC": "malloc",
        "LD_PRELOAD": preloaded(os.path.join(build, "lib/libtreenail.so")),
        "ASAN_OPTIONS": "detect_leaks=0:intercept_tls_get_addr=0:allocator_may_return_null=1"}
    results = []
    for level in levels:
        text = run([manifest()["python"], "-B", os.path.join(SOURCE, "tests/fuzz/graphs/fuzz.py"),
                    "--seconds", seconds / len(levels), "--seed", seed, "--hang-seconds", 900],
                   environment=dict(settings, TREENAIL_CPU_ISA=level))
        results.append(text.strip().splitlines()[-1])
    return "; ".join(results)
