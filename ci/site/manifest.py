# SPDX-License-Identifier: Apache-2.0
"""What a build was made of, as JSON: sources, options, compiler, dependencies, packages.

Commit and SHA-256 of the source archive (`ninja dist`), configure's options and its environment,
compiler and levels, the version of each package of gen/deps.py that is installed, and SHA-256 and
size of each package that was built. No time and no host name: the same build gives the same bytes.
What does not exist yet is left out, so that a build that failed has a manifest as well.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from typing import Any, Dict, List, Optional

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, "gen", "tools"), TOP]
import dist  # noqa: E402  (the path must be set first)
from archive import epoch, write_whole  # noqa: E402
from gen.deps import DEPENDENCIES  # noqa: E402
from gen.distro import this_distro  # noqa: E402

BUILT = (".deb", ".dsc", ".rpm", ".whl", ".tar.gz", ".tar.xz", ".buildinfo")


def output(*words: str) -> Optional[str]:
    """What a program says, None where it fails or is not there."""
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=TOP,
                              check=False)
    except OSError:
        return None
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None


def sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def sources() -> Dict[str, Any]:
    with open(os.path.join(TOP, "VERSION"), encoding="utf-8") as stream:
        version = stream.read().strip()
    archive = dist.archive(TOP, version, epoch(TOP))
    found: Dict[str, Any] = {"version": version, "archive": {
        "name": "treenail-%s.tar.gz" % version, "sha256": hashlib.sha256(archive).hexdigest()}}
    commit = output("git", "rev-parse", "HEAD")
    if commit:
        found["commit"] = commit
        found["modified"] = bool(output("git", "status", "--porcelain", "--untracked-files=no"))
    return found


def configuration(build: str) -> Dict[str, Any]:
    """Options as they were given, and what configure made of them."""
    try:
        with open(os.path.join(build, "gen/configuration.json"), encoding="utf-8") as stream:
            stored = json.load(stream)
    except (OSError, ValueError):
        return {}
    # Where the build lies is no property of what is built.
    arguments = [word for word in stored["arguments"] if not word.startswith("--build-dir")]
    found: Dict[str, Any] = {"arguments": arguments, "environment": stored["environment"]}
    try:
        with open(os.path.join(build, "gen/build_info.h"), encoding="utf-8") as stream:
            facts = re.findall(r'(k\w+)\[\] = "(.*)"', stream.read())
    except OSError:
        facts = []
    found["facts"] = {name[1:]: value for name, value in facts}
    compiler = stored["environment"].get("CXX", "g++").split()
    version = output(*compiler, "--version")
    found["compiler"] = {"command": " ".join(compiler),
                         "version": version.splitlines()[0] if version else "not found",
                         "target": output(*compiler, "-dumpmachine") or "not found"}
    return found


def versions(family: str) -> Dict[str, str]:
    """Package -> version, of those of gen/deps.py that are installed."""
    names = sorted({name for dep in DEPENDENCIES for name in dep.packages(family).split()})
    if family == "debian":
        text = subprocess.run(["dpkg-query", "-W", "-f",
                               "${db:Status-Status} ${Package} ${Version}\n", *names],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=False).stdout.decode()
        rows = [line.split() for line in text.splitlines()]
        return {row[1]: row[2] for row in rows if len(row) == 3 and row[0] == "installed"}
    if family == "fedora":
        found = {name: output("rpm", "-q", "--qf", "%{EVR}", "--whatprovides", name)
                 for name in names}
        return {name: version for name, version in found.items() if version}
    return {}


def packages(build: str) -> List[Dict[str, Any]]:
    """What `ninja deb`, `rpm`, `wheel` and `dist` left, without work in progress."""
    found = []
    for folder in ("deb", "dist", "rpm/RPMS", "rpm/SRPMS"):
        for place, folders, leaves in os.walk(os.path.join(build, folder)):
            folders[:] = [] if folder in ("deb", "dist") else folders
            for leaf in leaves:
                if leaf.endswith(BUILT):
                    path = os.path.join(place, leaf)
                    found.append({"file": os.path.relpath(path, build), "sha256": sha256(path),
                                  "bytes": os.path.getsize(path)})
    return sorted(found, key=lambda row: str(row["file"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", required=True)
    parser.add_argument("--output", required=True, metavar="FILE")
    options = parser.parse_args()
    distro = this_distro()
    manifest = {"source": sources(), "configuration": configuration(options.build_dir),
                "machine": {"architecture": platform.machine(), "distribution": distro.name},
                "dependencies": versions(distro.family), "packages": packages(options.build_dir)}
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    write_whole(options.output, text.encode())
    print("wrote %s: commit %s, %d dependencies, %d packages" % (
        os.path.abspath(options.output), manifest["source"].get("commit", "unknown"),
        len(manifest["dependencies"]), len(manifest["packages"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
