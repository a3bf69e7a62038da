# SPDX-License-Identifier: Apache-2.0
"""Write treenail-VERSION.tar.gz: the same bytes from the same tree, whatever the machine.

The files are those git tracks, as they stand in the tree, but for debian/ and debian-cuda/, which
Debian's source format keeps in archives of their own; in an unpacked archive, which has no git,
everything but build directories. PKG-INFO makes the archive a source distribution for Python tools.
"""

import argparse
import gzip
import io
import os
import subprocess
import sys
import tarfile

from archive import epoch, write_whole

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from gen.install import metadata  # noqa: E402  (the path must be set first)


def files(source):
    return [name for name in _all_files(source) if not name.startswith(
        ("debian/", "debian-cuda/"))]


def debian_files(source, packaging="debian"):
    """Those of the packaging folder of one source package."""
    return [name for name in _all_files(source) if name.startswith(packaging + "/")]


def _all_files(source):
    if os.path.exists(os.path.join(source, ".git")):
        done = subprocess.run(["git", "-C", source, "ls-files", "-z"], stdout=subprocess.PIPE,
                              check=True)
        names = [name for name in done.stdout.decode().split("\0") if name]
        return sorted(n for n in names if os.path.lexists(os.path.join(source, n)))
    found = []
    for folder, folders, leaves in os.walk(source):
        folders[:] = [n for n in folders if n != "__pycache__" and not os.path.exists(
            os.path.join(folder, n, "build.ninja"))]
        found += [os.path.relpath(os.path.join(folder, leaf), source) for leaf in leaves]
    return sorted(n for n in found if n != "PKG-INFO")


def archive(source, version, stamp):
    top = "treenail-" + version
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:

        def add(name, data, mode, link=""):
            info = tarfile.TarInfo("%s/%s" % (top, name))
            info.mtime, info.mode, info.uname, info.gname = stamp, mode, "root", "root"
            if link:
                info.type, info.linkname = tarfile.SYMTYPE, link
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))

        entries = {name: None for name in files(source)}
        entries["PKG-INFO"] = metadata(version).encode()
        for name in sorted(entries):
            path = os.path.join(source, name)
            if entries[name] is not None:
                add(name, entries[name], 0o644)
            elif os.path.islink(path):
                add(name, b"", 0o777, os.readlink(path))
            else:
                with open(path, "rb") as stream:
                    add(name, stream.read(), 0o755 if os.access(path, os.X_OK) else 0o644)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=stamp) as stream:
        stream.write(raw.getvalue())
    return packed.getvalue()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--into", required=True)
    options = parser.parse_args()
    with open(os.path.join(options.source, "VERSION"), encoding="utf-8") as stream:
        version = stream.read().strip()
    path = os.path.join(options.into, "treenail-%s.tar.gz" % version)
    write_whole(path, archive(options.source, version, epoch(options.source)))
    print("wrote %s" % os.path.abspath(path))


if __name__ == "__main__":
    main()
