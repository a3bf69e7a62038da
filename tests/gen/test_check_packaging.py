# SPDX-License-Identifier: Apache-2.0
"""The drift checks of packaging, on small texts: what they accept, and each sentence they can say.

Nothing here reads debian/ or rpm/ of the tree.
"""

import subprocess
import sys

import pytest
from small_tree import SOURCE
from gen import identity
from gen.deps import FEATURES

sys.path[:0] = [str(SOURCE / "gen" / "packaging"), str(SOURCE / "gen" / "tools")]
import check_packaging  # noqa: E402  (the path must be set first)
import packaging_files as files  # noqa: E402
from packaging_copyright import debian_copyright  # noqa: E402
from packaging_dependencies import (ansible_dependencies, debian_dependencies,  # noqa: E402
                                    documents, rpm_dependencies)
from packaging_identity import (debian_bound, debian_identity, debian_version,  # noqa: E402
                                rpm_identity, rpm_version)
from packaging_manifest import debian_files, debian_symbols, rpm_files, rpm_levels  # noqa: E402
from packaging_product import SONAMES, foreign, needs_of  # noqa: E402

CONTROL = """# a comment
Source: treenail
Maintainer: Treenail Maintainers <maintainers@treenail.invalid>
Build-Depends:
 debhelper-compat (= 13),
 architecture-is-64-bit,
%(build)s
Build-Depends-Indep: python3-sphinx <!nodoc>, python3-myst-parser <!nodoc>

Package: libtreenail1
Description: short
 long

Package: libtreenail-dev
Depends: libtreenail1 (= ${binary:Version}), ${misc:Depends}

Package: python3-treenail
Depends:
 ${misc:Depends},
 libtreenail1 (= ${binary:Version}),

Package: treenail-tools
Depends: libtreenail1 (= ${binary:Version})

Package: libtreenail1-grpc
Depends: libtreenail1 (= ${binary:Version})

Package: libtreenail1-openmpi
Depends: libtreenail1 (= ${binary:Version})

Package: libtreenail1-mpich
Depends: libtreenail1 (= ${binary:Version})

Package: treenail-worker
Depends: libtreenail1 (= ${binary:Version})

Package: treenail-doc
Architecture: all
Multi-Arch: foreign
"""
BUILD = """ cmake <!nocheck>,
 libblas-dev,
 libdnnl-dev [amd64 arm64],
 libeigen3-dev, libgrpc++-dev, libhdf5-dev, libjpeg-dev, liblapack-dev, libpng-dev, libre2-dev,
 libgtest-dev <!nocheck>, python3-pytest <!nocheck>, python3-numpy <!nocheck>,
 python3-hypothesis <!nocheck>, python3-scipy <!nocheck>, python3-h5py <!nocheck>,
 python3-venv <!nocheck>, libopenmpi-dev, libmpich-dev,
 libpython3-all-dev, python3-all-dev:any, ninja-build, pkgconf, pybind11-dev,"""
SPEC = """Name: treenail
Version: 1.0.0
Release: 1%%{?dist}
%%global soversion 1
%%bcond_without tests
BuildRequires: gcc-c++, ninja-build >= 1.10
BuildRequires: pkgconf-pkg-config python3-devel pybind11-static
BuildRequires: eigen3-static flexiblas-devel onednn-devel hdf5-devel re2-devel
BuildRequires: libjpeg-turbo-devel libpng-devel grpc-devel openmpi-devel mpich-devel
%%if %%{with tests}
BuildRequires: gtest-devel python3-pytest python3-numpy python3-hypothesis python3-scipy
BuildRequires: python3-h5py python3-pip cmake binutils
%%endif
%%if %%{with docs}
BuildRequires: python3-sphinx python3-myst-parser
%%endif
%(more)s
License: Apache-2.0
%%package libs
Summary: x

%%install
rm %%{buildroot}%%{_docdir}/treenail/LICENSE

%%files libs
%%license LICENSE
%%dir %%{_libdir}/treenail-%%{soversion}
%%{_libdir}/libtreenail.so.%%{soversion}
%%{_libdir}/libtreenail.so.%%{version}
%%{_libdir}/treenail-%%{soversion}/adapters/libtreenail-hdf5.so

%%files devel
%%{_includedir}/treenail/

%%files -n python3-treenail
%%{python3_sitearch}/treenail/
%%license %%{python3_sitearch}/treenail-%%{version}.dist-info/LICENSE

%%changelog
* Sun Nov 22 2026 Treenail Maintainers <maintainers@treenail.invalid> - 1.0.0-1
- First package
"""
CHANGELOG = """treenail (1.0.0-1) UNRELEASED; urgency=medium

  * Initial release.

 -- Treenail Maintainers <maintainers@treenail.invalid>  Sun, 22 Nov 2026 08:00:00 +0000
"""
MANIFEST = {"prefix": "/usr/local", "private": "/usr/local/lib/treenail-1", "entries": [
    {"to": "/usr/local/lib/libtreenail.so.1", "package": "runtime"},
    {"to": "/usr/local/lib/libtreenail.so.1.0.0", "package": "runtime"},
    {"to": "/usr/local/include/treenail/treenail.h", "package": "development"},
    {"to": "/usr/local/lib/python3.11/dist-packages/treenail/__init__.py", "package": "python"},
    {"to": "/usr/local/lib/python3.11/dist-packages/treenail-1.0.0.dist-info/LICENSE",
     "package": "license"},
    {"to": "/usr/local/share/doc/treenail/LICENSE", "package": "license"}]}
TAGS = """| tag | follows from |
|---|---|
| `debian-watch-file-is-missing`, `no-homepage-field` | `HOMEPAGE` |
| `upstream-metadata-missing-bug-tracking`, `upstream-metadata-missing-repository` | `REPOSITORY` |
| `initial-upload-closes-no-bugs` | `ITP_BUG` |
"""
INSTALL = {"libtreenail1.install": "# why\nusr/lib/*/libtreenail.so.*\n"
                                   "usr/lib/*/treenail-1/adapters/libtreenail-*.so\n",
           "libtreenail-dev.install": "usr/include/treenail\n",
           "python3-treenail.install": "debian/tmp/usr/lib/python3*/dist-packages/treenail\n",
           "treenail-doc.install": "smoke/digits.csv usr/share/doc/treenail-doc\n",
           "not-installed": "usr/share/doc/treenail/LICENSE\nusr/lib/python3*/*/*/LICENSE\n"}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    for dep in FEATURES:
        (tmp_path / "kernels/adapters" / dep.name).mkdir(parents=True)
    for name in ("debian/upstream", "docs", "rpm"):
        (tmp_path / name).mkdir(parents=True)
    write(tmp_path, "VERSION", "1.0.0\n")
    write(tmp_path, "debian/control", CONTROL % {"build": BUILD})
    write(tmp_path, "debian/changelog", CHANGELOG)
    write(tmp_path, "docs/packaging.md", TAGS)
    write(tmp_path, "debian/rules",
          "ONEDNN = $(if $(filter arm64 amd64,$(DEB_HOST_ARCH)),yes,no)\n")
    write(tmp_path, "rpm/treenail.spec", SPEC % {"more": ""})
    for name, text in INSTALL.items():
        write(tmp_path, "debian/" + name, text)
    for name in ("HOMEPAGE", "REPOSITORY", "ITP_BUG", "SIGNING_KEY"):
        monkeypatch.setattr(identity, name, "")
    monkeypatch.setattr(identity, "MAINTAINER",
                        "Treenail Maintainers <maintainers@treenail.invalid>")
    return tmp_path


def write(tree, name, text):
    (tree / name).write_text(text, encoding="utf-8")


def edit(tree, name, old, new):
    text = (tree / name).read_text(encoding="utf-8")
    assert old in text
    write(tree, name, text.replace(old, new, 1))


def said(function, tree, *arguments):
    """The one sentence that a check says; "" where it is content."""
    found = function(str(tree), *arguments)[0]
    assert len(found) <= 1, found
    return found[0] if found else ""


# ---- readers -------------------------------------------------------------------------------------


def test_control_fields_know_their_lines():
    stanzas = files.read_control("A: x\nB:\n one,\n# no\n two [amd64 !arm64] <!nocheck>,\n\nC: y\n")
    assert stanzas[0]["A"].value == "x" and stanzas[1]["C"].line == 7
    assert files.relations(stanzas[0]["B"]) == [
        files.Relation("one", 3), files.Relation("two", 5, ("amd64", "!arm64"), ("!nocheck",))]


def test_relations_of_one_line():
    field, = [files.read_control("D: a:any (>= 1) | b, c <!x> <!y>, ${misc:Depends}\n")[0]["D"]]
    assert [(r.name, r.profiles) for r in files.relations(field)] == [
        ("a", ()), ("c", ("!x", "!y"))]


def test_spec_sections_conditions_and_macros():
    spec = files.read_spec(
        "Name: t\nVersion: 2\n%global so %{version}.x\n%if %{with a}\nBuildRequires: p\n%else\n"
        "BuildRequires: q\n%endif\n%package -n z\nRequires: %{name}-libs\n%files -n z -f list\n"
        "/a/%{so}\n%files libs\n/b %%x\n%files\n/c\n")
    found = [(value, line.number, line.conditions) for line, value in spec.tags("BuildRequires")]
    assert found == [("p", 5, ("a",)), ("q", 7, ("not a",))]
    assert [value for _, value in spec.tags("requires")] == ["t-libs"]
    assert [(package, line.text) for package, line in spec.files()] == [
        ("z", "/a/2.x"), ("t-libs", "/b %x"), ("t", "/c")]


@pytest.mark.parametrize("pattern, path, result", [
    ("usr/lib/*/x.so", "usr/lib/T/x.so", True), ("usr/lib/*/x.so", "usr/lib/T/U/x.so", False),
    ("usr/lib/python3*", "usr/lib/python3/dist-packages/a.py", True),
    ("/usr/include/t/", "usr/include/t/a.h", True), ("usr/lib/l-[!f]*", "usr/lib/l-first", False)])
def test_patterns(pattern, path, result):
    assert files.covers(pattern, path) == result


# ---- build dependencies --------------------------------------------------------------------------


def test_texts_that_agree(tree):
    for function in (debian_dependencies, debian_identity, debian_version, debian_bound,
                     rpm_dependencies, rpm_identity, rpm_version):
        assert said(function, tree) == ""


@pytest.mark.parametrize("old, new, sentence", [
    (" libblas-dev,\n", "", "debian/control:4: libblas-dev is missing; gen/deps.py needs it for "
                            "feature 'blas': libblas-dev"),
    ("cmake <!nocheck>", "cmake", "debian/control:7: cmake; gen/deps.py needs it for test 'cmake': "
                                  "cmake <!nocheck>"),
    ("pkgconf,", "pkgconf, libfoo-dev,",
     "debian/control:14: libfoo-dev is in no row of gen/deps.py"),
    ("python3-sphinx <!nodoc>", "python3-sphinx", "python3-sphinx; gen/deps.py needs it for docs"),
    ("[amd64 arm64]", "[amd64]", "debian/control:9: oneDNN is built with on amd64, but "
                                 "debian/rules:1 has arm64 amd64")])
def test_debian_dependencies_that_drifted(tree, old, new, sentence):
    edit(tree, "debian/control", old, new)
    assert sentence in said(debian_dependencies, tree)


@pytest.mark.parametrize("old, new, sentence", [
    ("hdf5-devel ", "", "rpm/treenail.spec:6: hdf5-devel is missing"),
    ("pybind11-static", "pybind11-static zlib-devel", "treenail.spec:7: zlib-devel is in no row"),
    ("%if %{with tests}\nBuildRequires: gtest-devel",
     "BuildRequires: gtest-devel\n%if %{with tests}\nBuildRequires:",
     "rpm/treenail.spec:10: gtest-devel; gen/deps.py needs it for test 'gtest': gtest-devel in %if "
     "%{with tests}")])
def test_spec_dependencies_that_drifted(tree, old, new, sentence):
    edit(tree, "rpm/treenail.spec", old, new)
    assert sentence in said(rpm_dependencies, tree)


RECORD = """build_packages:
  Debian: [ninja-build, pkgconf, python3-dev, pybind11-dev, libeigen3-dev,
           libdnnl-dev, libgrpc++-dev, libre2-dev, libjpeg-dev, libpng-dev, libopenmpi-dev,
           libmpich-dev, python3-numpy]
  RedHat: [ninja-build, pkgconf-pkg-config, python3-devel, pybind11-static, eigen3-static,
           onednn-devel, grpc-devel, re2-devel, libjpeg-turbo-devel, libpng-devel, openmpi-devel,
           mpich-devel, python3-numpy]
suite:
  build:
    long:
      packages:
        Debian: [libgtest-dev, python3-pytest, python3-hypothesis, python3-scipy, python3-h5py,
                 python3-venv, cmake]
        RedHat: [gtest-devel, python3-pytest, python3-hypothesis, python3-scipy, python3-h5py,
                 python3-pip, cmake]
"""


@pytest.mark.parametrize("old, new, sentence", [
    ("", "", ""),
    ("libdnnl-dev, ", "", "build_packages of Debian: libdnnl-dev is missing; gen/deps.py has it"),
    ("[gtest-devel, ", "[", "packages of the long suite of RedHat: gtest-devel is missing; gen/"),
    ("python3-venv", "ninja-build, python3-venv", "packages of the long suite of Debian: "
     "ninja-build is in no row of gen/deps.py that Treenail is tested with")])
def test_packages_of_the_stack_that_drifted(tree, old, new, sentence):
    pytest.importorskip("yaml", reason="Python's yaml is not installed")
    (tree / "ansible/roles/treenail").mkdir(parents=True)
    write(tree, "ansible/roles/treenail/component.yml", RECORD.replace(old, new) if old else RECORD)
    found = said(ansible_dependencies, tree)
    assert sentence in found and bool(sentence) == bool(found)


def test_a_feature_without_an_adapter_is_not_built_with(tree):
    (tree / "kernels/adapters/re2").rmdir()
    assert "libre2-dev is in no row" in said(debian_dependencies, tree)


def test_packages_of_the_readme(tree):
    write(tree, "README.md", "x\n`libhdf5-dev`, python3-numpy, pybind11-static.\n")
    assert said(documents, tree) == ""
    write(tree, "README.md", "x\nlibhdf6-dev\n")
    assert said(documents, tree) == "README.md:2: libhdf6-dev is no package of gen/deps.py"


# ---- files ---------------------------------------------------------------------------------------


def test_files_that_agree(tree):
    """HDF5's adapter is not built here: its pattern may match nothing."""
    edit(tree, "debian/libtreenail1.install", "libtreenail-*.so", "libtreenail-hdf5.so")
    assert said(debian_files, tree, MANIFEST, []) == ""
    assert said(rpm_files, tree, MANIFEST, []) == ""
    assert "libtreenail-hdf5.so matches no file" in said(rpm_files, tree, MANIFEST, ["hdf5"])


def changed(extra=(), without=""):
    entries = [e for e in MANIFEST["entries"] if not without or without not in e["to"]]
    return dict(MANIFEST, entries=entries + [
        {"to": "/usr/local/" + path, "package": part} for path, part in extra])


@pytest.mark.parametrize("manifest, debian, rpm", [
    (changed([("lib/treenail-1/adapters/libtreenail-fax.so", "runtime")]),
     "/usr/lib/TRIPLET/treenail-1/adapters/libtreenail-fax.so: named nowhere; part 'runtime' of "
     "the manifest belongs to libtreenail1",
     "libtreenail-fax.so: named nowhere; part 'runtime' of the manifest belongs to treenail-libs"),
    (changed([("include/treenail/secret.h", "tools")]),
     "debian/libtreenail-dev.install:1 (libtreenail-dev): /usr/include/treenail/secret.h; part "
     "'tools' of the manifest belongs to treenail-tools",
     "(treenail-devel): /usr/include/treenail/secret.h; part 'tools'"),
    (changed(without="doc/treenail/LICENSE"),
     "debian/not-installed:1: usr/share/doc/treenail/LICENSE matches no file of the manifest",
     "/usr/share/doc/treenail/LICENSE matches no file of the manifest")])
def test_files_that_drifted(tree, manifest, debian, rpm):
    edit(tree, "debian/libtreenail1.install", "libtreenail-*.so", "libtreenail-hdf5.so")
    assert debian in said(debian_files, tree, manifest, [])
    assert rpm in said(rpm_files, tree, manifest, [])


def test_what_is_not_free_is_no_packages(tree):
    """A build that found a CUDA toolkit has the plugin; packages are built without, and a pattern
    that would take it is wrong."""
    edit(tree, "debian/libtreenail1.install", "libtreenail-*.so", "libtreenail-hdf5.so")
    manifest = changed([("lib/treenail-1/devices/libtreenail-cuda.so", "cuda")])
    assert said(debian_files, tree, manifest, []) == ""
    assert said(rpm_files, tree, manifest, []) == ""
    edit(tree, "debian/libtreenail1.install", "adapters/libtreenail-hdf5.so", "*/libtreenail-*.so")
    assert said(debian_files, tree, manifest, []) == (
        "debian/libtreenail1.install:3: usr/lib/*/treenail-1/*/libtreenail-*.so takes "
        "/usr/lib/TRIPLET/treenail-1/devices/libtreenail-cuda.so, of part 'cuda', which depends on "
        "what is not free")


def test_a_file_named_twice(tree):
    write(tree, "debian/libtreenail1.install", "usr/lib/*/libtreenail.so.*\n"
          "usr/lib/*/libtreenail.so.1\n")
    assert ("debian/libtreenail1.install:2 (libtreenail1): /usr/lib/TRIPLET/libtreenail.so.1 is "
            "named more than once") in said(debian_files, tree, MANIFEST, [])


def test_lines_of_the_spec_are_its_own(tree):
    edit(tree, "rpm/treenail.spec", "%{_includedir}/treenail/", "%{_includedir}/treenail/tn.h")
    found = rpm_files(str(tree), MANIFEST, [])[0]
    number = (tree / "rpm/treenail.spec").read_text().splitlines().index(
        "%{_includedir}/treenail/tn.h") + 1
    assert "rpm/treenail.spec:%d: /usr/include/treenail/tn.h matches no file of the manifest" % (
        number) in found


def test_a_file_that_two_major_versions_would_own(tree):
    edit(tree, "debian/libtreenail1.install", "libtreenail-*.so", "libtreenail-hdf5.so")
    write(tree, "debian/libtreenail1.install",
          (tree / "debian/libtreenail1.install").read_text() + "usr/share/treenail/tables\n")
    found = said(debian_files, tree, changed([("share/treenail/tables", "runtime")]), [])
    assert found == ("/usr/share/treenail/tables: another major version of libtreenail1 would "
                     "own it, too; wanted: a path with 1 in it")


LEVELS = """%global levels_x86_64 x86-64 x86-64-v3 x86-64-v4
%if 0%{?rhel} == 9
%global levels_x86_64 x86-64-v2 x86-64-v3 x86-64-v4
%endif
%global levels_aarch64 armv8-a armv8.2-a
%global levels_other generic
"""
LIST = """for level in %{levels}; do
    echo "%%dir %{_libdir}/treenail-1/kernels/$level"
    echo "%{_libdir}/treenail-1/kernels/$level/k.so"
done > levels.files
"""


def test_levels_that_agree(tree):
    write(tree, "rpm/treenail.spec", SPEC % {"more": LEVELS})
    assert said(rpm_levels, tree) == ""


@pytest.mark.parametrize("old, new, sentence", [
    ("x86-64 x86-64-v3 x86-64-v4", "x86-64 x86-64-v3", "levels_x86_64 is x86-64 x86-64-v3; "
     "gen/isa.py says x86-64 x86-64-v3 x86-64-v4"),
    ("_64 x86-64 x86", "_64 x86-64-v2 x86", "levels_x86_64 is x86-64-v2 x86-64-v3 x86-64-v4; "
     "gen/isa.py says x86-64 x86-64-v3 x86-64-v4"),
    ("x86-64-v2 x86-64-v3 x86-64-v4", "x86-64-v2 x86-64-v4", "gen/isa.py says x86-64-v2 x86-64-v3"),
    ("%global levels_aarch64", "%define other", "spec: levels_aarch64 is missing"),
    ("other generic", "other any", "levels_other is any; gen/isa.py says generic")])
def test_levels_that_drifted(tree, old, new, sentence):
    assert old in LEVELS
    write(tree, "rpm/treenail.spec", SPEC % {"more": LEVELS.replace(old, new, 1)})
    assert sentence in said(rpm_levels, tree)


def test_the_list_of_what_a_level_has(tree):
    edit(tree, "rpm/treenail.spec", "%install\n", "%install\n" + LIST)
    edit(tree, "rpm/treenail.spec", "%files libs\n", "%files libs -f levels.files\n")
    kernel = changed([("lib/treenail-1/kernels/x86-64/k.so", "runtime")])
    assert said(rpm_files, tree, kernel, []) == ""
    assert "/kernels/*/k.so matches no file" in said(rpm_files, tree, MANIFEST, [])
    edit(tree, "rpm/treenail.spec", "%files libs -f levels.files\n", "%files libs\n")
    assert "kernels/x86-64/k.so; part 'runtime' of the manifest belongs to treenail-libs" in said(
        rpm_files, tree, kernel, [])


# ---- identity and version ------------------------------------------------------------------------


@pytest.mark.parametrize("name, old, new, sentence", [
    ("debian/control", "maintainers@treenail.invalid", "me@example.org",
     "debian/control:3: Maintainer is Treenail Maintainers <me@example.org>; gen/identity.py's "
     "MAINTAINER says Treenail Maintainers <maintainers@treenail.invalid>"),
    ("debian/control", "Source: treenail", "Source: treenail\nHomepage: https://example.org",
     "debian/control:3: Homepage is https://example.org; gen/identity.py's HOMEPAGE is empty"),
    ("debian/control", "Source: treenail", "Source: treenail\nVcs-Git: https://example.org",
     "Vcs-Git is https://example.org; gen/identity.py's REPOSITORY is empty"),
    ("debian/changelog", "maintainers@treenail.invalid", "me@mine.invalid",
     "debian/changelog:5: the trailer is Treenail Maintainers <me@mine.invalid>; gen/identity.py's "
     "MAINTAINER says Treenail Maintainers <maintainers@treenail.invalid>"),
    ("debian/changelog", " <maintainers@treenail.invalid>", "",
     "debian/changelog:5: the trailer is ' -- Treenail Maintainers  Sun, 22 Nov 2026 08:00:00 "
     "+0000'; wanted: a name and <an address>"),
    ("debian/changelog", "release.", "release. (Closes: #123456)",
     "a closed bug is #123456; gen/identity.py's ITP_BUG is empty")])
def test_invented_identity_in_debian(tree, name, old, new, sentence):
    edit(tree, name, old, new)
    assert sentence in said(debian_identity, tree)


@pytest.mark.parametrize("old, new, sentence", [
    ("`no-homepage-field`", "`no-home`", "docs/packaging.md:3: no-home follows from HOMEPAGE; by "
     "gen/identity.py from nothing"),
    ("`HOMEPAGE`", "`ITP_BUG`", "docs/packaging.md:3: no-homepage-field follows from ITP_BUG; by "
     "gen/identity.py from HOMEPAGE"),
    ("| `initial-upload-closes-no-bugs` | `ITP_BUG` |\n", "", "docs/packaging.md:4: no row of the "
     "table of lintian's tags has initial-upload-closes-no-bugs, which gen/identity.py's ITP_BUG")])
def test_the_table_of_lintian_tags(tree, old, new, sentence):
    edit(tree, "docs/packaging.md", old, new)
    assert any(text.startswith(sentence) for text in debian_identity(str(tree))[0])


def test_files_that_point_to_nothing(tree):
    write(tree, "debian/watch", "version=4\n")
    assert "debian/watch is there, but gen/identity.py" in said(debian_identity, tree)
    (tree / "debian/watch").unlink()
    write(tree, "debian/upstream/metadata", "# https://no\nRepository: https://example.org/x.git\n")
    assert said(debian_identity, tree) == (
        "debian/upstream/metadata:2: https://example.org/x.git; gen/identity.py knows no address")


def test_a_homepage_that_exists_must_be_everywhere(tree, monkeypatch):
    monkeypatch.setattr(identity, "HOMEPAGE", "https://treenail.example")
    found = debian_identity(str(tree))[0]
    assert any("Homepage is missing; gen/identity.py's HOMEPAGE says https://treenail.example"
               in text for text in found)
    assert any(text.startswith("debian/watch is missing") for text in found)
    assert "URL is missing" in said(rpm_identity, tree)


@pytest.mark.parametrize("more, sentence", [
    ("URL: https://example.org", "URL is https://example.org; gen/identity.py's HOMEPAGE is empty"),
    ("Packager: me", "Packager is me; wanted: none")])
def test_invented_identity_in_the_spec(tree, more, sentence):
    write(tree, "rpm/treenail.spec", SPEC % {"more": more})
    assert sentence in said(rpm_identity, tree)


@pytest.mark.parametrize("old, new, sentence", [
    ("Treenail Maintainers <maintainers@treenail.invalid>", "Joan Doe <joan@example.org>", ""),
    ("<maintainers@", "<me@", "%changelog is Treenail Maintainers <me@treenail.invalid>; gen/"),
    (" <maintainers@treenail.invalid>", "", "wanted: a name and <an address>")])
def test_changelog_of_the_spec(tree, old, new, sentence):
    edit(tree, "rpm/treenail.spec", old, new)
    found = said(rpm_identity, tree)
    assert sentence in found and bool(sentence) == bool(found)


def test_licence_of_the_source_package(tree):
    edit(tree, "rpm/treenail.spec", "License: Apache-2.0", "License: Apache-2.0 AND BSD-3-Clause")
    assert said(rpm_identity, tree).endswith(
        "License of the source package is Apache-2.0 AND BSD-3-Clause; gen/identity.py's LICENCE "
        "says Apache-2.0")


ENTRY = """treenail (%s) unstable; urgency=medium

  * Team upload.
  * Mend the build (Closes: #123456).

 -- Joan Doe <joan@example.org>  Mon, 23 Nov 2026 09:00:00 +0100

"""


@pytest.mark.parametrize("version", ["1.0.0-2", "1.0.0+ds-1", "1:1.0.0+dfsg1-1.1", "1.0.0~ds-1",
                                     "1.0.0+ds-1~bpo13+1", "1.0.0+git20261123-1"])
def test_an_entry_that_dch_has_added(tree, version):
    """By a co-maintainer, and with a bug closed that is not the ITP."""
    write(tree, "debian/changelog", ENTRY % version + CHANGELOG)
    assert said(debian_identity, tree) == "" and said(debian_version, tree) == ""
    write(tree, "debian/changelog", ENTRY % version.replace("1.0.0", "1.0.1") + CHANGELOG)
    assert "the upstream version is 1.0.1; VERSION says 1.0.0" in said(debian_version, tree)


@pytest.mark.parametrize("old, new, sentence", [
    ("Package: treenail-tools\nDepends: libtreenail1 (= ${binary:Version})",
     "Package: treenail-tools\nDepends: libtreenail1 (>= 1)", "debian/control:29: treenail-tools "
     "does not depend on libtreenail1 (= ${binary:Version}), and what it uses of that is private"),
    (" libtreenail1 (= ${binary:Version}),\n\n", " libtreenail1-grpc (= ${binary:Version}),\n\n",
     "debian/control:24: python3-treenail does not depend on libtreenail1 (= ${binary:Version})"),
    ("Package: treenail-tools", "Package: treenail-tools\nMulti-Arch: foreign",
     "debian/control:30: treenail-tools is Multi-Arch: foreign")])
def test_packages_that_use_private_symbols(tree, old, new, sentence):
    edit(tree, "debian/control", old, new)
    assert sentence in said(debian_bound, tree)


def test_symbols_that_drifted(tree):
    (tree / "framework/capi/include").mkdir(parents=True)
    write(tree, "framework/capi/include/treenail.h",
          "TN_API const char* tn_name(void);\nTN_API tn_graph*\ntn_graph_new(\n    int x);\n")
    name = "debian/libtreenail1.symbols.in"
    write(tree, name, " tn_graph_new@TREENAIL_1 1.0.0\n tn_name@TREENAIL_1 1.0.0\n")
    assert said(debian_symbols, tree) == ""
    edit(tree, name, " tn_graph_new@TREENAIL_1 1.0.0\n", "")
    assert said(debian_symbols, tree) == name + (
        ": tn_graph_new is missing; without it the package cannot be built")
    edit(tree, name, " tn_name@", " tn_graph_new@TREENAIL_1 1.0.0\n tn_name@TREENAIL_1 1.0.0\n "
                                  "tn_name@")
    assert said(debian_symbols, tree) == name + ":3: tn_name is listed twice"
    edit(tree, name, " tn_name@TREENAIL_1 1.0.0\n", "")
    edit(tree, name, " tn_name@", " tn_nome@TREENAIL_1 1.0.0\n tn_name@")
    assert said(debian_symbols, tree) == name + ":2: tn_nome is in no header"


def test_versions_that_drifted(tree):
    write(tree, "VERSION", "1.0.1\n")
    assert said(debian_version, tree) == (
        "debian/changelog:1: the upstream version is 1.0.0; VERSION says 1.0.1")
    found = rpm_version(str(tree))[0]
    assert found[0] == "rpm/treenail.spec:2: Version is 1.0.0; VERSION says 1.0.1"
    assert "%changelog's newest version is 1.0.0; VERSION says 1.0.1" in found[1]


def test_major_versions_that_drifted(tree):
    write(tree, "VERSION", "2.0.0\n")
    found = debian_version(str(tree))[0]
    assert any("no package libtreenail2" in text for text in found)
    assert any("package libtreenail1; the SONAME of VERSION 2.0.0 ends in 2" in text
               for text in found)
    assert any("soversion is 1" in text for text in rpm_version(str(tree))[0])


def test_absent_folders_are_not_run(tmp_path):
    write(tmp_path, "VERSION", "1.0.0\n")
    for function in (debian_dependencies, debian_files, rpm_dependencies,
                     rpm_files, rpm_version, debian_version):
        verdict, text = check_packaging.outcome(lambda f=function: f(str(tmp_path)))
        assert verdict == "not run" and text.endswith("is not there")


COPYRIGHT = """Format: x

Files: *
License: Apache-2.0

Files: data/*
License: BSD-3-Clause

License: Apache-2.0
 text

License: BSD-3-Clause
 text
"""


@pytest.mark.parametrize("old, new, stated, sentence", [
    ("", "", {"a.c": "Apache-2.0", "data/x": "BSD-3-clause", "b": "UNKNOWN"}, ""),
    ("", "", {"a.c": "GPL-2", "data/x": "UNKNOWN"},
     "debian/copyright:3: Apache-2.0 for a.c, which says GPL-2"),
    ("", "", {"a.c": "Apache-2.0", "data/x": "Apache-2.0"},
     "debian/copyright:6: BSD-3-Clause for data/x, which says Apache-2.0"),
    ("", "", {"a.c": "Apache-2.0"}, "debian/copyright:6: data/* matches no file"),
    ("License: BSD-3-Clause\n text\n", "", {"data/x": "UNKNOWN"},
     "debian/copyright:6: BSD-3-Clause has no stanza with its text"),
    ("Files: *\n", "Files: b\n", {"a.c": "MIT", "b": "UNKNOWN", "data/x": "UNKNOWN"},
     "debian/copyright:1: no licence for a.c, which says MIT")])
def test_licences_that_files_state(tree, old, new, stated, sentence):
    write(tree, "debian/copyright", COPYRIGHT.replace(old, new, 1))
    assert said(debian_copyright, tree, stated) == sentence


# ---- the product ---------------------------------------------------------------------------------


def test_every_feature_has_its_sonames():
    assert set(SONAMES) == {dep.name for dep in FEATURES}


@pytest.mark.parametrize("name, needs, sentence", [
    ("/usr/lib/libtreenail.so.1.0.0", ["libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"], ""),
    ("/usr/lib/libtreenail.so.1.0.0", ["libblas.so.3"],
     "needs libblas.so.3; wanted: the C and C++"),
    ("/l/kernels/x86-64/libtreenail-kernels-cpu.so", ["libtreenail.so.1", "libgcc_s.so.1"], ""),
    ("/l/kernels/x86-64/libtreenail-kernels-cpu.so", ["libtreenail.so.2"], "wanted: the C and C++ "
     "libraries, libtreenail.so.1"),
    ("/l/adapters/libtreenail-blas.so", ["libflexiblas.so.3", "libc.so.6"], ""),
    ("/l/adapters/libtreenail-blas.so", ["libc.so.6"], "needs none of libblas.so."),
    ("/l/adapters/libtreenail-png.so", ["libpng16.so.16", "libz.so.1"], "needs libz.so.1"),
    ("/l/adapters/libtreenail-new.so", ["libc.so.6", "libnew.so.1"], "needs libnew.so.1"),
    ("/l/plugins/libtreenail-gpu.so", ["libcudart.so.12"], "libcudart.so.12, which is not free")])
def test_needed_libraries(name, needs, sentence):
    found = needs_of(name, needs, 1)
    assert sentence in "".join(found) and bool(found) == bool(sentence)


@pytest.mark.parametrize("symbol, whose", [
    ("tn_count", ""), ("_ZN8treenail3runERKSt6vectorIiSaIiEE", ""),
    ("_ZNSt6vectorIiE4sizeEv", "std"),
    ("_ZNKSt7__cxx1112basic_stringIcE4sizeEv", "std"), ("_ZTISt9exception", "std"),
    ("_ZNK5Eigen6MatrixIfE4rowsEv", "Eigen"), ("_ZN4absl6StatusD1Ev", "absl"),
    ("_ZTVN6google8protobuf7MessageE", "google::protobuf"), ("_ZSt4moveIiEvv", "std"),
    ("_ZN6google5otherEv", ""), ("_ZNSs4swapERSs", "std")])
def test_foreign_symbols(symbol, whose):
    found = foreign("x.so", [symbol])
    assert bool(found) == bool(whose)
    assert not whose or "exports %s, of %s::" % (symbol, whose) in found[0]


def run_check(tree, *names):
    program = str(tree.root / "gen/packaging/check_packaging.py")
    done = subprocess.run([sys.executable, "-B", program, *names], cwd=tree.root / "build",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def test_libraries_and_paths_of_a_built_tree(fresh_tree):
    status, out = run_check(fresh_tree, "libraries", "paths", "debian-files")
    assert status == 0 and "2 parts agree, 0 do not, 1 not run" in out, out
    fresh_tree.write("framework/base/where.cc", '''#include <string>
namespace treenail {
extern const char where[] = "%s";
__attribute__((visibility("default"))) void fill(std::string& s) { s += where; }
}
''' % (fresh_tree.root / "build"))
    fresh_tree.edit("kernels/cpu/level.cc", "#include",
                    'extern "C" const char* zlibVersion();\n#include')
    fresh_tree.edit("kernels/cpu/level.cc", "{ return", "{ (void)zlibVersion(); return")
    fresh_tree.edit("gen/plan_parts.py", '(core, "-lm"),', '(core, "-lm", "-l:libz.so.1"),')
    fresh_tree.configure()
    fresh_tree.ninja()
    status, out = run_check(fresh_tree, "libraries", "paths")
    assert status == 1
    assert "kernels-cpu.so: needs libz.so.1; wanted: the C and C++ libraries" in out, out
    assert "/libtreenail.so.0.1.0: names %s" % (fresh_tree.root / "build") in out, out


def test_unknown_part(small_tree):
    small_tree.configure()
    status, out = run_check(small_tree, "wishes")
    assert status == 2 and "unknown part 'wishes'; there are debian-dependencies" in out
