# SPDX-License-Identifier: Apache-2.0
"""The source archive: source and nothing else."""

import io
import sys
import tarfile

import pytest
from small_tree import SOURCE

sys.path.insert(0, str(SOURCE / "gen" / "tools"))
import dist  # noqa: E402  (the path must be set first)

# What a file must not be, by its first bytes or by its name.
BUILT = {b"\x7fELF": "a compiled file", b"\xca\xfe\xba\xbe": "a compiled file",
         b"!<arch>": "an archive of objects", b"MZ": "a program for Windows"}
ENDINGS = {".pyc": "compiled Python", ".o": "an object", ".so": "a library", ".a": "an archive",
           ".min.js": "a minified script", ".min.css": "a minified style sheet", ".whl": "a wheel"}
IMAGES = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"GIF8": ".gif", b"%PDF": ".pdf"}


def objection(name, data):
    """Why a file does not belong into a source archive; None where it does."""
    for ending, what in ENDINGS.items():
        if name.endswith(ending):
            return what
    for magic, what in BUILT.items():
        if data.startswith(magic):
            return what
    # What a program drew is no source; what a test reads is its input.
    if any(data.startswith(magic) for magic in IMAGES) and "/tests/" not in name:
        return "an image"
    if name.endswith((".js", ".css", ".svg")) and max(map(len, data.split(b"\n"))) > 1000:
        return "a generated or minified file"
    return None


def members(archive):
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar.getmembers() if m.isfile()}


@pytest.mark.parametrize("name, data, found", [
    ("t/a.pyc", b"", True), ("t/lib", b"\x7fELF\x02", True), ("t/docs/x.png", b"\x89PNG\r", True),
    ("t/tests/io/x.png", b"\x89PNG\r", False), ("t/a.js", b"x" * 2000, True),
    ("t/a.js", b"x = 1;\n" * 2000, False), ("t/a.py", b"print()\n", False)])
def test_the_scan_can_object(name, data, found):
    assert bool(objection(name, data)) == found


def test_the_archive_holds_source_alone():
    found = members(dist.archive(str(SOURCE), "1.2.3", 1700000000))
    assert "treenail-1.2.3/configure.py" in found and "treenail-1.2.3/PKG-INFO" in found
    assert {name: objection(name, data) for name, data in found.items()
            if objection(name, data)} == {}


def test_debian_has_an_archive_of_its_own(tmp_path):
    (tmp_path / "VERSION").write_text("1.2.3\n")
    (tmp_path / "debian").mkdir()
    (tmp_path / "debian" / "control").write_text("Source: treenail\n")
    (tmp_path / "debian-cuda").mkdir()
    (tmp_path / "debian-cuda" / "rules").write_text("%:\n")
    assert list(members(dist.archive(str(tmp_path), "1.2.3", 1700000000))) == [
        "treenail-1.2.3/PKG-INFO", "treenail-1.2.3/VERSION"]
    assert dist.debian_files(str(tmp_path)) == ["debian/control"]
    assert dist.debian_files(str(tmp_path), "debian-cuda") == ["debian-cuda/rules"]
