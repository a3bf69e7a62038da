# SPDX-License-Identifier: Apache-2.0
"""Proof that the Debian packages are reproducible: reprotest builds them twice, in surroundings
that differ in all that this machine can vary; what it cannot is reported as not run."""

import glob
import os
import shutil
import subprocess

import deb_packages
from package_build import digest, other_locale
from proving import Failed, NotRun, proof

# reprotest's variations, and what each needs: programs, or root.
VARIATIONS = {
    "environment": (), "build_path": (), "kernel": ("setarch",), "aslr": ("setarch",),
    "num_cpus": ("taskset",), "time": ("faketime",), "user_group": ("sudo", "root"),
    "fileordering": ("disorderfs", "fusermount"), "domain_host": ("sudo", "root"), "home": (),
    "locales": (), "exec_path": (), "timezone": (), "umask": (),
}
USER = "nobody:nogroup"


def variations():
    """(what reprotest is told, names that vary, names that cannot with the reason)."""
    told, varied, not_run = [], [], []
    for name, needed in VARIATIONS.items():
        missing = [what for what in needed
                   if (os.getuid() != 0 if what == "root" else not shutil.which(what))]
        if name == "num_cpus" and len(os.sched_getaffinity(0)) < 2:
            missing = ["a second processor"]
        locale = other_locale() if name == "locales" else ""
        if name == "locales" and not locale:
            missing = ["a locale beside C and English"]
        if missing:
            not_run.append("%s (without %s)" % (name, ", ".join(missing)))
            continue
        varied.append(name + (" (%s)" % locale if locale else ""))
        told.append("+" + name)
        if name == "user_group":
            told.append("user_group.available+=" + USER)
        elif name == "domain_host":
            told.append("domain_host.use_sudo=1")
        elif name == "locales":
            told.append("locales.locale+=" + locale)
    return ",".join(told), varied, not_run


# sudo 1.9.13p3-1+deb12u2 runs nothing any more when it is told a host, as reprotest tells it.
SUDO = """#!/bin/sh
[ "$1" != -h ] || shift 2
exec /usr/bin/sudo "$@"
"""


def surroundings(base):
    """The environment that reprotest itself runs in."""
    programs = os.path.join(base, "bin")
    os.makedirs(programs, exist_ok=True)
    with open(os.path.join(programs, "sudo"), "w", encoding="utf-8") as stream:
        stream.write(SUDO)
    os.chmod(os.path.join(programs, "sudo"), 0o755)
    found = {name: value for name, value in os.environ.items()
             if not name.startswith(("CC", "CXX", "TREENAIL_"))}
    found["PATH"] = programs + ":/usr/sbin:/usr/bin:/sbin:/bin"
    return found


def reprotest(base, name, tree, told, build):
    """Builds a tree twice; (exit status, directory of the results, log). What a build leaves beside
    the packages is removed: the second one's user may not write over files of the first one's."""
    kept, log = os.path.join(base, name), os.path.join(base, name + ".log")
    shutil.rmtree(kept, ignore_errors=True)
    command = ["reprotest", "--verbosity=1", "--variations=" + told, "--store-dir=" + kept,
               *([] if shutil.which("diffoscope") else ["--no-diffoscope"]),
               "--source-root=" + tree, build + " && rm -f ../*.buildinfo ../*.changes", "../*.deb",
               "--", "null"]
    with open(log, "wb") as stream:
        return subprocess.run(command, stdout=stream, stderr=subprocess.STDOUT,
                              env=surroundings(base), stdin=subprocess.DEVNULL,
                              check=False).returncode, kept, log


def ending(log):
    with open(log, encoding="utf-8", errors="replace") as stream:
        return stream.read()[-3000:]


def rehearsed(base, told):
    """Fails in seconds, and not after the first build, where the variations cannot be set up."""
    tree = os.path.join(base, "rehearsal-tree")
    os.makedirs(tree, exist_ok=True)
    with open(os.path.join(tree, "file"), "w", encoding="utf-8"):
        pass
    # As dpkg does it: written under another name, then moved.
    status, _, log = reprotest(base, "rehearsal", tree, told, (
        "for n in deb buildinfo; do echo > ../x.new && mv ../x.new ../x.$n || exit 1; done"))
    if status:
        raise Failed("reprotest cannot set up these variations: exit status %d\n%s" % (
            status, ending(log)))


@proof
def deb_reproducible():
    """reprotest: two builds of the .debs under all variations that run here give the same bytes"""
    for program in ("reprotest", "dpkg-buildpackage"):
        if not shutil.which(program):
            raise NotRun("%s is not installed; apt-get install reprotest devscripts" % program)
    base = os.path.abspath("deb-reproducible")
    tree = deb_packages.unpacked_source(os.path.join(base, "source"))
    told, varied, not_run = variations()
    rehearsed(base, told)
    status, kept, log = reprotest(base, "kept", tree, told,
                                  "DEB_BUILD_OPTIONS=nocheck dpkg-buildpackage -b -us -uc")
    one, two = ({os.path.basename(path): digest(path) for path in glob.glob(
        os.path.join(kept, name, "**/*.deb"), recursive=True)} for name in (
            "control", "experiment-1"))
    differing = sorted(name for name in set(one) | set(two) if one.get(name) != two.get(name))
    if status or differing or not one:
        raise Failed("reprotest: exit status %d; differing: %s; %s and %s; the log ends with\n"
                     "%s" % (status, ", ".join(differing) or "none", log, kept, ending(log)))
    return "%d packages, the same bytes; varied: %s; not run: %s" % (
        len(one), ", ".join(varied), ", ".join(not_run) or "none")
