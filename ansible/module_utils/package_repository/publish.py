# SPDX-License-Identifier: Apache-2.0
"""One publication from beginning to end: what is due, packages into the pool, indices, the switch.

The same packages, settings and key again are no publication: nothing is written and nothing signed,
unless the validity is half over or a published file is not what was written.
"""

import os
import time
from typing import List, NamedTuple

from ansible.module_utils.package_repository import apt, rpm, signing
from ansible.module_utils.package_repository.process import RepositoryError, missing
from ansible.module_utils.package_repository.publication import (
    EMPTY, Holding, Package, duration, following, listing, promoted, sums)
from ansible.module_utils.package_repository.store import Store, digest, write

FORMATS = {"deb": apt, "rpm": rpm}
LAYOUT = 1  # of what is written; another number makes every channel new


class Request(NamedTuple):
    """The module's options that a publication needs."""

    root: str
    format: str
    channel: str
    packages: List[dict]
    source: str
    promote: List[str]
    withdraw: List[str]
    replace: bool
    keep: int
    validity: str
    origin: str
    label: str
    description: str
    architectures: List[str]
    gnupg_home: str
    key_id: str


def store_of(request):
    return Store(request.root, request.format, FORMATS[request.format].LINKS)


def holding(state):
    """What a recorded state holds."""
    if not state:
        return EMPTY
    names = Package._fields
    return Holding(state["sets"], {key: Package(**{name: value[name] for name in names})
                                   for key, value in state["packages"].items()})


def _given(request, store):
    """The packages to publish: as recorded, else from their files, else, in check mode, by name."""
    if request.promote:
        _, state = store.current("nightly")
        return promoted(request.promote, holding(state), "nightly")
    kind = FORMATS[request.format]
    known = {package.sha256: package for channel in store.links
             for package in holding(store.current(channel)[1]).packages.values()}
    found = []
    for one in request.packages:
        path = os.path.join(request.source, one["file"])
        if one["sha256"] in known:  # its name may say less than it does: no epoch
            found.append(known[one["sha256"]])
        elif request.source and os.path.exists(path):
            found.append(kind.inspected(one["sha256"], path))
        else:
            found.append(kind.named(one["sha256"], one["file"]))
    return found


def _settings(request, fingerprint):
    return {"layout": LAYOUT, "origin": request.origin, "label": request.label,
            "description": request.description, "fingerprint": fingerprint,
            "architectures": sorted(set(request.architectures)),
            "valid_for": duration(request.validity)}


def due(folder, state, wanted, settings, store, now):
    """Why something must be written, as words; '' when all is as it should be."""
    if not state:
        return "first publication" if wanted.packages else ""
    if state["sets"] != wanted.sets:
        return "other packages"
    for name, value in settings.items():
        if state["settings"].get(name) != value:
            return "another " + name.replace("_", " ")
    if settings["valid_for"] and state["valid_until"] - now < settings["valid_for"] / 2:
        return "renewal of the validity"
    path = store.damaged(folder, state)
    return "repair of " + os.path.relpath(path, store.top) if path else ""


class _Publication:
    """The state of one publication under the lock of its store."""

    def __init__(self, request, store, key, now):
        self.request, self.store, self.key, self.now = request, store, key, now
        self.kind = FORMATS[request.format]

    def _entry(self, package, copies):
        """The record of a package in the pool, which is put there where it lacks."""
        place = self.store.place(self.kind.seal(package.sha256, self.key), package.file)
        if place not in copies.get(package.sha256, ()):
            source = self._source(package, copies)
            self.store.add(place, lambda path: self.kind.store(source, path, self.key))
        return dict(package._asdict(), place=place, stored=digest(self.store.path(place)))

    def _source(self, package, copies):
        """The file as it was given, else a copy of it under another key."""
        path = os.path.join(self.request.source, package.file)
        if self.request.source and os.path.exists(path):
            if digest(path) != package.sha256:
                raise RepositoryError("%s has not the SHA-256 sum %s that was given: it changed on "
                                      "its way" % (path, package.sha256))
            return path
        for place in copies.get(package.sha256, ()):
            return self.store.path(place)
        raise RepositoryError(
            "%s (SHA-256 sum %s) is published, but its file in %s is lost or damaged: give the "
            "package again, or withdraw it" % (package, package.sha256, self.store.top))

    def write(self, wanted, settings):
        """Brings packages and indices to the clients."""
        copies = intact(self.store)
        sizes = [os.path.getsize(os.path.join(self.request.source, package.file))
                 for package in wanted.packages.values()
                 if self.request.source and os.path.exists(
                     os.path.join(self.request.source, package.file))]
        self.store.need_room(sum(sizes))
        entries = {key: self._entry(package, copies)
                   for key, package in wanted.packages.items()}
        with self.store.snapshot(self.request.channel, self.now) as folder:
            indices = self.kind.write_indices(
                self.store.top, folder, self.request.channel, list(entries.values()), settings,
                self.key, self.now)
            write(os.path.join(folder, "SHA256SUMS"), sums(
                wanted, wanted.sets[0] if wanted.sets else []).encode())
            self.store.record(folder, {
                "settings": settings, "sets": wanted.sets, "packages": entries,
                "indices": indices, "created": int(self.now),
                "valid_until": int(self.now + settings["valid_for"]
                                   if settings["valid_for"] else 0)})
        self.store.collect()


def intact(store):
    """{SHA-256 sum as given: places} of the pool's files that are as they were recorded."""
    found = {}
    for channel in store.links:
        for folder in store.earlier(channel):
            for package in (store.state(folder) or {"packages": {}})["packages"].values():
                found[package["place"]] = (package["sha256"], package["stored"])
    result = {}
    for place, (sha256, stored) in sorted(found.items()):
        path = store.path(place)
        if os.path.isfile(path) and digest(path) == stored:
            result.setdefault(sha256, []).append(place)
    return result


def queried(request):
    """What the host and its pool lack for a publication, and how much room they have."""
    copies = intact(store_of(request))
    folder = os.path.realpath(request.root)
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    status = os.statvfs(folder)
    return {"changed": False, "free": status.f_bavail * status.f_frsize,
            "lacking": missing(FORMATS[request.format].PROGRAMS + signing.PROGRAMS),
            "missing": [one["file"] for one in request.packages if one["sha256"] not in copies]}


def published(request, dry, now=None):
    """Publishes, or with `dry` says what that would do. Returns what the module returns."""
    now = time.time() if now is None else now
    kind = FORMATS[request.format]
    lacking = missing(kind.PROGRAMS + signing.PROGRAMS)
    if lacking and not dry:
        raise RepositoryError("this host lacks " + ", ".join(lacking))
    store = store_of(request)
    folder, state = store.current(request.channel)
    before = holding(state)
    if lacking:
        wanted = following(before, [kind.named(one["sha256"], one["file"])
                                    for one in request.packages], request.keep, request.replace)
        return _result("first publication", before, wanted, {})
    with signing.opened(request.gnupg_home, request.key_id, now) as key:
        settings = _settings(request, key.fingerprint)
        if dry:
            wanted = following(before, _given(request, store), request.keep, request.replace,
                               request.withdraw)
            return _result(due(folder, state, wanted, settings, store, now), before, wanted, {})
        os.umask(0o022)
        with store.locked():
            folder, state = store.current(request.channel)
            before = holding(state)
            wanted = following(before, _given(request, store), request.keep, request.replace,
                               request.withdraw)
            reason = due(folder, state, wanted, settings, store, now)
            if reason:
                _Publication(request, store, key, now).write(wanted, settings)
            folder, state = store.current(request.channel)
        return _result(reason, before, wanted, {
            "fingerprint": key.fingerprint, "public_key": key.public(),
            "snapshot": os.path.relpath(folder, os.path.realpath(request.root)) if state else "",
            "valid_until": state["valid_until"] if state else 0})


def _result(reason, before, wanted, more):
    return dict({"changed": bool(reason), "reason": reason, "packages": [
        package._asdict() for package in wanted.packages.values()],
        "diff": {"before": listing(before), "after": listing(wanted)}}, **more)
