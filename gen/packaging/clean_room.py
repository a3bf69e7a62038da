# SPDX-License-Identifier: Apache-2.0
"""Debian packages in new chroots: built (`ninja deb-clean-room-RELEASE`), and tested as installed
(`ninja deb-autopkgtest`, with those that `ninja deb` made; `ninja deb-autopkgtest-RELEASE`, with
those of that release's clean room).

The chroot of a build holds what debian/control declares and nothing else. The build runs there
without a network (but for lo), without a home directory, in the locale C.UTF-8, on one processor:
once as root and once as a user, in directories of other names. A forgotten dependency fails here,
and so does anything that depends on these: both must make the same packages, bit for bit. Then the
.buildinfo of the first build is replayed: with the environment and in the directory that it names,
in the same chroot, the packages come out with the checksums that it lists. At last that release's
lintian, installed only then, reads them. Needs root, mmdebstrap and a mirror.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "tools")]
import chroots  # noqa: E402  (the path must be set first)
import deb_packages  # noqa: E402
from package_build import digest, ended  # noqa: E402
from proving import Failed, NotRun, debian_repository, need, run  # noqa: E402

USER = "builder"  # in the chroot; without rights


def source_package(folder):
    """The .dsc, made by dpkg-source alone: nothing but the archive and debian/ goes into it."""
    tree = deb_packages.unpacked_source(folder)
    run(["dpkg-source", "-b", tree], cwd=folder)
    return next(name for name in os.listdir(folder) if name.endswith(".dsc"))


def chroot(release, root, folder, host=""):
    """A new chroot with the build dependencies that the source package in `folder` declares; for a
    cross build, host is the architecture it is for."""
    more = [] if not host else ["--architectures=amd64," + host,
                                "--include=crossbuild-essential-" + host]
    chroots.made(root, release, "--variant=buildd", *more)
    place = os.path.join(root, "build")
    os.makedirs(place)
    for name in os.listdir(folder):
        if name.startswith("treenail_") and os.path.isfile(os.path.join(folder, name)):
            shutil.copy(os.path.join(folder, name), place)
    dsc = next(name for name in os.listdir(place) if name.endswith(".dsc"))
    cross = ["--host-architecture=" + host, "--build-profiles=cross,nocheck", "--arch-only"]
    chroots.apt(root, "build-dep", *(cross if host else []), "/build/" + dsc)
    run(["chroot", root, "useradd", "--create-home", "--home-dir", "/build/user", USER])


def built_inside(root, who, folder, log, cpus="", arguments=(), environment=None):
    """{package: SHA-256} of a build there, and what its tests said; `folder` is the directory below
    /build, arguments are dpkg-buildpackage's."""
    script = ("mkdir -p /build/{0} && cd /build/{0} && rm -rf tree && dpkg-source -x /build/*.dsc "
              "tree && cd tree && dpkg-buildpackage -us -uc {1}".format(folder,
                                                                        shlex.join(arguments)))
    with open(log, "wb") as stream:
        status = subprocess.run(chroots.entering(
            root, ["sh", "-c", script], who, False, cpus, environment), stdout=stream,
            stderr=subprocess.STDOUT, check=False).returncode
    with open(log, encoding="utf-8", errors="replace") as stream:
        text = stream.read()
    if status:
        raise Failed("the build as %s: exit status %d; %s ends with:\n%s" % (
            who, status, log, text[-4000:]))
    place = os.path.join(root, "build", folder)
    tests = re.findall(r"^\d+ passed, 0 failed.*", text, re.MULTILINE)
    return ({name: digest(os.path.join(place, name)) for name in sorted(os.listdir(place))
             if name.endswith(".deb")}, tests[-1] if tests else "no tests")


def build_information(path):
    """(directory of the build, environment, {package: SHA-256}, {package installed: version}) that
    a .buildinfo records."""
    with open(path, encoding="utf-8") as stream:
        text = stream.read()

    def field(name):
        found = re.search(r"^%s:(.*(?:\n .*)*)" % name, text, re.MULTILINE)
        return found.group(1) if found else ""

    return (field("Build-Path").strip(),
            dict(re.findall(r'^ (\w+)="(.*)"$', field("Environment"), re.MULTILINE)),
            {name: total for total, name in re.findall(
                r"^ (\w{64}) \d+ (\S+\.deb)$", field("Checksums-Sha256"), re.MULTILINE)},
            dict(re.findall(r"^ (\S+) \(= ([^)]+)\)", field("Installed-Build-Depends"),
                            re.MULTILINE)))


def replayed(root, folder, log):
    """Builds again what the .buildinfo in /build/folder tells of; a sentence."""
    place = os.path.join(root, "build", folder)
    name = next(n for n in os.listdir(place) if n.endswith(".buildinfo"))
    path, environment, sums, installed = build_information(os.path.join(place, name))
    if path != "/build/%s/tree" % folder or not sums or not installed:
        raise Failed("%s records the directory %r, %d packages and %d build dependencies" % (
            name, path, len(sums), len(installed)))
    there = dict(line.split("\t") for line in run(
        ["chroot", root, "dpkg-query", "-W", "-f", "${Package}\t${Version}\n"]).splitlines())
    other = sorted(n for n in installed if there.get(n.split(":")[0]) != installed[n])
    if other:
        raise Failed("of other versions than %s records: %s" % (name, ", ".join(other)))
    # The tests change no package, and were run by the build that is replayed.
    environment["DEB_BUILD_OPTIONS"] = (
        environment.get("DEB_BUILD_OPTIONS", "") + " nocheck").strip()
    made, _ = built_inside(root, "root", folder, log, environment=environment)
    differing = sorted(n for n in set(made) | set(sums) if made.get(n) != sums.get(n))
    if differing:
        raise Failed("replaying %s gave others: %s" % (name, ", ".join(differing)))
    return "its .buildinfo replayed with %d build dependencies" % len(installed)


def linted(root, release, folder):
    """What the release's own lintian says of the packages in /build/folder; a sentence. It is
    installed after the builds, lest it stand in for a build dependency that was forgotten."""
    chroots.apt(root, "install", "lintian")
    text, left = deb_packages.linted(chroots.entering(root, deb_packages.lint_command(
        "/build/" + folder)), release)
    if left:
        raise Failed("\n".join([text, *left]))
    return text


def as_installed(release, folder, base="deb-autopkgtest"):
    """The tests of debian/tests in a new chroot where the packages of `folder` are installed."""
    chroots.needs()
    need("autopkgtest", "autopkgtest")
    folder, base = os.path.abspath(folder), os.path.abspath(base)
    packages = sorted(os.path.join(folder, name) for name in os.listdir(folder)
                      if name.endswith((".deb", ".dsc"))) if os.path.isdir(folder) else []
    if not packages:
        raise NotRun("%s holds no packages: ninja deb or deb-clean-room-%s makes them" % (
            folder, release))
    root, logs = os.path.join(base, "root"), os.path.join(base, "logs")
    shutil.rmtree(base, ignore_errors=True)
    os.makedirs(base)
    chroots.made(root, release, "--variant=apt", "--include=passwd")
    run(["chroot", root, "useradd", "--create-home", USER])
    done = subprocess.run(chroots.mounted(root, [
        "autopkgtest", "--apt-upgrade", "--user=" + USER, "--output-dir", logs, *packages, "--",
        "chroot", root]), check=False)
    with open(os.path.join(logs, "summary"), encoding="utf-8") as stream:
        return tested(done.returncode, stream.read().strip(), release)


def tested(status, summary, release):
    """What autopkgtest's exit status and summary mean, in a sentence above the summary."""
    if status not in (0, 2):
        raise Failed("autopkgtest: exit status %d\n%s" % (status, summary))
    skipped = sum(line.split()[1:2] == ["SKIP"] for line in summary.splitlines())
    return "%s, as a user: %s\n%s" % (
        release, "SOME TESTS WERE SKIPPED (%d)" % skipped if status else "every test passed",
        summary)


def clean_room(release, base="deb-clean-room", options=""):
    """One sentence about the builds; raises Failed or NotRun."""
    chroots.needs()
    base = os.path.abspath(os.path.join(base, release))
    folder, root = os.path.join(base, "source"), os.path.join(base, "root")
    source_package(folder)
    print("making a chroot of %s with the build dependencies" % release, flush=True)
    chroot(release, root, folder)
    results = {}
    cpu = str(min(os.sched_getaffinity(0)))
    for who, where in (("root", "one"), (USER, "user/the-second-one")):
        print("building as %s" % who, flush=True)
        results[who] = built_inside(root, who, where, os.path.join(base, who + ".log"), cpu,
                                    environment={"DEB_BUILD_OPTIONS": options} if options else {})
        print("%s: %d packages; %s" % (who, len(results[who][0]), results[who][1]), flush=True)
    one, two = results["root"][0], results[USER][0]
    differing = sorted(n for n in set(one) | set(two) if one.get(n) != two.get(n))
    if differing:
        raise Failed("these differ between root and user: " + ", ".join(differing))
    print("replaying the .buildinfo", flush=True)
    replay = replayed(root, "one", os.path.join(base, "replay.log"))
    print("lintian", flush=True)
    return "%s: %d packages, the same bits as root and as a user; %s; %s; %s" % (
        release, len(one), results[USER][1], replay, linted(root, release, "one"))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release", nargs="?", help="bookworm, trixie, ...; default: this machine's")
    parser.add_argument("--as-installed", action="store_true",
                        help="test packages instead of building")
    parser.add_argument("--packages", default="deb", metavar="FOLDER",
                        help="with --as-installed: where they are [deb]")
    options = parser.parse_args()
    release = options.release or debian_repository()[0]
    print(as_installed(release, options.packages) if options.as_installed else clean_room(
        release, options=os.environ.get("DEB_BUILD_OPTIONS", "")))


if __name__ == "__main__":
    ended(main, {NotRun: "not run: ", Failed: "FAILED: ", deb_packages.Unusable: "FAILED: "})
