# SPDX-License-Identifier: Apache-2.0
"""What is not free: no package of main needs any of it, and the package that does agrees with them.

debian/ and the spec without its conditional `cuda` make packages for archives that have free
software alone; debian-cuda/ makes the one of contrib.
"""

import os
import re

from packaging_files import (changelog_entry, covers, major, read_control, read_spec, relations,
                             tree_file, version)
from packaging_identity import same
from packaging_manifest import NON_FREE_PARTS
from proving import SOURCE
from gen.deps import NON_FREE

FOLDER = "debian-cuda"
PRIVATE_ABI = "${treenail:PrivateAbi}"
# How packages of what is not free, and ours of contrib, are called in Debian and by NVIDIA.
NOT_FREE = re.compile("|".join([
    r"nvidia", r"(?:^|-)cuda(?:$|-)", r"libcuda", r"libcu(?:blas|fft|dnn|rand|solver|sparse)",
    r"cudnn", r"\bnccl|libnccl", r"libnv\w*"] + [
        r"^%s$" % re.escape(name) for dep in NON_FREE
        for name in (dep.debian + " " + dep.fedora).split()]), re.IGNORECASE)
# Policy 2.2.1: what a package of main may not name first. It may suggest anything.
NEEDING = ("Build-Depends", "Build-Depends-Arch", "Build-Depends-Indep", "Pre-Depends", "Depends",
           "Recommends")
ASKING = re.compile(r"--with-(%s)(?!=no\b)|--only=(?!all\b)" % "|".join(d.name for d in NON_FREE))


def debian_free(source=SOURCE):
    """packages of debian/ are of main, and need and recommend nothing that is not free"""
    found, count = [], 0
    for path in ("debian/control", "debian/tests/control"):
        if path != "debian/control" and not os.path.exists(os.path.join(source, path)):
            continue
        for stanza in read_control(tree_file(path, source)):
            section = stanza.get("Section")
            if section and "/" in section.value:
                found.append("%s:%d: Section is %s; wanted: one of main, without a slash" % (
                    path, section.line, section.value))
            for name in NEEDING:
                for relation in relations(stanza[name]) if name in stanza else ():
                    count += 1
                    if NOT_FREE.search(relation.name):
                        found.append("%s:%d: %s names %s, which is not free; %s/ is for what needs "
                                     "it" % (path, relation.line, name, relation.name, FOLDER))
    for number, line in enumerate(tree_file("debian/rules", source).splitlines(), 1):
        if ASKING.search(line):
            found.append("debian/rules:%d: %s builds what is not free; %s/ is for that" % (
                number, ASKING.search(line).group(), FOLDER))
    return found, "%d relations" % count


def rpm_free(source=SOURCE):
    """the spec's packages need nothing that is not free but in %if cuda, which is off"""
    path, found, count = "rpm/treenail.spec", [], 0
    text = tree_file(path, source)
    spec = read_spec(text)
    inside = tuple(dep.name for dep in NON_FREE)
    for tag in ("BuildRequires", "Requires", "Recommends", "Supplements"):
        for line, value in spec.tags(tag):
            for name in re.split(r"[\s,]+", value):
                count += bool(name)
                if NOT_FREE.search(name) and not set(inside) & set(line.conditions):
                    found.append("%s:%d: %s names %s, which is not free; wanted: in %%if %%{with "
                                 "cuda}" % (path, line.number, tag, name))
    depth = 0
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"%%if %%\{with (%s)\}\Z" % "|".join(inside), line) or (
                depth and line.startswith("%if")):
            depth += 1
        elif depth and line.startswith("%endif"):
            depth -= 1
        elif not depth and ASKING.search(re.sub(r"%\{\?with_\w+:[^}]*\}", "", line)):
            found.append("%s:%d: %s builds what is not free; wanted: %%{?with_cuda:...}" % (
                path, number, ASKING.search(line).group()))
        if re.match(r"%%bcond_without (%s)\b" % "|".join(inside), line):
            found.append("%s:%d: %s is on by itself; wanted: %%bcond_with" % (
                path, number, line.split()[1]))
    return found, "%d relations" % count


def _agreeing(stanza, main, path):
    """What two source packages of one archive have in common."""
    found = []
    for name in ("Maintainer", "Homepage", "Standards-Version", "Priority", "Rules-Requires-Root"):
        there, wanted = (one[name].value if name in one else "" for one in (stanza, main))
        line = stanza[name].line if name in stanza else 1
        found += same(path, line, name, there, wanted, "debian/control")

    def compat(one):
        return re.findall(r"debhelper-compat \([^)]*\)", one["Build-Depends"].value) or [""]

    return found + same(path, stanza["Build-Depends"].line, "the compatibility level",
                        compat(stanza)[0], compat(main)[0], "debian/control")


def _binary(stanza, path, name):
    """What the plugin's package must say."""
    found = []
    depends = [relation.name for relation in relations(stanza["Depends"])] if (
        "Depends" in stanza) else []
    if stanza["Package"].value != name:
        found.append("%s:%d: the package is called %s; VERSION wants %s" % (
            path, stanza["Package"].line, stanza["Package"].value, name))
    if "Depends" not in stanza or PRIVATE_ABI not in stanza["Depends"].value:
        found.append("%s:%d: %s does not depend on %s, the very libtreenail that it is built for"
                     % (path, stanza["Package"].line, name, PRIVATE_ABI))
    return found + ["%s:%d: %s depends on %s, which is looked for at run time; wanted: in "
                    "Recommends or Suggests" % (path, stanza["Depends"].line, name, need)
                    for need in depends if NOT_FREE.search(need)]


def _installed(source, name, number):
    """The .install file takes the device libraries that are not free, and nothing else."""
    path, found = "%s/%s.install" % (FOLDER, name), []
    wanted = ["usr/lib/TRIPLET/treenail-%d/devices/libtreenail-%s.so" % (number, part)
              for part in NON_FREE_PARTS]
    rows = [(at, line.split()[0]) for at, line in enumerate(tree_file(path, source).splitlines(), 1)
            if line.strip() and not line.startswith("#")]
    for at, pattern in rows:
        if not any(covers(pattern, file) for file in wanted):
            found.append("%s:%d: %s takes no device library that is not free" % (path, at, pattern))
    return found + ["%s: /%s is taken by no line" % (path, file) for file in wanted
                    if not any(covers(pattern, file) for _, pattern in rows)]


def contrib_package(source=SOURCE):
    """debian-cuda/ is of contrib, of this version, and says what debian/ says"""
    path = FOLDER + "/control"
    stanzas = read_control(tree_file(path, source))
    main = read_control(tree_file("debian/control", source))
    number = major(source)
    name = "libtreenail%d-cuda" % number
    found = _agreeing(stanzas[0], main[0], path)
    for stanza in stanzas:
        section = stanza.get("Section")
        if not section or not section.value.startswith("contrib/"):
            found.append("%s:%d: Section is %s; wanted: contrib/..., for it is built with what is "
                         "not free" % (path, section.line if section else 1,
                                       section.value if section else "missing"))
    for stanza in stanzas[1:]:
        found += _binary(stanza, path, name)
    found += _installed(source, name, number)
    text = tree_file(FOLDER + "/changelog", source)
    found += same(FOLDER + "/changelog", 1, "the upstream version", changelog_entry(text).tree,
                  version(source), "VERSION")
    found += same(FOLDER + "/changelog", 1, "the source package", text.split()[0],
                  stanzas[0]["Source"].value, path)
    library = next(s for s in main[1:] if s["Package"].value == "libtreenail%d" % number)
    if "Provides" not in library or PRIVATE_ABI not in library["Provides"].value:
        found.append("debian/control:%d: libtreenail%d does not provide %s, which %s depends on" % (
            library["Package"].line, number, PRIVATE_ABI, name))
    found += same(FOLDER + "/source/format", 1, "the format",
                  tree_file(FOLDER + "/source/format", source).strip(),
                  tree_file("debian/source/format", source).strip(), "debian/source/format")
    if "Disclaimer:" not in tree_file(FOLDER + "/copyright.header", source):
        found.append("%s/copyright.header:1: no Disclaimer, which policy 12.5 wants of contrib"
                     % FOLDER)
    return found, "as debian/"
