# SPDX-License-Identifier: Apache-2.0
"""Copy the files of an install manifest below DESTDIR, or take them away again.

Each file is written beside its place and renamed, so that a running program never sees half of one.
Modes do not depend on the umask. What an earlier installation put there and this manifest lacks is
removed: the libraries in the private directory, which libtreenail opens by finding them, and what
this build installed to the same place before (gen/installed.json). `uninstall` removes the files of
manifest and record, and the directories that became empty and bear Treenail's name.
"""

import argparse
import json
import os
import shutil
import sys


def put(entry, destination):
    target = destination + entry["to"]
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        os.makedirs(folder, 0o755, exist_ok=True)
    beside = target + ".new"
    if os.path.lexists(beside):
        os.unlink(beside)
    if entry["kind"] == "link":
        os.symlink(entry["target"], beside)
    else:
        shutil.copyfile(entry["from"], beside)
        os.chmod(beside, 0o755 if entry["kind"] in ("module", "script") else 0o644)
    os.replace(beside, target)


def remove(paths, destination):
    """Returns how many of them were there."""
    folders, count = set(), 0
    for path in paths:
        if os.path.lexists(destination + path):
            os.unlink(destination + path)
            count += 1
        folder = os.path.dirname(path)
        while "treenail" in folder.lower():
            folders.add(destination + folder)
            folder = os.path.dirname(folder)
    for folder in sorted(folders, key=len, reverse=True):
        shutil.rmtree(os.path.join(folder, "__pycache__"), ignore_errors=True)
        if os.path.isdir(folder) and not os.listdir(folder):
            os.rmdir(folder)
    return count


def private_libraries(manifest, destination):
    """What lies in the private directory and is of ours: kernel libraries, adapters, plugins and
    device libraries."""
    found = []
    for name in ("kernels", "adapters", "plugins", "devices"):
        top = "%s/%s" % (manifest["private"], name)
        for folder, _, leaves in os.walk(destination + top):
            found += [os.path.join(folder, leaf)[len(destination):] for leaf in leaves
                      if leaf.startswith("libtreenail-") and leaf.endswith(".so")]
    return found


class Record:
    """The files that this build installed, by place: DESTDIR and prefix."""

    PATH = "gen/installed.json"

    def __init__(self, manifest, destination):
        self.key = "%s\n%s" % (destination, manifest["prefix"])
        try:
            with open(self.PATH, encoding="utf-8") as stream:
                self.places = dict(json.load(stream))
        except (OSError, ValueError, TypeError):
            self.places = {}
        self.files = [str(path) for path in self.places.get(self.key, ())]

    def keep(self, files):
        """A place that is gone (a package's staging directory) is forgotten."""
        self.places = {key: value for key, value in self.places.items()
                       if os.path.isdir(key.split("\n")[0] or "/")}
        self.places[self.key] = sorted(files)
        with open(self.PATH + ".new", "w", encoding="utf-8") as stream:
            json.dump(self.places, stream, indent=1, sort_keys=True)
        os.replace(self.PATH + ".new", self.PATH)


def real(path, destination):
    """The path with links in its directories followed: /lib may be /usr/lib."""
    return os.path.join(os.path.realpath(destination + os.path.dirname(path)),
                        os.path.basename(path))


def install(manifest, destination, record):
    wanted = {entry["to"] for entry in manifest["entries"]}
    record.keep(wanted | set(record.files))  # also when this ends half-way
    for entry in manifest["entries"]:
        put(entry, destination)
    new = {real(path, destination) for path in wanted}
    old = set(record.files) | set(private_libraries(manifest, destination))
    gone = remove(sorted(p for p in old if real(p, destination) not in new), destination)
    record.keep(wanted)
    more = ", removed %d of an earlier installation" % gone if gone else ""
    return "installed %d files below %s%s" % (
        len(wanted), destination + manifest["prefix"], more)


def uninstall(manifest, destination, record):
    paths = {entry["to"] for entry in manifest["entries"]} | set(record.files)
    count = remove(sorted(paths), destination)
    record.keep(())
    return "removed %d files below %s" % (count, destination + manifest["prefix"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--manifest", required=True)
    parser.add_argument("--uninstall", action="store_true")
    options = parser.parse_args()
    destination = os.environ.get("DESTDIR", "").rstrip("/")
    if destination and not destination.startswith("/"):
        destination = os.path.abspath(destination)
    with open(options.manifest, encoding="utf-8") as stream:
        manifest = json.load(stream)
    os.umask(0o022)
    try:
        record = Record(manifest, destination)
        print((uninstall if options.uninstall else install)(manifest, destination, record))
    except OSError as error:
        hint = "; run it with the rights to write there, or set DESTDIR" if isinstance(
            error, PermissionError) else ""
        sys.exit("install: %s%s" % (error, hint))


if __name__ == "__main__":
    main()
