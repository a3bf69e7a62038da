# SPDX-License-Identifier: Apache-2.0
"""Repositories of Debian packages: dists/<channel>, indices by apt-ftparchive, signed by gpg.

What is written follows Debian's "Repository Format": one component, main; indices for each
architecture, which hold the packages for all architectures too; by-hash; InRelease.
"""

import gzip
import lzma
import os
import re
import shutil

from ansible.module_utils.package_repository.process import RepositoryError, output
from ansible.module_utils.package_repository.publication import Package
from ansible.module_utils.package_repository.store import digest, write

KIND = "deb"
SUFFIX = ".deb"
PROGRAMS = ("dpkg-deb", "apt-ftparchive")
LINKS = {"release": "dists/release", "nightly": "dists/nightly"}
# Clients that have both channels take packages from this one only when they are asked to.
RESERVED = ("nightly",)


def named(sha256, file):
    """The package that a file name speaks of, for where the file itself is not at hand."""
    words = file[:-len(SUFFIX)].split("_")
    if len(words) != 3:
        raise RepositoryError("%s is not called NAME_VERSION_ARCHITECTURE%s" % (file, SUFFIX))
    return Package(sha256, file, words[0], words[1].replace("%3a", ":"), words[2])


def inspected(sha256, path):
    """The package in a file."""
    text = output(["dpkg-deb", "--field", path, "Package", "Version", "Architecture"],
                  what="read the package").decode()
    fields = dict(re.findall(r"^(\w+): (\S+)$", text, re.MULTILINE))
    return Package(sha256, os.path.basename(path), fields["Package"], fields["Version"],
                   fields["Architecture"])


def seal(sha256, _key):
    """The folder in the pool: the packages are published as they are."""
    return sha256


def store(source, target, _key):
    """Fills the pool's file."""
    shutil.copyfile(source, target)


def _stanzas(top, packages):
    """[(architecture, entry of Packages)], in the order of name, version and hash."""
    result = []
    for package in sorted(packages, key=lambda p: (p["name"], p["version"], p["sha256"])):
        text = output(["apt-ftparchive", "packages", os.path.dirname(package["place"])], cwd=top,
                      what="describe " + package["file"]).decode().strip("\n")
        if not text:
            raise RepositoryError("apt-ftparchive finds no package in " + package["place"])
        result.append((package["architecture"], text + "\n"))
    return result


def _release(folder, channel, settings):
    fields = {"Origin": settings["origin"], "Label": settings["label"], "Suite": channel,
              "Codename": channel, "Components": "main", "Acquire-By-Hash": "yes",
              "Architectures": " ".join(settings["architectures"]),
              "Description": settings["description"]}
    if channel in RESERVED:
        fields.update({"NotAutomatic": "yes", "ButAutomaticUpgrades": "yes"})
    if settings["valid_for"]:  # Valid-Until is so many seconds after Date, which is now
        fields["ValidTime"] = str(settings["valid_for"])
    words = [word for name, value in fields.items()
             for word in ("-o", "APT::FTPArchive::Release::%s=%s" % (name, value))]
    for name in ("MD5", "SHA1", "SHA512"):  # by-hash is by the best sum of Release
        words += ["-o", "APT::FTPArchive::Release::%s=false" % name]
    return output(["apt-ftparchive", *words, "release", "."], cwd=folder, what="write Release")


def write_indices(top, folder, channel, packages, settings, key, _now):
    """Packages, by-hash, Release and its signatures in `folder`; returns the indices that are
    called by their hashes."""
    stanzas = _stanzas(top, packages)
    indices = []
    for architecture in settings["architectures"]:
        text = "\n".join(entry for its, entry in stanzas if its in (architecture, "all")).encode()
        place = os.path.join("main", "binary-" + architecture)
        for suffix, data in (("", text), (".gz", gzip.compress(text, mtime=0)),
                             (".xz", lzma.compress(text))):
            path = os.path.join(folder, place, "Packages" + suffix)
            write(path, data)
            indices.append(os.path.join(place, "by-hash/SHA256", digest(path)))
            target = os.path.join(folder, indices[-1])
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if not os.path.exists(target):
                os.link(path, target)
    release = os.path.join(folder, "Release")
    write(release, _release(folder, channel, settings))
    key.sign_clear(release, os.path.join(folder, "InRelease"))
    key.sign_detached(release, release + ".gpg")
    return sorted(set(indices))
