# SPDX-License-Identifier: Apache-2.0
"""What may happen to a published repository, and the words in which apt and dnf refuse it.

Each attack changes the files of the one package `tiny` in the channel nightly, below the folder of
the format. The quick tests and the proof package-repository go through the same tables.
"""

import glob
import gzip
import lzma
import os
import re
import shutil
from typing import Callable, NamedTuple

import repository_fixtures as fixtures


class Attack(NamedTuple):
    """what: as a sentence. change(top, key, original): does it. refusal: the client's words.
    late: the indices are accepted, the package is refused."""

    what: str
    change: Callable
    refusal: str
    late: bool = False


def replaced(path, old, new, count=1):
    """Other bytes in a file; hard links of it keep the old ones."""
    with open(path, "rb") as stream:
        data = stream.read()
    assert old in data, path
    rewritten(path, data.replace(old, new, count))


def rewritten(path, data):
    mode = os.stat(path).st_mode
    os.unlink(path)
    with open(path, "wb") as stream:
        stream.write(data)
    os.chmod(path, mode)


def flipped(path):
    """One bit in the middle."""
    with open(path, "rb") as stream:
        data = bytearray(stream.read())
    data[len(data) // 2] ^= 1
    rewritten(path, bytes(data))


def pooled(top):
    """The file of the package that nightly publishes."""
    found = [path for path in glob.glob(os.path.join(top, "pool/*/*/tiny*"))]
    assert len(found) == 1, found
    return found[0]


def nightly(top):
    link = {"deb": "dists/nightly", "rpm": "nightly"}[os.path.basename(top)]
    return os.path.realpath(os.path.join(top, link))


# ---- deb -------------------------------------------------------------------------------------


def _packages(top, _key, _original):
    """Another description in every form of Packages, also where by-hash has it."""
    for folder in glob.glob(os.path.join(nightly(top), "main/binary-*")):
        plain = os.path.join(folder, "Packages")
        with open(plain, "rb") as stream:
            text = stream.read()
        assert b"for tests" in text
        text = text.replace(b"for tests", b"for thief")
        for suffix, data in (("", text), (".gz", gzip.compress(text, mtime=0)),
                             (".xz", lzma.compress(text))):
            before = fixtures.sha256(plain + suffix)
            rewritten(os.path.join(folder, "by-hash/SHA256", before), data)
            rewritten(plain + suffix, data)


def _in_release(top, _key, _original):
    path = os.path.join(nightly(top), "InRelease")
    replaced(path, b"Components: main", b"Components: mail")


def _no_signature(top, _key, _original):
    for name in ("InRelease", "Release.gpg"):
        os.unlink(os.path.join(nightly(top), name))


APT = (
    Attack("a tampered package", lambda top, *_: flipped(pooled(top)), "Hash Sum mismatch", True),
    Attack("a tampered Packages", _packages, "Hash Sum mismatch|unexpected size"),
    Attack("a tampered InRelease", _in_release, "signatures were invalid: BADSIG"),
    Attack("an unsigned Release", _no_signature, "is not signed"),
)


# ---- rpm -------------------------------------------------------------------------------------


def _primary(top, _key, _original):
    path, = glob.glob(os.path.join(nightly(top), "repodata/*-primary.xml.gz"))
    with open(path, "rb") as stream:
        text = gzip.decompress(stream.read())
    rewritten(path, gzip.compress(text.replace(b"for tests", b"for thief"), mtime=0))


def _repomd(top, _key, _original):
    path = os.path.join(nightly(top), "repodata/repomd.xml")
    with open(path, "rb") as stream:
        size = re.search(rb"<size>\d+</size>", stream.read()).group()
    replaced(path, size, b"<size>1</size>")


def _no_repomd_signature(top, _key, _original):
    os.unlink(os.path.join(nightly(top), "repodata/repomd.xml.asc"))


def indexed(top, key, package):
    """Right indices, signed with the right key, of another file in the place of the package."""
    target, folder = pooled(top), nightly(top)
    rewritten(target, b"")
    shutil.copyfile(package, target)
    shutil.rmtree(os.path.join(folder, "repodata"))
    listed = os.path.join(folder, "listed")
    with open(listed, "w", encoding="utf-8") as stream:
        stream.write(os.path.relpath(target, top) + "\n")
    fixtures.output(["createrepo_c", "--quiet", "--no-database", "--pkglist", listed, folder])
    os.unlink(listed)
    index = os.path.join(folder, "repodata/repomd.xml")
    fixtures.output(["gpg", "--homedir", key.home, "--batch", "--armor", "--local-user",
                     key.fingerprint, "--detach-sign", "--output", index + ".asc", index])


def _foreign(top, key, original):
    """The package has the signature of a key that nobody was told of."""
    other = fixtures.ThrowAwayKey("Foreign")
    try:
        copy = shutil.copy(original, other.home)
        fixtures.output(["rpmsign", "--define", "_gpg_name " + other.fingerprint, "--define",
                         "_gpg_path " + other.home, "--define", "__gpg /usr/bin/gpg", "--addsign",
                         copy])
        indexed(top, key, copy)
    finally:
        other.remove()


DNF = (
    Attack("a tampered package", lambda top, *_: flipped(pooled(top)),
           "incorrect checksum|checksum doesn't match", True),
    Attack("a tampered primary.xml", _primary, "checksum doesn't match|Checksum error"),
    Attack("a tampered repomd.xml", _repomd, "Bad GPG signature"),
    Attack("an unsigned repomd.xml", _no_repomd_signature, "GPG verification is enabled, but GPG "
           "signature is not available"),
    Attack("an unsigned rpm", indexed, "is not signed", True),
    Attack("an rpm signed by another key", _foreign,
           "(?i)public key .*is not installed|not correct for this package", True),
)

# Of a repository that another key signed, or whose validity is over.
OTHER_KEY = {"deb": "NO_PUBKEY", "rpm": "Bad GPG signature"}
EXPIRED = {"deb": r"is expired \(invalid since", "rpm": "Bad GPG signature"}
