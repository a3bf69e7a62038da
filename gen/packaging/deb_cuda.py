# SPDX-License-Identifier: Apache-2.0
"""Debian package of the plugin of GPUs, source and binary: `ninja deb-cuda`.

The source package treenail-cuda has the archive of `ninja dist`, as treenail has it, and
debian-cuda/ for its debian/. It is built in deb-cuda/ of the build directory, for the libtreenail
that `ninja deb` made, which is unpacked, not installed; where there is none, for the
libtreenail-dev that is installed. dpkg does not ask for build dependencies, for a toolkit of
NVIDIA's own is no package of Debian: configure says what is missing. CUDA_HOME and CUDA_ARCH
(debian/rules) mean here what they mean there.
"""

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(SOURCE, "gen/tools"), SOURCE]
import deb_packages  # noqa: E402  (the path must be set first)
import shipped  # noqa: E402
from package_build import Unusable, ended, judged, read  # noqa: E402
from packaging_contrib import FOLDER, NOT_FREE  # noqa: E402
from proving import Failed, NotRun, build_info, need, proof, run  # noqa: E402
from gen import private_abi  # noqa: E402

PACKAGE = "libtreenail1-cuda"


def copyright_text(header, text):
    """debian/copyright of the plugin's package: its own first stanza, and treenail's others, for
    the source archive is the same."""
    return header.rstrip("\n") + "\n\n" + text.partition("\n\n")[2]


def unpacked_source(folder):
    """treenail-cuda_V.orig.tar.gz and the tree in an emptied folder, debian-cuda/ as debian/."""
    tree = deb_packages.unpacked_source(folder, FOLDER)
    header = os.path.join(tree, "debian/copyright.header")
    with open(os.path.join(tree, "debian/copyright"), "w", encoding="utf-8") as stream:
        stream.write(copyright_text(read(FOLDER, "copyright.header"),
                                    read("debian", "copyright")))
    os.remove(header)
    return tree


def sysroot(packages, into):
    """libtreenail1 and libtreenail-dev of that folder, unpacked into an emptied directory; '' where
    they are not there."""
    shutil.rmtree(into, ignore_errors=True)
    found = [path for pattern in ("libtreenail[0-9]_*.deb", "libtreenail-dev_*.deb")
             for path in sorted(glob.glob(os.path.join(packages, pattern)))]
    if len(found) != 2:
        return ""
    for path in found:
        run(["dpkg-deb", "-x", path, into])
    return os.path.abspath(into)


def exact(folder):
    """Does the package depend on the very libtreenail that its plugin was built for, and on nothing
    that is not free? A sentence, and what is wrong."""
    path = next(path for path in deb_packages.made(folder)
                if os.path.basename(path).startswith(PACKAGE + "_"))
    place = os.path.join(folder, "unpacked")
    shutil.rmtree(place, ignore_errors=True)
    plugin = next(inner for name, inner in deb_packages.programs(path, place).items()
                  if name.endswith("/libtreenail-cuda.so"))
    wanted = private_abi.NAME + private_abi.of_library(plugin)
    needs = re.split(r"\s*,\s*", deb_packages.field(path, "Depends"))
    left = [] if wanted in needs else ["%s: Depends has no %s: %s" % (
        os.path.basename(path), wanted, ", ".join(needs))]
    left += ["%s: Depends on %s, which is not free" % (os.path.basename(path), need_)
             for need_ in needs if NOT_FREE.search(need_.split()[0])]
    return "depends on " + wanted, left


def build(folder, rooted, quiet=False, **variables):
    """The package, in a folder that is emptied. rooted: makes the directory that it is given a root
    with libtreenail, and returns it, or '' where the installed one is meant; so does this."""
    tree = unpacked_source(folder)
    root = rooted(os.path.join(folder, "root"))
    if root:
        variables["PKG_CONFIG_SYSROOT_DIR"] = root
    deb_packages.built(tree, ["-d"], os.path.join(folder, "build.log"), quiet, **variables)
    return root


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", default="deb-cuda", help="directory to make it in [deb-cuda]")
    parser.add_argument("--packages", default="deb", help="where libtreenail's are [deb]")
    options = parser.parse_args()
    folder = os.path.abspath(options.into)
    root = build(folder, lambda into: sysroot(options.packages, into))
    print("for %s" % (("the packages in " + options.packages) if root
                      else "the libtreenail that is installed"))
    for path in sorted(deb_packages.made(folder)):
        print("%12s  %s" % (format(os.path.getsize(path), ","), os.path.basename(path)))
    return judged(lambda: exact(folder), lambda: deb_packages.lint(folder),
                  lambda: deb_packages.hardened(os.path.join(folder, "build.log"), folder),
                  lambda: shipped.report(deb_packages.made(folder), folder))


# ---- the proof -----------------------------------------------------------------------------------


def of_this_build(into):
    """A root directory with the libraries of the build in this directory."""
    multiarch = run(["dpkg-architecture", "-qDEB_HOST_MULTIARCH"]).strip()
    libdir = os.path.join(into, "usr/lib", multiarch)
    os.makedirs(libdir)
    for path in glob.glob("lib/libtreenail.so*"):
        shutil.copy(path, libdir, follow_symlinks=False)
    shutil.copytree("lib/treenail-%s/kernels" % build_info("kVersion").split(".")[0],
                    os.path.join(libdir, "treenail-1/kernels"))
    return os.path.abspath(into)


ASKS = """
import treenail as tn
with tn.device("/gpu:0"):
    y = tn.matmul(tn.ones([3, 4]), tn.ones([4, 5]))
try:
    with tn.Session() as session:
        print("computed", session.run(y).sum())
except tn.errors.OpError as error:
    print(error)
"""


def asked(libdir):
    """What a session with the libtreenail of that directory says of /gpu:0."""
    return run(["./python3", "-c", ASKS], environment={
        "LD_LIBRARY_PATH": libdir, "TREENAIL_LOG": "", "CUDA_VISIBLE_DEVICES": ""})


def of_another_build(path):
    """Changes the hash that stands in a library; returns the new build."""
    build_id = private_abi.of_library(path)
    version, _, digest = build_id.rpartition("-")
    other = "%s-%s" % (version, digest[::-1] if digest != digest[::-1] else "0" * 12)
    with open(path, "rb") as stream:
        data = stream.read()
    with open(path, "wb") as stream:
        stream.write(data.replace(build_id.encode() + b"\0", other.encode() + b"\0"))
    return other


def refused(folder, tree, root, libdir):
    """What the plugin and configure say where libtreenail is of another build."""
    plugin = os.path.join(libdir, "treenail-1/devices/libtreenail-cuda.so")
    other, said = of_another_build(plugin), asked(libdir)
    if "is of build %s; this libtreenail is of build " % other not in said:
        raise Failed("a plugin of build %s was not refused:\n%s" % (other, said))
    other = of_another_build(os.path.realpath(os.path.join(libdir, "libtreenail.so")))
    done = subprocess.run(
        [sys.executable, os.path.join(tree, "configure.py"), "--only=cuda", "--prefix=/usr",
         "--libdir=" + libdir[len(root):], "--build-dir=" + os.path.join(folder, "other")],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        env=dict(os.environ, PKG_CONFIG_SYSROOT_DIR=root))
    if done.returncode != 1 or "is of build %s, but this source tree" % other not in done.stdout:
        raise Failed("configure took a libtreenail of build %s:\n%s" % (other, done.stdout))


@proof
def deb_cuda_package():
    """the plugin's package depends on the exact private ABI, opens, and is refused by another"""
    need("dh", "debhelper")
    if not os.path.exists("gen/cuda.json"):
        raise NotRun("this build has no CUDA toolkit (--with-cuda)")
    folder = os.path.abspath("deb-cuda-package")
    with open("gen/cuda.json", encoding="utf-8") as stream:
        newest = json.load(stream)["architectures"][-1]
    root = build(folder, of_this_build, quiet=True, CUDA_ARCH=newest)
    text, left = exact(folder)
    if left:
        raise Failed("\n".join(left))
    run(["dpkg-deb", "-x", glob.glob(os.path.join(folder, PACKAGE + "_*.deb"))[0], root])
    libdir = os.path.dirname(glob.glob(os.path.join(root, "usr/lib/*/libtreenail.so"))[0])
    said = asked(libdir)
    if "NVIDIA's driver" not in said:
        raise Failed("the plugin was not opened:\n" + said)
    tree = glob.glob(os.path.join(folder, "treenail-[0-9]*/"))[0]
    refused(folder, tree, root, libdir)
    return "%s; opened; of another build refused by the library and by configure" % text


if __name__ == "__main__":
    ended(main, {Unusable: "", Failed: ""})
