# SPDX-License-Identifier: Apache-2.0
"""What the build in this directory installs: needs, exports, paths inside, the C interface."""

import os
import re
import sys
import tempfile

import abi
import shipped
from packaging_manifest import NON_FREE_PARTS, read_manifest
from proving import TOOLS, build_info, need, run

SYSTEM = re.compile(
    r"(libc|libm|libstdc\+\+|libgcc_s|libpthread|libdl|ld-linux[\w-]*|ld64)\.so\.\d+\Z")
# How the sonames of each feature's libraries begin, under every name that distributions give them.
SONAMES = {
    "blas": ("libblas.so.", "libflexiblas.so.", "libopenblas", "libblis"),
    "lapack": ("liblapack.so.", "libblas.so.", "libflexiblas.so.", "libopenblas"),
    "onednn": ("libdnnl.so.",), "hdf5": ("libhdf5.so.", "libhdf5_serial.so."),
    "re2": ("libre2.so.",),
    "grpc": ("libgrpc++.so.", "libgrpc.so.", "libgpr.so.", "libabsl_", "libprotobuf",
             "libcrypto.so."),
    "jpeg": ("libjpeg.so.",), "png": ("libpng16.so.",),
    "mpi-openmpi": ("libmpi.so.",), "mpi-mpich": ("libmpich.so.", "libmpi.so.12"),
}
# Mangled names of functions, variables and type information in namespaces of other people.
FOREIGN = re.compile(r"_Z(?:GV|T[A-Z]|GR)?N?[KVrRO]*(?:St|S[absiod]|5Eigen|4absl|"
                     r"6google8protobuf)")
WHOSE = {"5Eigen": "Eigen::", "4absl": "absl::", "6google8protobuf": "google::protobuf::"}


class Installed:
    """What this build installs, below a temporary directory."""

    def __init__(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.root = self.scratch.name
        run([sys.executable, "-B", os.path.join(TOOLS, "install.py"), "--manifest",
             "gen/install.json"], environment={"DESTDIR": self.root})
        self.entries = read_manifest()["entries"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.scratch.cleanup()

    def elves(self):
        """(path below the root, whole path, entry) of each shared object and program."""
        for entry in self.entries:
            if entry["kind"] == "module":
                yield entry["to"], self.root + entry["to"], entry


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run(["readelf", "-dW", path]))


def exports(path):
    """Mangled names of what a file defines for others."""
    found = []
    for line in run(["nm", "-D", "--defined-only", path]).splitlines():
        words = line.split()
        if len(words) > 1 and words[-2] != "A":  # A: the names of version nodes
            found.append(words[-1].split("@")[0])
    return found


def may_need(name, number):
    """What a file of ours may need, by its place: (expression for ours, sonames of features)."""
    ours = "libtreenail.so.%d" % number
    adapter = re.search(r"/adapters/libtreenail-([\w-]+)\.so\Z", name)
    if adapter:
        return ours, SONAMES.get(adapter.group(1), ())
    if os.path.basename(name).startswith("libtreenail.so."):
        return "", ()
    return ours, ()


def needs_of(name, sonames, number):
    """Sentences about libraries that a file needs and may not."""
    ours, features = may_need(name, number)
    found = []
    for soname in sonames:
        if "cuda" in soname or soname.startswith("libnv"):
            found.append("%s: needs %s, which is not free: only a plugin of a package of its own "
                         "may" % (name, soname))
        elif not SYSTEM.match(soname) and soname != ours and not soname.startswith(features or
                                                                                   ("\0",)):
            found.append("%s: needs %s; wanted: the C and C++ libraries%s%s" % (
                name, soname, ", " + ours if ours else "", "".join(
                    ", %s*" % feature for feature in features)))
    if features and not any(soname.startswith(features) for soname in sonames):
        found.append("%s: needs none of %s, which it is the adapter of" % (
            name, " ".join(features)))
    return found


def foreign(name, symbols):
    """Sentences about exported symbols that belong to other people's libraries."""
    found = []
    for symbol in symbols:
        if FOREIGN.match(symbol):
            whose = next((WHOSE[key] for key in WHOSE if key in symbol[:24]), "std::")
            found.append("%s: exports %s, of %s; wanted: hidden, or another library's copy of it "
                         "in the same process is taken for ours" % (name, symbol, whose))
    return found


def libraries():
    """shared objects need what is declared and export nothing of std, Eigen, absl or protobuf"""
    need("readelf", "binutils")
    found, count, levels = [], 0, {}
    number = int(build_info("kVersion").split(".")[0])
    with Installed() as tree:
        for name, path, entry in tree.elves():
            count += 1
            found += needs_of(name, needed(path), number)
            symbols = exports(path)
            if ".so" in os.path.basename(name):  # of a program, libraries take what they share
                found += foreign(name, symbols)
            with open(path, "rb") as stream:
                if entry["package"] not in NON_FREE_PARTS and b"libcuda" in stream.read():
                    found.append("%s: names libcuda; wanted: in a plugin of its own" % name)
            if "/kernels/" in name:
                levels.setdefault(os.path.basename(name), {})[name] = sorted(symbols)
    for rows in levels.values():
        first = next(iter(rows))
        for name, symbols in rows.items():
            if symbols != rows[first]:
                found.append("%s: exports %s; wanted what %s exports: %s" % (
                    name, " ".join(symbols), first, " ".join(rows[first])))
    return found, "%d files, %d levels" % (count, sum(map(len, levels.values())))


def paths():
    """no installed file names the build or the source directory"""
    needles = shipped.build_paths(".")
    with Installed() as tree:
        said = [shipped.named(e["to"], tree.root + e["to"], needles) for e in tree.entries]
    return list(filter(None, said)), "%d files" % len(said)


def interface():
    """the C interface is the one that tests/abi tracks: headers, and abidw's description"""
    number = int(build_info("kVersion").split(".")[0])
    found = abi.header_differences(number)
    if found:
        return found + [abi.RULE % (number + 1)], ""
    return [], abi.compare(".")
