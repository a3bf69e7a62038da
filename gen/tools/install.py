# SPDX-License-Identifier: Apache-2.0
"""Copy the files of an install manifest below DESTDIR, or take them away again.

Each file is written beside its place and renamed, so that a running program never sees half of one.
Modes do not depend on the umask. `uninstall` removes exactly the manifest's files and the
directories that became empty and bear Treenail's name.
"""

import argparse
import json
import os
import shutil
import sys


def place(entry, destination):
    return destination + entry["to"]


def put(entry, destination):
    target = place(entry, destination)
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
        os.chmod(beside, 0o755 if entry["kind"] == "module" else 0o644)
    os.replace(beside, target)


def remove(entries, destination):
    folders = set()
    for entry in entries:
        target = place(entry, destination)
        if os.path.lexists(target):
            os.unlink(target)
        folder = os.path.dirname(entry["to"])
        while "treenail" in folder.lower():
            folders.add(destination + folder)
            folder = os.path.dirname(folder)
    for folder in sorted(folders, key=len, reverse=True):
        shutil.rmtree(os.path.join(folder, "__pycache__"), ignore_errors=True)
        if os.path.isdir(folder) and not os.listdir(folder):
            os.rmdir(folder)


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
    entries = manifest["entries"]
    shown = destination + manifest["prefix"]
    os.umask(0o022)
    try:
        if options.uninstall:
            remove(entries, destination)
            print("removed %d files below %s" % (len(entries), shown))
        else:
            for entry in entries:
                put(entry, destination)
            print("installed %d files below %s" % (len(entries), shown))
    except OSError as error:
        hint = "; run it with the rights to write there, or set DESTDIR" if isinstance(
            error, PermissionError) else ""
        sys.exit("install: %s%s" % (error, hint))


if __name__ == "__main__":
    main()
