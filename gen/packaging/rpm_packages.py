# SPDX-License-Identifier: Apache-2.0
"""RPM packages of this tree, source and binary: `ninja rpm`.

The source archive is that of `ninja dist`, and rpm/treenail.spec says the rest. Everything is made
in rpm/ of the build directory, with the whole log in rpm/build.log; the terminal sees the steps
and, at the end, what was made, how large it is, and what rpmlint and shipped.py have to say.
Compilers are those that this build was given (CC, CXX: a cache, say), flags those of the spec. On
Debian rpm/macros.debian is loaded, and gen/tools/packages.py looks for the build requirements, for
rpm's own database is empty there.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(SOURCE, "gen/tools"), SOURCE]
import dist  # noqa: E402  (the path must be set first)
import own_patches  # noqa: E402
import packages  # noqa: E402
import shipped  # noqa: E402
from archive import epoch, write_whole  # noqa: E402
from package_build import Unusable, ended, judged, logged, read, settings, size_table  # noqa: E402
from proving import Failed  # noqa: E402
from gen import identity  # noqa: E402
from gen.distro import this_distro  # noqa: E402

PACKAGING = os.path.join(SOURCE, "rpm")
SPEC = os.path.join(PACKAGING, "treenail.spec")
# What rpmlint says of fields of gen/identity.py that nobody has filled in yet.
IDENTITY_TAGS = {
    "no-url-tag": ("HOMEPAGE", not identity.HOMEPAGE),
    "invalid-url": ("HOMEPAGE", not identity.HOMEPAGE),
    "no-packager-tag": ("MAINTAINER", identity.MAINTAINER.endswith(".invalid>")),
    "no-signature": ("SIGNING_KEY", not identity.SIGNING_KEY),
}
MAIN = ("treenail-libs", "python3-treenail")
LIMIT = 8 * 10 ** 6  # bytes of these two together
_STEP = re.compile(r"(Executing\(%\w+\)|Processing files|Wrote|error:|warning:)")


def version():
    """The upstream version; the spec must agree."""
    upstream = read(os.path.join(SOURCE, "VERSION")).strip()
    if not os.path.exists(SPEC):
        raise Unusable("%s does not exist: this tree has no RPM packaging" % SPEC)
    found = re.search(r"^Version:\s*(\S+)", read(SPEC), re.MULTILINE)
    if not found or found.group(1) != upstream:
        raise Unusable("rpm/treenail.spec has version %s, VERSION says %s: change the spec and add "
                       "an entry to its %%changelog" % (found and found.group(1), upstream))
    return upstream


def require(without):
    """Says which packages are missing that the build needs, before it begins."""
    distro = this_distro()
    if not shutil.which("rpmbuild"):
        raise Unusable("rpmbuild is not installed; %s" % (
            "apt-get install rpm" if distro.family == "debian" else "dnf install rpm-build"))
    if distro.family != "debian":
        return
    uses = ["build", "feature"] + [use for use, word in (("test", "tests"), ("run", "tests"),
                                                         ("docs", "docs")) if word not in without]
    names = packages.wanted(uses, distro)
    missing = sorted(set(names) - packages.installed(names, distro.family))
    if missing:
        raise Unusable("these packages are needed: apt-get install %s" % " ".join(missing))


def source_archive(folder):
    """The archive of `ninja dist` in the folder, and the patches of our own series beside it."""
    upstream = version()
    own_patches.for_rpm(upstream, read(SPEC), folder)
    path = os.path.join(folder, "treenail-%s.tar.gz" % upstream)
    write_whole(path, dist.archive(SOURCE, upstream, epoch(SOURCE)))
    return path


def commands(topdir, without=(), define=(), packaging=PACKAGING):
    """rpmbuild for the source package and for the binary ones, to be run in `topdir`.

    Each by itself, for rpm writes the spec with all macros expanded, paths and -j among them, into
    the source package, and the sum of that into each binary package that it makes in the same run.
    So the source package is made with relative paths. Debian's rpm knows fewer macros, and no
    package that is installed.
    """
    debian = ["--load", os.path.join(packaging, "macros.debian"), "--nodeps"] if (
        this_distro().family == "debian") else []
    options = [word for name in without for word in ("--without", name)]
    spec = os.path.join(packaging, "treenail.spec")
    result = []
    for kind, values in (("-bs", [("_topdir", "."), ("_smp_build_ncpus", 1)]),
                         ("-bb", [("_topdir", topdir), *define])):
        defined = [word for value in values for word in ("--define", "%s %s" % value)]
        result.append(["rpmbuild", *debian, *defined, *options, kind, spec])
    return result


def compilers():
    """CC and CXX as this build has them; none of its flags."""
    try:
        stored = json.loads(read(os.path.abspath("gen/configuration.json")))["environment"]
    except (OSError, ValueError, KeyError):
        stored = {}
    return settings(**{name: stored[name] for name in ("CC", "CXX") if stored.get(name)})


def built(topdir, runs, environment, log, quiet=False, umask=-1):
    """Runs each of these commands in the directory, with one log. Returns the packages made."""
    for index, words in enumerate(runs):
        logged(words, log, _STEP, quiet, "a" if index else "w", env=environment, umask=umask,
               cwd=topdir)
    return made(topdir)


def made(topdir):
    """The packages in a directory of rpmbuild's, by their paths."""
    found = []
    for name in ("RPMS", "SRPMS"):
        for folder, _, leaves in os.walk(os.path.join(topdir, name)):
            found += [os.path.join(folder, leaf) for leaf in leaves if leaf.endswith(".rpm")]
    return sorted(found, key=os.path.basename)


def build(topdir, without=(), quiet=False):
    """Packages of the tree as it stands, in an emptied directory."""
    require(without)
    for name in ("BUILD", "BUILDROOT", "RPMS", "SRPMS", "SOURCES", "SPECS"):
        shutil.rmtree(os.path.join(topdir, name), ignore_errors=True)
    source_archive(os.path.join(topdir, "SOURCES"))
    return built(topdir, commands(topdir, without), compilers(),
                 os.path.join(topdir, "build.log"), quiet)


def lint(paths):
    """A sentence, and the lines of rpmlint that gen/identity.py does not explain."""
    if not shutil.which("rpmlint"):
        return "rpmlint: not run, it is not installed", []
    rules = os.path.join(PACKAGING, "rpmlint.toml")
    done = subprocess.run(["rpmlint", "-c", rules, SPEC, *paths], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
                          check=False)
    explained, left, checked = set(), [], False
    for line in done.stdout.splitlines():
        tag = re.match(r"\S+: [EWI]: (\S+)", line)
        field, expected = IDENTITY_TAGS.get(tag.group(1), ("", False)) if tag else ("", False)
        if expected:
            explained.add("%s (%s)" % (tag.group(1), field))
        elif tag or "unused-rpmlintrc-filter" in line:
            left.append(line)
        checked = checked or "specfiles checked" in line
    if not checked:
        left.append("rpmlint ended with status %d:\n%s" % (done.returncode, done.stdout))
    return "rpmlint: %d unexplained; for want of an identity (gen/identity.py): %s" % (
        len(left), ", ".join(sorted(explained)) or "none"), left


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", default="rpm", help="directory to make them in [rpm]")
    parser.add_argument("--without", action="append", default=[], choices=("tests", "docs"),
                        help="as rpmbuild's option; may be repeated. TREENAIL_RPM_WITHOUT in the "
                        "environment does the same, in words")
    options = parser.parse_args()
    without = options.without + os.environ.get("TREENAIL_RPM_WITHOUT", "").split()
    folder = os.path.abspath(options.into)
    paths = build(folder, without)
    print("\n".join(size_table(paths, MAIN, LIMIT)))
    return judged(lambda: lint(paths), lambda: shipped.report(paths, folder))


if __name__ == "__main__":
    ended(main, {Unusable: "", Failed: ""})
