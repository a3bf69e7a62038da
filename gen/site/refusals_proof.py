# SPDX-License-Identifier: Apache-2.0
"""Proof that the play refuses what cannot work with a sentence, before anything is built, and that
users of the stack that is there notice nothing."""

import json
import os
import shutil

from proving import Failed, proof, run, tracked_files
from stack_site import Site, built, skipped

# A name, options, words of the sentence.
REFUSALS = (
    ("mode", {"fftw__mode": "biuld"}, "fftw__mode is 'biuld'; it must be one of"),
    ("misspelt", {"fttw__mode": "skip"}, "did you mean fftw__mode?"),
    ("version", {"hdf5__version": "9.9"}, "whose sources are not known; known are 1.10.8"),
    ("checksum", {"fftw__sources": [{"deb-orig": "fftw3 3.3.10-1 " + "0" * 64}]},
     "has not the checksum 000"),
    ("missing", {"fftw__sources": [{"cache": "fftw-9.tar.gz 9 " + "1" * 64}]}, "was found nowhere"),
    ("level", {"stack__isa": "x86-64-v9"}, "this processor does not run it"),
    ("disk", {"stack__prefix": "/small/stack"}, "MiB are needed below /small/stack to build"),
    ("variant", {"stack__variant": "best"}, "it must be one of patched, pinned, upstream"),
)


def _refused(site, name, words, options, *more, **where):
    report = site.play(name, "-e", json.dumps(options), *more, status=1, **where)
    text = " ".join(f["message"] for f in report["failures"])
    if words not in text:
        raise Failed("%s: %r does not say %r" % (name, text, words))
    if built(report):
        raise Failed("%s: %s was built all the same" % (name, ", ".join(built(report))))


def _used(site):
    """What a user of the stack has."""
    return site.inside("refusals", "/opt/stack/bin/stack-env sh -c 'echo $LOADEDMODULES "
                       "$LD_LIBRARY_PATH; ls $FFTW_ROOT/lib/libfftw3f.so.3'")


def _full(folder):
    """A file system without room below a folder."""
    os.makedirs(folder)
    run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder])
    with open(os.path.join(folder, "full"), "wb") as stream:
        stream.write(bytes(1 << 20))


def _with_stale_patch(folder):
    """A tree like this one whose patch for FFTW no longer fits its sources."""
    shutil.rmtree(folder, ignore_errors=True)
    tracked_files(folder)
    version = os.path.join(folder, "patches/fftw/3.3.10")
    with open(os.path.join(version, "series"), encoding="utf-8") as stream:
        path = os.path.join(version, stream.readline().strip())
    with open(path, encoding="utf-8") as stream:
        text = stream.read()
    stale = text.replace("\n set (", "\n set (another_")
    if stale == text:
        raise Failed("%s has no line of context that can be changed" % path)
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(stale)
    return os.path.join(folder, "ansible")


@proof
def stack_refusals():
    """wrong options, sources and patches, a full disk, no sudo: a sentence each, nothing changed"""
    with Site("stack-refusals", "--chroot", "refusals", "--ssh", "1") as site:
        chroot = ("--limit", "refusals")
        site.play("built", "-e", json.dumps(skipped("fftw")), *chroot)
        used = _used(site)
        small = os.path.join(site.state, "roots/refusals/small")
        _full(small)
        try:
            for name, options, words in REFUSALS:
                _refused(site, name, words, options, *chroot)
                if _used(site) != used:
                    raise Failed("%s: users had\n%s\nand have\n%s" % (name, used, _used(site)))
        finally:
            run(["umount", small])
        # Another flag is another prefix: the one that is there needs no source.
        _refused(site, "patch", "does not apply", dict(
            skipped("fftw"), fftw__flags=["--disable-fma"]), *chroot,
            ansible=_with_stale_patch(os.path.join(site.base, "tree")))
        if _used(site) != used:
            raise Failed("patch: users had\n%s\nand have\n%s" % (used, _used(site)))
        # A user without rights, on a host without sudo.
        site.inside("ssh1", "mv $(command -v sudo) /root && useradd -m plain && "
                    "cp -r /root/.ssh ~plain && chown -R plain ~plain/.ssh")
        _refused(site, "sudo", "Install sudo, connect as root, or set ansible_become_method",
                 {"ansible_user": "plain"}, "--limit", "ssh1")
    return "%d refusals, each with its sentence" % (len(REFUSALS) + 2)
