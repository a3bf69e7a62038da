# SPDX-License-Identifier: Apache-2.0
"""The tool that holds the C interface to tests/abi/N: what it finds, and what it says."""

import os
import shutil
import subprocess
import sys

import pytest
from small_tree import SOURCE

needs_abidw = pytest.mark.skipif(shutil.which("abidw") is None, reason="abidw is not installed")
HEADER = "framework/capi/include/treenail/treenail.h"


def abi(tree, *arguments):
    done = subprocess.run([sys.executable, "-B", str(tree.root / "gen/tools/abi.py"), "--build",
                           str(tree.root / "build"), *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, check=False)
    return done.returncode, done.stdout


@pytest.fixture
def tracked(small_tree):
    """The small tree with an interface of some size, its ABI tracked."""
    small_tree.edit(HEADER, "int tn_count(void);",
                    "struct tn_pair { int a; int b; };\nint tn_count(void);\nint tn_more(int x);\n"
                    "int tn_pair_sum(const struct tn_pair* pair);")
    small_tree.edit("framework/capi/capi.cc", 'extern "C" int tn_count', '''
extern "C" int tn_more(int x) { return x; }
extern "C" int tn_pair_sum(const tn_pair* pair) { return pair->a + pair->b; }
extern "C" int tn_count''')
    small_tree.configure()
    status, out = abi(small_tree, "--update")
    assert status == 0 and "the commit must say why" in out, out
    return small_tree


@needs_abidw
def test_nothing_changed(tracked):
    tracked.edit("framework/capi/capi.cc", "return x;", "return 1 * x;")  # no part of the interface
    status, out = abi(tracked)
    assert status == 0 and "headers as tracked; 3 functions as in tests/abi/0/" in out, out


@needs_abidw
def test_a_changed_header_is_told(tracked):
    tracked.edit(HEADER, "int tn_more(int x);", "int tn_more(int x);\nint tn_new(void);")
    status, out = abi(tracked)
    assert status == 1
    assert HEADER + ":9 differs from tests/abi/0/include/treenail/treenail.h" in out, out
    assert "say in the commit's message what changed, why" in out


@needs_abidw
@pytest.mark.parametrize("change", ["function gone", "type of a member", "type of a parameter"])
def test_a_changed_interface_is_told(tracked, change):
    """Also where somebody copied the header to the tracked ones and thought that this was all."""
    if change == "function gone":
        tracked.edit("framework/capi/capi.cc", 'extern "C" int tn_more', "int tn_mere")
    elif change == "type of a member":
        tracked.edit(HEADER, "int b;", "long b;")
    else:
        tracked.edit(HEADER, "int tn_more(int x)", "int tn_more(long x)")
        tracked.edit("framework/capi/capi.cc", "tn_more(int x) { return x",
                     "tn_more(long x) { return 1")
    shutil.copy(tracked.root / HEADER, tracked.root / "tests/abi/0/include/treenail")
    status, out = abi(tracked)
    assert status == 1 and "abidiff finds" in out, out
    assert "the major version changes and this becomes tests/abi/1" in out
    assert str(tracked.root) not in (
        tracked.root / "tests/abi/0" / ("libtreenail-%s.abi" % os.uname().machine)).read_text()


@needs_abidw
def test_a_machine_without_a_baseline_is_not_run(tracked):
    (tracked.root / "tests/abi/0" / ("libtreenail-%s.abi" % os.uname().machine)).unlink()
    status, out = abi(tracked)
    assert status == 0 and "not run" in out and "a build for that machine makes it" in out


def test_the_tracked_headers_are_those_of_this_version():
    major = (SOURCE / "VERSION").read_text().split(".")[0]
    sys.path.insert(0, str(SOURCE / "gen" / "tools"))
    import abi as tool
    assert tool.header_differences(int(major), str(SOURCE)) == []
