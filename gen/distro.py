# SPDX-License-Identifier: Apache-2.0
"""Which distribution this is, and how a package is installed there."""

from dataclasses import dataclass, replace
from typing import Dict

from gen.deps import BLAS_PACKAGES, BY_NAME


@dataclass(frozen=True)
class Distro:
    """`id`, `release` and `codename` ('' where there is none) as in /etc/os-release; `family` is
    'debian', 'fedora' or 'other'."""

    id: str
    release: str
    family: str
    name: str
    codename: str = ""
    suffix: str = ""  # ":arm64", where packages of another architecture are needed

    def lacks(self, dependency: str) -> bool:
        """Known not to be packaged here: RHEL and its rebuilds, or Fedora, do not have it."""
        release = {"debian": "debian-12", "fedora": "rhel-9" if self.id != "fedora" else
                   "fedora-42"}.get(self.family, "")
        return BY_NAME[dependency].versions.get(release, ("main", ""))[0] == "absent"

    def install_hint(self, dependency: str, kind: str = "") -> str:
        """One sentence that names the package to install here; `kind` is that of a BLAS."""
        row = BY_NAME[dependency]
        debian, fedora = row.debian, row.fedora
        repository = row.versions.get("rhel-9", ("main", ""))[0]
        if kind in BLAS_PACKAGES:
            debian, fedora, repository = BLAS_PACKAGES[kind]
        if self.family == "debian":
            if not debian:
                return "Debian's switchable BLAS is --blas=generic"
            words = [word + self.suffix for word in debian.split()]
            return "install it with: apt-get install %s%s" % (" ".join(words), (
                " (non-free)" if row.use == "non-free" else ""))
        if self.family == "fedora":
            if self.lacks(dependency):
                return "package %s, which this distribution does not have" % fedora
            shown = " (repository %s)" % repository.upper()
            return "install it with: dnf install %s%s" % (
                fedora, shown if self.id != "fedora" and repository != "main" else "")
        return "its package is called %s on Fedora" % fedora if not debian else (
            "its package is called %s on Debian and %s on Fedora" % (debian, fedora))


DEBIAN_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "i686": "i386", "arm": "armhf",
                        "powerpc64le": "ppc64el"}


def for_triplet(distro: Distro, triplet: str) -> Distro:
    """The same distribution, naming packages of the architecture a cross build is for."""
    machine = triplet.split("-")[0]
    return replace(distro, suffix=":" + DEBIAN_ARCHITECTURES.get(machine, machine))


def parse_os_release(text: str) -> Distro:
    fields: Dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and not key.startswith("#"):
            fields[key] = value.strip("\"'")
    words = [fields.get("ID", "")] + fields.get("ID_LIKE", "").split()
    family = "other"
    if "debian" in words or "ubuntu" in words:
        family = "debian"
    elif "fedora" in words or "rhel" in words or "centos" in words:
        family = "fedora"
    return Distro(fields.get("ID", "unknown"), fields.get("VERSION_ID", ""), family,
                  fields.get("PRETTY_NAME", "an unknown system"),
                  fields.get("VERSION_CODENAME", ""))


def this_distro(path: str = "/etc/os-release") -> Distro:
    try:
        with open(path, encoding="utf-8") as stream:
            return parse_os_release(stream.read())
    except OSError:
        return Distro("unknown", "", "other", "an unknown system")
