# SPDX-License-Identifier: Apache-2.0
"""What packages ship, .deb or .rpm, looked at when they have just been made.

Each package is unpacked. It holds one bill of materials, in its own documentation directory, whose
hashes are those of all its regular files but the bill itself, unless it holds nothing beyond its
changelog and its terms; no file, compressed or not, names a directory of the machine it was built
on. Packages of debug symbols have no bill: they are split off before the bills are written, and rpm
makes them itself; their paths are looked at all the same.
"""

import glob
import gzip
import hashlib
import json
import os
import re
import shutil
import tarfile
import tempfile
import zlib

import sbom_schema
from proving import SOURCE, Failed, NotRun, need, proof, run

SYMBOLS = re.compile(r"-(dbgsym|debuginfo|debugsource)\Z")
# What every package has; one of nothing else has nothing to bill, as treenail-doc built with nodoc.
BARE = re.compile(r"\./usr/share/doc/[^/]+/(copyright|changelog[.\w]*)\Z")
# Below a directory of one short name everything would match.
SHORTEST = 5


# ---- paths of the build --------------------------------------------------------------------------


def build_paths(*folders):
    """What no file may name: these directories, and the source tree's."""
    found = {path for folder in (*folders, SOURCE)
             for path in (os.path.abspath(folder), os.path.realpath(folder))}
    return sorted(path.encode() for path in found if len(path) > SHORTEST)


def home_paths():
    """Nor, in a package, what lies in the home directory of whoever built it."""
    home = os.environ.get("HOME", "").rstrip("/")
    return [home.encode() + b"/"] if home.startswith("/") else []


def readable(name, path):
    """The bytes of a file in which a path can be seen."""
    with open(path, "rb") as stream:
        data = stream.read()
    if name.endswith(".gz"):
        return gzip.decompress(data)
    if os.path.basename(name) == "objects.inv":  # Sphinx's: four lines, and the rest compressed
        lines = data.split(b"\n", 4)
        return b"\n".join(lines[:4]) + zlib.decompress(lines[4])
    if data.startswith(b"\x7fELF") and name.lstrip("/").startswith("usr/lib/debug/"):
        with tempfile.NamedTemporaryFile() as plain:  # debhelper compresses its sections
            run(["objcopy", "--decompress-debug-sections", path, plain.name])
            return plain.read()
    return data


def position(data, needle):
    """Where this path is named, and not as a part of another one: of /src neither /usr/src nor
    /src-1 or src/src.h speaks, but -I/src does, and so may any byte before it that is no path. -1:
    nowhere."""
    at = data.find(needle)
    while at >= 0:
        before = re.search(rb"[\w.+~/-]*\Z", data[max(0, at - 100):at]).group()
        after = data[at + len(needle):at + len(needle) + 2]
        if b"/" not in before.rstrip(b"/") and (
                needle.endswith(b"/") or not re.match(rb"[\w-]|\.\w", after)):
            break
        at = data.find(needle, at + 1)
    return at


def named(name, path, needles):
    """A sentence about a file, or a link, that names one of these paths; else ''."""
    data = os.readlink(path).encode() if os.path.islink(path) else readable(name, path)
    for needle in needles:
        at = position(data, needle)
        if at >= 0:
            text = data[at:at + 200].split(b"\0")[0].splitlines()[0]
            return "%s: names %s at byte %d; wanted: no path of the machine it was built on" % (
                name, text.decode(errors="replace"), at)
    return ""


# ---- bills of materials --------------------------------------------------------------------------


def read_bill(path):
    with open(path, "rb") as stream:
        data = stream.read()
    return json.loads(gzip.decompress(data) if path.endswith(".gz") else data)


def digests(root):
    """{name below the root: (SHA-1, SHA-256)} of the regular files."""
    found = {}
    for folder, _, leaves in os.walk(root):
        for leaf in leaves:
            path = os.path.join(folder, leaf)
            if not os.path.islink(path):
                with open(path, "rb") as stream:
                    data = stream.read()
                found["./" + os.path.relpath(path, root)] = (
                    hashlib.sha1(data).hexdigest(), hashlib.sha256(data).hexdigest())
    return found


def listed(bill):
    """The same by the bill: those of its files that the package contains."""
    inside = {r["relatedSpdxElement"] for r in bill["relationships"]
              if (r["spdxElementId"], r["relationshipType"]) == ("SPDXRef-Package", "CONTAINS")}
    found = {}
    for item in bill["files"]:
        if item["SPDXID"] in inside:
            sums = {c["algorithm"]: c["checksumValue"] for c in item["checksums"]}
            found[item["fileName"]] = (sums.get("SHA1"), sums.get("SHA256"))
    return found


def held_to_bill(root, name):
    """(path of the bill or '', sentences about it and the files of the unpacked package)."""
    bills = [path for ending in ("json", "json.gz") for path in glob.glob(
        os.path.join(root, "**/*.spdx." + ending), recursive=True)]
    own = os.path.join(root, "usr/share/doc", name)
    there = digests(root)
    if not bills and not [path for path in there if not BARE.match(path)]:
        return "", []
    if len(bills) != 1 or os.path.dirname(bills[0]) != own:
        return "", ["%s: has the bills of materials %s; wanted: one, in /usr/share/doc/%s" % (
            name, ", ".join(os.path.relpath(path, root) for path in bills) or "(none)", name)]
    where = "./" + os.path.relpath(bills[0], root)
    bill = read_bill(bills[0])
    del there[where]
    said = listed(bill)
    found = ["%s: ships %s, which its bill of materials does not list" % (name, path)
             for path in sorted(set(there) - set(said))]
    found += ["%s: its bill of materials lists %s, which it does not ship" % (name, path)
              for path in sorted(set(said) - set(there))]
    found += ["%s: %s has the SHA-1 and SHA-256 %s %s, but by the bill of materials %s %s" % (
        name, path, *there[path], *said[path])
              for path in sorted(set(said) & set(there)) if said[path] != there[path]]
    main, = [p for p in bill["packages"] if p["SPDXID"] == "SPDXRef-Package"]
    code = {"packageVerificationCodeExcludedFiles": [where],
            "packageVerificationCodeValue": hashlib.sha1("".join(sorted(
                one for one, _ in there.values())).encode()).hexdigest()}
    if main["packageVerificationCode"] != code:
        found.append("%s: the package verification code is %s; its files give %s" % (
            name, main["packageVerificationCode"], code))
    return bills[0], found


# ---- packages ------------------------------------------------------------------------------------


def unpacked(path, root):
    """Unpacks a binary package into an empty directory, which need not be there; its name."""
    os.makedirs(root, exist_ok=True)
    if path.endswith(".deb"):
        run(["dpkg-deb", "-x", path, root])
        return run(["dpkg-deb", "-f", path, "Package"]).strip()
    need("rpm2archive", "rpmbuild")
    copy = root + ".rpm"
    shutil.copy(path, copy)
    run(["rpm2archive", copy])  # writes its archive beside the package
    with tarfile.open(copy + ".tgz") as archive:
        archive.extractall(root)
    return run(["rpm", "-qp", "--qf", "%{NAME}", path]).strip()


def binary(paths):
    return sorted(path for path in paths
                  if path.endswith((".deb", ".rpm")) and not path.endswith(".src.rpm"))


def wrong_by_schema(bills, fetch):
    """(verdict, sentences) of SPDX's own tools about {package: path of its bill}. fetch: from PyPI,
    where this build does not have them yet."""
    try:
        python = sbom_schema.interpreter(fetch)
    except NotRun as reason:
        return "not validated, %s" % reason, []
    names = sorted(bills)
    with tempfile.TemporaryDirectory() as scratch:
        plain = [os.path.join(scratch, name + ".spdx.json") for name in names]
        for name, path in zip(names, plain):
            with open(path, "w", encoding="utf-8") as stream:
                json.dump(read_bill(bills[name]), stream)
        judged = sbom_schema.judged(python, plain)
    return "valid SPDX 2.3", ["%s: its bill of materials: %s" % (name, text)
                              for name, found in zip(names, judged) for text in found[:5]]


def examined(paths, folders, fetch=False):
    """(verdict, sentences) about the binary packages among these, which were built in `folders`."""
    needles, found, bills, count = build_paths(*folders) + home_paths(), [], {}, 0
    with tempfile.TemporaryDirectory() as scratch:
        for index, path in enumerate(binary(paths)):
            root = os.path.join(scratch, str(index))
            name = unpacked(path, root)
            if not SYMBOLS.search(name):
                bill, wrong = held_to_bill(root, name)
                found += wrong
                bills.update({name: bill} if bill else {})
            for folder, inner, leaves in os.walk(root):
                links = [leaf for leaf in inner if os.path.islink(os.path.join(folder, leaf))]
                for leaf in leaves + links:
                    file = os.path.join(folder, leaf)
                    count += 1
                    text = named(os.path.relpath(file, root), file, needles)
                    found += ["%s: %s" % (name, text)] if text else []
        verdict, wrong = wrong_by_schema(bills, fetch) if bills else ("none", [])
    return "%d shipped files: %s; bills of materials of %d packages: %s" % (
        count, "%d objections" % len(found) if found else "no path of the build, hashes as listed",
        len(bills), "%d objections" % len(wrong) if wrong else verdict), found + wrong


def report(paths, *folders):
    """The same for `ninja deb` and `ninja rpm`, which print it."""
    try:
        return examined(paths, folders)
    except NotRun as reason:
        return "shipped files: not examined: %s" % reason, []


@proof
def shipped_packages():
    """deb/ and rpm/: bills of materials are valid and of the very bytes; no path of the build"""
    found, said = [], []
    for folder in ("deb", "rpm"):
        paths = [os.path.join(at, leaf) for at, _, leaves in os.walk(folder) for leaf in leaves]
        if binary(paths):
            verdict, wrong = examined(paths, [folder], True)
            said.append("%s: %s" % (folder, verdict))
            found += wrong
    if found:
        raise Failed("\n".join(found))
    if not said:
        raise NotRun("deb/ and rpm/ hold no packages: ninja deb and ninja rpm make them")
    return "; ".join(said)
