# SPDX-License-Identifier: Apache-2.0
"""Proof that the Debian packages leave nothing behind: piuparts installs, upgrades and purges them
in a new Debian and compares its files with what was there before."""

import os
import re
import shutil
import subprocess

import chroots
from proving import Failed, NotRun, debian_repository, proof, run

OLDER = "~0"  # sorts before the version that it is appended to


def older(path, folder):
    """The package repacked in `folder` as an older version of itself, with dependencies upon its
    siblings to match."""
    version = os.path.basename(path).split("_")[1]
    tree = os.path.join(folder, "tree")
    run(["dpkg-deb", "-R", path, tree])
    control = os.path.join(tree, "DEBIAN/control")
    with open(control, encoding="utf-8") as stream:
        text = stream.read()
    with open(control, "w", encoding="utf-8") as stream:
        stream.write(re.sub(r"%s(?=[\n)])" % re.escape(version), version + OLDER, text))
    run(["dpkg-deb", "-b", tree, folder])
    shutil.rmtree(tree)


def repository(paths, folder):
    """An apt repository of these packages as older versions, in an emptied folder."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for path in paths:
        older(path, folder)
    text = subprocess.run(["dpkg-scanpackages", "."], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True).stdout
    with open(os.path.join(folder, "Packages"), "wb") as stream:
        stream.write(text)


@proof
def deb_purge():
    """piuparts: the .debs install, upgrade from an older version and purge, and leave nothing"""
    if os.getuid() != 0:
        raise NotRun("only root can enter another root directory")
    for program in ("piuparts", "dpkg-scanpackages"):
        if not shutil.which(program):
            raise NotRun("%s is not installed; apt-get install piuparts dpkg-dev" % program)
    paths = chroots.packages("deb")
    if not paths:
        raise NotRun("deb/ holds no packages: ninja deb makes them")
    base = os.path.abspath("deb-purge")
    archive, log = os.path.join(base, "older"), os.path.join(base, "piuparts.log")
    repository(paths, archive)
    release, mirror = debian_repository()
    run(["piuparts", "-d", release, "-m", mirror + " main", "--no-eatmydata", "--bindmount=" +
         archive, "--extra-repo=deb [trusted=yes] file:%s ./" % archive, "-l", log,
         *map(os.path.abspath, paths)])
    with open(log, encoding="utf-8", errors="replace") as stream:
        text = stream.read()
    done = re.findall(r"PASS: (Installation.*) tests?\.$", text, re.MULTILINE)
    upgraded = re.search(r"Unpacking libtreenail\d+\S* .*over \(\S+%s\)" % OLDER, text)
    if len(done) != 2 or not upgraded:
        raise Failed("piuparts ran only: %s; %s" % (", ".join(done) or "nothing", log))
    return "%d packages: %s" % (len(paths), ", ".join(done))
