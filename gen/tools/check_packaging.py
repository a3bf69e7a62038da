# SPDX-License-Identifier: Apache-2.0
"""Hold debian/, rpm/ and the built product to the facts that they repeat; run in a build directory.

What is a fact: gen/deps.py (build dependencies), gen/install.json (files and the parts that they
belong to), gen/identity.py, VERSION, tests/abi. A part whose folder or tool is absent is not run,
and says so. Each finding names file and line, what is there and what is wanted.

  check_packaging.py          every part
  check_packaging.py NAME...  only these
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import abi  # noqa: E402  (the path must be set first)
from packaging_files import covers, read_control, read_spec, relations  # noqa: E402
from proving import SOURCE, TOOLS, Failed, NotRun, build_info, need, run  # noqa: E402
from gen import identity  # noqa: E402
from gen.deps import BLAS_PACKAGES, DEPENDENCIES, FEATURES  # noqa: E402

# ---- from gen/deps.py to build dependencies ------------------------------------------------------

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
    "debian": {"g++": (), "binutils": (), "pkg-config": ("pkgconf",),
               "python3-dev": ("libpython3-all-dev", "python3-all-dev")},
    "fedora": {"pybind11-devel": ("pybind11-static",)},
}
# What only packaging needs: the name and its profile.
MORE = {"debian": {"architecture-is-64-bit": "", "debhelper-compat": "", "dh-sequence-python3": "",
                   "dh-sequence-sphinxdoc": "nodoc"}, "fedora": {}}

# ---- from the install manifest to packages -------------------------------------------------------

NOWHERE = "no package"
PACKAGES = {
    "debian": {"runtime": "libtreenail%d", "development": "libtreenail-dev",
               "fftw": "libtreenail%d-fftw", "python": "python3-treenail",
               "tools": "treenail-tools", "license": NOWHERE},
    "fedora": {"runtime": "treenail-libs", "development": "treenail-devel",
               "fftw": "treenail-fftw", "python": "python3-treenail", "tools": "treenail-tools",
               "license": NOWHERE},
}

# ---- what the product may need ---------------------------------------------------------------

SYSTEM = re.compile(
    r"(libc|libm|libstdc\+\+|libgcc_s|libpthread|libdl|ld-linux[\w-]*|ld64)\.so\.\d+\Z")
# How the sonames of each feature's libraries begin, under every name that distributions give them.
SONAMES = {
    "blas": ("libblas.so.", "libflexiblas.so.", "libopenblas", "libblis"),
    "onednn": ("libdnnl.so.",), "hdf5": ("libhdf5.so.", "libhdf5_serial.so."),
    "fftw": ("libfftw3.so.", "libfftw3f.so."), "re2": ("libre2.so.",),
    "jpeg": ("libjpeg.so.",), "png": ("libpng16.so.",),
}
# Mangled names of functions, variables and type information in namespaces of other people.
FOREIGN = re.compile(r"_Z(?:GV|T[A-Z]|GR)?N?[KVrRO]*(?:St|S[absiod]|5Eigen|4absl|"
                     r"6google8protobuf)")
WHOSE = {"5Eigen": "Eigen::", "4absl": "absl::", "6google8protobuf": "google::protobuf::"}


def tree_file(name, source=SOURCE):
    """Its text; raises NotRun where it is not there."""
    path = os.path.join(source, name)
    if not os.path.exists(path):
        raise NotRun("%s is not there" % name)
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def version(source=SOURCE):
    return tree_file("VERSION", source).strip()


def major(source=SOURCE):
    return int(version(source).split(".")[0])


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
    for line, value in spec.tags("BuildRequires"):
        head = line.number if head == 1 else head
        for name in re.split(r"[\s,]+", re.sub(r"[<>=]+\s*\S+", "", value)):
            if name:
                given[name] = (line.number, " ".join(line.conditions))
    return held_to_table(path, head, given, "fedora", source), "%d build dependencies" % len(given)


def readme(source=SOURCE):
    """packages that README.md names are names of gen/deps.py"""
    known = {word for dep in DEPENDENCIES for names in (dep.debian, dep.fedora)
             for word in names.split()} | {name for row in BLAS_PACKAGES.values() for name in row}
    known |= {name for table in INSTEAD.values() for names in table.values() for name in names}
    found, count = [], 0
    for number, line in enumerate(tree_file("README.md", source).splitlines(), 1):
        for name in re.findall(r"\b(?:lib[\w.+-]+-dev|[\w.+-]+-devel|python3-[\w.+-]*\w)\b", line):
            count += 1
            if name not in known and name != "python3-treenail":
                found.append("README.md:%d: %s is no package of gen/deps.py" % (number, name))
    return found, "%d packages named" % count


# ---- files -----------------------------------------------------------------------------------


def as_packaged(manifest, libdir, python):
    """(path, part) of each file of the manifest, moved from the build's directories to those of a
    package: a build may have any prefix."""
    own = os.path.dirname(manifest["private"])
    pythons = sorted({e["to"].rsplit("/treenail/", 1)[0] for e in manifest["entries"]
                      if e["package"] == "python" and e["to"].endswith("/treenail/__init__.py")})
    prefix = manifest["prefix"].rstrip("/")
    result = []
    for entry in manifest["entries"]:
        path = entry["to"]
        moves = [(folder, python) for folder in pythons] + [(own, libdir), (prefix, "/usr")]
        for old, new in moves:
            if path.startswith(old + "/"):
                path = new + path[len(old):]
                break
        result.append((path.lstrip("/"), entry["package"]))
    return sorted(set(result))


def not_built(pattern, features):
    """Is it the file of an optional part that this build was made without?"""
    name = re.match(r"libtreenail-(\w+)\.so\Z", pattern.rsplit("/", 1)[-1])
    return bool(name) and name.group(1) in {dep.name for dep in FEATURES} - set(features)


def held_to_manifest(files, patterns, packages, features):
    """patterns: (place, package, pattern). Each file once, and in the right package."""
    found, used = [], set()
    for path, part in files:
        hits = [row for row in patterns if covers(row[2], path)]
        used.update(hits)
        wanted = packages[part]
        where = ", ".join("%s (%s)" % (place, package) for place, package, _ in hits)
        if not hits:
            found.append("/%s: named nowhere; part '%s' of the manifest belongs to %s" % (
                path, part, wanted))
        elif {package for _, package, _ in hits} != {wanted}:
            found.append("%s: /%s; part '%s' of the manifest belongs to %s" % (
                where, path, part, wanted))
        elif len(hits) > 1:
            found.append("%s: /%s is named more than once" % (where, path))
    for row in patterns:
        if row not in used and not not_built(row[2], features):
            found.append("%s: %s matches no file of the manifest" % (row[0], row[2]))
    return found


def read_manifest():
    with open("gen/install.json", encoding="utf-8") as stream:
        return json.load(stream)


def of_version(packages, number):
    return {part: name % number if "%d" in name else name for part, name in packages.items()}


def debian_patterns(source):
    """Rows for held_to_manifest from debian/*.install and debian/not-installed; what they take from
    elsewhere than what was installed is none of ours."""
    folder, rows = os.path.join(source, "debian"), []
    for name in sorted(os.listdir(folder)):
        if name != "not-installed" and not name.endswith((".install", ".manpages")):
            continue
        package = NOWHERE if name == "not-installed" else name.rsplit(".", 1)[0]
        for number, line in enumerate(tree_file("debian/" + name, source).splitlines(), 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            pattern = re.sub(r"\A(?:debian/tmp/|/)", "", words[0])
            if pattern.split("/")[0] in ("usr", "etc", "lib"):
                rows.append(("debian/%s:%d" % (name, number), package, pattern))
    return rows


def debian_files(source=SOURCE, manifest=None, features=None):
    """debian/*.install and not-installed take each file of the manifest once, to its package"""
    tree_file("debian/control", source)
    files = as_packaged(manifest or read_manifest(), "/usr/lib/TRIPLET",
                        "/usr/lib/python3/dist-packages")
    packages = of_version(PACKAGES["debian"], major(source))
    if features is None:
        features = build_info("kFeatures").split()
    return held_to_manifest(files, debian_patterns(source), packages, features), (
        "%d files" % len(files))


SPEC_FOLDERS = {"_prefix": "/usr", "_bindir": "/usr/bin", "_libdir": "/usr/lib64",
                "_includedir": "/usr/include", "_datadir": "/usr/share",
                "_mandir": "/usr/share/man", "_docdir": "/usr/share/doc",
                "python3_sitearch": "/usr/lib64/python3.X/site-packages"}


def spec_patterns(source):
    """Rows for held_to_manifest from %files, and from what %install removes again. Directories
    (%dir) and what comes from the source tree (%license, %doc) are no files of the manifest."""
    text = tree_file("rpm/treenail.spec", source)
    spec = read_spec("".join("%%global %s %s\n" % row for row in SPEC_FOLDERS.items()) + text)
    shift = len(SPEC_FOLDERS)
    rows = []
    for package, line in spec.files():
        words = line.text.split()
        if "%dir" in words:
            continue
        for word in words:
            if word.startswith("/"):
                # %license marks a licence file, whichever package it lies in.
                owner = NOWHERE if {"%exclude", "%license"} & set(words) else package
                rows.append(("rpm/treenail.spec:%d" % (line.number - shift), owner, word))
    for (section, _), lines in spec.sections.items():
        for line in lines:
            if section == "install" and re.match(r"rm\b", line.text):
                rows += [("rpm/treenail.spec:%d" % (line.number - shift), NOWHERE, path)
                         for path in re.findall(r"%\{buildroot\}(/\S+)", line.text)]
    return rows


def rpm_files(source=SOURCE, manifest=None, features=None):
    """%files of rpm/treenail.spec name each file of the manifest once, in its package"""
    rows = spec_patterns(source)
    files = as_packaged(manifest or read_manifest(), SPEC_FOLDERS["_libdir"],
                        SPEC_FOLDERS["python3_sitearch"])
    if features is None:
        features = build_info("kFeatures").split()
    return held_to_manifest(files, rows, PACKAGES["fedora"], features), "%d files" % len(files)


# ---- identity and version --------------------------------------------------------------------


def same(path, line, what, there, wanted, fact):
    """A sentence where a value is not the fact's; "" stands for a field that must not be there."""
    if there == wanted:
        return []
    if not wanted:
        return ["%s:%d: %s is %s; %s is empty, so wanted: none" % (path, line, what, there, fact)]
    return ["%s:%d: %s is %s; %s says %s" % (path, line, what, there or "missing", fact, wanted)]


def debian_changelog(source):
    """(upstream version, line and text of the trailer, text of the newest entry)."""
    text = tree_file("debian/changelog", source)
    head = re.match(r"\S+ \((?:\d+:)?([^)]+)\)", text)
    if not head:
        raise Failed("debian/changelog:1: no `treenail (VERSION-1) ...`")
    lines = text.splitlines()
    at = next((i for i, line in enumerate(lines) if line.startswith(" -- ")), len(lines) - 1)
    return head.group(1).rsplit("-", 1)[0], (at + 1, lines[at]), "\n".join(lines[:at])


def debian_identity(source=SOURCE):
    """who and where in debian/ are those of gen/identity.py"""
    path, found = "debian/control", []
    stanza = read_control(tree_file(path, source))[0]

    def held(name, wanted, fact):
        there = stanza[name].value if name in stanza else ""
        line = stanza[name].line if name in stanza else 1
        found.extend(same(path, line, name, there, wanted, "gen/identity.py's " + fact))

    held("Maintainer", identity.MAINTAINER, "MAINTAINER")
    held("Homepage", identity.HOMEPAGE, "HOMEPAGE")
    for name in ("Vcs-Git", "Vcs-Browser"):
        there = stanza[name].value if name in stanza else ""
        if not identity.REPOSITORY or not there.startswith(identity.REPOSITORY):
            held(name, identity.REPOSITORY, "REPOSITORY")  # a branch may follow
    _, (line, trailer), entry = debian_changelog(source)
    who = re.match(r" -- (.*>)  ", trailer)
    found += same("debian/changelog", line, "the trailer", who.group(1) if who else trailer,
                  identity.MAINTAINER, "gen/identity.py's MAINTAINER")
    closed = re.findall(r"(?i)closes:?\s*#?(\d+)", entry)
    if closed and not identity.ITP_BUG:
        found += same("debian/changelog", 1, "a closed bug", "#" + closed[0], "",
                      "gen/identity.py's ITP_BUG")
    urls = {"debian/watch": identity.HOMEPAGE, "debian/upstream/signing-key.asc":
            identity.SIGNING_KEY}
    for name, fact in urls.items():
        there = os.path.exists(os.path.join(source, name))
        if there and not fact:
            found.append("%s is there, but gen/identity.py names nothing that it could point to: "
                         "remove it" % name)
        elif fact and not there:
            found.append("%s is missing, but gen/identity.py says %s: add it" % (name, fact))
    metadata = os.path.join(source, "debian/upstream/metadata")
    if os.path.exists(metadata):
        for number, line in enumerate(tree_file("debian/upstream/metadata", source).splitlines(),
                                      1):
            address = re.search(r"\w+://\S+", line.split("#")[0])
            known = [fact for fact in (identity.HOMEPAGE, identity.REPOSITORY) if fact]
            if address and not any(address.group(0).startswith(fact) for fact in known):
                found.append("debian/upstream/metadata:%d: %s; gen/identity.py knows %s" % (
                    number, address.group(0), ", ".join(known) or "no address"))
    return found, "as gen/identity.py"


def rpm_identity(source=SOURCE):
    """who and where in rpm/treenail.spec are those of gen/identity.py"""
    path, found = "rpm/treenail.spec", []
    spec = read_spec(tree_file(path, source))
    for line, value in list(spec.tags("URL")) or [(None, "")]:
        found += same(path, line.number if line else 1, "URL", value, identity.HOMEPAGE,
                      "gen/identity.py's HOMEPAGE")
    for tag in ("Packager", "Vendor"):
        for line, value in spec.tags(tag):
            found.append("%s:%d: %s is %s; wanted: none, who builds the package sets it" % (
                path, line.number, tag, value))
    for line in spec.sections.get(("changelog", spec.name), ()):
        who = re.match(r"\* \w+ \w+ +\d+ \d+ (.*?>)", line.text)
        if who:
            found += same(path, line.number, "%changelog", who.group(1), identity.MAINTAINER,
                          "gen/identity.py's MAINTAINER")
            break
    else:
        found.append("%s:1: no entry in %%changelog" % path)
    return found, "as gen/identity.py"


def debian_version(source=SOURCE):
    """debian/changelog and package names agree with VERSION"""
    there, _, _ = debian_changelog(source)
    found = same("debian/changelog", 1, "the upstream version", there, version(source), "VERSION")
    names = {}
    for stanza in read_control(tree_file("debian/control", source))[1:]:
        if "Package" in stanza:
            names[stanza["Package"].value] = stanza["Package"].line
    for name in sorted(set(of_version(PACKAGES["debian"], major(source)).values()) - {NOWHERE}):
        if name not in names:
            found.append("debian/control:1: no package %s, which VERSION %s wants" % (
                name, version(source)))
    for name, line in names.items():
        number = re.match(r"libtreenail(\d+)", name)
        if number and int(number.group(1)) != major(source):
            found.append("debian/control:%d: package %s; the SONAME of VERSION %s ends in %d" % (
                line, name, version(source), major(source)))
    return found, version(source)


def rpm_version(source=SOURCE):
    """the spec's Version, %changelog and soversion agree with VERSION"""
    path, found = "rpm/treenail.spec", []
    spec = read_spec(tree_file(path, source))
    for line, value in spec.tags("Version"):
        found += same(path, line.number, "Version", value, version(source), "VERSION")
    if "version" not in spec.macros:
        found.append("%s:1: no Version; VERSION says %s" % (path, version(source)))
    if spec.macros.get("soversion", str(major(source))) != str(major(source)):
        found.append("%s:1: soversion is %s; the SONAME of VERSION %s ends in %d" % (
            path, spec.macros["soversion"], version(source), major(source)))
    for line in spec.sections.get(("changelog", spec.name), ()):
        entry = re.match(r"\*.*> -? ?([^-\s]+)-\S+\Z", line.text)
        if entry:
            found += same(path, line.number, "%changelog's newest version", entry.group(1),
                          version(source), "VERSION")
            break
    return found, version(source)


# ---- the product -----------------------------------------------------------------------------


class Installed:
    """What this build installs, below a temporary directory."""

    def __init__(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.root = self.scratch.name
        run([sys.executable, "-B", os.path.join(TOOLS, "install.py"), "--manifest",
             "gen/install.json"], environment={"DESTDIR": self.root})
        self.entries = read_manifest()["entries"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.scratch.cleanup()

    def elves(self):
        """(path below the root, whole path, entry) of each shared object and program."""
        for entry in self.entries:
            if entry["kind"] == "module":
                yield entry["to"], self.root + entry["to"], entry


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run(["readelf", "-dW", path]))


def exports(path):
    """Mangled names of what a file defines for others."""
    found = []
    for line in run(["nm", "-D", "--defined-only", path]).splitlines():
        words = line.split()
        if len(words) > 1 and words[-2] != "A":  # A: the names of version nodes
            found.append(words[-1].split("@")[0])
    return found


def may_need(name, number):
    """What a file of ours may need, by its place: (expression for ours, sonames of features)."""
    ours = "libtreenail.so.%d" % number
    adapter = re.search(r"/adapters/libtreenail-(\w+)\.so\Z", name)
    if adapter:
        return ours, SONAMES.get(adapter.group(1), ())
    if os.path.basename(name).startswith("libtreenail.so."):
        return "", ()
    return ours, ()


def needs_of(name, sonames, number):
    """Sentences about libraries that a file needs and may not."""
    ours, features = may_need(name, number)
    found = []
    for soname in sonames:
        if "cuda" in soname or soname.startswith("libnv"):
            found.append("%s: needs %s, which is not free: only a plugin of a package of its own "
                         "may" % (name, soname))
        elif not SYSTEM.match(soname) and soname != ours and not soname.startswith(features or
                                                                                   ("\0",)):
            found.append("%s: needs %s; wanted: the C and C++ libraries%s%s" % (
                name, soname, ", " + ours if ours else "", "".join(
                    ", %s*" % feature for feature in features)))
    if features and not any(soname.startswith(features) for soname in sonames):
        found.append("%s: needs none of %s, which it is the adapter of" % (
            name, " ".join(features)))
    return found


def foreign(name, symbols):
    """Sentences about exported symbols that belong to other people's libraries."""
    found = []
    for symbol in symbols:
        if FOREIGN.match(symbol):
            whose = next((WHOSE[key] for key in WHOSE if key in symbol[:24]), "std::")
            found.append("%s: exports %s, of %s; wanted: hidden, or another library's copy of it "
                         "in the same process is taken for ours" % (name, symbol, whose))
    return found


def libraries():
    """shared objects need what is declared and export nothing of std, Eigen, absl or protobuf"""
    need("readelf", "binutils")
    found, count, levels = [], 0, {}
    number = int(build_info("kVersion").split(".")[0])
    with Installed() as tree:
        for name, path, _ in tree.elves():
            count += 1
            found += needs_of(name, needed(path), number)
            symbols = exports(path)
            if ".so" in os.path.basename(name):  # of a program, libraries take what they share
                found += foreign(name, symbols)
            with open(path, "rb") as stream:
                if b"libcuda" in stream.read():
                    found.append("%s: names libcuda; wanted: in a plugin of its own" % name)
            if "/kernels/" in name:
                levels.setdefault(os.path.basename(name), {})[name] = sorted(symbols)
    for rows in levels.values():
        first = next(iter(rows))
        for name, symbols in rows.items():
            if symbols != rows[first]:
                found.append("%s: exports %s; wanted what %s exports: %s" % (
                    name, " ".join(symbols), first, " ".join(rows[first])))
    return found, "%d files, %d levels" % (count, sum(map(len, levels.values())))


def paths():
    """no installed file names the build or the source directory"""
    here = {os.path.abspath("."), os.path.realpath("."), os.path.abspath(SOURCE),
            os.path.realpath(SOURCE)}
    # Below a directory of one short name everything would match.
    needles = sorted(path.encode() for path in here if len(path) > 5)
    found, count = [], 0
    with Installed() as tree:
        for entry in tree.entries:
            path = tree.root + entry["to"]
            if os.path.islink(path):
                data = os.readlink(path).encode()
            else:
                with open(path, "rb") as stream:
                    data = stream.read()
            count += 1
            for needle in needles:
                at = data.find(needle)
                if at >= 0:
                    text = data[at:at + 200].split(b"\0")[0].splitlines()[0]
                    found.append("%s: names %s at byte %d; wanted: no path of the machine it was "
                                 "built on" % (entry["to"], text.decode(errors="replace"), at))
                    break
    return found, "%d files" % count


def interface():
    """the C interface is the one that tests/abi tracks: headers, and abidw's description"""
    number = int(build_info("kVersion").split(".")[0])
    found = abi.header_differences(number)
    if found:
        return found + [abi.RULE % (number + 1)], ""
    return [], abi.compare(".")


CHECKS = (debian_dependencies, debian_files, debian_identity, debian_version, rpm_dependencies,
          rpm_files, rpm_identity, rpm_version, readme, libraries, paths, interface)


def outcome(check):
    """(verdict, text) of a check."""
    try:
        found, text = check()
    except NotRun as reason:
        return "not run", str(reason)
    except Failed as reason:
        return "FAILED", str(reason)
    return ("FAILED", "\n".join(found)) if found else ("ok", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    known = {check.__name__.replace("_", "-"): check for check in CHECKS}
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    options = parser.parse_args()
    for name in options.names:
        if name not in known:
            parser.error("unknown part '%s'; there are %s" % (name, ", ".join(known)))
    run(["ninja", "generated-headers"])
    verdicts = []
    for name, check in known.items():
        if options.names and name not in options.names:
            continue
        verdict, text = outcome(check)
        verdicts.append(verdict)
        print("%-20s %-8s %s" % (name, verdict, text if verdict != "FAILED" else ""))
        if verdict == "FAILED":
            print("".join("    %s\n" % line for line in text.splitlines()), end="")
        sys.stdout.flush()
    print("packaging: %d parts agree, %d do not, %d not run" % tuple(
        verdicts.count(v) for v in ("ok", "FAILED", "not run")))
    return 1 if "FAILED" in verdicts or "ok" not in verdicts else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.SubprocessError as error:
        sys.exit("check-packaging: %s" % error)
