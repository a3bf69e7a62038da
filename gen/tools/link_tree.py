# SPDX-License-Identifier: Apache-2.0
"""Make a directory of the build tree mirror files of the source tree by symbolic links.

Links, so that an edited source takes effect at once; bytecode is cached beside the links, never in
the source tree. Links and bytecode without a source go away; compiled modules are left alone.
"""

import argparse
import os


def main():
    parser = argparse.ArgumentParser()
    for name in ("list", "source", "root", "into", "stamp"):
        parser.add_argument("--" + name, required=True)
    options = parser.parse_args()
    with open(options.list, encoding="utf-8") as stream:
        wanted = {os.path.relpath(line.rstrip("\n"), options.root) for line in stream}
    os.makedirs(options.into, exist_ok=True)
    for path in sorted(wanted):
        link = os.path.join(options.into, path)
        os.makedirs(os.path.dirname(link), exist_ok=True)
        target = os.path.relpath(os.path.realpath(os.path.join(options.source, path)),
                                 os.path.realpath(os.path.dirname(link)))
        if os.path.islink(link) and os.readlink(link) == target:
            continue
        if os.path.lexists(link):
            os.unlink(link)
        os.symlink(target, link)
    for folder, _, leaves in os.walk(options.into, topdown=False):
        for leaf in leaves:
            path = os.path.join(folder, leaf)
            relative = os.path.relpath(path, options.into)
            stale_code = leaf.endswith(".pyc") and not os.path.exists(os.path.join(
                os.path.dirname(folder), leaf.split(".")[0] + ".py"))
            if stale_code or (os.path.islink(path) and relative not in wanted):
                os.unlink(path)
        if folder != options.into and not os.listdir(folder):
            os.rmdir(folder)
    with open(options.stamp, "w", encoding="utf-8"):
        pass


if __name__ == "__main__":
    main()
