# SPDX-License-Identifier: Apache-2.0
"""Proof that the Debian packages are reproducible: reprotest builds them twice, in surroundings
that differ in all that this machine can vary; what it cannot is reported as not run."""

import glob
import os
import shutil
import subprocess

import deb_packages
from package_build import digest, other_locale
from proving import Failed, NotRun

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


def deb_reproducible():
    """reprotest: two builds of the .debs under all variations that run here give the same bytes"""
    for program in ("reprotest", "dpkg-buildpackage"):
        if not shutil.which(program):
            raise NotRun("%s is not installed; apt-get install reprotest devscripts" % program)
    base = os.path.abspath("deb-reproducible")
    tree = deb_packages.unpacked_source(os.path.join(base, "source"))
    told, varied, not_run = variations()
    kept, log = os.path.join(base, "kept"), os.path.join(base, "reprotest.log")
    shutil.rmtree(kept, ignore_errors=True)
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("CC", "CXX", "TREENAIL_"))}
    environment["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    command = ["reprotest", "--verbosity=1", "--variations=" + told, "--store-dir=" + kept,
               *([] if shutil.which("diffoscope") else ["--no-diffoscope"]),
               "--source-root=" + tree,
               "DEB_BUILD_OPTIONS=nocheck dpkg-buildpackage -b -us -uc", "../*.deb", "--", "null"]
    with open(log, "wb") as stream:
        status = subprocess.run(command, stdout=stream, stderr=subprocess.STDOUT, env=environment,
                                stdin=subprocess.DEVNULL, check=False).returncode
    one, two = ({os.path.basename(path): digest(path) for path in glob.glob(
        os.path.join(kept, name, "**/*.deb"), recursive=True)} for name in (
            "control", "experiment-1"))
    differing = sorted(name for name in set(one) | set(two) if one.get(name) != two.get(name))
    if status or differing or not one:
        with open(log, encoding="utf-8", errors="replace") as stream:
            raise Failed("reprotest: exit status %d; differing: %s; %s and %s; the log ends with\n"
                         "%s" % (status, ", ".join(differing) or "none", log, kept,
                                 stream.read()[-3000:]))
    return "%d packages, the same bytes; varied: %s; not run: %s" % (
        len(one), ", ".join(varied), ", ".join(not_run) or "none")
