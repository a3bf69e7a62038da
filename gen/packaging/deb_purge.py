# SPDX-License-Identifier: Apache-2.0
"""Proof that the Debian packages leave nothing behind: piuparts installs, upgrades and purges them
in a new Debian and compares its files with what was there before. Without piuparts dpkg does."""

import os
import re
import shutil
import subprocess

import chroots
from proving import Failed, NotRun, debian_repository, proof, run

OLDER = "~0"  # sorts before the version that it is appended to
# What dpkg, apt and the linker remember, mounts, and where the packages themselves lie.
SKIPPED = ("var/lib/dpkg/status", "var/lib/dpkg/status-old", "var/lib/dpkg/lock",
           "var/lib/dpkg/lock-frontend", "var/lib/dpkg/triggers", "var/lib/apt", "var/log",
           "var/cache", "etc/ld.so.cache", "tmp", "proc", "dev", "sys", "run", "packages")


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


def by_piuparts(paths, base):
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


def dependencies(paths):
    """What these packages need of others, as a Depends field, and their own names."""
    fields = [run(["dpkg-deb", "-f", path, "Package", "Pre-Depends", "Depends"]) for path in paths]
    names = [re.search(r"^Package: (\S+)", text, re.MULTILINE).group(1) for text in fields]
    provided = set(names)
    for path in paths:
        provided.update(re.findall(r"[\w.+-]+(?= |,|$)", run(["dpkg-deb", "-f", path, "Provides"])))
    wanted = {part.strip() for text in fields
              for line in re.findall(r"Depends: (.*)", text) for part in line.split(",")}
    return ", ".join(sorted(part for part in wanted if re.match(
        r"[\w.+-]+", part).group() not in provided)), names


def versions(root, names):
    """{version: how many of the packages are installed in it}"""
    said = run(chroots.entering(root, ["dpkg-query", "-W", "-f",
                                       "${db:Status-Status} ${Version}\\n", *names]))
    rows = [line.split() for line in said.splitlines()]
    return {version: rows.count(["installed", version]) for status, version in rows
            if status == "installed"}


def by_dpkg(paths, base):
    """The packages' own dependencies are there before and after."""
    chroots.needs()
    older_ones, root = os.path.join(base, "older"), os.path.join(base, "root")
    shutil.rmtree(older_ones, ignore_errors=True)
    os.makedirs(older_ones)
    for path in paths:
        older(path, older_ones)
    needed, names = dependencies(paths)
    chroots.made(root, debian_repository()[0], "--variant=minbase")
    chroots.apt(root, "satisfy", needed)
    before = chroots.tree(root, SKIPPED)
    for folder in (older_ones, os.path.dirname(paths[0])):
        place = os.path.join(root, "packages")
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        for path in chroots.packages(folder):
            shutil.copy(path, place)
        run(chroots.entering(root, ["sh", "-c", "exec dpkg -i /packages/*.deb"]))
        found = versions(root, names)
        wanted = os.path.basename(paths[0]).split("_")[1] + (OLDER if folder == older_ones else "")
        if found != {wanted: len(names)}:
            raise Failed("after dpkg -i of %d packages %s these versions are installed: %s" % (
                len(names), wanted, found))
    run(chroots.entering(root, ["dpkg", "--purge", *names]))
    chroots.require_unchanged(before, chroots.tree(root, SKIPPED),
                              "installing, upgrading and purging")
    shutil.rmtree(root)
    return "%d packages, by dpkg alone, for piuparts is not installed: installation, upgrade and " \
        "purging" % len(paths)


@proof
def deb_purge():
    """the .debs install, upgrade from an older version and purge, and leave nothing"""
    if os.getuid() != 0:
        raise NotRun("only root can enter another root directory")
    paths = chroots.packages("deb")
    if not paths:
        raise NotRun("deb/ holds no packages: ninja deb makes them")
    base = os.path.abspath("deb-purge")
    with_piuparts = shutil.which("piuparts") and shutil.which("dpkg-scanpackages")
    return (by_piuparts if with_piuparts else by_dpkg)(paths, base)
