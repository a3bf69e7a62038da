# SPDX-License-Identifier: Apache-2.0
"""What a channel holds: pure functions over sets of packages, without files or processes.

A publication is one set of packages. A channel holds the newest publications, and its indices
name the packages of all of them, so that a client can stay with, or go back to, an earlier one.
A package is known by the SHA-256 of the file that was given, whatever is made of it afterwards.
"""

import re
from typing import Dict, List, NamedTuple, Optional

from ansible.module_utils.package_repository.process import RepositoryError

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
SHA256 = re.compile(r"[0-9a-f]{64}")


class Package(NamedTuple):
    """One package file as it was given."""

    sha256: str
    file: str
    name: str
    version: str
    architecture: str

    def __str__(self) -> str:
        return "%s %s %s" % (self.name, self.version, self.architecture)


class Holding(NamedTuple):
    """The publications of a channel, the newest first, as hashes; and the packages by hash."""

    sets: List[List[str]]
    packages: Dict[str, Package]


EMPTY = Holding([], {})


def duration(text: str) -> int:
    """Seconds of '90s', '30m', '36h', '7d' or '2w'; 0 of '0' or ''."""
    if text in ("", "0"):
        return 0
    found = re.fullmatch(r"([1-9]\d*)([smhdw])", text)
    if not found:
        raise RepositoryError("'%s' is no duration: give a number and one of s, m, h, d, w, as in "
                              "'7d', or '0' for none" % text)
    return int(found.group(1)) * UNITS[found.group(2)]


def sum_line(text: str):
    """(hash, file name) of a line as sha256sum writes it; the name may lack."""
    words = text.split(None, 1)
    if not words or not SHA256.fullmatch(words[0].lower()):
        raise RepositoryError("'%s' does not begin with a SHA-256 sum of 64 hexadecimal digits; "
                              "give lines as sha256sum writes them" % text)
    return words[0].lower(), (words[1].lstrip("*") if len(words) > 1 else "")


def promoted(lines: List[str], source: Holding, channel: str) -> List[Package]:
    """The packages of a channel that these lines name: each by its hash, and by its name where
    the line has one."""
    found = []
    for line in lines:
        digest, name = sum_line(line)
        package = source.packages.get(digest)
        if package is None:
            raise RepositoryError("the channel %s holds no package with the SHA-256 sum %s%s" % (
                channel, digest, " (%s)" % name if name else ""))
        if name and name != package.file:
            raise RepositoryError("the package with the SHA-256 sum %s is %s in the channel %s, "
                                  "not %s" % (digest, package.file, channel, name))
        found.append(package)
    return found


def _identity(package: Package):
    return package.name, package.version, package.architecture


def _check_given(given: List[Package]):
    seen: Dict[tuple, Package] = {}
    for package in given:
        other = seen.setdefault(_identity(package), package)
        if other.sha256 != package.sha256:
            raise RepositoryError("%s is given twice with different contents: %s and %s" % (
                package, other.file, package.file))


def following(current: Holding, given: List[Package], keep: int, replace: bool,
              withdraw: Optional[List[str]] = None) -> Holding:
    """What the channel holds after these packages were published.

    keep: how many publications stay, 0 for all. replace: a package may take the place of another
    of the same name, version and architecture; else that is an error, for clients that have the
    old one would never learn of the new one. withdraw: lines of packages that leave the channel.
    """
    _check_given(given)
    known = dict(current.packages)
    known.update((package.sha256, package) for package in given)
    newest = sorted({package.sha256 for package in given})
    sets = [one for one in current.sets if one != newest]
    if newest:
        sets.insert(0, newest)
    gone = {sum_line(line)[0] for line in withdraw or ()}
    taken = {_identity(package): package for package in given}
    kept = []
    for one in sets[:keep or None]:
        for digest in one:
            new = taken.get(_identity(known[digest]))
            if new and new.sha256 != digest and digest not in gone:
                if not replace:
                    raise RepositoryError(
                        "%s is published already with other contents (%s, given %s): a new build "
                        "needs a new version" % (new, digest[:12], new.sha256[:12]))
                gone.add(digest)
        kept.append([digest for digest in one if digest not in gone])
    kept = [one for one in kept if one]
    held = {digest for one in kept for digest in one}
    return Holding(kept, {digest: known[digest] for digest in sorted(held)})


def listing(holding: Holding) -> str:
    """One line per package, for people and for --diff."""
    return "".join("%s  %s\n" % (package.sha256, package) for package in sorted(
        holding.packages.values(), key=lambda p: (p.name, p.version, p.architecture)))


def sums(holding: Holding, only: Optional[List[str]] = None) -> str:
    """The packages as sha256sum would write them: what a promotion takes."""
    chosen = holding.packages if only is None else only
    return "".join(sorted(("%s  %s\n" % (digest, holding.packages[digest].file)
                           for digest in chosen), key=lambda line: line.split()[1]))
