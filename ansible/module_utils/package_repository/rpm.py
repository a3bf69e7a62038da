# SPDX-License-Identifier: Apache-2.0
"""Repositories of RPM packages: indices by createrepo_c, packages signed by rpmsign.

Each package is signed on a copy. RPM's indices know no end of validity, so the signature of a
channel that has one expires itself, which dnf refuses like a wrong one.
"""

import glob
import os
import re
import shutil
import tempfile

from ansible.module_utils.package_repository.process import RepositoryError, output
from ansible.module_utils.package_repository.publication import Package
from ansible.module_utils.package_repository.store import write

KIND = "rpm"
SUFFIX = ".rpm"
PROGRAMS = ("rpm", "rpmsign", "rpmkeys", "createrepo_c")
LINKS = {"release": "release", "nightly": "nightly"}
QUERY = "%{NAME}\\t%{EPOCHNUM}:%{VERSION}-%{RELEASE}\\t%{ARCH}\\t%{SOURCERPM}\\n"


def named(sha256, file):
    """The package that a file name speaks of, for where the file itself is not at hand."""
    found = re.fullmatch(r"(.+)-([^-]+-[^-]+)\.([^.-]+)\.rpm", file)
    if not found:
        raise RepositoryError("%s is not called NAME-VERSION-RELEASE.ARCHITECTURE%s" % (
            file, SUFFIX))
    return Package(sha256, file, found.group(1), "0:" + found.group(2), found.group(3))


def inspected(sha256, path):
    """The package in a file. A source package counts as architecture src."""
    text = output(["rpm", "--query", "--package", "--nosignature", "--queryformat", QUERY, path],
                  what="read the package").decode()
    name, version, architecture, source = text.strip("\n").split("\t")
    return Package(sha256, os.path.basename(path), name, version,
                   "src" if source == "(none)" else architecture)


def seal(sha256, key):
    """The folder in the pool: another key makes another file."""
    return "%s-%s" % (sha256, key.fingerprint[-16:].lower())


def store(source, target, key):
    """Fills the pool's file: a copy, signed, and verified with the public key alone."""
    shutil.copyfile(source, target)
    output(["rpmsign", "--define", "_gpg_name " + key.fingerprint, "--define", "_gpg_path " +
            key.home, "--define", "__gpg " + (shutil.which("gpg") or "gpg"), "--addsign", target],
           what="sign " + os.path.basename(source))
    with tempfile.TemporaryDirectory() as scratch:
        public = os.path.join(scratch, "key.asc")
        write(public, key.public().encode())
        base = ["rpmkeys", "--dbpath", os.path.join(scratch, "db")]
        output([*base, "--import", public], what="read the public key")
        said = output([*base, "--checksig", "--verbose", target], what="verify what was signed")
    if not re.search(rb"Signature, key ID [0-9a-f]+: OK", said):
        raise RepositoryError("rpmsign did not sign %s: %s" % (
            os.path.basename(source), said.decode(errors="replace")))


def write_indices(top, folder, _channel, packages, settings, key, now):
    """repodata with its signature in `folder`; returns the indices that are called by their
    hashes."""
    # The snapshot comes to lie three folders below the pool's; while it is written, one.
    pool = os.path.join(folder, "pool")
    os.symlink(os.path.join(top, "pool"), pool)
    names = sorted(package["place"] for package in packages)
    # In the folder, which the next run removes where this one is killed.
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder) as listed:
        listed.write("".join(name + "\n" for name in names))
        listed.flush()
        output(["createrepo_c", "--quiet", "--no-database", "--error-exit-val", "--pkglist",
                listed.name, "--general-compress-type", "gz", "--revision", "%d" % now, folder],
               what="index the packages")
    os.unlink(pool)
    os.symlink("../../../pool", pool)
    index = os.path.join(folder, "repodata/repomd.xml")
    key.sign_detached(index, index + ".asc", settings["valid_for"])
    return sorted(os.path.relpath(path, folder)
                  for path in glob.glob(os.path.join(folder, "repodata", "*-*")))
