# SPDX-License-Identifier: Apache-2.0
"""What `ninja deb` made, as material for images: the packages, what they need of the distribution,
their date, and the commit that they were built from."""

import glob
import hashlib
import io
import os
import re
import subprocess
import tarfile
from dataclasses import dataclass
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

from package_build import Unusable, digest

ROOTS = ("python3-treenail", "treenail-tools")  # with what these depend on
_FIELDS = ("Package", "Version", "Architecture", "Source", "Pre-Depends", "Depends", "Recommends",
           "Provides")


@dataclass(frozen=True)
class Package:
    """One .deb. date: seconds since 1970, when dpkg-deb packed it by its SOURCE_DATE_EPOCH."""

    path: str
    name: str
    version: str
    architecture: str
    source: str
    needs: Tuple[Tuple[str, ...], ...]  # of each relation the alternatives
    provides: Tuple[str, ...]
    date: int


def relations(text: str) -> Tuple[Tuple[str, ...], ...]:
    """The names in a field such as Depends: of each relation the alternatives, without versions
    and qualifiers."""
    result = []
    for relation in text.replace("\n", " ").split(","):
        names = tuple(re.sub(r"[(\[<].*", "", word).strip().split(":")[0]
                      for word in relation.split("|"))
        if any(names):
            result.append(names)
    return tuple(result)


def packed_at(path: str) -> int:
    """The time in the first member's header of the ar archive that a .deb is."""
    with open(path, "rb") as stream:
        head = stream.read(68)
    stamp = head[24:36].strip()
    if not head.startswith(b"!<arch>\n") or not stamp.isdigit():
        raise Unusable("%s is no Debian package" % path)
    return int(stamp)


def read_package(path: str) -> Package:
    """The control fields of a .deb."""
    stamp = packed_at(path)
    done = subprocess.run(["dpkg-deb", "-f", path, *_FIELDS], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode:
        raise Unusable("%s: %s" % (path, done.stderr.strip()))
    fields: Dict[str, str] = {}
    for line in done.stdout.splitlines():
        if not line.startswith((" ", "\t")):
            key, _, value = line.partition(":")
            fields[key] = value.strip()
    needs = tuple(names for field in ("Pre-Depends", "Depends", "Recommends")
                  for names in relations(fields.get(field, "")))
    return Package(path, fields["Package"], fields["Version"], fields["Architecture"],
                   fields.get("Source", fields["Package"]).split()[0], needs,
                   tuple(names[0] for names in relations(fields.get("Provides", ""))), stamp)


def chosen(folder: str, added: Sequence[str] = ()) -> List[Package]:
    """The packages in `folder` that an image gets: ROOTS, `added`, and their dependencies there."""
    paths = sorted(path for path in glob.glob(os.path.join(folder, "*.deb"))
                   if "-dbgsym_" not in path)
    if not paths:
        raise Unusable("%s holds no packages: ninja deb makes them, or name another directory with "
                       "--packages" % folder)
    there: Dict[str, Package] = {}
    for path in paths:
        package = read_package(path)
        other = there.setdefault(package.name, package)
        if other is not package:
            raise Unusable("%s holds %s in two versions or architectures, %s and %s: keep one" % (
                folder, package.name, os.path.basename(other.path), os.path.basename(path)))
    wanted, names = [*ROOTS, *added], []
    while wanted:
        name = wanted.pop()
        if name in names:
            continue
        if name not in there:
            raise Unusable("%s holds no package %s; it holds: %s" % (
                folder, name, ", ".join(sorted(there))))
        names.append(name)
        wanted += [need[0] for need in there[name].needs if need[0] in there]
    found = [there[name] for name in sorted(names)]
    architecture_of(found)
    return found


def architecture_of(packages: Iterable[Package]) -> str:
    """Debian's name of the one architecture that they are for."""
    found = sorted({p.architecture for p in packages} - {"all"})
    if len(found) != 1:
        raise Unusable("the packages are for %s: an image is for one architecture" % (
            " and ".join(found) or "no architecture in particular"))
    return found[0]


def needed(packages: Sequence[Package]) -> List[str]:
    """The packages of the distribution that these need, the first of alternatives."""
    own = {name for p in packages for name in (p.name, *p.provides)}
    return sorted({names[0] for p in packages for names in p.needs if not own & set(names)})


def paragraph_sums(text: str) -> Dict[str, str]:
    """file name -> digest, of the field Checksums-Sha256 of a .buildinfo or .dsc."""
    field = re.search(r"^Checksums-Sha256:[ \t]*\n((?: .+\n?)+)", text, re.MULTILINE)
    rows = [line.split() for line in field.group(1).splitlines()] if field else []
    return {row[2]: row[0] for row in rows if len(row) == 3}


def _sums(path: str) -> Dict[str, str]:
    with open(path, encoding="utf-8", errors="replace") as stream:
        return paragraph_sums(stream.read())


def source_archives(folder: str, packages: Sequence[Package]) -> List[str]:
    """The source archives that these packages were built from, by the checksums in .buildinfo and
    .dsc; none where these are not there or tell of other files."""
    def same(name: str, expected: Optional[str]) -> bool:
        path = os.path.join(folder, name)
        return bool(expected) and os.path.exists(path) and digest(path) == expected

    for path in sorted(glob.glob(os.path.join(folder, "*.buildinfo"))):
        sums = _sums(path)
        names = [os.path.basename(p.path) for p in packages]
        sources = [name for name in sums if name.endswith(".dsc")]
        if len(sources) == 1 and all(same(n, sums.get(n)) for n in names + sources):
            archives = _sums(os.path.join(folder, sources[0]))
            if archives and all(same(n, archives[n]) for n in archives):
                return [os.path.join(folder, name) for name in sorted(archives)]
    return []


def archive_files(paths: Iterable[str]) -> Tuple[Dict[str, str], int]:
    """(name -> git's hash of the blob, of what is in the source archives; the latest time there).
    What dist.py adds, PKG-INFO, is no part of a commit."""
    found, latest = {}, 0
    for path in paths:
        with tarfile.open(path) as archive:
            for member in archive:
                latest = max(latest, int(member.mtime))
                name = re.sub(r"^treenail-[^/]*/", "", member.name)
                if member.issym():
                    data = member.linkname.encode()
                elif member.isfile():
                    stream = archive.extractfile(member)
                    data = stream.read() if stream else b""
                else:
                    continue
                found[name] = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    found.pop("PKG-INFO", None)
    return found, latest


def _git(source: str, *words: str) -> str:
    done = subprocess.run(["git", "-C", source, *words], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


def commit_of(source: str, files: Dict[str, str], latest: int) -> str:
    """The commit of the repository `source` that holds exactly these files, or "". Archives of
    `ninja dist` bear the time of their commit; HEAD is asked, too."""
    rows = [line.split() for line in _git(source, "rev-list", "--all", "--timestamp").splitlines()]
    candidates = [_git(source, "rev-parse", "HEAD").strip()]
    candidates += [row[1] for row in rows if row[0] == str(latest)]
    for commit in filter(None, dict.fromkeys(candidates)):
        tree = {}
        for entry in _git(source, "ls-tree", "-r", "-z", commit).split("\0"):
            if entry:
                facts, _, name = entry.partition("\t")
                tree[name] = facts.split()[2]
        if tree == files:
            return commit
    return ""


def revision(folder: str, packages: Sequence[Package], source: str) -> str:
    """What the packages were built from: the commit of `source` with the same files, else the
    digest of the source archive; never a guess."""
    archives = source_archives(folder, packages)
    if not archives:
        raise Unusable(
            "%s does not say what the packages were built from: there is no .buildinfo and .dsc "
            "with their checksums. Take the directory that ninja deb made, or give --revision"
            % folder)
    commit = commit_of(source, *archive_files(archives))
    original = [path for path in archives if ".orig.tar." in path] or archives
    return commit or "sha256:" + digest(original[0])


def inputs(packages: Iterable[Package], words: Iterable[str]) -> str:
    """A digest of what an image is made of: the same packages and words make the same image."""
    total = io.StringIO()
    for package in packages:
        total.write("%s %s\n" % (digest(package.path), os.path.basename(package.path)))
    total.write("\n".join(words))
    return hashlib.sha256(total.getvalue().encode()).hexdigest()
