# SPDX-License-Identifier: Apache-2.0
"""Holding an image to what it says: blobs to their digests, labels to the content, files to the
date and to what may not differ between builds, installed files to dpkg's checksums."""

import fnmatch
import re
from typing import Iterator, Sequence

from image_build import WITHOUT
from image_content import OCI, inside, labels_of, layer_findings, seconds_of
from image_run import unpacked
from oci_layout import Layout
from package_build import Unusable

_SHOWN = 20


def label_findings(said: dict, found: dict) -> Iterator[str]:
    """Where labels and content disagree. The revision alone is not in the content."""
    for name in sorted(found):
        if said.get(name) != found[name]:
            yield "the label %s is '%s', the content says '%s'" % (
                name, said.get(name, ""), found[name])
    revision = said.get(OCI + "revision", "")
    if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}|sha256:[0-9a-f]{64}", revision):
        yield "the label %srevision is '%s', neither a commit nor a digest" % (OCI, revision)


def changed_files(root: str) -> Iterator[str]:
    """Installed files that are not the packages' own, by dpkg's checksums; what images leave out on
    purpose may be missing."""
    left_out = [word.partition("=")[2] for word in WITHOUT if word.startswith("path-exclude=")]
    for line in inside(root, ["dpkg", "--verify"], user=0).splitlines():
        kind, path = line.split()[0], line.split()[-1]
        if kind != "missing" or not any(fnmatch.fnmatchcase(path, p) for p in left_out):
            yield "dpkg --verify: " + line


def findings(layout: Layout, tag: str) -> Iterator[str]:
    """Whatever is wrong with an image."""
    broken = list(layout.problems(tag))
    yield from broken
    if broken:
        return
    latest = seconds_of(layout.config(tag)["created"])
    for layer in layout.layers(tag):
        with open(layout.blob_path(layer["digest"]), "rb") as stream:
            yield from layer_findings(stream, latest)
    with unpacked(layout, tag) as root:
        if not tag.startswith("base-"):
            try:
                yield from label_findings(layout.labels(tag), labels_of(root))
            except Unusable as reason:
                yield str(reason)
        yield from changed_files(root)


def verify(layout: Layout, tags: Sequence[str]) -> int:
    """Prints a line for each image, and what is wrong; 1 when something is."""
    if not tags:
        raise Unusable("%s holds no images" % layout.path)
    status = 0
    for tag in tags:
        found = list(findings(layout, tag))
        status |= bool(found)
        print("%-32s %s" % (tag, "%d wrong" % len(found) if found else "ok"))
        for line in found[:_SHOWN]:
            print("    " + line)
        if len(found) > _SHOWN:
            print("    and %d more" % (len(found) - _SHOWN))
    return status
