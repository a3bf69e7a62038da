# SPDX-License-Identifier: Apache-2.0
"""Proofs of the Debian packages for other architectures: cross-built in a chroot that holds their
declared build dependencies, installed in a Debian of that architecture, and used there.

The kernel hands that architecture's programs to an emulator (binfmt_misc).
"""

import filecmp
import glob
import os
import platform
import re
import shutil

import chroots
import clean_room
from proving import SOURCE, Failed, NotRun, debian_repository, manifest, proof, run

NOBODY = "65534:65534"
EMULATORS = {"arm64": "qemu-aarch64", "s390x": "qemu-s390x"}
EXCHANGE = os.path.join(SOURCE, "tests/packages/exchange.py")


def emulated(architecture):
    """The kernel must know the emulator also where its file is out of sight: flag F."""
    if platform.machine() != "x86_64":
        raise NotRun("it is a cross build on x86-64")
    path = "/proc/sys/fs/binfmt_misc/" + EMULATORS[architecture]
    if not os.path.exists(path):
        raise NotRun("the kernel does not run programs of %s here: apt-get install "
                     "qemu-user-static binfmt-support; where these are, mount -t binfmt_misc "
                     "binfmt_misc /proc/sys/fs/binfmt_misc and update-binfmts --enable"
                     % architecture)
    with open(path, encoding="ascii") as stream:
        if not re.search(r"^flags: \S*F", stream.read(), re.MULTILINE):
            raise NotRun("%s lacks the flag F: qemu-user-static sets it" % path)


def cross_built(architecture, base):
    """The packages of that architecture, built in a chroot of this one."""
    release, _ = debian_repository()
    folder, root = os.path.join(base, "source"), os.path.join(base, "build")
    clean_room.source_package(folder)
    clean_room.chroot(release, root, folder, architecture)
    clean_room.built_inside(
        root, clean_room.USER, "user", os.path.join(base, "build.log"),
        arguments=("-B", "-a" + architecture, "-Pcross,nocheck"),
        environment={"DEB_BUILD_OPTIONS": "nocheck"})
    found = chroots.packages(os.path.join(root, "build/user"))
    wrong = [path for path in found if not path.endswith("_%s.deb" % architecture)]
    if not found or wrong:
        raise Failed("the cross build made %s" % (wrong or "no packages"))
    return found


class Installed:
    """The packages in a new Debian of the architecture; a user without rights uses them."""

    def __init__(self, base, architecture, packages):
        self.root = os.path.join(base, architecture)
        chroots.made(self.root, debian_repository()[0], "--variant=apt",
                     "--architectures=" + architecture, "--include=python3-numpy")
        chroots.install(self.root, packages)
        self.place = os.path.join(self.root, "tmp/files")
        os.makedirs(self.place)
        os.chmod(self.place, 0o777)
        shutil.copytree(os.path.join(SOURCE, "smoke"), os.path.join(self.root, "opt/smoke"))
        shutil.copytree(os.path.dirname(EXCHANGE), os.path.join(self.root, "opt/packages"))

    def run(self, *words, **environment):
        return run(chroots.entering(self.root, words, NOBODY,
                                    environment=dict(environment, HOME="/tmp")))

    def level(self, **environment):
        """The instruction set level that Treenail takes there."""
        found = re.search(r"level in use +(\S+)", self.run("treenail-info", **environment))
        if not found:
            raise Failed("treenail-info names no level in use")
        return found.group(1)


def native(*words):
    """The same program with the module of this build."""
    return run([manifest()["python"], "-B", *words],
               environment={"PYTHONPATH": os.path.abspath("python")})


def accuracy(text):
    return re.search(r"\w+: test accuracy [\d.]+", text).group()


def exchanged(there, base):
    """Files written on either side are read on the other, a trained perceptron's too; sentences."""
    here = os.path.join(base, "files-here")
    shutil.rmtree(here, ignore_errors=True)
    os.makedirs(here)
    train = os.path.join(SOURCE, "smoke/train.py")
    told = accuracy(there.run("python3", "/opt/smoke/train.py", "mlp", "--quiet",
                              "--checkpoint-dir", "/tmp/files/mlp"))
    again = accuracy(native(train, "mlp", "--quiet", "--evaluate", "--checkpoint-dir",
                            os.path.join(there.place, "mlp")))
    if told != again:
        raise Failed("trained there: %s; its checkpoint here: %s" % (told, again))
    there.run("python3", "/opt/packages/exchange.py", "write", "/tmp/files")
    native(EXCHANGE, "write", here)
    native(EXCHANGE, "read", there.place)
    shutil.copytree(here, os.path.join(there.root, "opt/files-here"))
    there.run("python3", "/opt/packages/exchange.py", "read", "/opt/files-here")
    same = sorted(os.path.basename(path) for path in glob.glob(os.path.join(here, "same-*")))
    for name in same:
        if not filecmp.cmp(os.path.join(here, name), os.path.join(there.place, name), False):
            raise Failed("%s is not the same bytes on both" % name)
    return "%s, there and by its checkpoint here; files cross both ways, %s of the same bytes" % (
        told, ", ".join(same))


def beside(there, own):
    """What is `Multi-Arch: same` is installed a second time, for this machine's architecture; a
    sentence. own: packages of the same version for it."""
    same = [path for path in own if run(["dpkg-deb", "-f", path, "Multi-Arch"]).strip() == "same"]
    if not same:
        return "co-installation not run: `ninja deb` has made no packages in deb/"
    run(chroots.entering(there.root, ["dpkg", "--add-architecture", run(
        ["dpkg", "--print-architecture"]).strip()]))
    chroots.install(there.root, same)
    rows = run(chroots.entering(there.root, ["dpkg-query", "-W", "-f",
                                             "${Status} ${Package} ${Architecture}\n"]))
    for path in same:
        name, _, architecture = os.path.basename(path)[:-len(".deb")].split("_")
        found = re.findall(r"^install ok installed %s (\S+)$" % re.escape(name), rows,
                           re.MULTILINE)
        if len(found) != 2 or architecture not in found:
            raise Failed("%s is installed for %s" % (name, ", ".join(found)))
    return "%d packages beside those of this machine's architecture" % len(same)


def levels(there, processors):
    """The level that is taken on each of these of qemu's processors; a sentence."""
    for name, wanted in processors.items():
        level = there.level(QEMU_CPU=name)
        if level != wanted:
            raise Failed("on %s the level in use is %s and should be %s" % (name, level, wanted))
    return ", ".join(["level " + there.level(), *("%s on %s" % (level, name)
                                                  for name, level in processors.items())])


def proven(architecture, *networks, processors):
    """Built, installed, trained, files exchanged; a sentence. processors: those of qemu's that have
    a level of their own."""
    chroots.needs()
    emulated(architecture)
    if not os.path.isdir("python/treenail"):
        raise NotRun("%s holds no build, whose module is to read what the other one writes: run "
                     "ninja there" % os.getcwd())
    base = os.path.abspath("deb-" + architecture)
    os.makedirs(base, exist_ok=True)
    packages = cross_built(architecture, base)
    there = Installed(base, architecture, packages)
    said = [accuracy(there.run("python3", "/opt/smoke/train.py", network, "--quiet"))
            for network in networks]
    return "; ".join(["%d packages" % len(packages), levels(there, processors), *said,
                      exchanged(there, base), beside(there, chroots.packages("deb"))])


@proof
def deb_arm64():
    """the .debs, cross-built for arm64, train both networks in a Debian of arm64 (emulated)"""
    return proven("arm64", "cnn", processors={
        "cortex-a53": "armv8-a", "neoverse-n1": "armv8.2-a"})


@proof
def deb_s390x():
    """the .debs, cross-built for big-endian s390x, train a perceptron there (emulated)"""
    # Without vectors, a convolutional network takes a quarter of an hour.
    return proven("s390x", processors={})
