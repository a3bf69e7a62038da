# SPDX-License-Identifier: Apache-2.0
"""Proofs of ansible/: the stack built in a new Debian by the play that a site runs, without a
network once its sources are there, again without a change, and with one flag changed."""

import json
import os
import platform

from proving import Failed, NotRun, need, proof
from stack_site import Site, built, changes, skipped


LIMITS = {"build": 25 * 60, "again": 60}  # seconds, on so many processors:
PROCESSORS = 2
WANTED = {"openblas", "fftw", "hdf5", "treenail"}


def from_nothing(site):
    """The reports of three plays on a new host: its sources fetched, the stack built without a
    network, and the same again, which changes nothing."""
    fetched = site.play("fetch", "--tags", "fetch")
    if built(fetched):
        raise Failed("--tags fetch built %s" % ", ".join(sorted(built(fetched))))
    whole = site.play("build", "-e", "stack__offline=true", network=False)
    if not WANTED <= built(whole):
        raise Failed("built were %s" % ", ".join(sorted(built(whole))))
    again = site.play("again", "-e", "stack__offline=true", network=False)
    if changes(again) or built(again):
        raise Failed("the second run changed %d things and built %s" % (
            changes(again), ", ".join(sorted(built(again))) or "nothing"))
    return fetched, whole, again


def pruned(site, first):
    """A third stack makes the first unreferenced: prune removes what that one alone had."""
    second = site.prefixes("whole")
    third = json.dumps(dict(fftw__flags=["--disable-threads"], treenail__mode="skip"))
    site.play("third", "-e", "stack__offline=true", "-e", third, network=False)
    site.play("prune", playbook="prune.yml")
    root = os.path.join(site.state, "roots/whole")
    wanted = {*second.values(), *site.prefixes("whole").values()}
    there = {path for path in wanted.union(first.values()) if os.path.exists(root + path)}
    if there != wanted:
        raise Failed("after prune there are %s, and should be %s" % (
            ", ".join(sorted(there)), ", ".join(sorted(wanted))))
    again = site.play("kept", "-e", "stack__offline=true", "-e", third, network=False)
    if built(again):
        raise Failed("prune removed what the manifest names: %s" % ", ".join(sorted(built(again))))


@proof
def stack():
    """Ansible: the stack fetched, built offline, run again without a change, one flag changed"""
    with Site("stack-proof", "--chroot", "whole") as site:
        fetched, whole, again = from_nothing(site)
        first = site.prefixes("whole")
        flag = site.play("flag", "-e", "stack__offline=true", "-e",
                         json.dumps({"hdf5__flags": ["--disable-maintainer-mode"]}), network=False)
        if built(flag) != {"hdf5", "treenail"}:
            raise Failed("a flag of HDF5 rebuilt %s" % ", ".join(sorted(built(flag))))
        compared = {benchmark["check"] for benchmark in flag["benchmarks"]}
        if compared != {"treenail"}:
            raise Failed("compared with the prefix before were %s" % ", ".join(compared))
        pruned(site, first)
    return "fetched in %d s; built without a network in %d s (%s); %d checks of what is loaded; " \
        "again in %d s, nothing changed; with another flag of HDF5: %s in %d s (%s); pruned" % (
            fetched["seconds"], whole["seconds"], ", ".join(sorted(built(whole))),
            len(whole["checks"]), again["seconds"], ", ".join(sorted(built(flag))),
            flag["seconds"], "; ".join(benchmark["says"] for benchmark in flag["benchmarks"]))


@proof
def stack_three_times():
    """Ansible: on three new hosts, one after the other, the stack is built in time, and no retry"""
    taken = {"fetch": [], "build": [], "again": []}
    there = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(there)[:PROCESSORS])
    try:
        for number in "123":
            with Site("stack-three-times", "--chroot", "fresh" + number) as site:
                for name, report in zip(taken, from_nothing(site)):
                    taken[name].append(report["seconds"])
    finally:
        os.sched_setaffinity(0, there)
    text = "%d of %d processors; %s" % (
        min(PROCESSORS, len(there)), len(there), "; ".join("%s: %s s%s" % (
            name, ", ".join("%d" % seconds for seconds in taken[name]),
            " of at most %d" % LIMITS[name] if name in LIMITS else "") for name in taken))
    if any(max(taken[name]) > limit for name, limit in LIMITS.items()):
        raise Failed("too slow, if nothing else was running: " + text)
    return text


@proof
def stack_llvm():
    """Ansible: the stack built by LLVM's compilers, its suites and checks hold"""
    with Site("stack-llvm", "--chroot", "llvm") as site:
        whole = site.play("build", "-e", "toolchain__family=llvm scipy__mode=skip")
        if not WANTED <= built(whole):
            raise Failed("built were %s" % ", ".join(sorted(built(whole))))
        others = [path for path in site.prefixes("llvm").values() if "/llvm-" not in path]
        if others:
            raise Failed("not by LLVM are %s" % ", ".join(others))
        again = site.play("again", "-e", "toolchain__family=llvm scipy__mode=skip")
        if changes(again) or built(again):
            raise Failed("the second run changed %d things" % changes(again))
    return "%s in %d s; %s" % (", ".join(sorted(built(whole))), whole["seconds"], "; ".join(
        check["says"] for check in whole["checks"]))


@proof
def stack_arm64():
    """Ansible: the same roles in an arm64 chroot under qemu-user, C libraries by cross compilers"""
    if platform.machine() != "x86_64":
        raise NotRun("the cross compilers are those of x86_64")
    need("qemu-aarch64-static", "qemu-user-static")
    with Site("stack-arm64", "--chroot", "arm:arm64") as site:
        # Debian's SciPy wants a compiler of its own architecture beside it.
        options = ("-e", "toolchain__architecture=amd64 scipy__mode=skip smoke__network=mlp")
        whole = site.play("build", *options)
        manifest = site.manifest("arm")
        if not WANTED <= built(whole) or manifest["machine"] != "aarch64":
            raise Failed("built for %s were %s" % (
                manifest["machine"], ", ".join(sorted(built(whole)))))
        again = site.play("again", *options)
        if changes(again) or built(again):
            raise Failed("the second run changed %d things" % changes(again))
    return "%s for %s in %d s, again in %d s; %s" % (
        ", ".join(sorted(built(whole))), manifest["machine"], whole["seconds"], again["seconds"],
        "; ".join(check["says"] for check in whole["checks"]))


LOWEST = {"x86_64": "x86-64", "aarch64": "armv8-a"}


@proof
def stack_isas():
    """Ansible: Treenail for two instruction sets side by side; stack-env loads each of them"""
    lowest = LOWEST.get(platform.machine())
    if not lowest:
        raise NotRun("there are no instruction sets to choose from on " + platform.machine())
    libraries = ("openblas", "fftw", "hdf5", "numpy")
    options = dict(skipped("treenail"), **{name + "__mode": "package" for name in libraries},
                   treenail__isas=["auto", lowest], smoke__network="mlp")
    with Site("stack-isas", "--chroot", "isas") as site:
        report = site.play("build", "-e", json.dumps(options))
        both = [c for c in site.manifest("isas")["components"] if c["name"] == "treenail"]
        if len(both) == 1:
            raise NotRun("this processor runs %s alone" % lowest)
        isas = [c["isa"] for c in both]
        ran = {step["isa"] for step in report["steps"] if step["ran"]
               and step["component"] == "treenail"}
        if ran != set(isas) or len({c["prefix"] for c in both}) != 2:
            raise Failed("steps ran for %s; the manifest has %s" % (
                ", ".join(sorted(ran)), ", ".join(c["prefix"] for c in both)))
        for words, component in [("", both[0]), *(("--modules " + c["module"], c) for c in both)]:
            path, told = site.inside("isas", "/opt/stack/bin/stack-env %s sh -c 'command -v "
                                     "treenail-info && treenail-info --json'" % words).split(
                                         "\n", 1)
            baseline = json.loads(told)["isa_baseline"]
            if baseline != component["isa"] or not path.startswith(component["prefix"] + "/"):
                raise Failed("stack-env %s runs %s, for %s, and not that in %s" % (
                    words, path, baseline, component["prefix"]))
        again = site.play("again", "-e", json.dumps(options))
        if built(again) or changes(again):
            raise Failed("the second run changed %d things" % changes(again))
    return "%s in %d s; %s" % (" and ".join(isas), report["seconds"], "; ".join(
        check["says"] for check in report["checks"] if check["check"] == "treenail"))


def failure_keeps_the_stack(site, options):
    """A build that fails leaves the stack as it is, and the play without the mistake finds nothing
    to do."""
    broken = site.play("broken", "-e", json.dumps(dict(options, hdf5__flags=["CFLAGS=-frob"])),
                       status=1)
    text = " ".join(f["message"] for f in broken["failures"])
    if "hdf5: configure failed with exit status" not in text:
        raise Failed("broken: %r" % text)
    site.inside("modules", "/opt/stack/bin/stack-env h5dump --version")
    again = site.play("mended", "-e", json.dumps(options))
    if built(again) or changes(again):
        raise Failed("after a build that failed, %d things changed and %s was built" % (
            changes(again), ", ".join(sorted(built(again))) or "nothing"))


# h5py from source, on an HDF5 that a module has.
ON_IT = {"numpy__mode": "package", "h5py__mode": "build"}


@proof
def stack_modules():
    """Ansible: environment-modules as Lmod; another stack's HDF5 as module, and h5py built on it"""
    with Site("stack-modules", "--chroot", "modules") as site:
        report = site.play("build", "-e", json.dumps(dict(
            skipped("hdf5"), modules__implementation="environment-modules")))
        if built(report) != {"hdf5"}:
            raise Failed("built were %s" % ", ".join(sorted(built(report))))
        first, = (c for c in site.manifest("modules")["components"] if c["name"] == "hdf5")
        options = dict(skipped("hdf5"), modules__implementation="environment-modules",
                       stack__prefix="/opt/second", modules__paths=["/opt/stack/modulefiles"],
                       hdf5__mode="module", hdf5__module=first["module"])
        taken = site.play("taken", "-e", json.dumps(options))
        second, = (c for c in site.manifest("modules")["components"] if c["name"] == "hdf5")
        if built(taken) or (second["mode"], second["module"]) != ("module", first["module"]):
            raise Failed("built %s; the manifest has %r" % (built(taken), second))
        says = taken["checks"][0]["says"]
        if first["prefix"] not in says:
            raise Failed("loaded was %s, and %s is in %s" % (
                says, first["module"], first["prefix"]))
        for name, more, words in (
                ("version", {"hdf5__version": "1.14"}, "it is version %s" % first["version"]),
                ("absent", {"hdf5__module": "hdf5/0.9"}, "could be loaded: hdf5/0.9"),
                ("root", ON_IT, "set hdf5__module_root to the directory")):
            text = " ".join(f["message"] for f in site.play(
                name, "-e", json.dumps(dict(options, **more)), status=1)["failures"])
            if words not in text:
                raise Failed("%s: %r does not say %r" % (name, text, words))
        on_it = site.play("on-it", "-e", json.dumps(dict(
            options, hdf5__module_root=first["prefix"], **ON_IT, **site.fill("modules", "h5py"))))
        if built(on_it) != {"numpy", "h5py"}:  # of numpy its suite
            raise Failed("built on the module was %s" % ", ".join(sorted(built(on_it))))
        failure_keeps_the_stack(site, dict(skipped("hdf5"),
                                           modules__implementation="environment-modules"))
        return "; ".join(check["says"] for play in (report, taken, on_it)
                         for check in play["checks"])
