# SPDX-License-Identifier: Apache-2.0
"""Other Debians in directories of their own: made by mmdebstrap, entered by root.

What is mounted in one, and a network of its own, end with the process that entered it.
"""

import glob
import hashlib
import os
import shutil
import stat

from proving import Failed, NotRun, debian_repository, need, run

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# A host of ci/hosts has all of it.
_MOUNTS = ('mountpoint -q "$0/proc" || { mount -t proc proc "$0/proc" && '
           'mount --rbind /dev "$0/dev" && mount -t sysfs sysfs "$0/sys"; } && exec "$@"')


def needs():
    """What every chroot needs of this machine."""
    if os.getuid() != 0:
        raise NotRun("only root can enter another root directory")
    need("mmdebstrap", "mmdebstrap")
    need("ip", "iproute2")


def made(root, release, *options, sources=(), within=()):
    """A new Debian in the directory `root`, which is emptied first; it can reach the network.
    sources: lines of sources.list; default: the repository that this machine has its release from.
    within: a command that runs mmdebstrap.
    """
    shutil.rmtree(root, ignore_errors=True)
    # In a mount namespace of its own: what is killed must not leave this machine's /dev below a
    # directory that the next one empties.
    run([*within, "unshare", "--mount", "--propagation", "private", "mmdebstrap", *options, release,
         root, *(sources or [debian_repository()[1]])])
    shutil.copy("/etc/resolv.conf", os.path.join(root, "etc/resolv.conf"))
    hosts = os.path.join(root, "etc/hosts")
    if not os.path.exists(hosts):  # sbuild makes one, too: servers of tests listen on localhost
        with open(hosts, "w", encoding="ascii") as stream:
            stream.write("127.0.0.1 localhost\n")


def mounted(root, words, network=True):
    """The command that runs `words`, outside, while proc, dev and sysfs are mounted inside.
    network: else there is lo alone."""
    return ["unshare", *([] if network else ["--net"]), "--mount", "--propagation", "private", "sh",
            "-c", ("" if network else "ip link set lo up && ") + _MOUNTS, root, *words]


def entering(root, words, user="root", network=True, cpus="", environment=None):
    """The command that runs `words` inside. cpus: taskset's list; environment: all there is beside
    a path and the locale C.UTF-8."""
    settings = dict({"PATH": PATH, "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"},
                    **(environment or {}))
    return mounted(root, [
        *(["taskset", "-c", cpus] if cpus else []), "chroot", "--userspec=" + user, root, "env",
        "-i", *["%s=%s" % pair for pair in settings.items()], *words], network)


def apt(root, *words):
    """apt-get inside; mmdebstrap leaves no lists of packages behind."""
    for command in (["update"], ["-y", "--no-install-recommends", *words]):
        run(entering(root, ["apt-get", "-q", *command],
                     environment={"DEBIAN_FRONTEND": "noninteractive"}))


def install(root, paths):
    """Copies the packages in, and installs them with what they need from the repository."""
    place = os.path.join(root, "packages")
    os.makedirs(place, exist_ok=True)
    for path in paths:
        shutil.copy(path, place)
    apt(root, "install", *["/packages/" + os.path.basename(path) for path in paths])


def tree(root, skipped):
    """{path: type, mode and what it holds} of all that is there, but for these paths and what lies
    below them."""
    found = {}
    for folder, folders, leaves in os.walk(root):
        for name in folders + leaves:
            path = os.path.join(folder, name)
            short, mode = os.path.relpath(path, root), os.lstat(path).st_mode
            if short in skipped:
                folders[:] = [other for other in folders if other != name]
                continue
            holds = ""
            if stat.S_ISLNK(mode):
                holds = os.readlink(path)
            elif stat.S_ISREG(mode):
                with open(path, "rb") as stream:
                    holds = hashlib.sha256(stream.read()).hexdigest()
            found[short] = "%o %s" % (mode, holds)
    return found


def require_unchanged(before, after, doing):
    """Raises Failed where one tree is not the other. doing: what came between, as a sentence's
    beginning."""
    left, taken = set(after) - set(before), set(before) - set(after)
    changed = {path for path in set(after) & set(before) if after[path] != before[path]}
    if left or taken or changed:
        raise Failed("%s left %s, took %s and changed %s" % (doing, *[
            ", ".join(sorted(paths)[:20]) or "nothing" for paths in (left, taken, changed)]))


def packages(folder):
    """The .deb files there that users get: no debug symbols."""
    return sorted(path for path in glob.glob(os.path.join(folder, "*.deb"))
                  if "-dbgsym_" not in path)
