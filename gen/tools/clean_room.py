# SPDX-License-Identifier: Apache-2.0
"""Debian packages in new chroots: built (`ninja deb-clean-room-RELEASE`), and tested as installed
(`ninja deb-autopkgtest`, with those that `ninja deb` made).

The chroot of a build holds what debian/control declares and nothing else. The build runs there
without a network (but for lo), without a home directory, in the locale C.UTF-8, on one processor:
once as root and once as a user, in directories of other names. A forgotten dependency fails here,
and so does anything that depends on these: both must make the same packages, bit for bit. Needs
root, mmdebstrap and a mirror.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
TOOLS = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [TOOLS, os.path.dirname(os.path.dirname(TOOLS))]
import deb_packages  # noqa: E402  (the path must be set first)
from proving import Failed, NotRun, debian_repository, need, run  # noqa: E402

# Mounts and the network end with the process that unshared them. The first word is the root.
_ENTER = (
    'ip link set lo up && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && '
    'mount -t sysfs sysfs "$0/sys" && exec taskset -c "$1" chroot --userspec="$2" "$0" env -i '
    'PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/nonexistent LC_ALL=C.UTF-8 '
    'DEB_BUILD_OPTIONS="$4" sh -c "$3"')


def needs():
    if os.getuid() != 0:
        raise NotRun("only root can enter another root directory")
    need("mmdebstrap", "mmdebstrap")
    need("ip", "iproute2")


def source_package(folder):
    """The .dsc, made by dpkg-source alone: nothing but the archive and debian/ goes into it."""
    tree = deb_packages.unpacked_source(folder)
    run(["dpkg-source", "-b", tree], cwd=folder)
    return next(name for name in os.listdir(folder) if name.endswith(".dsc"))


def chroot(release, root, folder):
    """A new chroot with the build dependencies that the source package declares."""
    shutil.rmtree(root, ignore_errors=True)
    run(["mmdebstrap", "--variant=buildd", release, root, debian_repository()[1]])
    place = os.path.join(root, "build")
    os.makedirs(place)
    for name in os.listdir(folder):
        if name.startswith("treenail_") and os.path.isfile(os.path.join(folder, name)):
            shutil.copy(os.path.join(folder, name), place)
    dsc = next(name for name in os.listdir(place) if name.endswith(".dsc"))
    run(["chroot", root, "sh", "-c", "cd /build && apt-get -q -y --no-install-recommends "
         "build-dep ./" + dsc], environment={"DEBIAN_FRONTEND": "noninteractive"})
    run(["chroot", root, "useradd", "--create-home", "--home-dir", "/build/user", "builder"])


def built_inside(root, who, folder, cpu, log, options=""):
    """{package: SHA-256} of a build there; `folder` is the directory below /build."""
    script = ("mkdir -p /build/{0} && cd /build/{0} && dpkg-source -x /build/*.dsc tree && "
              "cd tree && dpkg-buildpackage -us -uc".format(folder))
    with open(log, "wb") as stream:
        status = subprocess.run(
            ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", _ENTER, root,
             str(cpu), who, script, options], stdout=stream, stderr=subprocess.STDOUT,
            check=False).returncode
    with open(log, encoding="utf-8", errors="replace") as stream:
        text = stream.read()
    if status:
        raise Failed("the build as %s: exit status %d; %s ends with:\n%s" % (
            who, status, log, text[-4000:]))
    place, digests = os.path.join(root, "build", folder), {}
    for name in sorted(os.listdir(place)):
        if name.endswith(".deb"):
            with open(os.path.join(place, name), "rb") as stream:
                digests[name] = hashlib.sha256(stream.read()).hexdigest()
    tests = re.findall(r"^\d+ passed, 0 failed.*", text, re.MULTILINE)
    return digests, tests[-1] if tests else "no tests"


def as_installed(release, folder="deb", base="deb-autopkgtest"):
    """The tests of debian/tests in a new chroot where the packages of `folder` are installed."""
    needs()
    need("autopkgtest", "autopkgtest")
    folder, base = os.path.abspath(folder), os.path.abspath(base)
    packages = sorted(os.path.join(folder, name) for name in os.listdir(folder)
                      if name.endswith((".deb", ".dsc"))) if os.path.isdir(folder) else []
    if not packages:
        raise NotRun("%s holds no packages: ninja deb makes them" % folder)
    root, logs = os.path.join(base, "root"), os.path.join(base, "logs")
    shutil.rmtree(base, ignore_errors=True)
    run(["mmdebstrap", "--variant=apt", release, root, debian_repository()[1]])
    shutil.copy("/etc/resolv.conf", os.path.join(root, "etc/resolv.conf"))
    inside = ('mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && '
              'exec autopkgtest --output-dir "$@" -- chroot "$0"')
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", inside,
                           root, logs, *packages], check=False)
    with open(os.path.join(logs, "summary"), encoding="utf-8") as stream:
        summary = stream.read().strip()
    if done.returncode not in (0, 2):  # 2: a test was skipped, as the summary says
        raise Failed("autopkgtest: exit status %d\n%s" % (done.returncode, summary))
    return summary


def clean_room(release, base="deb-clean-room", options=""):
    """One sentence about both builds; raises Failed or NotRun."""
    needs()
    base = os.path.abspath(os.path.join(base, release))
    folder, root = os.path.join(base, "source"), os.path.join(base, "root")
    source_package(folder)
    print("making a chroot of %s with the build dependencies" % release, flush=True)
    chroot(release, root, folder)
    results = {}
    cpu = min(os.sched_getaffinity(0))
    for who, where in (("root", "one"), ("builder", "user/the-second-one")):
        print("building as %s" % who, flush=True)
        results[who] = built_inside(root, who, where, cpu, os.path.join(base, who + ".log"),
                                    options)
        print("%s: %d packages; %s" % (who, len(results[who][0]), results[who][1]), flush=True)
    one, two = results["root"][0], results["builder"][0]
    differing = sorted(n for n in set(one) | set(two) if one.get(n) != two.get(n))
    if differing:
        raise Failed("these differ between root and user: " + ", ".join(differing))
    return "%s: %d packages, the same bits as root and as a user; %s" % (
        release, len(one), results["builder"][1])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release", help="bookworm, trixie, ...")
    parser.add_argument("--as-installed", action="store_true",
                        help="test the packages in deb/ instead of building")
    options = parser.parse_args()
    try:
        print(as_installed(options.release) if options.as_installed else clean_room(
            options.release, options=os.environ.get("DEB_BUILD_OPTIONS", "")))
        return 0
    except NotRun as reason:
        sys.stderr.write("not run: %s\n" % reason)
    except (Failed, deb_packages.Unusable) as reason:
        sys.stderr.write("FAILED: %s\n" % reason)
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
