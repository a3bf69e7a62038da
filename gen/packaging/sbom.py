# SPDX-License-Identifier: Apache-2.0
"""Write the bill of materials of one binary package: SPDX 2.3, JSON.

  sbom.py --build BUILD --root debian/libtreenail1 --name libtreenail1 --output \\
          debian/libtreenail1/usr/share/doc/libtreenail1/libtreenail1.amd64.spdx.json
  sbom.py --build BUILD --root BUILDROOT --parts runtime --name treenail-libs --output FILE

It is run after strip and dwz, on the directory that becomes the package. Each shipped file is
listed with the hashes of its bytes there and what it was made from. The install manifest says which
output of the build it is, ninja's graph and log of dependencies which sources and headers went into
that, its dynamic section which libraries it needs. Headers of the system are summarised as the
packages they belong to. --parts takes, from a directory that several packages share, the files of
these parts of the manifest. Where a package can be installed for two architectures at once
(Multi-Arch: same), the name of the bill must tell the architecture, for its contents differ.

Licences are read from the files' SPDX-License-Identifier lines. A file without one has the licence
that debian/copyright gives it, and where that is not there, the one of WITHOUT_A_LINE or of the
whole tree. Same build, same bytes: the time is SOURCE_DATE_EPOCH, the namespace a hash of the rest.
Links have no bytes of their own and are not listed.
"""

import argparse
import datetime
import gzip
import hashlib
import json
import os
import re
import shutil
import sys
import uuid
from typing import Any, Dict, List, Set, Tuple

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(SOURCE, "gen/tools"), SOURCE]
from archive import epoch, write_whole  # noqa: E402  (the path must be set first)
from sbom_files import HTML, Shipped, read_manifest, shipped_files  # noqa: E402
from sbom_graph import Graph, Origin, Unusable, below, run  # noqa: E402
from sbom_licences import UNKNOWN, Licences, together  # noqa: E402
from gen import identity  # noqa: E402
from gen.distro import this_distro  # noqa: E402

# Libraries of templates, which become part of what includes them, by a folder that all their
# headers lie in. Of other headers only declarations and a few inline functions are used; those of
# libstdc++ and libgcc put no terms on the result (GCC Runtime Library Exception).
COMPILED_IN = {"pybind11": "BSD-3-Clause", "Eigen": "MPL-2.0"}
_NEEDED = re.compile(r"\(NEEDED\).*\[(.*)\]")


# ---- packages of the system ------------------------------------------------------------------


def owners(paths: Set[str]) -> Dict[str, Tuple[str, str]]:
    """Header -> the installed package it belongs to and its version. A header that belongs to none
    is filed under the folder below include/."""
    found: Dict[str, Tuple[str, str]] = {}
    ordered = sorted(paths)
    if shutil.which("dpkg-query") and this_distro().family == "debian":
        package: Dict[str, str] = {}
        for start in range(0, len(ordered), 500):
            for line in run(["dpkg-query", "-S", *ordered[start:start + 500]],
                            may_fail=True).splitlines():
                names, _, path = line.partition(": ")
                package.setdefault(path, names.split(", ")[0])
        names = sorted(set(package.values()))
        versions = dict(line.split(" ", 1) for line in run(
            ["dpkg-query", "-W", "-f", "${binary:Package} ${Version}\n", *names],
            may_fail=True).splitlines()) if names else {}
        for path, name in package.items():
            found[path] = (name.split(":")[0], versions.get(name, ""))
    elif shutil.which("rpm"):
        for start in range(0, len(ordered), 500):
            part = ordered[start:start + 500]
            lines = run(["rpm", "-qf", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\n", *part],
                        may_fail=True).splitlines()
            for path, line in zip(part, lines if len(lines) == len(part) else ()):
                words = line.split()
                if len(words) == 2:
                    found[path] = (words[0], words[1])
    for path in ordered:
        if path not in found:
            words = path.split("/include/", 1)[-1].split("/")
            found[path] = ("headers of " + (words[0] if len(words) > 1 else "include"), "")
    return found


def compiled_in(header: str) -> str:
    """The library of COMPILED_IN that a header belongs to, or ''."""
    folders = header.split("/")[:-1]
    return next((name for name in COMPILED_IN if name in folders), "")


def needed(path: str) -> List[str]:
    return sorted(set(_NEEDED.findall(run(["readelf", "-dW", path]))))


# ---- the document ----------------------------------------------------------------------------


def checksums(data: bytes) -> List[Dict[str, str]]:
    return [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
            {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}]


def reference(kind: str, name: str) -> str:
    """An identifier: readable, and no other name's."""
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", name.rsplit("/", 1)[-1])
    return "SPDXRef-%s-%s-%s" % (kind, readable, hashlib.sha256(name.encode()).hexdigest()[:12])


def file_type(item: Shipped) -> str:
    if item.elf or item.compiled:
        return "BINARY"
    if item.name.startswith("usr/share/doc/") or "/man/" in item.name:
        return "DOCUMENTATION"
    return "SOURCE" if item.name.endswith((".py", ".pyi", ".h", ".hpp")) else "TEXT"


class Bill:
    """The document while it is put together."""

    def __init__(self, graph: Graph, entries: Dict[str, Dict[str, Any]], licences: Licences):
        self.graph, self.licences = graph, licences
        self.products = {e["from"]: name for name, e in entries.items() if "from" in e}
        self.files: Dict[str, Dict[str, Any]] = {}
        self.packages: Dict[str, Dict[str, Any]] = {}
        self.relations: Set[Tuple[str, str, str]] = set()
        self.systems: Dict[str, Tuple[str, str]] = {}

    def relate(self, one: str, kind: str, other: str) -> None:
        self.relations.add((one, kind, other))

    def source_file(self, name: str) -> str:
        """Its identifier; the file is listed on first use."""
        key = reference("Source", name)
        if key not in self.files:
            with open(os.path.join(SOURCE, name), "rb") as stream:
                data = stream.read()
            licence = self.licences.of(name)
            self.files[key] = {
                "SPDXID": key, "fileName": "./" + name, "checksums": checksums(data),
                "fileTypes": ["SOURCE"], "licenseConcluded": licence,
                "licenseInfoInFiles": [licence], "copyrightText": UNKNOWN}
        return key

    def system_package(self, name: str, version: str, licence: str, comment: str) -> str:
        key = reference("System", name)
        package = {"SPDXID": key, "name": name, "downloadLocation": UNKNOWN,
                   "filesAnalyzed": False, "licenseConcluded": licence,
                   "licenseDeclared": licence, "copyrightText": UNKNOWN, "comment": comment}
        if version:
            package["versionInfo"] = version
        self.packages[key] = package
        return key

    def headers(self, key: str, paths: Set[str]) -> Set[str]:
        """Relates a shipped file to the packages of its headers; licences of those compiled in."""
        licences = set()
        for path in sorted(paths):
            name, version = self.systems[path]
            library = compiled_in(path)
            if library:
                licences.add(COMPILED_IN[library])
                package = self.system_package(
                    name, version, COMPILED_IN[library],
                    "Templates of %s: what is used of them is compiled in." % library)
                self.relate(key, "GENERATED_FROM", package)
        for path in sorted(paths):
            name, version = self.systems[path]
            other = reference("System", name)
            if other not in self.packages:
                self.system_package(name, version, UNKNOWN, "Headers that were included.")
            if (key, "GENERATED_FROM", other) not in self.relations:
                self.relate(other, "BUILD_DEPENDENCY_OF", key)
        return licences

    def libraries(self, key: str, item: Shipped, package: str, here: Dict[str, str]) -> None:
        """Relates a shipped ELF file to what it needs."""
        for soname in needed(item.path):
            if soname in here:
                self.relate(key, "DYNAMIC_LINK", here[soname])
                continue
            other = reference("System", soname)
            if other not in self.packages:
                ours = soname.startswith("libtreenail.so.")
                self.system_package(soname, "", self.licences.whole if ours else UNKNOWN,
                                    "A shared library, by its soname.")
            self.relate(key, "DYNAMIC_LINK", other)
            self.relate(package, "DEPENDS_ON", other)

    def shipped(self, item: Shipped, package: str, here: Dict[str, str]) -> None:
        key = here[item.name]
        entry: Dict[str, Any] = {
            "SPDXID": key, "fileName": "./" + item.name, "checksums": checksums(item.data),
            "fileTypes": [file_type(item)], "licenseConcluded": UNKNOWN,
            "licenseInfoInFiles": [UNKNOWN], "copyrightText": UNKNOWN}
        self.files[key] = entry
        self.relate(package, "CONTAINS", key)
        origin = Origin()
        if item.output:
            origin = self.graph.origin(item.output, set(self.products))
        elif HTML.match(item.name) and "/_static/" not in item.name:  # Sphinx brings _static
            origin.tree = set(tree_files("docs"))
        elif item.data == self.licence_text():
            origin.tree = {"LICENSE"}
        licences = set()
        for name in sorted(origin.tree):
            source = self.source_file(name)
            licences.add(self.files[source]["licenseConcluded"])
            self.relate(key, "GENERATED_FROM", source)
        if item.compiled:
            self.relate(key, "GENERATED_FROM", here[item.compiled])
        licences |= self.headers(key, origin.system)
        if licences:
            entry["licenseInfoInFiles"] = sorted(licences)
            entry["licenseConcluded"] = together(licences)
        if item.elf:
            self.libraries(key, item, package, here)

    def licence_text(self) -> bytes:
        with open(os.path.join(SOURCE, "LICENSE"), "rb") as stream:
            return stream.read()


def tree_files(folder: str) -> List[str]:
    found = []
    for inner, folders, leaves in os.walk(os.path.join(SOURCE, folder)):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found += [os.path.relpath(os.path.join(inner, leaf), SOURCE) for leaf in leaves]
    return sorted(found)


def supplier() -> str:
    name, _, address = identity.MAINTAINER.partition(" <")
    return "Organization: %s (%s)" % (name, address.rstrip(">"))


def sonames(items: List[Shipped], keys: Dict[str, str],
            entries: Dict[str, Dict[str, Any]]) -> Dict[str, str]:
    """Names under which files of the package are needed, links among them -> identifiers."""
    found = dict(keys)
    for item in items:
        if item.elf:
            found[os.path.basename(item.name)] = keys[item.name]
    for name, entry in entries.items():
        if entry["kind"] == "link" and entry["target"] in found:
            found.setdefault(os.path.basename(name), found[entry["target"]])
    return found


def main_package(options: argparse.Namespace, items: List[Shipped], bill: Bill,
                 keys: Dict[str, str]) -> Dict[str, Any]:
    listed = [bill.files[keys[item.name]] for item in items]
    digests = sorted(entry["checksums"][0]["checksumValue"] for entry in listed)
    code: Dict[str, Any] = {"packageVerificationCodeValue": hashlib.sha1(
        "".join(digests).encode()).hexdigest()}
    root = os.path.realpath(options.root)
    if below(os.path.realpath(options.output), root):
        code["packageVerificationCodeExcludedFiles"] = [
            "./" + os.path.relpath(os.path.realpath(options.output), root)]
    inside = sorted({x for e in listed for x in e["licenseInfoInFiles"]} - {UNKNOWN})
    concluded = {e["licenseConcluded"] for e in listed}
    package = {
        "SPDXID": "SPDXRef-Package", "name": options.name, "versionInfo": options.package_version,
        "downloadLocation": UNKNOWN, "filesAnalyzed": True, "supplier": supplier(),
        "packageVerificationCode": code, "licenseInfoFromFiles": inside or [UNKNOWN],
        "licenseConcluded": together(concluded), "licenseDeclared": bill.licences.whole,
        "copyrightText": UNKNOWN}
    if identity.HOMEPAGE:
        package["homepage"] = identity.HOMEPAGE
    return package


def document(options: argparse.Namespace) -> Dict[str, Any]:
    with open(os.path.join(SOURCE, "VERSION"), encoding="utf-8") as stream:
        version = stream.read().strip()
    options.package_version = options.package_version or version
    entries = read_manifest(options.build)
    items = shipped_files(options.root, options.name, entries, options.output,
                          set(filter(None, options.parts.split(","))))
    bill = Bill(Graph(options.build, options.ninja), entries, Licences(SOURCE))
    keys = {item.name: reference("File", item.name) for item in items}
    here = sonames(items, keys, entries)
    bill.systems = owners({path for item in items if item.output for path in bill.graph.origin(
        item.output, set(bill.products)).system})
    for item in items:
        bill.shipped(item, "SPDXRef-Package", here)
    source = {"SPDXID": "SPDXRef-Upstream", "name": "treenail", "versionInfo": version,
              "downloadLocation": UNKNOWN, "filesAnalyzed": False, "supplier": supplier(),
              "licenseConcluded": bill.licences.whole, "licenseDeclared": bill.licences.whole,
              "copyrightText": UNKNOWN,
              "comment": "The source package; those of its files that went in are listed."}
    bill.relate("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-Package")
    bill.relate("SPDXRef-Package", "GENERATED_FROM", "SPDXRef-Upstream")
    created = datetime.datetime.fromtimestamp(epoch(SOURCE), datetime.timezone.utc)
    result = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": "%s-%s" % (options.name, options.package_version),
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: treenail-sbom-" + version]},
        "packages": [main_package(options, items, bill, keys), source] + [
            bill.packages[key] for key in sorted(bill.packages)],
        "files": [bill.files[key] for key in sorted(bill.files)],
        "relationships": [{"spdxElementId": one, "relationshipType": kind,
                           "relatedSpdxElement": other}
                          for one, kind, other in sorted(bill.relations)]}
    digest = hashlib.sha256(json.dumps(result, sort_keys=True).encode()).digest()
    result["documentNamespace"] = "urn:uuid:%s" % uuid.UUID(bytes=digest[:16], version=5)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="the build directory")
    parser.add_argument("--root", required=True, help="what becomes the package")
    parser.add_argument("--name", required=True, help="of the binary package")
    parser.add_argument("--output", required=True,
                        help="the file to write; a name that ends in .gz is compressed")
    parser.add_argument("--parts", default="",
                        help="only these parts of the install manifest, separated by commas")
    parser.add_argument("--package-version", default="", help="default: VERSION")
    parser.add_argument("--ninja", default="ninja")
    options = parser.parse_args()
    try:
        result = document(options)
    except Unusable as reason:
        sys.exit("sbom: %s" % reason)
    text = (json.dumps(result, indent=1, sort_keys=True) + "\n").encode()
    if options.output.endswith(".gz"):
        text = gzip.compress(text, mtime=0)
    os.umask(0o022)  # after what sets the modes of a package's files
    write_whole(options.output, text)
    print("wrote %s: %d files, %d packages, %d relationships" % (
        options.output, len(result["files"]), len(result["packages"]),
        len(result["relationships"])))


if __name__ == "__main__":
    main()
