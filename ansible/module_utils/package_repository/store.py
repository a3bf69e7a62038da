# SPDX-License-Identifier: Apache-2.0
"""The folders of a published repository, and the one step that makes a publication visible.

  <root>/<format>/pool/ab/<seal>/<file>          package files; never changed, shared by channels
  <root>/<format>/snapshots/<channel>/<id>/      the indices of one publication, complete
  <root>/<format>/<link of the channel>          a symbolic link to one snapshot

A snapshot is written under another name, synchronised and renamed; then the link is replaced by
rename(2). So whatever interrupts a publication, clients see the previous one or the new one. The
snapshots before stay for clients that have read the previous indices but not yet fetched all.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time

from ansible.module_utils.package_repository.process import RepositoryError

STATE = "publication.json"
SNAPSHOTS_KEPT = 3  # the present one and those that a slow client may still read
SPARE = 16 << 20  # bytes that must stay free beside the packages: indices


def digest(path):
    """The SHA-256 sum of a file."""
    value = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            value.update(block)
    return value.hexdigest()


def files_below(folder):
    """Paths of the regular files there, relative, sorted; no links are followed."""
    found = []
    for here, folders, leaves in os.walk(folder):
        folders.sort()
        for leaf in sorted(leaves):
            path = os.path.join(here, leaf)
            if not os.path.islink(path):
                found.append(os.path.relpath(path, folder))
    return found


def synchronise(path):
    """Brings a file or a folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write(path, data):
    """A new file with these bytes, its folders made."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as stream:
        stream.write(data)


class Store:
    """One format's folders. `links`: for each channel the path of its link."""

    def __init__(self, root, kind, links):
        self.top = os.path.join(os.path.realpath(root), kind)
        self.links = links
        self._pool = os.path.join(self.top, "pool")
        self._snapshots = os.path.join(self.top, "snapshots")

    @contextlib.contextmanager
    def locked(self):
        """Alone: a second publication of this format is refused meanwhile. What an interrupted
        one left half-written is removed."""
        os.makedirs(self._snapshots, exist_ok=True)
        with open(os.path.join(self.top, ".lock"), "w", encoding="utf-8") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RepositoryError("another publication into %s is under way: wait for its end"
                                      % self.top) from None
            for folder in (self._snapshots, self._pool):
                for name in os.listdir(folder) if os.path.isdir(folder) else ():
                    if name.startswith(".new-"):
                        shutil.rmtree(os.path.join(folder, name))
            yield

    # ---- packages ------------------------------------------------------------------------

    def place(self, seal, name):
        """Where a package lies, relative to the folder of the format."""
        return os.path.join("pool", seal[:2], seal, name)

    def path(self, place):
        return os.path.join(self.top, place)

    def need_room(self, size):
        """Refuses to begin what cannot end."""
        status = os.statvfs(self.top)
        free = status.f_bavail * status.f_frsize
        if free < size + SPARE:
            raise RepositoryError("%s has %d MB free and the packages need %d MB: make room, or "
                                  "keep fewer publications" % (
                                      self.top, free >> 20, (size + SPARE + (1 << 20) - 1) >> 20))

    def add(self, place, fill):
        """Puts a package into the pool at once or not at all: fill(path) writes it."""
        target = self.path(place)
        folder = os.path.dirname(target)
        scratch = os.path.join(self._pool, ".new-" + os.path.basename(folder))
        os.makedirs(scratch)
        try:
            path = os.path.join(scratch, os.path.basename(target))
            fill(path)
            os.chmod(path, 0o644)
            synchronise(path)
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            if os.path.isdir(folder):  # damaged: a client reads the old file or the new one
                os.replace(path, target)
            else:
                os.rename(scratch, folder)
            synchronise(folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    # ---- snapshots -----------------------------------------------------------------------

    def state(self, folder):
        """What was recorded of a snapshot; None where nothing was."""
        try:
            with open(os.path.join(folder, STATE), encoding="utf-8") as stream:
                return json.load(stream)
        except FileNotFoundError:
            return None
        except ValueError:
            raise RepositoryError("%s/%s is damaged: restore it, or remove the folder and publish "
                                  "again" % (folder, STATE)) from None

    def current(self, channel):
        """(folder, state) of what clients of the channel see; (None, None) before the first."""
        link = self.path(self.links[channel])
        if not os.path.islink(link):
            return None, None
        folder = os.path.realpath(link)
        return folder, self.state(folder)

    def earlier(self, channel):
        """The snapshots of the channel, the newest first, the present one before all others."""
        top = os.path.join(self._snapshots, channel)
        names = sorted(os.listdir(top), reverse=True) if os.path.isdir(top) else []
        found = [os.path.join(top, name) for name in names]
        present, _ = self.current(channel)
        return sorted(found, key=lambda folder: folder != present)

    def damaged(self, folder, state):
        """The first file, of the snapshot or of its packages, that is not what was written."""
        wanted = {os.path.join(folder, name): value for name, value in state["files"].items()}
        wanted.update((self.path(package["place"]), package["stored"])
                      for package in state["packages"].values())
        for path, value in sorted(wanted.items()):
            if not os.path.isfile(path) or digest(path) != value:
                return path
        return ""

    @contextlib.contextmanager
    def snapshot(self, channel, now):
        """A new folder to fill; left without an exception, it becomes what clients see."""
        scratch = os.path.join(self._snapshots, ".new-" + channel)
        os.makedirs(scratch)
        try:
            yield scratch
            self._carry(channel, scratch)
            for here, _, leaves in os.walk(scratch):
                for leaf in leaves:
                    path = os.path.join(here, leaf)
                    if not os.path.islink(path):
                        synchronise(path)
                synchronise(here)
            name = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
            folder = os.path.join(self._snapshots, channel, name)
            serial = 0
            while os.path.lexists(folder):
                serial += 1
                folder = os.path.join(self._snapshots, channel, "%s-%03d" % (name, serial))
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            os.rename(scratch, folder)
            synchronise(os.path.dirname(folder))
            self._switch(channel, folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def record(self, folder, state):
        """Writes the state into a snapshot, with the sums of its files."""
        state = dict(state, files={name: digest(os.path.join(folder, name))
                                   for name in files_below(folder)})
        write(os.path.join(folder, STATE),
              (json.dumps(state, indent=1, sort_keys=True) + "\n").encode())

    def _carry(self, channel, scratch):
        """The indices of earlier snapshots that are called by their hashes."""
        for folder in self.earlier(channel)[:SNAPSHOTS_KEPT - 1]:
            for name in (self.state(folder) or {"indices": ()})["indices"]:
                source, target = os.path.join(folder, name), os.path.join(scratch, name)
                if os.path.exists(source) and not os.path.exists(target):
                    os.makedirs(os.path.dirname(target), exist_ok=True)
                    os.link(source, target)

    def _switch(self, channel, folder):
        link = self.path(self.links[channel])
        os.makedirs(os.path.dirname(link), exist_ok=True)
        if os.path.lexists(link) and not os.path.islink(link):
            raise RepositoryError("%s is no symbolic link: it was not made here" % link)
        scratch = link + ".new"
        if os.path.lexists(scratch):
            os.unlink(scratch)
        os.symlink(os.path.relpath(folder, os.path.dirname(link)), scratch)
        os.replace(scratch, link)
        synchronise(os.path.dirname(link))

    def collect(self):
        """Removes old snapshots, and packages that no remaining one names."""
        used = set()
        for channel in self.links:
            folders = self.earlier(channel)
            for folder in folders[SNAPSHOTS_KEPT:]:
                shutil.rmtree(folder)
            for folder in folders[:SNAPSHOTS_KEPT]:
                state = self.state(folder) or {"packages": {}}
                used.update(os.path.dirname(p["place"]) for p in state["packages"].values())
        for first in os.listdir(self._pool) if os.path.isdir(self._pool) else ():
            shelf = os.path.join(self._pool, first)
            for seal in os.listdir(shelf):
                if os.path.join("pool", first, seal) not in used:
                    shutil.rmtree(os.path.join(shelf, seal))
            if not os.listdir(shelf):
                os.rmdir(shelf)
