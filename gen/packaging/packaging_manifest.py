# SPDX-License-Identifier: Apache-2.0
"""Files that packages take, held to the install manifest of the build in this directory."""

import json
import os
import re

import abi
from packaging_files import covers, major, read_spec, tree_file
from proving import SOURCE, build_info
from gen import isa
from gen.deps import FEATURES

NOWHERE = "no package"
# Parts that depend on what is not free. A build for packages has none (--auto-features=yes), one of
# a developer may, and no package of ours may take their files.
NON_FREE_PARTS = ("cuda",)
PACKAGES = {
    "debian": {"runtime": "libtreenail%d", "grpc": "libtreenail%d-grpc",
               "openmpi": "libtreenail%d-openmpi", "mpich": "libtreenail%d-mpich",
               "development": "libtreenail-dev", "python": "python3-treenail",
               "tools": "treenail-tools", "worker": "treenail-worker", "license": NOWHERE,
               "cuda": NOWHERE},
    "fedora": {"runtime": "treenail-libs", "grpc": "treenail-grpc",
               "openmpi": "treenail-openmpi", "mpich": "treenail-mpich",
               "development": "treenail-devel", "python": "python3-treenail",
               "tools": "treenail-tools", "worker": "treenail-worker", "license": NOWHERE,
               "cuda": NOWHERE},
}


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
        # Units of systemd lie beside no library: every architecture has them in one place.
        units = prefix + "/lib/systemd"
        moves = [(folder, python) for folder in pythons]
        moves += [(units, "/usr/lib/systemd"), (own, libdir), (prefix, "/usr")]
        for old, new in moves:
            if path.startswith(old + "/"):
                path = new + path[len(old):]
                break
        result.append((path.lstrip("/"), entry["package"]))
    return sorted(set(result))


# Packages that are empty without a feature.
NEEDS = {"treenail-worker": "grpc"}


def not_built(package, pattern, features):
    """Is it the file of an optional part that this build was made without?"""
    name = re.match(r"libtreenail-([\w-]+)\.so\Z", pattern.rsplit("/", 1)[-1])
    feature = name.group(1) if name else NEEDS.get(package, "")
    return feature in {dep.name for dep in FEATURES} - set(features)


def held_to_manifest(files, patterns, packages, features):
    """patterns: (place, package, pattern). Each file once, and in the right package."""
    found, used = [], set()
    for path, part in files:
        hits = [row for row in patterns if covers(row[2], path)]
        used.update(hits)
        if part in NON_FREE_PARTS:
            found += ["%s: %s takes /%s, of part '%s', which depends on what is not free" % (
                row[0], row[2], path, part) for row in hits]
            continue
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
        if row not in used and not not_built(row[1], row[2], features):
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


def shared_with_the_next(files, packages, number):
    """Sentences about files that keep libtreenailN from being installed beside libtreenailN+1:
    those of a package with the major version in its name have it in theirs."""
    own = re.compile(r"/treenail-%d/|/libtreenail\.so\.%d(\.|\Z)" % (number, number))
    return ["/%s: another major version of %s would own it, too; wanted: a path with %d in it" % (
        path, packages[part], number) for path, part in files
            if packages[part].startswith("libtreenail%d" % number) and not own.search("/" + path)]


def debian_files(source=SOURCE, manifest=None, features=None):
    """debian/*.install and not-installed take each file of the manifest once, to its package, and a
    library's package shares none with that of the next major version"""
    tree_file("debian/control", source)
    files = as_packaged(manifest or read_manifest(), "/usr/lib/TRIPLET",
                        "/usr/lib/python3/dist-packages")
    packages = of_version(PACKAGES["debian"], major(source))
    if features is None:
        features = build_info("kFeatures").split()
    found = held_to_manifest(files, debian_patterns(source), packages, features)
    return found + shared_with_the_next(files, packages, major(source)), "%d files" % len(files)


SPEC_FOLDERS = {"_prefix": "/usr", "_bindir": "/usr/bin", "_libdir": "/usr/lib64",
                "_includedir": "/usr/include", "_datadir": "/usr/share",
                "_mandir": "/usr/share/man", "_docdir": "/usr/share/doc",
                "_defaultlicensedir": "/usr/share/licenses",
                "python3_sitearch": "/usr/lib64/python3.X/site-packages"}


def is_conditional(line):
    """Does a line of the spec stand in the conditional of what is not free?"""
    return bool(set(NON_FREE_PARTS) & set(line.conditions))


def conditional_files(source):
    """Sentences about %files of what is not free: each package has its device library alone."""
    text, number, found = tree_file("rpm/treenail.spec", source), major(source), []
    spec = read_spec("".join("%%global %s %s\n" % row for row in SPEC_FOLDERS.items()) + text)
    for package, line in spec.files():
        part = package.rpartition("-")[2]
        wanted = "%s/treenail-%d/devices/libtreenail-%s.so" % (
            SPEC_FOLDERS["_libdir"], number, part)
        if is_conditional(line) and not {"%dir", "%doc"} & set(line.text.split()) and (
                line.text != wanted or part not in line.conditions):
            found.append("rpm/treenail.spec:%d: %s holds %s; wanted: %s" % (
                line.number - len(SPEC_FOLDERS), package, line.text, wanted))
    return found


def spec_patterns(source):
    """Rows for held_to_manifest from %files, and from what %install removes again. Directories
    (%dir) and what comes from the source tree (%license, %doc) are no files of the manifest."""
    text = tree_file("rpm/treenail.spec", source)
    spec = read_spec("".join("%%global %s %s\n" % row for row in SPEC_FOLDERS.items()) + text)
    shift = len(SPEC_FOLDERS)
    rows = []
    for package, line in spec.files():
        words = line.text.split()
        if {"%dir", "%doc"} & set(words) or is_conditional(line):
            continue
        for word in words:
            if word.startswith("/") and not word.startswith(SPEC_FOLDERS["_defaultlicensedir"]):
                # %license marks a licence file, whichever package it lies in.
                owner = NOWHERE if {"%exclude", "%license"} & set(words) else package
                rows.append(("rpm/treenail.spec:%d" % (line.number - shift), owner, word))
    for (section, _), lines in spec.sections.items():
        for line in lines:
            place = "rpm/treenail.spec:%d" % (line.number - shift)
            if section == "install" and re.match(r"rm\b", line.text):
                rows += [(place, NOWHERE, path)
                         for path in re.findall(r"%\{buildroot\}(/\S+)", line.text)]
            elif section == "install" and re.match(r'echo "/\S+\$level', line.text):
                rows.append((place, level_package(text), line.text[6:-1].replace("$level", "*")))
    return rows


def level_package(text):
    """The package whose %files reads the list of what each instruction set level has."""
    found = re.search(r"^%files (\S+) -f levels\.files$", text, re.MULTILINE)
    return "treenail-" + found.group(1) if found else NOWHERE


def rpm_levels(source=SOURCE):
    """the spec's levels_ARCH name the levels that gen/isa.py builds kernels for there"""
    spec = tree_file("rpm/treenail.spec", source)
    found, missing, depth = [], {*isa.DEFAULT_EXTRA, "other"}, 0
    for number, line in enumerate(spec.splitlines(), 1):
        depth += bool(re.match(r"%if", line)) - line.startswith("%endif")
        macro = re.match(r"%global levels_(\w+) (.*)\Z", line)
        if not macro:
            continue
        machine, names = macro.group(1), macro.group(2).split()
        known = {level.name: level for level in isa.levels(machine)}
        # In a condition: for a distribution with a higher baseline than the architecture's.
        first = names[0] if depth and names[0] in known else isa.levels(machine)[0].name
        wanted = [level.name for level in isa.of_baseline(machine, known[first])]
        if names != wanted:
            found.append("rpm/treenail.spec:%d: levels_%s is %s; gen/isa.py says %s" % (
                number, machine, " ".join(names), " ".join(wanted)))
        if not depth:
            missing.discard(machine)
    found += ["rpm/treenail.spec: levels_%s is missing" % name for name in sorted(missing)]
    return found, "%d architectures" % (len(isa.DEFAULT_EXTRA) + 1)


def rpm_files(source=SOURCE, manifest=None, features=None):
    """%files of rpm/treenail.spec name each file of the manifest once, in its package"""
    rows = spec_patterns(source)
    files = as_packaged(manifest or read_manifest(), SPEC_FOLDERS["_libdir"],
                        SPEC_FOLDERS["python3_sitearch"])
    if features is None:
        features = build_info("kFeatures").split()
    found = held_to_manifest(files, rows, PACKAGES["fedora"], features)
    return found + conditional_files(source), "%d files" % len(files)


def debian_symbols(source=SOURCE):
    """the symbols file lists the functions of the C interface, each once, and no others"""
    path = "debian/libtreenail%d.symbols.in" % major(source)
    declared = set()
    for name in abi.header_names(os.path.join(source, abi.HEADERS)):
        declared.update(re.findall(r"^TN_API[^;(]*?\b(tn_\w+)\(",
                                   tree_file(os.path.join(abi.HEADERS, name), source),
                                   re.MULTILINE))
    found, listed = [], set()
    for number, line in enumerate(tree_file(path, source).splitlines(), 1):
        symbol = re.match(r" (tn_\w+)@", line)
        if symbol and symbol.group(1) not in declared - listed:
            found.append("%s:%d: %s is %s" % (path, number, symbol.group(1), "listed twice" if (
                symbol.group(1) in listed) else "in no header"))
        listed.update(symbol.groups() if symbol else ())
    found += ["%s: %s is missing; without it the package cannot be built" % (path, name)
              for name in sorted(declared - listed)]
    return found, "%d functions" % len(declared)
