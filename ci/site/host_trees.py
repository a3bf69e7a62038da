# SPDX-License-Identifier: Apache-2.0
"""The file systems of test hosts: base trees made once by mmdebstrap from this machine's own apt
sources, and for each host a layer of its own above one; programs of other architectures."""

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import time

from host_machine import HostsError, call, need, need_room, remove_tree, say

import chroots  # gen/packaging
import proving  # gen/tools
from gen.distro import this_distro

# Without Python: what Ansible's `raw` starts from. python3-apt: its apt module asks for it, and
# would fetch it where there may be no network.
BARE = ("ca-certificates", "openssh-server", "sudo")
FULL = BARE + ("python3", "python3-apt")
BASE_MEGABYTES = 900
BINFMT = "/proc/sys/fs/binfmt_misc"
# What runs in this ends with us, however we end, and so do its mounts.
ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork",
                "--kill-child", "--mount-proc")
# Debian's architectures and the names that the kernel and qemu have for them.
MACHINES = {"amd64": "x86_64", "arm64": "aarch64", "ppc64el": "ppc64le", "riscv64": "riscv64",
            "s390x": "s390x"}


def native() -> str:
    """This machine's architecture in Debian's words."""
    machine = platform.machine()
    return {name: arch for arch, name in MACHINES.items()}.get(machine, machine)


# ---- base trees ------------------------------------------------------------------------------


def apt_sources() -> tuple:
    """The release, and sources.list lines of the distribution's own archive as apt has them."""
    release = this_distro().codename
    need("apt-get", "mmdebstrap")
    rows = call("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)",
                "Created-By: Packages").splitlines()
    lines = sorted({"deb " + row for row in rows
                    if len(row.split()) == 3 and row.split()[1].startswith(release)})
    if not release or not lines:
        raise HostsError("apt on this machine knows no repository of its own release '%s'; "
                         "run: apt-get update" % release)
    return release, lines


def proxies() -> list:
    """mmdebstrap's options for the proxies that apt goes through here."""
    lines = call("apt-config", "dump").splitlines()
    return ["--aptopt=" + line.rstrip(";") for line in lines
            if line.startswith(("Acquire::http::Proxy", "Acquire::https::Proxy"))]


class Bases:
    """The directory of base trees. They outlive the hosts, so that the next ones come quickly."""

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)

    def tree(self, state, arch: str, packages: tuple, renew: bool) -> str:
        """The base with these packages; made when there is none, or none but an old one."""
        release, sources = apt_sources()
        key = json.dumps([release, arch, sorted(packages), sources])
        name = "%s-%s-%s" % (release, arch, hashlib.sha256(key.encode()).hexdigest()[:8])
        tree = os.path.join(self.path, name)
        os.makedirs(self.path, exist_ok=True)
        with open(tree + ".lock", "w", encoding="utf-8") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)  # another `up` may be making it
            if renew:
                self._drop(tree)
            if os.path.isdir(tree):
                say("base tree %s: %s" % (name, self._age(tree)))
            else:
                self._make(state, tree, release, arch, sorted(packages), sources)
        return tree

    @staticmethod
    def _age(tree: str) -> str:
        days = (time.time() - os.stat(os.path.join(tree, "etc/apt/sources.list")).st_mtime) / 86400
        return "%d days old; --renew makes it anew" % days if days > 1 else "from today"

    @staticmethod
    def _drop(tree: str) -> None:
        with open("/proc/self/mountinfo", encoding="utf-8") as stream:
            if "/%s,upperdir=" % os.path.basename(tree) in stream.read():
                raise HostsError("%s cannot be made anew: hosts that are up stand on it" % tree)
        remove_tree(tree)

    def _make(self, state, tree: str, release: str, arch: str, packages: list,
              sources: list) -> None:
        need("mmdebstrap", "mmdebstrap")
        need_room(self.path, BASE_MEGABYTES, "a base tree")
        say("base tree %s: making it (%s); this takes %s" % (
            os.path.basename(tree), ", ".join(packages),
            "a minute" if arch == native() else "some minutes, under emulation"))
        begin = time.monotonic()
        partial = tree + ".partial"
        state.record("tree", path=partial)
        try:
            chroots.made(partial, release, "--variant=apt", "--architectures=" + arch,
                         "--include=" + ",".join(packages), *proxies(), sources=sources,
                         within=ENDS_WITH_US)
        except (proving.Failed, proving.NotRun) as error:
            raise HostsError("the base tree %s could not be made; it needs the package repository "
                             "this once:\n%s" % (tree, str(error)[-2000:])) from None
        prepare(partial)
        os.rename(partial, tree)
        say("base tree %s: made in %.0f s" % (os.path.basename(tree), time.monotonic() - begin))


def prepare(root: str) -> None:
    """Packages installed later start no services, for in a chroot they would be this machine's;
    and dpkg does not wait for the disk, for hosts do not outlive a crash."""
    path = os.path.join(root, "usr/sbin/policy-rc.d")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("#!/bin/sh\nexit 101\n")
    os.chmod(path, 0o755)
    with open(os.path.join(root, "etc/dpkg/dpkg.cfg.d/test-host"), "w", encoding="utf-8") as stream:
        stream.write("force-unsafe-io\n")


# ---- a host's own tree -----------------------------------------------------------------------


def layer(state, name: str, base: str) -> str:
    """The root of host `name`: an overlay above the base; a copy where the kernel or the file
    system below the state has none."""
    root = state.tree("roots", name)
    state.tree("layers", name)
    state.tree("work", name)
    state.record("mount", path=root)
    # Relative, for a comma or colon in the state's path would end the option.
    options = "lowerdir=%s,upperdir=layers/%s,workdir=work/%s" % (
        os.path.relpath(base, state.path), name, name)
    done = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, root],
                          cwd=state.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    if done.returncode:
        need_room(state.path, BASE_MEGABYTES, "the copy of a base tree (overlayfs: %s)"
                  % done.stdout.decode(errors="replace").strip())
        say("%s: no overlay is possible here; copying the base tree" % name)
        call("cp", "-a", "--reflink=auto", base + "/.", root)
    return root


def name_host(root: str, hostname: str, addresses: dict) -> None:
    """/etc/hostname, /etc/hosts and /etc/resolv.conf; addresses: of the hosts by name."""
    with contextlib.suppress(FileNotFoundError):
        shutil.copy("/etc/resolv.conf", os.path.join(root, "etc/resolv.conf"))
    with open(os.path.join(root, "etc/hostname"), "w", encoding="utf-8") as stream:
        stream.write(hostname + "\n")
    with open(os.path.join(root, "etc/hosts"), "w", encoding="utf-8") as stream:
        stream.write("127.0.0.1 localhost\n::1 localhost\n")
        if hostname not in addresses:
            stream.write("127.0.1.1 %s\n" % hostname)
        stream.writelines("%s %s\n" % (address, name) for name, address in addresses.items())


def chroot_host(state, name: str, base: str) -> dict:
    """A root directory with what programs expect to be mounted; network and processes are this
    machine's."""
    root = layer(state, name, base)
    for kind, options, place in (
            ("proc", "nosuid,nodev,noexec", "proc"), ("sysfs", "ro,nosuid,nodev,noexec", "sys"),
            ("devpts", "newinstance,ptmxmode=0666,mode=0620,gid=5", "dev/pts"),
            ("tmpfs", "nosuid,nodev,mode=1777", "dev/shm")):
        call("mount", "-t", kind, "-o", options, kind, os.path.join(root, place))
    name_host(root, platform.node(), {})
    return {"name": name, "kind": "chroot", "root": root}


# ---- other architectures ---------------------------------------------------------------------


def runs(arch: str) -> bool:
    """Whether programs of this architecture start here."""
    if arch == native():
        return True
    need("arch-test", "arch-test")
    return subprocess.run(["arch-test", arch], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


def emulator(machine: str, folders: tuple = ("/usr/lib/binfmt.d", "/etc/binfmt.d")) -> str:
    """The line that registers qemu-user for a machine, as the distribution's package has it."""
    for folder in folders:
        for leaf in ("qemu-%s.conf" % machine, "qemu-%s-static.conf" % machine):
            with contextlib.suppress(FileNotFoundError):
                with open(os.path.join(folder, leaf), encoding="utf-8") as stream:
                    return next(line for line in stream if line.startswith(":")).strip()
    return ""


def emulate(state, arch: str) -> None:
    """Lets the kernel run programs of `arch` by qemu-user while the hosts are up. The registration
    is this state's own and goes before one that the machine may have, for Debian's gives a program
    no rights of its owner, and so there would be neither sudo nor su."""
    if arch == native():
        return
    line = emulator(MACHINES[arch])
    if not line:
        if runs(arch):
            return
        need("qemu-%s-static" % MACHINES[arch], "qemu-user-static")
        raise HostsError("programs of %s do not run here, and no file in /usr/lib/binfmt.d says "
                         "how: qemu-%s.conf is missing" % (arch, MACHINES[arch]))
    name = "%s-%s" % (state.id, MACHINES[arch])
    there = os.path.exists(os.path.join(BINFMT, "register"))
    state.record("emulation", name=name, mounted=not there)
    if not there:
        call("mount", "-t", "binfmt_misc", "binfmt_misc", BINFMT)
    _, _, kind, offset, magic, mask, interpreter, flags = line.split(":")
    with open(os.path.join(BINFMT, "register"), "w", encoding="utf-8") as stream:
        stream.write(":".join(["", name, kind, offset, magic, mask, interpreter,
                               flags.replace("C", "") + "C"]))
    if not runs(arch):
        raise HostsError("programs of %s do not run here, though %s is registered" % (
            arch, interpreter))
    say("programs of %s run by %s" % (arch, interpreter))


def remove_emulation(entry: dict) -> None:
    """The registration; and the file system of registrations, if it was mounted for this one and
    nobody has used it since."""
    with contextlib.suppress(FileNotFoundError):
        with open(os.path.join(BINFMT, entry["name"]), "w", encoding="utf-8") as stream:
            stream.write("-1")
    if entry["mounted"] and set(os.listdir(BINFMT)) == {"register", "status"}:
        call("umount", BINFMT)
