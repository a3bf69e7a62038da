# SPDX-License-Identifier: Apache-2.0
"""Build dependencies that packages declare, and that documents name, held to gen/deps.py."""

import glob
import os
import re

from packaging_files import read_control, read_spec, relations, tree_file
from packaging_manifest import PACKAGES
from proving import NotRun, SOURCE
from gen.deps import BLAS_PACKAGES, DEPENDENCIES, NON_FREE

# The uses that a package build needs, and the condition that it stands under: Debian's build
# profile, the spec's %bcond. Tests import NumPy, which is otherwise needed at run time alone.
USES = {"build": ("", ""), "feature": ("", ""), "run": ("nocheck", "tests"),
        "test": ("nocheck", "tests"), "docs": ("nodoc", "docs")}
# A distribution's switchable BLAS: Debian's libblas.so.3, Fedora's FlexiBLAS.
BLAS = {"debian": BLAS_PACKAGES["generic"][0], "fedora": BLAS_PACKAGES["flexiblas"][1]}
# Where a package is built with something else than a user would install: what is always there
# (build-essential), every supported Python instead of one, and Fedora's names for header-only
# libraries, by which rebuilds are found.
INSTEAD = {
    "debian": {"g++": (), "binutils": (),
               "python3-dev": ("libpython3-all-dev", "python3-all-dev")},
    "fedora": {"pybind11-devel": ("pybind11-static",)},
}
# What only packaging needs: the name and its profile.
MORE = {"debian": {"architecture-is-64-bit": "", "debhelper-compat": "", "dh-sequence-python3": "",
                   "dh-sequence-sphinxdoc": "nodoc"}, "fedora": {}}


def build_dependencies(family, source=SOURCE):
    """Package -> (condition, why), as gen/deps.py has it."""
    found = {}
    for dep in DEPENDENCIES:
        adapter = os.path.join(source, "kernels/adapters", dep.name)
        if dep.use not in USES or (dep.use == "feature" and not os.path.isdir(adapter)):
            continue
        condition = USES[dep.use][family == "fedora"]
        names = BLAS[family] if dep.name == "blas" else dep.packages(family)
        for name in names.split():
            for each in INSTEAD[family].get(name, (name,)):
                found[each] = (condition, "%s '%s'" % (dep.use, dep.name))
    return found


def held_to_table(path, head, given, family, source=SOURCE):
    """given: name -> (line, condition). Sentences about what differs from gen/deps.py."""
    wanted, more = build_dependencies(family, source), MORE[family]
    found = []

    def under(name, condition):
        if not condition:
            return name
        return "%s <!%s>" % (name, condition) if family == "debian" else (
            "%s in %%if %%{with %s}" % (name, condition))

    for name, (condition, why) in sorted(wanted.items()):
        if name not in given:
            found.append("%s:%d: %s is missing; gen/deps.py needs it for %s: %s" % (
                path, head, name, why, under(name, condition)))
        elif given[name][1] != condition:
            found.append("%s:%d: %s; gen/deps.py needs it for %s: %s" % (
                path, given[name][0], under(name, given[name][1]), why, under(name, condition)))
    for name, (line, condition) in sorted(given.items()):
        if name in wanted:
            continue
        if name not in more:
            found.append("%s:%d: %s is in no row of gen/deps.py that a package is built with; add "
                         "a row there, or take it out" % (path, line, name))
        elif more[name] != condition:
            found.append("%s:%d: %s; wanted: %s" % (path, line, under(name, condition),
                                                    under(name, more[name])))
    return found


def debian_dependencies(source=SOURCE):
    """Build-Depends of debian/control are those of gen/deps.py, under the right profiles"""
    path = "debian/control"
    stanza = read_control(tree_file(path, source))[0]
    given, head, architectures = {}, 1, ()
    for name in ("Build-Depends", "Build-Depends-Arch", "Build-Depends-Indep"):
        if name not in stanza:
            continue
        head = max(head, stanza[name].line) if head == 1 else head
        for relation in relations(stanza[name]):
            condition = " ".join(p.lstrip("!") for p in relation.profiles if p != "!cross")
            given[relation.name] = (relation.line, condition)
            if relation.name == "libdnnl-dev":
                architectures = (relation.line, relation.architectures)
    found = held_to_table(path, head, given, "debian", source)
    rules = os.path.join(source, "debian/rules")
    if architectures and os.path.exists(rules):
        for number, line in enumerate(tree_file("debian/rules", source).splitlines(), 1):
            asked = re.match(r"ONEDNN\s*=.*\$\(filter ([^,]*),", line)
            if asked and set(asked.group(1).split()) != set(architectures[1]):
                found.append("%s:%d: oneDNN is built with on %s, but debian/rules:%d has %s" % (
                    path, architectures[0], " ".join(architectures[1]) or "every architecture",
                    number, asked.group(1)))
    return found, "%d build dependencies" % len(given)


def rpm_dependencies(source=SOURCE):
    """BuildRequires of rpm/treenail.spec are those of gen/deps.py, in the right conditions"""
    path = "rpm/treenail.spec"
    spec = read_spec(tree_file(path, source))
    given, head = {}, 1
    conditional = {(name, dep.name) for dep in NON_FREE for name in dep.fedora.split()}
    for line, value in spec.tags("BuildRequires"):
        head = line.number if head == 1 else head
        for name in re.split(r"[\s,]+", re.sub(r"[<>=]+\s*\S+", "", value)):
            if name and (name, " ".join(line.conditions)) not in conditional:
                given[name] = (line.number, " ".join(line.conditions))
    return held_to_table(path, head, given, "fedora", source), "%d build dependencies" % len(given)


# The components of the stack that stand for a row, and the role that brings compilers with their
# binutils; beside cross compilers no other can be installed.
STACK = {"blas", "lapack", "hdf5", "c++", "binutils"}


def ansible_dependencies(source=SOURCE):
    """packages that the stack's Treenail is built and tested with are those of gen/deps.py"""
    path = "ansible/roles/treenail/component.yml"
    text = tree_file(path, source)
    try:
        import yaml
    except ImportError:
        raise NotRun("Python's yaml is not installed; apt-get install python3-yaml") from None
    record, found, count = yaml.safe_load(text), [], 0
    suite = record["suite"]["build"]["long"].get("packages", {})
    for field, given, uses, what in (
            ("build_packages", record["build_packages"], ("build", "feature", "run"), "built"),
            ("packages of the long suite", suite, ("test",), "tested")):
        for name, family in (("Debian", "debian"), ("RedHat", "fedora")):
            names = set(given.get(name, []))
            count += len(names)
            wanted = {word for dep in DEPENDENCIES for word in dep.packages(family).split()
                      if dep.use in uses and dep.name not in STACK}
            for word in sorted(wanted ^ names):
                found.append("%s: %s of %s: %s %s" % (path, field, name, word, (
                    "is missing; gen/deps.py has it" if word in wanted else
                    "is in no row of gen/deps.py that Treenail is %s with" % what)))
    return found, "%d packages" % count


def documents(source=SOURCE):
    """packages that README.md and docs/ name are of gen/deps.py or our own"""
    known = {word for dep in DEPENDENCIES for names in (dep.debian, dep.fedora)
             for word in names.split()} | {name for row in BLAS_PACKAGES.values() for name in row}
    known |= {name for table in INSTEAD.values() for names in table.values() for name in names}
    known |= {name for table in PACKAGES.values() for name in table.values()}
    tree_file("README.md", source)
    found, count = [], 0
    for path in ["README.md", *sorted(os.path.relpath(path, source) for path in glob.glob(
            os.path.join(source, "docs/**/*.md"), recursive=True))]:
        for number, line in enumerate(tree_file(path, source).splitlines(), 1):
            for name in re.findall(r"\b(?:lib[\w.+-]+-dev|[\w.+-]+-devel|python3-[\w.+-]*\w)\b",
                                   line):
                count += 1
                if name not in known:
                    found.append("%s:%d: %s is no package of gen/deps.py" % (path, number, name))
    return found, "%d packages named" % count
