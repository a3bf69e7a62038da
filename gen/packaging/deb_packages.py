# SPDX-License-Identifier: Apache-2.0
"""Debian packages of this tree, source and binary: `ninja deb`.

The source archive is that of `ninja dist`; debian/ is laid over it. Everything is made in deb/ of
the build directory, with the whole log in deb/build.log; the terminal sees the steps, and at the
end what was made, how large it is, and what lintian, blhc and shipped.py have to say.
DEB_BUILD_OPTIONS and DEB_BUILD_PROFILES mean what they mean to dpkg-buildpackage. Where ccache is
installed it is used, at the price of precompiled headers (docs/build.md): the first build takes
longer and others take less. CCACHE_DISABLE=1 does without.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(SOURCE, "gen/tools"), SOURCE]
import dist  # noqa: E402  (the path must be set first)
import own_patches  # noqa: E402
import shipped  # noqa: E402
from archive import epoch, write_whole  # noqa: E402
from packaging_files import changelog_entry  # noqa: E402
from package_build import Unusable, ended, judged, logged, read, settings, size_table  # noqa: E402
from proving import Failed, run  # noqa: E402
from gen import identity, private_abi  # noqa: E402
from gen.distro import this_distro  # noqa: E402

MAIN = ("libtreenail1", "python3-treenail")
LIMIT = 8 * 10 ** 6  # bytes of these two together
# debian/control follows the policy of unstable, which an older release's lintian does not know yet.
OLDER_LINTIAN = {"bookworm": {"newer-standards-version": "it knows none beyond 4.6.2"}}
CCACHE = "/usr/lib/ccache"
# A command of a compiler in the log; ninja numbers them.
COMPILER = re.compile(r"(?:\[\d+/\d+\] )?(?:\S*[/-])?(?:g?cc|[gc]\+\+|clang(?:\+\+)?)(?:-\d+)? "
                      r".*-o \S")
_STEP = re.compile(r"(dh |   (?:dh_|debian/rules )[\w-]+|dpkg-(?:source|gen\w+|buildpackage): )")


def version(packaging="debian"):
    """The source package and the version of its archive, by debian/changelog, which may have a
    suffix; without it VERSION must say the same."""
    upstream = read("VERSION").strip()
    try:
        text = read(packaging, "changelog")
    except FileNotFoundError:
        raise Unusable("%s has no %s/, which the source archive leaves out; take a checkout"
                       % (SOURCE, packaging)) from None
    found = changelog_entry(text)
    if found.tree != upstream:
        raise Unusable("%s/changelog begins with version %s, VERSION says %s: add an entry "
                       "with dch -v %s-1" % (packaging, found.version, upstream, upstream))
    return text.split(None, 1)[0], found.version


def unpacked_source(folder, packaging="debian"):
    """PACKAGE_V.orig.tar.gz and the tree treenail-V in an emptied folder, with the packaging folder
    as debian/ and, in that, the patches of our own series. The archive is the same for each."""
    (package, packaged), upstream = version(packaging), read("VERSION").strip()
    shutil.rmtree(folder, ignore_errors=True)
    orig = os.path.join(folder, "%s_%s.orig.tar.gz" % (package, packaged))
    write_whole(orig, dist.archive(SOURCE, upstream, epoch(SOURCE)))
    with tarfile.open(orig) as archive:
        archive.extractall(folder)
    tree = os.path.join(folder, "treenail-" + packaged)
    if packaged != upstream:
        os.rename(os.path.join(folder, "treenail-" + upstream), tree)
    for name in dist.debian_files(SOURCE, packaging):
        target = os.path.join(tree, "debian", os.path.relpath(name, packaging))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(os.path.join(SOURCE, name), target)
    own_patches.for_debian(upstream, os.path.join(tree, "debian"))
    return tree


def built(tree, arguments, log, quiet=False, **variables):
    """dpkg-buildpackage in the tree, through ccache where that is installed. variables: of the
    environment."""
    if not shutil.which("dpkg-buildpackage"):
        raise Unusable("dpkg-buildpackage is not installed; apt-get install dpkg-dev")
    environment = settings(**variables)
    if shutil.which("ccache") and os.path.isdir(CCACHE) and "CCACHE_DISABLE" not in os.environ:
        environment["PATH"] = CCACHE + ":" + environment["PATH"]
        # debhelper gives the build a home of its own, which goes with the tree.
        environment.setdefault("CCACHE_DIR", run(["ccache", "-k", "cache_dir"]).strip())
    try:
        logged(["dpkg-buildpackage", "-us", "-uc", *arguments], log, _STEP, quiet, cwd=tree,
               env=environment)
    except Unusable as reason:
        if "Unmet build dependencies" not in str(reason):
            raise
        raise Unusable("%s\nInstall them: apt-get build-dep %s" % (
            reason, os.path.relpath(tree))) from None


def made(folder):
    """The packages there."""
    return [os.path.join(folder, name) for name in os.listdir(folder)
            if re.match(r"(lib|python3-)?treenail", name) and os.path.isfile(
                os.path.join(folder, name))]


def programs(path, place):
    """{name: path} of the ELF files of a package, which is unpacked in the directory `place`."""
    shipped.unpacked(path, place)
    found = {}
    for folder, _, leaves in os.walk(place):
        for inner in (os.path.join(folder, leaf) for leaf in leaves):
            if not os.path.islink(inner):
                with open(inner, "rb") as stream:
                    if stream.read(4) == b"\x7fELF":
                        found[os.path.relpath(inner, place)] = inner
    return found


def field(path, name):
    return run(["dpkg-deb", "-f", path, name]).strip()


def bound(folder):
    """What our own programs use of the library is private to its version, and a revision may
    change it: their packages must depend on the very same. A sentence, and those that do not."""
    held, left = [], []
    for path in sorted(path for path in made(folder) if path.endswith(".deb")):
        if "-dbgsym_" in path or "treenail-private-abi-" in field(path, "Provides"):
            continue
        needs = re.split(r", *", field(path, "Depends"))
        with tempfile.TemporaryDirectory() as place:
            if not programs(path, place):
                continue
        name = os.path.basename(path).split("_")[0]
        exact = re.compile(r"libtreenail\d+ \(= %s\)" % re.escape(field(path, "Version")))
        (held if any(map(exact.match, needs)) else left).append(name)
    return "bound to this version of the library: %s%s" % (
        ", ".join(held) or "none", "; not bound:" if left else ""), left


def offered(folder):
    """The private ABI that the library's package provides must be that of the library in it: a
    plugin of another source package depends on it. A sentence, and what is wrong."""
    found, left = [], []
    for path in sorted(path for path in made(folder) if path.endswith(".deb")):
        if "treenail-private-abi-" not in field(path, "Provides"):
            continue
        said = set(re.findall(r"treenail-private-abi-\d\S*-[0-9a-f]{12}(?=,|$)",
                              field(path, "Provides")))
        with tempfile.TemporaryDirectory() as place:
            there = {private_abi.NAME + private_abi.of_library(inner) for name, inner in programs(
                path, place).items() if os.path.basename(name).startswith("libtreenail.so.")}
        found += sorted(there)
        if said != there or len(there) != 1:
            left.append("%s provides %s; its library is of %s" % (
                os.path.basename(path), ", ".join(sorted(said)) or "no build",
                ", ".join(sorted(there)) or "none"))
    return "provided to plugins: " + (", ".join(found) or "nothing"), left


def lint_command(folder):
    """lintian on what was made there."""
    return ["sh", "-c", "cd %s && exec lintian --allow-root --pedantic -I -E --tag-display-limit 0 "
            "*.changes" % shlex.quote(folder)]


def linted(command, release):
    """Runs lint_command's words, in a chroot or here; a sentence, and what lintian says beyond the
    tags that an empty field of gen/identity.py or the age of the release's lintian explains."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    expected = dict(identity.lintian_tags(), **OLDER_LINTIAN.get(release, {}))
    found, left = set(), []
    for line in done.stdout.splitlines():
        tag = re.match(r"[EWIPX]: [^:]+: (\S+)", line)
        if tag and tag.group(1) in expected:
            found.add(tag.group(1))
        elif line.strip() and not line.startswith("N:"):
            left.append(line)
    if done.returncode not in (0, 2):  # 2: it found errors
        left.append("exit status %d" % done.returncode)
    return "lintian of %s: %d unexplained; %s" % (release, len(left), "; ".join(
        "%s (%s)" % (tag, expected[tag]) for tag in sorted(found)) or "none explained"), left


def lint(folder):
    """The same with the lintian of this machine."""
    if not shutil.which("lintian"):
        return "lintian: not run: it is not installed", []
    return linted(lint_command(folder), this_distro().codename)


def hardened(log, folder):
    """What blhc finds missing among the flags of the compilations in the log of what was made in
    the folder; without a compilation, packages of an architecture are not believed."""
    if not shutil.which("blhc"):
        return "blhc: not run: it is not installed", []
    done = subprocess.run(["blhc", "--all", log], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if done.returncode == 1:  # bits; this one: no compiler commands
        if "terse" in os.environ.get("DEB_BUILD_OPTIONS", "").split():
            return "blhc: not run: terse hides the commands", []
        compiled = sorted(os.path.basename(path) for path in made(folder)
                          if path.endswith(".deb") and not path.endswith("_all.deb"))
        return ("blhc: %s shows no compiler commands" % log, compiled) if compiled else (
            "blhc: nothing was compiled", [])
    lines = done.stdout.splitlines() if done.returncode else []
    return "blhc: %s" % ("flags are missing" if lines else "every compilation is hardened"), lines


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", default="deb", help="directory to make them in [deb]")
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT",
                        help="for dpkg-buildpackage, behind '--': -B, -aarm64, ...")
    options = parser.parse_args()
    folder = os.path.abspath(options.into)
    tree, log = unpacked_source(folder), os.path.join(folder, "build.log")
    built(tree, options.arguments, log)
    print("\n".join(size_table(made(folder), MAIN, LIMIT)))
    return judged(lambda: bound(folder), lambda: offered(folder), lambda: lint(folder),
                  lambda: hardened(log, folder),
                  lambda: shipped.report(made(folder), folder))


if __name__ == "__main__":
    ended(main, {Unusable: "", Failed: ""})
