# SPDX-License-Identifier: Apache-2.0
"""patches/patches.py on made-up components: rules of a series, application, verdicts, exports."""

import contextlib
import difflib
import fcntl
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

SOURCE = Path(os.environ.get("TREENAIL_SOURCE_DIR") or Path(__file__).parents[2]).resolve()
PROGRAM = SOURCE / "patches/patches.py"
sys.path.insert(0, str(SOURCE / "patches"))

import patches  # noqa: E402  (the path must be set first)
from patching import diff, export, series  # noqa: E402

HEADER = """Description: Say something else
 And why.
Author: A. Person
Forwarded: no
Last-Update: 2026-01-31
"""
LINES = ["line %d\n" % number for number in range(1, 21)]
# A test of a patch: does the file say WORD?
TEST = """import sys
text = open(sys.argv[2] + "/%s").read()
print("it says", text.split("\\n")[%d])
sys.exit(0 if "%s" in text else 1)
"""


def changed(number, text):
    """The lines of the made-up file with one of them replaced."""
    return LINES[:number - 1] + [text + "\n"] + LINES[number:]


def a_diff(name, old, new):
    return "".join(difflib.unified_diff(old, new, "a/" + name if old else "/dev/null",
                                        "b/" + name if new else "/dev/null"))


class Made:
    """A root of series and a source tree, both in a temporary folder."""

    def __init__(self, folder):
        self.root, self.tree = folder / "patches", folder / "sums-1.0"
        self.folder = self.root / "sums/1.0"
        (self.folder / "tests").mkdir(parents=True)
        self.names = []
        (self.folder / "series").write_text("# none yet\n")
        self.tree.mkdir()
        (self.tree / "Makefile").write_text("all:\n")
        (self.tree / "code.txt").write_text("".join(LINES))

    def add(self, name, text, header=HEADER, test=None):
        """A patch at the end of the series, and a test that looks for the line it adds."""
        self.names.append(name)
        (self.folder / name).write_text(header + text)
        if test is None:
            added = [line[1:].rstrip() for line in text.splitlines()
                     if line.startswith("+") and not line.startswith("+++")]
            file = text.splitlines()[1][6:]
            test = TEST % (file, 0, added[0] if added else "nothing")
        (self.folder / "tests" / name.replace(".patch", ".py")).write_text(test)
        (self.folder / "series").write_text("".join(n + "\n" for n in self.names))

    def two(self):
        """Two patches of one file; the second needs the first."""
        first = changed(5, "LINE 5")
        second = first[:5] + ["LINE 6\n"] + first[6:]
        self.add("0001-five.patch", a_diff("code.txt", LINES, first))
        self.add("0002-six.patch", a_diff("code.txt", first, second))
        return second

    def run(self, *words, status=0, **settings):
        """The output of patches.py on this root."""
        said = io.StringIO()
        with pytest.MonkeyPatch.context() as patched, contextlib.redirect_stdout(said), (
                contextlib.redirect_stderr(said)):
            for name, value in settings.items():
                patched.setenv(name, value)
            patched.setattr(sys, "argv", ["patches.py", "--root", str(self.root),
                                          *map(str, words)])
            try:
                ended = patches.main()
            except SystemExit as usage:
                ended = usage.code
        assert ended == status, said.getvalue()
        return said.getvalue()

    def apply(self, *words, status=0, **settings):
        return self.run("apply", "sums", "1.0", self.tree, *words, status=status, **settings)

    def state(self):
        """Every file of the tree and what is in it."""
        return {str(path.relative_to(self.tree)): path.read_bytes()
                for path in sorted(self.tree.rglob("*")) if path.is_file()}


@pytest.fixture
def made(tmp_path):
    return Made(tmp_path)


# ---- series ----------------------------------------------------------------------------------


def test_the_series_of_this_tree_are_in_order():
    done = subprocess.run([sys.executable, "-B", str(PROGRAM), "check"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    every, found = series.check()
    assert not found and {one.component for one in every} > {"openblas", "fftw", "hdf5", "numpy"}


def test_a_sound_series_has_no_fault(made):
    made.two()
    (made.folder / "tests/support").mkdir()
    assert made.run("check") == "patches: 1 series, 2 patches, 0 faults\n"


GOOD = a_diff("code.txt", LINES, changed(5, "LINE 5"))
FAULTS = {
    "no-description": (HEADER.replace("Description: ", "Summary: "), GOOD,
                       "the header has no Description"),
    "empty-description": (HEADER.replace(" Say something else\n And why.", ""), GOOD,
                          "the header has no Description"),
    "long-description": (HEADER.replace("Say", "Say" * 30), GOOD, "longer than 80 characters"),
    "no-date": (HEADER.replace("Last-Update: 2026-01-31\n", ""), GOOD,
                "the header has no Last-Update"),
    "impossible-date": (HEADER.replace("01-31", "02-30"), GOOD,
                        "Last-Update is '2026-02-30'; a date is written 2026-01-31"),
    "author-alone": (HEADER.replace("Forwarded: no\n", ""), GOOD,
                     "neither Origin nor Author and Forwarded"),
    "nobody": (HEADER.replace("Author: A. Person\n", ""), GOOD,
               "neither Origin nor Author and Forwarded"),
    "odd-origin": (HEADER + "Origin: somewhere\n", GOOD, "Origin is 'somewhere'; it begins with"),
    "odd-forwarded": (HEADER.replace("Forwarded: no", "Forwarded: maybe"), GOOD,
                      "Forwarded is 'maybe'; it is no, not-needed, yes or a URL"),
    "bug-without-url": (HEADER + "Bug-Debian: #123456\n", GOOD,
                        "Bug-Debian is '#123456', which is no URL"),
    "field-twice": (HEADER + "Author: B. Person\n", GOOD,
                    "line 6: the field Author is there twice"),
    "not-a-field": (HEADER + "some prose\n", GOOD, "line 6: 'some prose' is neither"),
    "no-diff": (HEADER, "", "there is no diff in it"),
    "cut-off": (HEADER, "".join(GOOD.splitlines(True)[:-2]), "the hunk ends early; 2 old and 2"),
    "no-hunk": (HEADER, "--- a/code.txt\n+++ b/code.txt\n", "a file without a hunk"),
    "hunk-alone": (HEADER, "--- a\n" + GOOD.partition("+++ b/code.txt\n")[2],
                   "a hunk without '--- a/file'"),
    "leaves-the-tree": (HEADER, GOOD.replace("/code.txt", "/../code.txt"),
                        "is not a path below one leading folder"),
    "absolute": (HEADER, GOOD.replace("a/code.txt", "/code.txt"), "'/code.txt' is not a path"),
    "p0": (HEADER, GOOD.replace("a/code", "code").replace("b/code", "code"),
           "'code.txt' is not a path below one leading folder (a/..., b/...: patches are applied "
           "with -p1)"),
    "rename": (HEADER, GOOD.replace("b/code", "b/other"), "a patch may not rename"),
    "git-rename": (HEADER, "diff --git a/x b/y\nrename from x\nrename to y\n" + GOOD,
                   "'rename from x' needs git; write a plain diff"),
    "git-mode": (HEADER, "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n" + GOOD,
                 "'old mode 100644' needs git"),
    "binary": (HEADER, "diff --git a/x b/x\nGIT binary patch\nliteral 4\n" + GOOD, "needs git"),
    "file-twice": (HEADER, GOOD + GOOD, "code.txt is changed twice"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_wrong_with_a_patch_is_said(made, name):
    header, text, sentence = FAULTS[name]
    made.add("0001-five.patch", text, header, test="")
    said = made.run("check", status=1)
    assert said.startswith("sums/1.0/0001-five.patch: ") and sentence in said
    # What is not in order is not applied.
    before = made.state()
    assert sentence in made.apply(status=1)
    assert made.state() == before


def test_what_is_wrong_with_a_series_is_said(made):
    made.add("0002-six.patch", GOOD)
    made.add("0001-five.patch", GOOD)
    made.add("Loud_Name.patch", GOOD)
    (made.folder / "tests/0001-five.py").unlink()
    (made.folder / "tests/0002-six.sh").write_text("")
    (made.folder / "tests/0009-gone.py").write_text("")
    (made.folder / "0003-forgotten.patch").write_text(HEADER + GOOD)
    with open(made.folder / "series", "a", encoding="utf-8") as stream:
        stream.write("0002-six.patch\n0004-missing.patch  # said twice, and not there\n")
    said = made.run("check", status=1)
    for sentence in (
            "series: 0002-six.patch is listed 2 times",
            "series: the numbers of the patches do not rise: 0002 0001 0004",
            "0001-five.patch: it has no test; one is needed, called tests/0001-five.py",
            "0002-six.patch: it has the tests 0002-six.py, 0002-six.sh; one is needed",
            "0003-forgotten.patch: series does not name it",
            "0004-missing.patch: series names it, but there is no such file",
            "Loud_Name.patch: a patch is called NNNN-what-it-does.patch, in lower case",
            "tests/0009-gone.py: no patch of the series has this name"):
        assert "sums/1.0/" + sentence in said, said


def test_a_version_needs_a_series_where_another_has_one(made):
    made.two()
    said = made.run("apply", "sums", "2.0", made.tree, status=1)
    assert "sums 2.0 has no series of patches, only 1.0" in said
    assert "patches/sums/2.0/series, which may be empty; or choose the variant pinned" in said
    assert "no patch, for there is none" in made.run(
        "apply", "sums", "2.0", made.tree, "--variant", "pinned")
    assert "no patch, for there is none" in made.run("apply", "other", "2.0", made.tree)
    (made.root / "sums/3.0").mkdir()
    assert "sums 3.0 has no series" in made.run("check", status=1)


@pytest.mark.parametrize("word", ["../sums", "", "a b", "-x/y"])
def test_odd_names_are_refused(made, word):
    assert "neither the name of a component nor a version" in made.run(
        "digest", "--", word, "1.0", status=1)


# ---- apply -----------------------------------------------------------------------------------


def test_a_series_is_applied_once(made):
    second = made.two()
    os.chmod(made.tree / "code.txt", 0o754)
    said = made.apply()
    assert said == "sums 1.0, patched: applied 0001-five.patch, 0002-six.patch\n"
    assert (made.tree / "code.txt").read_text() == "".join(second)
    assert (made.tree / "code.txt").stat().st_mode & 0o777 == 0o754
    record = json.loads((made.tree / ".stack-patches").read_text())
    assert record == {"component": "sums", "version": "1.0", "variant": "patched",
                      "patches": made.names, "digest": made.run("digest", "sums", "1.0").strip()}
    assert set(made.state()) == {".stack-patches", "Makefile", "code.txt"}
    before = {path: path.stat().st_mtime_ns for path in made.tree.iterdir()}
    assert made.apply() == "sums 1.0, patched: nothing to do\n"
    assert {path: path.stat().st_mtime_ns for path in made.tree.iterdir()} == before


def test_files_come_and_go(made):
    (made.tree / "old.txt").write_text("one\n")
    made.add("0001-come-and-go.patch", a_diff("new/file.txt", [], ["two\n"])
             + a_diff("old.txt", ["one\n"], []))
    made.apply()
    assert (made.tree / "new/file.txt").read_text() == "two\n"
    assert not (made.tree / "old.txt").exists()
    other = Made(made.root.parent / "other")
    shutil.copytree(made.root, other.root, dirs_exist_ok=True)
    (other.tree / "new").mkdir()
    (other.tree / "new/file.txt").write_text("two\n")
    before = other.state()
    assert "it would make new/file.txt, which is there already" in other.apply(status=1)
    (other.tree / "new/file.txt").unlink()
    assert "there is no file old.txt" in other.apply(status=1)
    assert other.state() == {k: v for k, v in before.items() if k != "new/file.txt"}


def test_fuzz_is_refused(made):
    made.two()
    lines = list(LINES)
    lines[1] = "another line 2\n"  # the outermost line of context
    (made.tree / "code.txt").write_text("".join(lines))
    before = made.state()
    # By itself GNU patch would take it.
    done = subprocess.run(["patch", "-p1", "--dry-run", "-d", made.tree, "-i",
                           made.folder / made.names[0]], stdout=subprocess.PIPE, text=True,
                          check=False)
    assert done.returncode == 0 and "with fuzz 1" in done.stdout
    said = made.apply(status=1)
    assert said == ("patches: does not apply: 0001-five.patch: hunk 1 of code.txt, for line 2, "
                    "does not fit\n")
    assert made.state() == before


def test_all_or_nothing(made):
    made.two()
    made.add("0003-ten.patch", a_diff("code.txt", changed(10, "LINE X"), changed(10, "LINE 10")))
    before = made.state()
    assert "does not apply: 0003-ten.patch: hunk 1 of code.txt, for line 7" in made.apply(status=1)
    assert made.state() == before
    # Without it the others still apply.
    made.names.pop()
    (made.folder / "series").write_text("\n".join(made.names))
    for name in ("0003-ten.patch", "tests/0003-ten.py"):
        (made.folder / name).unlink()
    made.apply()


def test_what_is_there_already_is_said(made):
    made.two()
    (made.tree / "code.txt").write_text("".join(changed(5, "LINE 5")))
    said = made.apply(status=1)
    assert "0001-five.patch: hunk 1 of code.txt" in said or "had the change already" in said


def test_another_place_is_noted(made):
    made.two()
    (made.tree / "code.txt").write_text("new\n" + "".join(LINES))
    assert "note: 0001-five.patch: hunk 1 of code.txt fits at line 3, 1 off" in made.apply()


def test_crlf_and_other_encodings_survive(made):
    old, new = b"caf\xe9\r\nzwei\r\n", b"caf\xe9\r\nthree\r\n"
    (made.tree / "latin.txt").write_bytes(old)
    (made.folder / "0001-latin.patch").write_bytes(
        HEADER.encode() + b"--- a/latin.txt\n+++ b/latin.txt\n@@ -1,2 +1,2 @@\n caf\xe9\r\n"
        b"-zwei\r\n+three\r\n")
    (made.folder / "tests/0001-latin.py").write_text("")
    (made.folder / "series").write_text("0001-latin.patch\n")
    made.apply()
    assert (made.tree / "latin.txt").read_bytes() == new


def test_links_are_not_followed(made, tmp_path):
    made.two()
    outside = tmp_path / "outside.txt"
    (made.tree / "code.txt").rename(outside)
    (made.tree / "code.txt").symlink_to(outside)
    assert "code.txt is a link, or lies behind one" in made.apply(status=1)
    assert outside.read_text() == "".join(LINES)


def test_variants(made):
    made.two()
    before = made.state()
    for variant in ("upstream", "pinned"):
        assert "applied no patch" in made.apply("--variant", variant)
        assert {k: v for k, v in made.state().items() if k != ".stack-patches"} == before
    assert "invalid choice: 'new' (choose from" in made.apply("--variant", "new", status=2)
    made.apply()
    said = made.apply("--variant", "pinned", status=1)
    assert "has other patches already (sums 1.0, patched: 0001-five.patch, 0002-six.patch)" in said
    assert "unpack the sources afresh" in said


def test_a_changed_series_needs_a_fresh_tree(made):
    second = made.two()
    made.apply()
    third = second[:9] + ["LINE 10\n"] + second[10:]
    made.add("0003-ten.patch", a_diff("code.txt", second, third))
    assert "unpack the sources afresh" in made.apply(status=1)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"patches": 1}'])
def test_a_strange_record_is_refused(made, text):
    made.two()
    (made.tree / ".stack-patches").write_text(text)
    assert "is not a record of ours" in made.apply(status=1)


def test_no_tree_and_no_program(made, tmp_path):
    made.two()
    assert "is no directory; name an unpacked source tree" in made.run(
        "apply", "sums", "1.0", tmp_path / "nowhere", status=1)
    before = made.state()
    assert "the program patch is not installed; apt-get install patch" in made.apply(
        status=1, PATH=str(tmp_path))
    assert made.state() == before


def test_two_at_once(made):
    made.two()
    descriptor = os.open(made.tree, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert "another process is patching" in made.apply(status=1)
    finally:
        os.close(descriptor)
    made.apply()


DYING = """import os, sys
sys.path.insert(0, sys.argv[1])
from patching import applying, series
left, real = int(sys.argv[4]), (os.replace, os.remove)
def counted(function):
    def call(*paths):
        global left
        left -= 1
        if left < 0:
            end()
        function(*paths)
    return call
def end():
    if sys.argv[5] == "killed":
        os._exit(9)
    os.replace, os.remove = real
    raise KeyboardInterrupt
os.replace, os.remove = map(counted, real)
try:
    applying.apply(series.chosen("sums", "1.0", "patched", sys.argv[2]), sys.argv[3])
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("how", ["killed", "interrupted"])
@pytest.mark.parametrize("steps", range(6))  # journal, three files, record; journal
def test_dying_on_the_way_loses_nothing(made, steps, how):
    made.two()
    (made.tree / "old.txt").write_text("one\n")
    made.add("0003-more.patch", a_diff("new.txt", [], ["two\n"])
             + a_diff("old.txt", ["one\n"], ["three\n"]))
    before = made.state()
    done = subprocess.run([sys.executable, "-B", "-c", DYING, PROGRAM.parent, made.root, made.tree,
                           str(steps), how], check=False)
    assert done.returncode == (9 if how == "killed" else 130)
    made.apply("--variant", "pinned")
    after = made.state()
    after.pop(".stack-patches")
    assert after == before
    made.apply()
    assert (made.tree / "new.txt").read_text() == "two\n"
    assert (made.tree / "old.txt").read_text() == "three\n"
    assert not list(made.tree.glob(".stack-patches.*"))


# ---- digest ----------------------------------------------------------------------------------


def test_the_digest_is_of_the_diffs_in_their_order(made):
    made.two()
    expected = hashlib.sha256()
    for name in made.names:
        text = (made.folder / name).read_text()[len(HEADER):].encode()
        expected.update(b"%d\n" % len(text) + text)
    first = made.run("digest", "sums", "1.0").strip()
    assert first == expected.hexdigest()
    (made.folder / made.names[0]).write_text(
        HEADER.replace("And why", "And because") + GOOD)
    assert made.run("digest", "sums", "1.0").strip() == first
    (made.folder / made.names[0]).write_text(HEADER + GOOD.replace("LINE 5", "LINE V"))
    assert made.run("digest", "sums", "1.0").strip() != first


def test_without_patches_the_digest_is_that_of_nothing(made):
    made.two()
    nothing = hashlib.sha256(b"").hexdigest()
    for words in (("sums", "1.0", "--variant", "pinned"), ("sums", "9", "--variant", "upstream"),
                  ("other", "1.0")):
        assert made.run("digest", *words).strip() == nothing


# ---- test and needed -------------------------------------------------------------------------


def judged(made, *words, status=0):
    """(verdicts by patch, JUnit's suite, the output)"""
    files = made.root.parent / "verdicts.json", made.root.parent / "verdicts.xml"
    text = made.run("needed", "sums", "1.0", made.tree, "--json", files[0], "--junit", files[1],
                    *words, status=status)
    found = json.loads(files[0].read_text())
    return ({row["patch"]: row for row in found["patches"]},
            ElementTree.parse(files[1]).getroot().find("testsuite"), text, found)


def test_needed_patches_are_needed(made):
    made.two()
    before = made.state()
    verdicts, suite, text, found = judged(made)
    assert [row["word"] for row in verdicts.values()] == ["needed", "needed"]
    assert not any(row["todo"] for row in verdicts.values())
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "0", "0")
    assert "nothing to be done" in text and found["against"] == "1.0"
    assert made.state() == before, "the tree was changed"


def test_every_other_verdict(made):
    made.two()
    say = a_diff("code.txt", changed(12, "X"), changed(12, "LINE 12"))
    made.add("0003-elsewhere.patch", say)  # fits nowhere, and its test fails
    made.add("0004-cannot-tell.patch", a_diff("a.txt", [], ["a\n"]),
             test="import sys\nprint('no machine for it')\nsys.exit(77)\n")
    made.add("0005-does-not-help.patch", a_diff("b.txt", [], ["b\n"]),
             test="import sys\nprint('still wrong')\nsys.exit(1)\n")
    made.add("0006-broken-test.patch", a_diff("c.txt", [], ["c\n"]), test="import nothing_at_all\n")
    made.add("0007-odd-end.patch", a_diff("d.txt", [], ["d\n"]), test="import sys\nsys.exit(5)\n")
    made.add("0008-always-right.patch", a_diff("e.txt", [], ["e\n"]), test="print('right')\n")
    # A newer version, which has the first change.
    (made.tree / "code.txt").write_text("".join(changed(5, "LINE 5")))
    verdicts, suite, text, found = judged(made, "--against", "1.1", status=1)
    words = {name[:4]: row["word"] for name, row in verdicts.items()}
    assert words == {"0001": "no longer needed", "0002": "needed", "0003": "no longer applies",
                     "0004": "not tested", "0005": "does not help", "0006": "the test is broken",
                     "0007": "the test is broken", "0008": "no longer needed"}
    assert found["against"] == "1.1"
    assert "it does not apply either" in verdicts["0001-five.patch"]["text"]
    assert "hunk 1 of code.txt" in verdicts["0003-elsewhere.patch"]["text"]
    assert "still wrong" in verdicts["0005-does-not-help.patch"]["text"]
    assert [row["todo"] for row in verdicts.values()] == [
        True, False, True, False, True, True, True, True]
    failures = {case.get("name")[:4]: case.find("failure").get("message")
                for case in suite if case.find("failure") is not None}
    assert failures == {number: word for number, word in words.items()
                        if word not in ("needed", "not tested")}
    assert suite.get("skipped") == "1" and "6 to look at" in text


def test_needed_wants_an_unpatched_source_tree(made, tmp_path):
    made.two()
    made.apply()
    assert "is patched already; name a tree as it was unpacked" in made.run(
        "needed", "sums", "1.0", made.tree, status=1)
    (tmp_path / "prefix/lib").mkdir(parents=True)
    assert "is no source tree" in made.run("needed", "sums", "1.0", tmp_path / "prefix", status=1)


def test_tests_on_a_tree_and_on_a_prefix(made, tmp_path):
    made.two()
    said = made.run("test", "sums", "1.0", "--with", made.tree, status=1)
    assert said.count("failed ") == 2 and "2 to look at" in said
    made.apply()
    assert made.run("test", "sums", "1.0", "--with", made.tree).count("passed ") == 2
    prefix = tmp_path / "prefix"
    (prefix / "lib").mkdir(parents=True)
    for name in made.names:
        (made.folder / "tests" / name.replace(".patch", ".py")).write_text(
            "import patchtest\n\n\ndef tree(path):\n    patchtest.failed('a tree')\n\n\n"
            "patchtest.main(tree=tree)\n")
    report = tmp_path / "report.xml"
    said = made.run("test", "sums", "1.0", "--with", prefix, "--junit", report)
    assert said.count("skipped ") == 2 and "only a tree shows it" in said
    assert ElementTree.parse(report).getroot().find("testsuite").get("skipped") == "2"
    assert "is no directory" in made.run("test", "sums", "1.0", "--with", tmp_path / "x", status=1)


def test_a_test_has_a_folder_of_its_own(made):
    made.two()
    made.apply()
    for name in made.names:
        (made.folder / "tests" / name.replace(".patch", ".py")).write_text(
            "import os\nassert not os.listdir('.')\nopen('left-over', 'w').close()\n")
    here = set(os.listdir("."))
    made.run("test", "sums", "1.0", "--with", made.tree)
    assert set(os.listdir(".")) == here
    assert "left-over" not in made.state()


# ---- list, export ----------------------------------------------------------------------------


def test_list(made):
    made.two()
    said = made.run("list")
    assert "sums 1.0" in said and "0002-six.patch\n      Say something else" in said
    row, = json.loads(made.run("list", "--json"))
    assert row["digest"] == made.run("digest", "sums", "1.0").strip()
    assert row["patches"][0]["header"]["Description"] == "Say something else\nAnd why."


def test_export_to_debian(made, tmp_path):
    made.two()
    debian = made.tree / "debian"
    debian.mkdir()
    made.run("export-deb", "sums", "1.0", debian)
    series_file = (debian / "patches/series").read_text()
    assert series_file.splitlines()[1:] == made.names
    assert made.run("export-deb", "sums", "1.0", debian) == "nothing to do\n"
    # quilt's way: what dpkg-source does with it.
    for name in series_file.splitlines()[1:]:
        subprocess.run(["patch", "-p1", "-s", "-F0", "-d", made.tree, "-i",
                        debian / "patches" / name], check=True)
    assert "LINE 6" in (made.tree / "code.txt").read_text()
    (made.folder / "series").write_text(made.names[0])
    for name in (made.names[1], "tests/0002-six.py"):
        (made.folder / name).unlink()
    assert "removed" in made.run("export-deb", "sums", "1.0", debian)
    assert sorted(os.listdir(debian / "patches")) == ["0001-five.patch", "series"]
    made.run("export-deb", "other", "1.0", debian)
    assert not (debian / "patches").exists()
    assert "is no folder debian" in made.run("export-deb", "sums", "1.0", tmp_path, status=1)
    (debian / "patches").mkdir()
    (debian / "patches/mine.patch").write_text("by hand\n")
    for name in ("sums", "other"):
        said = made.run("export-deb", name, "1.0", debian, status=1)
        assert "was not written by export-deb" in said
    assert (debian / "patches/mine.patch").read_text() == "by hand\n"


SPEC = "Name: sums\nSource0: sums.tar.gz\nSource1: more.tar.gz\n\n%prep\n%autosetup -p1\n"


def test_export_to_a_spec(made, tmp_path):
    made.two()
    spec, sources = tmp_path / "sums.spec", tmp_path / "SOURCES"
    spec.write_text(SPEC)
    made.run("export-rpm", "sums", "1.0", spec, "--sources", sources)
    assert spec.read_text() == SPEC.replace(
        "more.tar.gz\n", "more.tar.gz\nPatch1:         0001-five.patch\n"
        "Patch2:         0002-six.patch\n")
    assert sorted(os.listdir(sources)) == made.names
    assert made.run("export-rpm", "sums", "1.0", spec, "--sources", sources) == "nothing to do\n"
    made.run("export-rpm", "other", "1.0", spec)
    assert spec.read_text() == SPEC
    for bad, sentence in ((SPEC.replace(" -p1", ""), "needs %autosetup -p1"),
                          (SPEC.replace("Source", "Spurce"), "has no Source: line"),
                          (SPEC.replace("Source1", "Patch7"), "applies more.tar.gz, which no")):
        spec.write_text(bad)
        assert sentence in made.run("export-rpm", "sums", "1.0", spec, status=1)
        assert spec.read_text() == bad


CONTROL = """Source: sums
Maintainer: A. Person <a@example.invalid>
Standards-Version: 4.6.2

Package: sums
Architecture: all
Description: sums
 And differences.
"""


@pytest.mark.skipif(not shutil.which("dpkg-source"), reason="dpkg-source is not installed")
def test_dpkg_source_applies_what_was_exported(made, tmp_path):
    second = made.two()
    subprocess.run(["tar", "czf", tmp_path / "sums_1.0.orig.tar.gz", "-C", tmp_path, "sums-1.0"],
                   check=True)
    debian = made.tree / "debian"
    (debian / "source").mkdir(parents=True)
    (debian / "source/format").write_text("3.0 (quilt)\n")
    (debian / "control").write_text(CONTROL)
    (debian / "changelog").write_text(
        "sums (1.0-1) unstable; urgency=low\n\n  * First.\n\n"
        " -- A. Person <a@example.invalid>  Sun, 22 Nov 2026 00:00:00 +0000\n")
    made.run("export-deb", "sums", "1.0", debian)
    for words in (["-b", made.tree], ["-x", "sums_1.0-1.dsc", "unpacked"]):
        subprocess.run(["dpkg-source", *words], cwd=tmp_path, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert (tmp_path / "unpacked/code.txt").read_text() == "".join(second)


@pytest.mark.skipif(not shutil.which("rpmbuild"), reason="rpmbuild is not installed")
def test_rpmbuild_applies_what_was_exported(made, tmp_path):
    second = made.two()
    spec, sources = tmp_path / "sums.spec", tmp_path / "SOURCES"
    spec.write_text("Name: sums\nVersion: 1.0\nRelease: 1\nSummary: sums\nLicense: MIT\n"
                    "Source0: sums-1.0.tar.gz\n\n%description\nsums\n\n%prep\n%autosetup -p1\n")
    made.run("export-rpm", "sums", "1.0", spec, "--sources", sources)
    subprocess.run(["tar", "czf", sources / "sums-1.0.tar.gz", "-C", tmp_path, "sums-1.0"],
                   check=True)
    done = subprocess.run(["rpmbuild", "-bp", "--nodeps", "--define", "_topdir %s" % tmp_path,
                           "--define", "_default_patch_fuzz 0", spec], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    found, = (tmp_path / "BUILD").rglob("code.txt")
    assert found.read_text() == "".join(second)


def test_our_own_packages_say_our_own_series():
    version = (SOURCE / "VERSION").read_text().strip()
    own = series.load("treenail", version)
    assert os.path.isfile(os.path.join(own.folder, "series")), "patches/treenail/%s" % version
    if (SOURCE / "rpm/treenail.spec").exists():
        text = (SOURCE / "rpm/treenail.spec").read_text()
        assert export.spec_text(own, text) == text
        assert "%autosetup -p1\n" in text
    # debian/patches is made when the packages are; what was written by hand there would be lost.
    assert not (SOURCE / "debian/patches").exists()


# ---- diff ------------------------------------------------------------------------------------


def test_what_looks_like_a_header_within_a_hunk_is_none():
    text = ("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n same\n"
            "@@ -9 +9 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
            "diff -u a/y b/y\n--- a/y\t2026-01-01\n+++ b/y\t2026-01-02\n@@ -0,0 +1 @@\n+y\n")
    assert [change.path for change in diff.changes(text)] == ["x", "y"]
