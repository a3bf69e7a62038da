# SPDX-License-Identifier: Apache-2.0
"""What is not free stays out of main, and debian-cuda/ agrees with debian/: on small texts."""

import os
import shutil
import subprocess
import sys

import pytest
from small_tree import SOURCE

sys.path[:0] = [str(SOURCE / "gen" / "packaging"), str(SOURCE / "gen" / "tools")]
import cuda_substvars  # noqa: E402  (the path must be set first)
import deb_cuda  # noqa: E402
import deb_packages  # noqa: E402
from packaging_contrib import NOT_FREE, contrib_package, debian_free, rpm_free  # noqa: E402
from packaging_manifest import conditional_files  # noqa: E402
from test_deb import package  # noqa: E402

FILES = {
    "VERSION": "1.0.0\n",
    "debian/control": """Source: treenail
Section: science
Maintainer: A <a@b.c>
Standards-Version: 4.7.2
Build-Depends: debhelper-compat (= 13), libblas-dev,
 libhdf5-dev

Package: libtreenail1
Section: libs
Depends: ${misc:Depends}, libc6
Recommends: libopenblas0-pthread
Suggests: libtreenail1-cuda
Provides: treenail-private-abi-${treenail:Version}, ${treenail:PrivateAbi}
""",
    "debian/rules": "\t./configure.py --auto-features=yes\n",
    "debian/tests/control": "Tests: a\nDepends: libtreenail1\n",
    "debian/source/format": "3.0 (quilt)\n",
    "debian-cuda/control": """Source: treenail-cuda
Section: contrib/science
Maintainer: A <a@b.c>
Standards-Version: 4.7.2
Build-Depends: debhelper-compat (= 13), nvidia-cuda-toolkit

Package: libtreenail1-cuda
Section: contrib/libs
Depends: ${misc:Depends}, ${treenail:PrivateAbi}
Recommends: libcuda1
""",
    "debian-cuda/changelog": "treenail-cuda (1.0.0-1) UNRELEASED; urgency=medium\n\n -- A\n",
    "debian-cuda/source/format": "3.0 (quilt)\n",
    "debian-cuda/copyright.header": "Format: x\nDisclaimer:\n not of Debian\n",
    "debian-cuda/libtreenail1-cuda.install":
        "# why\nusr/lib/*/treenail-1/devices/libtreenail-cuda.so\n",
    "rpm/treenail.spec": """Name: treenail
Version: 1.0.0
%bcond_with cuda
BuildRequires: gcc-c++
%if %{with cuda}
BuildRequires: cuda-nvcc, libcublas-devel
%endif
%package libs
Requires: python3-numpy
%build
./configure.py %{?with_cuda:--with-cuda=yes}
%if %{with cuda}
echo --with-cuda
%endif
""",
}


@pytest.fixture
def tree(tmp_path):
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def said(check, tree, path, old, new):
    """The one sentence, after an edit of a tree that is right."""
    assert check(str(tree))[0] == []
    text = (tree / path).read_text()
    assert old in text
    (tree / path).write_text(text.replace(old, new, 1))
    found = check(str(tree))[0]
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize("name, free", [
    ("libcuda1", False), ("nvidia-cuda-toolkit", False), ("cuda-toolkit", False),
    ("libcudnn9-dev", False), ("libcublas-12-4", False), ("libcufft12", False),
    ("libtreenail1-cuda", False), ("libnvrtc12", False), ("libnccl-dev", False),
    ("libopenblas0-pthread", True), ("libdnnl-dev", True), ("libcurl4", True),
    ("python3-numpy", True), ("libcunit1", True)])
def test_names_of_what_is_not_free(name, free):
    assert not NOT_FREE.search(name) is free


@pytest.mark.parametrize("path, old, new, sentence", [
    ("debian/control", " libhdf5-dev", " libhdf5-dev, nvidia-cuda-toolkit",
     "debian/control:6: Build-Depends names nvidia-cuda-toolkit, which is not free; debian-cuda/ "),
    ("debian/control", "libc6", "libcublaslt12 | libc6",
     "debian/control:10: Depends names libcublaslt12, which is not free"),
    ("debian/control", "libopenblas0-pthread", "libtreenail1-cuda",
     "debian/control:11: Recommends names libtreenail1-cuda, which is not free"),
    ("debian/tests/control", "libtreenail1", "libtreenail1, libcudnn9-cuda-13",
     "debian/tests/control:2: Depends names libcudnn9-cuda-13"),
    ("debian/control", "Section: libs", "Section: contrib/libs",
     "debian/control:9: Section is contrib/libs; wanted: one of main"),
    ("debian/rules", "--auto", "--with-cuda --auto", "debian/rules:1: --with-cuda builds what is"),
    ("debian/rules", "--auto", "--only=cuda --auto", "debian/rules:1: --only= builds what is")])
def test_main_that_needs_what_is_not_free(tree, path, old, new, sentence):
    assert said(debian_free, tree, path, old, new).startswith(sentence)


def test_main_may_suggest_and_leave_out(tree):
    (tree / "debian/rules").write_text("\t./configure.py --with-cuda=no --only=all\n")
    assert debian_free(str(tree))[0] == []


@pytest.mark.parametrize("old, new, sentence", [
    ("BuildRequires: gcc-c++", "BuildRequires: gcc-c++ cuda-nvcc",
     "rpm/treenail.spec:4: BuildRequires names cuda-nvcc, which is not free; wanted: in %if"),
    ("Requires: python3-numpy", "Requires: python3-numpy, libcudnn9",
     "rpm/treenail.spec:9: Requires names libcudnn9"),
    ("Requires: python3-numpy", "Recommends: treenail-cuda",
     "rpm/treenail.spec:9: Recommends names treenail-cuda"),
    ("%bcond_with cuda", "%bcond_without cuda", "rpm/treenail.spec:3: cuda is on by itself"),
    ("%{?with_cuda:--with-cuda=yes}", "--with-cuda=yes",
     "rpm/treenail.spec:11: --with-cuda builds what is not free; wanted: %{?with_cuda:...}")])
def test_spec_that_needs_what_is_not_free(tree, old, new, sentence):
    assert said(rpm_free, tree, "rpm/treenail.spec", old, new).startswith(sentence)


@pytest.mark.parametrize("condition, file, sentence", [
    ("cuda", "/usr/lib64/treenail-1/devices/libtreenail-cuda.so", ""),
    ("cuda", "/usr/lib64/treenail-1/devices",
     "cuda holds /usr/lib64/treenail-1/devices;"),
    ("cuda", "/usr/bin/tool", "rpm/treenail.spec:18: treenail-cuda holds /usr/bin/tool; wanted")])
def test_files_of_the_conditional_package(tree, condition, file, sentence):
    spec = tree / "rpm/treenail.spec"
    spec.write_text(spec.read_text() + "%%if %%{with %s}\n%%files cuda\n%%dir /usr/lib64/x\n%s\n"
                    "%%endif\n" % (condition, file))
    found = conditional_files(str(tree))
    assert len(found) == bool(sentence) and sentence in "".join(found)


@pytest.mark.parametrize("path, old, new, sentence", [
    ("debian-cuda/control", "4.7.2", "4.6.2", "debian-cuda/control:4: Standards-Version is 4.6.2; "
     "debian/control says 4.7.2"),
    ("debian-cuda/control", "(= 13)", "(= 12)", "debian-cuda/control:5: the compatibility level is "
     "debhelper-compat (= 12); debian/control says debhelper-compat (= 13)"),
    ("debian-cuda/control", "A <a@b.c>", "B <b@b.c>", "debian-cuda/control:3: Maintainer is B <b"),
    ("debian-cuda/control", "contrib/libs", "libs", "debian-cuda/control:8: Section is libs; "),
    ("debian-cuda/control", "libtreenail1-cuda", "libtreenail2-cuda",
     "debian-cuda/control:7: the package is called libtreenail2-cuda; VERSION wants "),
    ("debian-cuda/control", ", ${treenail:PrivateAbi}", ", libtreenail1",
     "debian-cuda/control:7: libtreenail1-cuda does not depend on ${treenail:PrivateAbi}"),
    ("debian-cuda/control", "${misc:Depends}", "libcudnn9",
     "debian-cuda/control:9: libtreenail1-cuda depends on libcudnn9, which is looked for at run"),
    ("debian-cuda/changelog", "1.0.0", "1.0.1", "debian-cuda/changelog:1: the upstream version is "
     "1.0.1; VERSION says 1.0.0"),
    ("debian-cuda/changelog", "treenail-cuda", "treenail", "debian-cuda/changelog:1: the source "
     "package is treenail; debian-cuda/control says treenail-cuda"),
    ("debian-cuda/libtreenail1-cuda.install", "# why", "usr/bin/tool",
     "debian-cuda/libtreenail1-cuda.install:1: usr/bin/tool takes no device library"),
    ("debian-cuda/libtreenail1-cuda.install", "usr/lib", "# usr/lib",
     "debian-cuda/libtreenail1-cuda.install: /usr/lib/TRIPLET/treenail-1/devices/libtreenail-cuda"),
    ("debian-cuda/source/format", "quilt", "native", "debian-cuda/source/format:1: the format is"),
    ("debian-cuda/copyright.header", "Disclaimer", "Comment", "debian-cuda/copyright.header:1: no"),
    ("debian/control", ", ${treenail:PrivateAbi}", "",
     "debian/control:8: libtreenail1 does not provide ${treenail:PrivateAbi}")])
def test_contrib_that_drifted(tree, path, old, new, sentence):
    assert said(contrib_package, tree, path, old, new).startswith(sentence)


@pytest.mark.skipif(not os.path.isdir(SOURCE / "debian"), reason="the archive has no debian/")
def test_the_tree_itself():
    for check in (debian_free, rpm_free, contrib_package):
        assert check(str(SOURCE))[0] == []


# ---- what is made --------------------------------------------------------------------------------


def test_libraries_that_are_recommended():
    assert cuda_substvars.libraries({"version": "13.0", "majors": {
        "cufft": "12", "cublasLt": "13", "cudnn": "9"}}) == (
            "libcublaslt13 | libcublas-13-0, libcufft12 | libcufft-13-0")


def test_the_copyright_is_that_of_the_same_archive():
    header = "Format: x\nDisclaimer: y\n"
    assert deb_cuda.copyright_text(header, "Format: x\nZ: z\n\nFiles: *\n") == (
        header + "\nFiles: *\n")


ABI = "treenail-private-abi-1.0.0-0123456789ab"


def library(folder, name, path, fields, mark):
    """A package with a library that says of which build it is."""
    package(folder, name, fields, program=False)
    file = folder / name / path
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\x7fELF" + mark.encode() + b"\0")
    subprocess.run(["dpkg-deb", "-b", str(folder / name),
                    str(folder / (name + "_1.0.0-1_amd64.deb"))], check=True,
                   stdout=subprocess.DEVNULL)


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="there is no dpkg-deb")
@pytest.mark.parametrize("fields, wrong", [
    ("Depends: libc6 (>= 2), " + ABI, ""), ("Depends: libc6, treenail-private-abi-1.0.0", "has no"),
    ("Depends: %s, libcuda1 (>= 500)" % ABI, "Depends on libcuda1 (>= 500), which is not free")])
def test_what_the_plugins_package_depends_on(tmp_path, fields, wrong):
    library(tmp_path, "libtreenail1-cuda", "usr/lib/x/libtreenail-cuda.so", fields, ABI)
    text, left = deb_cuda.exact(str(tmp_path))
    assert text == "depends on " + ABI
    assert len(left) == bool(wrong) and wrong in "".join(left)


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="there is no dpkg-deb")
@pytest.mark.parametrize("provides, right", [
    ("treenail-private-abi-1.0.0, " + ABI, True), ("treenail-private-abi-1.0.0", False),
    ("treenail-private-abi-1.0.0, treenail-private-abi-1.0.0-ba9876543210", False)])
def test_what_the_librarys_package_provides(tmp_path, provides, right):
    library(tmp_path, "libtreenail1", "usr/lib/x/libtreenail.so.1.0.0", "Provides: " + provides,
            ABI)
    text, left = deb_packages.offered(str(tmp_path))
    assert text == "provided to plugins: " + ABI and (left == []) is right


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="there is no dpkg-deb")
def test_the_root_that_packages_make(tmp_path):
    (tmp_path / "deb").mkdir()
    into = str(tmp_path / "root")
    assert deb_cuda.sysroot(str(tmp_path / "deb"), into) == ""
    for name in ("libtreenail1", "libtreenail-dev", "libtreenail1-grpc"):
        package(tmp_path / "deb", name, "Section: libs")
    assert deb_cuda.sysroot(str(tmp_path / "deb"), into) == into
    assert os.listdir(into) == ["file"]


def test_a_library_of_another_build_is_made(tmp_path):
    path = tmp_path / "l.so"
    path.write_bytes(b"x" + ABI.encode() + b"\0y")
    assert deb_cuda.of_another_build(str(path)) == "1.0.0-ba9876543210"
    assert path.read_bytes() == b"xtreenail-private-abi-1.0.0-ba9876543210\0y"
