# SPDX-License-Identifier: Apache-2.0
"""Reading an OCI image layout: tags, manifests, configurations, and whether its blobs are whole.

umoci writes layouts (image_build.py); what is only read needs neither root nor a program.
"""

import gzip
import hashlib
import json
import os
import re
from typing import Any, Dict, Iterator, List

from package_build import Unusable

REF_NAME = "org.opencontainers.image.ref.name"
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_BLOCK = 1 << 20


def checked_tag(text: str) -> str:
    """A tag that every registry takes."""
    if not _TAG.fullmatch(text):
        raise Unusable("'%s' is no tag: letters, digits, '_', '.' and '-', at most 128, not "
                       "beginning with '.' or '-'" % text)
    return text


def sha256_of(stream: Any) -> str:
    """The digest of what is left in a stream, in OCI's spelling."""
    total = hashlib.sha256()
    for block in iter(lambda: stream.read(_BLOCK), b""):
        total.update(block)
    return "sha256:" + total.hexdigest()


class Layout:
    """A directory with an OCI image layout, which need not exist yet."""

    def __init__(self, path: str):
        self.path = os.path.abspath(path)
        if ":" in self.path:
            raise Unusable("%s: umoci and skopeo cannot name a directory with ':'" % self.path)

    def exists(self) -> bool:
        return os.path.exists(os.path.join(self.path, "oci-layout"))

    def tags(self) -> Dict[str, Dict[str, Any]]:
        """tag -> descriptor of its manifest; none where there is no layout."""
        if not self.exists():
            return {}
        index = self._json(os.path.join(self.path, "index.json"))
        return {entry["annotations"][REF_NAME]: entry for entry in index.get("manifests", ())
                if REF_NAME in entry.get("annotations", {})}

    def descriptor(self, tag: str) -> Dict[str, Any]:
        """That of the manifest behind a tag."""
        tags = self.tags()
        if tag not in tags:
            raise Unusable("%s has no image '%s'; it has: %s" % (
                self.path, tag, ", ".join(sorted(tags)) or "none (ci/image build makes one)"))
        return tags[tag]

    def manifest(self, tag: str) -> Dict[str, Any]:
        return self._json(self.blob_path(self.descriptor(tag)["digest"]))

    def config(self, tag: str) -> Dict[str, Any]:
        return self._json(self.blob_path(self.manifest(tag)["config"]["digest"]))

    def labels(self, tag: str) -> Dict[str, str]:
        return dict(self.config(tag).get("config", {}).get("Labels") or {})

    def layers(self, tag: str) -> List[Dict[str, Any]]:
        """The descriptors of its layers, the lowest first."""
        return list(self.manifest(tag)["layers"])

    def blob_path(self, digest: str) -> str:
        if not _DIGEST.fullmatch(digest):
            raise Unusable("%s: '%s' is no SHA-256 digest" % (self.path, digest))
        return os.path.join(self.path, "blobs/sha256", digest.split(":")[1])

    def problems(self, tag: str) -> Iterator[str]:
        """Blobs of an image that are missing or are not what their descriptors say."""
        descriptor = self.descriptor(tag)
        found = list(self._blob_problems(descriptor))
        if not found:
            manifest = self.manifest(tag)
            for part in [manifest["config"], *manifest["layers"]]:
                found += self._blob_problems(part)
        yield from found
        if not found:
            yield from self._diff_problems(tag)

    def _blob_problems(self, descriptor: Dict[str, Any]) -> Iterator[str]:
        path = self.blob_path(descriptor["digest"])
        if not os.path.exists(path):
            yield "%s is missing" % path
            return
        size = os.path.getsize(path)
        if size != descriptor["size"]:
            yield "%s has %d bytes, its descriptor says %d" % (path, size, descriptor["size"])
            return
        with open(path, "rb") as stream:
            found = sha256_of(stream)
        if found != descriptor["digest"]:
            yield "%s has the digest %s" % (path, found)

    def _diff_problems(self, tag: str) -> Iterator[str]:
        """The configuration names each layer by the digest of its tar archive."""
        expected = self.config(tag)["rootfs"]["diff_ids"]
        layers = self.layers(tag)
        if len(expected) != len(layers):
            yield "%s: %d layers, %d diff_ids" % (tag, len(layers), len(expected))
        for layer, diff in zip(layers, expected):
            try:
                with gzip.open(self.blob_path(layer["digest"])) as stream:
                    found = sha256_of(stream)
            except (OSError, EOFError) as reason:
                found = str(reason)
            if found != diff:
                yield "%s: the layer %s unpacks to %s, not %s" % (tag, layer["digest"], found, diff)

    def _json(self, path: str) -> Dict[str, Any]:
        try:
            with open(path, encoding="utf-8") as stream:
                return json.load(stream)
        except (OSError, ValueError) as reason:
            raise Unusable("%s: %s" % (path, reason)) from None
