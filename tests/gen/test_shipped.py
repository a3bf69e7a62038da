# SPDX-License-Identifier: Apache-2.0
"""What is said of the files in packages: made here, with a bill of materials each, then damaged."""

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import zlib

import pytest
from small_tree import SOURCE

sys.path[:0] = [str(SOURCE / "gen" / "packaging"), str(SOURCE / "gen" / "tools")]
import shipped  # noqa: E402  (the path must be set first)

DOC = "usr/share/doc/libx1/"
BILL = DOC + "libx1.spdx.json.gz"
FORMATS = [pytest.param(name, marks=pytest.mark.skipif(
    shutil.which(tool) is None, reason="there is no " + tool))
    for name, tool in (("deb", "dpkg-deb"), ("rpm", "rpmbuild"))]
CONTROL = """Package: libx1
Version: 1.0-1
Architecture: all
Maintainer: A <a@b.c>
Description: x
"""
SPEC = """Name: libx1
Version: 1.0
Release: 1
Summary: x
License: Apache-2.0
BuildArch: noarch
%%description
x
%%install
cp -a %s/. %%{buildroot}
%%files
/
"""


def bill(files, name=BILL):
    """Of these (name -> bytes), as sbom.py writes it, in short."""
    sums = {name: (hashlib.sha1(data).hexdigest(), hashlib.sha256(data).hexdigest())
            for name, data in files.items()}
    return {
        "packages": [{"SPDXID": "SPDXRef-Package", "packageVerificationCode": {
            "packageVerificationCodeExcludedFiles": ["./" + name],
            "packageVerificationCodeValue": hashlib.sha1("".join(sorted(
                one for one, _ in sums.values())).encode()).hexdigest()}}],
        "files": [{"SPDXID": "SPDXRef-File-" + name, "fileName": "./" + name, "checksums": [
            {"algorithm": "SHA1", "checksumValue": one},
            {"algorithm": "SHA256", "checksumValue": two}]}
                  for name, (one, two) in sums.items()] + [
            {"SPDXID": "SPDXRef-Source-x", "fileName": "./x.c", "checksums": []}],
        "relationships": [{"spdxElementId": "SPDXRef-Package", "relationshipType": "CONTAINS",
                           "relatedSpdxElement": "SPDXRef-File-" + name} for name in sums]}


@pytest.fixture
def content():
    return {"usr/lib/libx.so.1": b"code", DOC + "copyright": b"who",
            DOC + "page.gz": gzip.compress(b"text", mtime=0)}


def packed(folder, kind, files, described=None):
    """The path of a package of these files with the bill `described`."""
    root = folder / "tree"
    described = bill(files) if described is None else described
    for name, data in dict(files, **({BILL: gzip.compress(json.dumps(
            described).encode())} if described else {})).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    (root / "usr/lib/libx.so").symlink_to("libx.so.1")
    if kind == "deb":
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN/control").write_text(CONTROL)
        command = ["dpkg-deb", "-b", str(root), str(folder)]
    else:
        (folder / "x.spec").write_text(SPEC % root)
        command = ["rpmbuild", "--quiet", "-bb", "--define", "_topdir %s" % folder, "--define",
                   "__os_install_post %{nil}", str(folder / "x.spec")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    made, = folder.glob("**/libx1*." + kind)
    return str(made)


@pytest.fixture
def said(tmp_path, monkeypatch):
    """What is said of a package; SPDX's own tools are the business of the proof."""
    monkeypatch.setattr(shipped, "wrong_by_schema", lambda bills, fetch: (
        "valid", ["%s is no bill" % bills] if "libx1" not in bills else []))
    # rpm makes its database there.
    monkeypatch.setenv("HOME", str(tmp_path / "home/builder"))

    def of(kind, files, described=None):
        path = packed(tmp_path, kind, files, described)
        return shipped.examined([path, "other.src.rpm", "x.dsc"], [str(tmp_path / "build")])[1]
    return of


@pytest.mark.parametrize("kind", FORMATS)
def test_a_package_and_its_bill(said, content, kind):
    assert said(kind, content) == []


@pytest.mark.parametrize("kind", FORMATS)
def test_a_file_that_the_bill_lacks(said, content, kind):
    found = said(kind, dict(content, **{"usr/lib/new.pyc": b"new"}), bill(content))
    assert found[0] == "libx1: ships ./usr/lib/new.pyc, which its bill of materials does not list"
    assert "the package verification code is" in found[1] and len(found) == 2


def test_a_file_that_is_not_shipped(said, content):
    found = said("deb", content, bill(dict(content, gone=b"gone")))
    assert found[0] == "libx1: its bill of materials lists ./gone, which it does not ship"


def test_bytes_that_changed_after_the_bill(said, content):
    found = said("deb", dict(content, **{"usr/lib/libx.so.1": b"stripped"}), bill(content))
    assert found[0].startswith("libx1: ./usr/lib/libx.so.1 has the SHA-1 and SHA-256 %s" % (
        hashlib.sha1(b"stripped").hexdigest()))


def test_a_package_without_a_bill_or_with_two(said, content):
    content["usr/share/doc/other/libx1.spdx.json"] = b"{}"
    found = said("deb", content, bill(content))
    assert "wanted: one, in /usr/share/doc/libx1" in found[0]
    assert BILL in found[0] and "doc/other/libx1.spdx.json" in found[0]


@pytest.mark.parametrize("added, wanted", [({}, 0), ({"usr/share/doc/libx1/page.gz": b""}, 1)])
def test_a_package_of_nothing_needs_no_bill(tmp_path, added, wanted):
    files = dict({DOC + "copyright": b"who", DOC + "changelog.Debian.gz": b"when"}, **added)
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    assert [len(part) for part in shipped.held_to_bill(str(tmp_path), "libx1")] == [0, wanted]


def test_a_package_without_a_bill(said, content):
    assert "has the bills of materials (none); wanted: one" in said("deb", content, {})[0]


@pytest.mark.parametrize("kind", FORMATS)
def test_paths_of_the_build(said, content, tmp_path, kind):
    build, home = (str(tmp_path / name).encode() for name in ("build", "home/builder"))
    inventory = b"# 1\n# 2\n# 3\n# 4\n" + zlib.compress(b"x " + build + b"/obj y")
    content.update({
        DOC + "html/page.html": b"<p>" + build + b"/BUILD/x.c</p>", DOC + "n.gz": gzip.compress(
            b"in " + build + b"\n"), "usr/share/objects.inv": inventory,
        "usr/share/home": home + b"/.cache", "usr/share/tree": str(SOURCE).encode(),
        "usr/share/elsewhere": home + b"s", "usr/share/none.inv": b"inv"})
    found = said(kind, content)
    assert [text.split(": ")[1] for text in sorted(found)] == [
        DOC + "html/page.html", DOC + "n.gz", "usr/share/home", "usr/share/objects.inv",
        "usr/share/tree"]
    assert "names %s/BUILD/x.c</p> at byte 3" % build.decode() in "".join(found)


@pytest.mark.parametrize("text, at", [
    (b"/src", 0), (b"x\0/src\0", 2), (b"-I/src/include", 2), (b"map=/src=.", 4), (b"/src.", 0),
    (b"/usr/src/x and /src/x", 15), (b"//src/x", 1), (b"z/src/x", 1), (b"/usr/src/x", -1),
    (b"/src-1", -1), (b"/srcs", -1), (b'"src/src.h"', -1), (b"in /src.\n", 3),
    (b"file:///src/x", 7), (b"/usr//src/x", -1)])
def test_a_path_is_told_from_others_that_it_is_a_part_of(text, at):
    assert shipped.position(text, b"/src") == at


def test_a_link_into_the_build(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "build/x")
    assert "link: names " + str(tmp_path) in shipped.named(
        "link", str(tmp_path / "link"), shipped.build_paths(str(tmp_path / "build")))


@pytest.mark.skipif(shutil.which("objcopy") is None, reason="there is no objcopy")
def test_compressed_debug_information(tmp_path):
    source, made = tmp_path / "x.c", tmp_path / "x.debug"
    source.write_text("".join("struct some_type_%d { int a; } v%d;\n" % (i, i) for i in range(99)))
    subprocess.run(["cc", "-g", "-gz", "-c", str(source), "-o", str(made)], check=True)
    assert str(source).encode() not in made.read_bytes()
    assert shipped.named("usr/lib/debug/x", str(made), [str(source).encode()])


def test_symbols_have_no_bill():
    assert [bool(shipped.SYMBOLS.search(name)) for name in (
        "libx1-dbgsym", "treenail-debuginfo", "treenail-debugsource", "libx1")] == [
            True, True, True, False]


def test_without_packages_the_proof_does_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(shipped.NotRun, match="ninja deb and ninja rpm make them"):
        shipped.shipped_packages()
