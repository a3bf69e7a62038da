# SPDX-License-Identifier: Apache-2.0
"""clang-tidy in batches (ci/tidy.py): nothing is lost by them, and what does not go together is
examined apart."""

import os
import re
import shutil
import sys

import pytest
from small_tree import SOURCE
from test_ci import lint, repository  # noqa: F401  (a fixture)

sys.path.insert(0, str(SOURCE / "ci"))
import tidy  # noqa: E402  (the path must be set first)

pytestmark = pytest.mark.skipif(shutil.which("clang-tidy") is None,
                                reason="clang-tidy is not installed")

# A mistake for each check of .clang-tidy.
MISTAKES = {
    "bugprone-argument-comment":
        "void named(int size, int count);\nvoid f() { named(/*count=*/1, /*size=*/2); }",
    "bugprone-inaccurate-erase":
        "void f(std::vector<int>& v) { v.erase(std::remove(v.begin(), v.end(), 3)); }",
    "bugprone-integer-division": "double f(int a, int b) { return a / b; }",
    "bugprone-misplaced-widening-cast": "long f(int a, int b) { return (long)(a * b); }",
    "bugprone-string-constructor": "std::string f() { return std::string('x', 5000); }",
    "bugprone-swapped-arguments":
        "void two(int a, double b);\nvoid f(int a, double b) { two(b, a); }",
    "bugprone-unhandled-self-assignment":
        "struct Owner {\n  int* p = new int(1);\n  Owner& operator=(const Owner& o) {\n"
        "    delete p;\n    p = new int(*o.p);\n    return *this;\n  }\n};",
    "bugprone-unused-raii":
        "std::mutex m;\nvoid g();\nvoid f() {\n  std::lock_guard<std::mutex>{m};\n  g();\n}",
    "bugprone-use-after-move":
        "std::string f(std::string s) {\n  std::string t = std::move(s);\n  return s + t;\n}",
    "clang-diagnostic-dangling-gsl":
        "std::string made();\nchar f() {\n  std::string_view v = made();\n  return v[0];\n}",
    "clang-diagnostic-return-stack-address":
        "std::string_view f() {\n  std::string s;\n  return s;\n}",
    "misc-throw-by-value-catch-by-reference":
        "void g();\nvoid f() {\n  try {\n    g();\n  } catch (std::runtime_error e) {\n  }\n}",
    "performance-for-range-copy":
        "unsigned f(const std::vector<std::string>& v) {\n  unsigned n = 0;\n"
        "  for (const std::string s : v) n += s.size();\n  return n;\n}",
    "performance-noexcept-move-constructor":
        "struct Mover {\n  std::string s;\n  Mover(Mover&& o) : s(std::move(o.s)) {}\n};",
    "performance-unnecessary-value-param": "unsigned f(std::string s) { return s.size(); }",
}
# Version 14 knows no mistake of C++17 or later for these.
BLIND = {"bugprone-dangling-handle"}
HEADERS = "".join("#include <%s>\n" % name for name in (
    "algorithm", "mutex", "stdexcept", "string", "string_view", "utility", "vector"))


def examination(tree):
    tree.configure()
    tree.ninja("generated-headers")
    return tidy.Tidy(str(tree.root), str(tree.root / "build"))


def sources(tree, *texts):
    names = ["framework/base/file%d.cc" % at for at in range(len(texts))]
    for name, text in zip(names, texts):
        tree.write(name, text)
    return names


def test_each_check_finds_its_mistake_in_a_batch(repository):  # noqa: F811
    configured = set(re.findall(r"^  ([a-z][\w.-]+),?$", (SOURCE / ".clang-tidy").read_text(),
                                re.MULTILINE))
    assert configured == set(MISTAKES) | BLIND
    names = sources(repository, *[
        "%snamespace n%d {\n%s\n}\n" % (HEADERS, at, text)
        for at, text in enumerate(MISTAKES.values())])
    clean, text = examination(repository).run_together(names)
    assert not clean
    for name, check in zip(names, MISTAKES):
        assert re.search(r"%s:\d+:\d+: error: .*\[%s," % (re.escape(name), check), text), check


def test_a_mistake_in_a_house_header_is_found_in_a_batch(repository):  # noqa: F811
    repository.write("framework/base/wrong.h", HEADERS + (
        "inline double wrong(int a, int b) { return a / b; }\n"))
    names = sources(repository, '#include "framework/base/wrong.h"\nint f() { return 1; }\n',
                    "int g() { return 1; }\n")
    found = examination(repository).findings(names)
    assert len(found) == 1 and found[0].startswith("framework/base/wrong.h:")


@pytest.mark.parametrize("one, other", [
    ("static int f() { return 1; }\nint g() { return f(); }\n",
     "static int f() { return 2; }\nint h() { return f(); }\n"),
    ("namespace {\nstruct Part {\n  int x;\n};\n}\nint g(int x) { return Part{x}.x; }\n",
     "namespace {\nclass Part {};\n}\nint h() { return sizeof(Part); }\n"),
    ("#define WIDTH 3\nint g() { return WIDTH; }\n",
     "#define WIDTH 4\nint h() { return WIDTH; }\n"),
    ("constexpr int kOne = 1, kSize = 8, kNone = 0;\nint g() { return kOne + kSize + kNone; }\n",
     "constexpr int kSize = 9;\nint h() { return kSize; }\n"),
    ("namespace a {\nint x();\n}\nnamespace s = a;\nint g() { return s::x(); }\n",
     "namespace b {\nint x();\n}\nnamespace s = b;\nint h() { return s::x(); }\n"),
    ('extern "C" const char* text() { return "g"; }\n',
     'extern "C" const char* text() { return "h"; }\n'),
    ('#include "framework/base/shape.h"\nint g(Shape s) { return s.x; }\n',
     "class Shape {};\nint h() { return sizeof(Shape); }\n"),
])
def test_sources_that_declare_one_name_are_apart(repository, one, other):  # noqa: F811
    repository.write("framework/base/shape.h", "#pragma once\nstruct Shape {\n  int x;\n};\n")
    names = sources(repository, one, other, "int third() { return 3; }\n")
    examined = examination(repository)
    assert examined.batches(names, 9) == [[names[0], names[2]], [names[1]]]
    assert examined.findings(names) == []


def test_a_conflict_that_no_name_tells_of_is_no_finding(repository):  # noqa: F811
    names = sources(repository, "using Number = int;\nNumber f() { return 1; }\n",
                    "using Number = long;\nNumber g() { return 1; }\n")
    examined = examination(repository)
    assert examined.batches(names, 9) == [names]
    assert not examined.run_together(names)[0]
    assert examined.examine(names) == []
    assert all(os.path.exists(examined.stamp(name)) for name in names)


def test_batches_are_of_one_language_and_no_larger_than_told(repository):  # noqa: F811
    names = sources(repository, *["int f%d() { return 1; }\n" % at for at in range(5)])
    examined = examination(repository)
    examined.flags[names[1]] = ["-DOTHER"]
    assert examined.batches(names, 3) == [[names[0], names[2], names[3]], [names[1]], [names[4]]]


def test_what_is_remembered_is_not_examined_again(repository):  # noqa: F811
    names = sources(repository, *["int f%d() { return 1; }\n" % at for at in range(3)])
    examined = examination(repository)
    assert examined.findings(names) == []
    (repository.root / names[1]).write_text("double f(int a, int b) { return a / b; }\n")
    again = tidy.Tidy(str(repository.root), str(repository.root / "build"))
    again.run_together = None  # the two others are clean as they are
    found = again.findings(names)
    assert len(found) == 1 and found[0].startswith(names[1] + ":1:")


def test_a_build_of_another_tree_is_none(repository):  # noqa: F811
    """A build directory that was copied or whose tree was moved names files that are elsewhere."""
    repository.configure()
    path = repository.root / "build/compile_commands.json"
    path.write_text(path.read_text().replace(str(repository.root), "/elsewhere"))
    status, out = lint(repository, "tidy")
    assert status == 1 and "build of this tree" in out and "/elsewhere/" in out
