# SPDX-License-Identifier: Apache-2.0
"""Proofs that are too slow or too special for `ninja test`; run in a build directory.

  --quick    those of a minute or two; ci/test runs them
  --slow     all of them; results go to proofs.md in the build directory, for docs/proofs.md
  --list     names and what each one shows
  NAME...    only these

A proof says 'ok', 'FAILED' or, where the machine lacks something, 'not run' with what is missing.
Only a failure, or no proof that ran at all, makes the exit status 1.
"""

import argparse
import concurrent.futures
import datetime
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
TOOLS = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(TOOLS))
sys.path[:0] = [TOOLS, os.path.join(SOURCE, "gen/packaging"), os.path.join(SOURCE, "gen/site"),
                SOURCE]
import audit  # noqa: E402  (the path must be set first)
from benchmark_proof import benchmark_slurm  # noqa: E402
from builder_proof import builder_user  # noqa: E402
from cross_built import aarch64, ppc64el, riscv64, s390x  # noqa: E402
from deb_cross import deb_arm64, deb_s390x  # noqa: E402
from deb_purge import deb_purge  # noqa: E402
from deb_reproducible import deb_reproducible  # noqa: E402
from easybuild_proof import easybuild  # noqa: E402
from emulated_x86 import (emulated_levels, emulated_pair, emulated_training,  # noqa: E402
                          oldest_cpu, reported_levels, told_by)
from gen import isa  # noqa: E402
from gen.distro import this_distro  # noqa: E402
from hosts_proof import (hosts_arm64, hosts_bare, hosts_chroot, hosts_cut_off,  # noqa: E402
                         hosts_ssh)
from image_proof import image_limits, images  # noqa: E402
from jenkins_proof import jenkins_cell  # noqa: E402
import junit  # noqa: E402
from patches_proof import patches  # noqa: E402
from proving import (Failed, NotRun, audited, build_info, configured,  # noqa: E402
                     debian_repository, manifest, need, other_build, run, tracked_files)
from repo_proof import package_repository  # noqa: E402
from rpm_proofs import rpm_install, rpm_reproducible  # noqa: E402
from sbom_schema import sbom_schema  # noqa: E402
from slurm_proof import slurm  # noqa: E402
from stack_proof import stack, stack_modules, stack_refusals  # noqa: E402

# ---- quick -----------------------------------------------------------------------------------


def missing_deps():
    """no compile step reads a generated file that it does not depend on"""
    text = run(["ninja", "-n", "-t", "missingdeps"])
    if "No missing dependencies" not in text:
        raise Failed(text)
    return text.strip().splitlines()[-1]


def nothing_to_do():
    """`ninja` after a build finds no work, in at most 0.1 s (the best of five)"""
    best = 9.0
    for _ in range(5):
        begin = time.monotonic()
        text = run(["ninja", "-n", "all"])
        best = min(best, time.monotonic() - begin)
    if "no work to do" not in text:
        raise Failed(text)
    if best > 0.1:
        raise Failed("%.2f s" % best)
    return "%.3f s" % best


def layers():
    """the tests of each layer of the core link with it and the layers below it alone"""
    # The kernels' own have no such program: one kernel library per level is all they are.
    names = sorted(name for name in manifest()["programs"] if name != "kernels")
    run(["ninja"] + ["layer-" + name for name in names])
    return ", ".join(names)


def baseline_instructions():
    """disassembled, no library holds an instruction beyond the level it is built for"""
    if build_info("kIsaBaseline") not in audit.ARCHITECTURE:
        raise NotRun("audit.py knows no assembler's name for " + build_info("kIsaBaseline"))
    need("objdump", "binutils")
    return audited(".")


def lower_level():
    """a part of the op cases gives right results at the baseline level too"""
    return cases_at(build_info("kIsaBaseline"), "0/8")


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


# ---- slow ------------------------------------------------------------------------------------


def subbuilt(directory, target, *options):
    """What ninja said about a target of a build below this one."""
    return run([sys.executable, "-B", os.path.join(TOOLS, "subbuild.py"), "--directory", directory,
                "--target", target, "--", *options])


def sanitizer(check, flag):
    text = subbuilt("sanitize-" + check, "run-" + check, "--sanitize=" + flag,
                    "--kernel-isas=auto", "--buildtype=debugoptimized")
    return text.strip().splitlines()[-1]


def address_undefined():
    """the C++ tests are clean under the address and undefined behaviour sanitizers"""
    return sanitizer("address-undefined", "address,undefined")


def thread():
    """the tests of thread pool and executor are clean under the thread sanitizer"""
    return sanitizer("thread", "thread")


def every_level():
    """built with each level there is, none goes beyond itself; all op cases at those of this CPU"""
    names = [level.name for level in isa.levels(build_info("kMachine"))]
    subbuilt("every-level", "all", "--kernel-isas=" + ",".join(names))
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
    words, stored = configured(["--prefix=/usr"], build)
    run([sys.executable, "-B", os.path.join(source, "configure.py")] + words,
        environment=dict(stored, **settings), umask=umask)
    run(["ninja", "-j", jobs, "-C", build], environment=settings, umask=umask)
    run(["ninja", "-C", build, "install"], environment=dict(settings, DESTDIR=place), umask=umask)
    return tree_digest(place)


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


def without_features():
    """a build with every optional feature off passes its tests"""
    other_build(["--auto-features=no", "--blas=none"], "proof-bare", targets=("test",),
                drop=("--with-", "--blas"))
    return "passed"


def clang():
    """Clang builds everything without a warning, and the C++ tests pass"""
    need("clang++", "clang-tidy")
    other_build(["--werror"], "proof-clang", {"CXX": "clang++", "CC": "clang"},
                targets=("test-cxx",))
    return "passed"


def documentation():
    """the documentation builds without a warning"""
    python = manifest()["python"]
    if subprocess.run([python, "-c", "import sphinx, myst_parser"], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        raise NotRun("Sphinx with MyST is not there; " + this_distro().install_hint("sphinx"))
    run([python, "-B", "-m", "sphinx", "-q", "-W", "--keep-going", "-d", "doctrees", "-b", "html",
         os.path.join(SOURCE, "docs"), "html"])
    return "html/index.html"


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


def mutated_models(seconds=10):
    """mutated ONNX files, for ten seconds, load or are refused by an error of ours"""
    return run([manifest()["python"], "-B", os.path.join(SOURCE, "tests/onnx/fuzz.py"),
                "--seconds", seconds], environment={
                    "PYTHONPATH": os.path.abspath("python")}).strip().splitlines()[-1]


def mutated_models_long():
    """mutated ONNX files, for ten minutes, load or are refused by an error of ours"""
    return mutated_models(600)


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


def mutated_inputs_long():
    """under the address sanitizer each C++ parser bears ten minutes of mutated inputs"""
    return mutated_inputs(600, int(time.time()) % 10 ** 6)


QUICK = (missing_deps, nothing_to_do, layers, baseline_instructions, oldest_cpu, reported_levels,
         emulated_pair, lower_level, mutated_models, mutated_inputs)
SLOW = QUICK + (mutated_models_long, mutated_inputs_long, address_undefined, thread, every_level,
                emulated_levels, emulated_training, reproducible, without_features, clang,
                documentation, sbom_schema, aarch64, s390x, ppc64el, riscv64, fresh_machine,
                deb_purge, deb_reproducible, deb_arm64, deb_s390x, rpm_install, rpm_reproducible,
                benchmark_slurm, jenkins_cell, hosts_chroot, hosts_ssh, hosts_bare, hosts_arm64,
                hosts_cut_off, slurm, patches, easybuild, images, image_limits, stack,
                stack_modules, stack_refusals, builder_user, package_repository)


def prove(function):
    begin = time.monotonic()
    try:
        verdict, text = "ok", function()
    except NotRun as reason:
        verdict, text = "not run", str(reason)
    except Failed as reason:
        verdict, text = "FAILED", str(reason)
    return function.__name__.replace("_", "-"), verdict, time.monotonic() - begin, text


def record(rows):
    """A dated table, for docs/proofs.md."""
    done = subprocess.run(["git", "-C", SOURCE, "rev-parse", "--short", "HEAD"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    commit = done.stdout.decode().strip() or "an unpacked archive"
    summaries = {f.__name__.replace("_", "-"): f.__doc__ for f in SLOW}
    lines = ["%s, commit %s, %s, %s, %d cores" % (
        datetime.date.today().isoformat(), commit, this_distro().name, platform.machine(),
        os.cpu_count() or 1), "", "| proof | what it shows | result | s |", "|---|---|---|---|"]
    for name, verdict, seconds, text in rows:
        lines.append("| %s | %s | %s: %s | %.0f |" % (
            name, summaries[name], verdict, text.splitlines()[0] if text else "", seconds))
    with open("proofs.md", "w", encoding="utf-8") as stream:
        stream.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--junit", metavar="FILE", help="the verdicts go there, too, as XML")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    known = {f.__name__.replace("_", "-"): f for f in SLOW}
    if options.list:
        for name, function in known.items():
            print("%-22s %s" % (name, function.__doc__))
        return 0
    for name in options.names:
        if name not in known:
            parser.error("unknown proof '%s'" % name)
    chosen = [known[n] for n in options.names] or list(SLOW if options.slow else QUICK)
    os.environ.update(TREENAIL_SOURCE_DIR=SOURCE, TREENAIL_BUILD_DIR=os.getcwd())
    rows = []
    for function in chosen:
        row = prove(function)
        rows.append(row)
        print("%-22s %-8s %6.1f s  %s" % row)
        sys.stdout.flush()
    if options.slow:
        record(rows)
        print("wrote %s" % os.path.abspath("proofs.md"))
    if options.junit:
        junit.write(options.junit, [junit.verdicts("proofs", rows)])
    failed = sum(row[1] == "FAILED" for row in rows)
    ran = sum(row[1] == "ok" for row in rows)
    print("%d proofs hold, %d failed, %d not run" % (ran, failed, len(rows) - ran - failed))
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
