# SPDX-License-Identifier: Apache-2.0
"""treenail-info and build_info(): what they say, in what form, and how they refuse."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

import treenail as tn

BUILD = os.environ.get("TREENAIL_BUILD_DIR", "")
SOURCE = os.environ.get("TREENAIL_SOURCE_DIR") or os.path.dirname(os.path.dirname(
    os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(BUILD, "bin", "treenail-info")
needs_tool = pytest.mark.skipif(not os.path.exists(TOOL),
                                reason="TREENAIL_BUILD_DIR names no build: run by ninja test")


def info(*arguments, status=0, **environment):
    done = subprocess.run([TOOL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False, timeout=60, env=dict(os.environ, **environment))
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done.stdout if status != 2 else done.stderr


def facts(*arguments, status=0, **environment):
    return json.loads(info("--json", *arguments, status=status, **environment))


@needs_tool
def test_the_program_and_the_module_agree():
    outside, inside = facts(), tn.build_info()
    assert list(outside) == list(inside)
    for key in set(outside) - {"adapters", "threads_origin", "num_threads"}:
        assert outside[key] == inside[key], key
    assert set(outside["adapters"]) == set(outside["features"]) - {"cuda"}  # a device library
    assert all(adapter["loaded"] for adapter in outside["adapters"].values())


@needs_tool
def test_text_and_json_say_the_same():
    text, found = info(), facts()
    rows = {line[:16].strip(): line[16:] for line in text.splitlines() if line[:1] != " "}
    assert rows["Treenail"].startswith(found["version"] + " (")
    assert rows["level in use"] == found["kernel_level"]
    assert rows["CPU features"].split() == found["cpu_features"]
    assert rows["baseline"] == found["isa_baseline"]
    for name, adapter in found["adapters"].items():
        assert rows[name] == adapter["libraries"][0]


@needs_tool
def test_version_help_and_manual_page():
    assert info("--version") == tn.__version__ + "\n"
    said = info("--help")
    with open(os.path.join(SOURCE, "docs/man/treenail-info.1"), encoding="utf-8") as stream:
        page = stream.read()
    options = set(re.findall(r"^  (--\w+)", said, re.MULTILINE))
    assert options == {"--json", "--version", "--help"}
    assert options == {option.replace("\\", "") for option in
                       re.findall(r"^\.B (\\-\\-\w+)", page, re.MULTILINE)}
    with open(os.path.join(SOURCE, "framework/tools/treenail-info.bash"),
              encoding="utf-8") as stream:
        assert options == set(re.findall(r"--\w+", stream.read().split("complete -W", 1)[1]))
    for status in ("0", "1", "2"):
        assert re.search(r"^\.TP\n%s\n" % status, page, re.MULTILINE)


@needs_tool
def test_what_is_not_understood_is_refused():
    assert '"--jsno" is not understood' in info("--jsno", status=2)


@needs_tool
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_output_that_cannot_be_written_is_an_error():
    with open("/dev/full", "wb") as full:
        done = subprocess.run([TOOL], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and "cannot write" in done.stderr


@needs_tool
def test_levels_and_the_variable():
    found = facts()
    installed = found["installed_kernel_levels"]
    usable = installed[:installed.index(found["kernel_level"]) + 1]
    for level in usable:
        asked = facts(TREENAIL_CPU_ISA=level)
        assert asked["kernel_level"] == level and asked["kernel_problem"] == ""
    wrong = facts(status=1, TREENAIL_CPU_ISA="x87")
    assert wrong["kernel_level"] == "" and '"x87"' in wrong["kernel_problem"]
    assert "none: " in info(status=1, TREENAIL_CPU_ISA="x87")
    levels = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"]
    for level in set(levels if found["machine"] == "x86_64" else ()) - set(usable):
        refused = facts(status=1, TREENAIL_CPU_ISA=level)["kernel_problem"]
        assert 'TREENAIL_CPU_ISA is "%s", but ' % level in refused
        above = levels.index(level) > levels.index(found["best_level"])
        assert ("lacks" if above else "no kernel library of that level") in refused


@needs_tool
def test_threads_and_who_decided_their_number():
    found = facts(TREENAIL_NUM_THREADS="3")
    assert (found["num_threads"], found["threads_origin"]) == (3, "TREENAIL_NUM_THREADS")
    wrong = facts(TREENAIL_NUM_THREADS="many")
    assert wrong["num_threads"] == 0 and "TREENAIL_NUM_THREADS" in wrong["threads_origin"]
    plain = facts(TREENAIL_NUM_THREADS="")["num_threads"]
    slurm = facts(TREENAIL_NUM_THREADS="", SLURM_CPUS_PER_TASK="1")
    assert slurm["num_threads"] == 1
    assert plain == 1 or slurm["threads_origin"] == "SLURM_CPUS_PER_TASK"
    if len(os.sched_getaffinity(0)) > 1:
        one = min(os.sched_getaffinity(0))
        done = subprocess.run([sys.executable, "-c", "import os, sys; os.sched_setaffinity(0, "
                               "{%d}); os.execv(sys.argv[1], sys.argv[1:])" % one, TOOL, "--json"],
                              stdout=subprocess.PIPE, check=True,
                              env=dict(os.environ, TREENAIL_NUM_THREADS=""))
        assert json.loads(done.stdout)["threads_origin"] == "the affinity mask"
        assert json.loads(done.stdout)["num_threads"] == 1


@needs_tool
def test_memory_limit():
    assert facts(TREENAIL_MEMORY_LIMIT="3G")["memory_limit"] == 3 << 30
    wrong = facts(TREENAIL_MEMORY_LIMIT="much")
    assert wrong["memory_limit"] == 0 and "TREENAIL_MEMORY_LIMIT" in wrong["memory_problem"]


@needs_tool
def test_an_adapter_that_cannot_be_loaded(tmp_path):
    """A file name that would break JSON, in a directory that would break a terminal."""
    place = tmp_path / 'odd "\\\n\x1b name'
    (place / "adapters").mkdir(parents=True)
    (place / "adapters" / 'libtreenail-bad"\n.so').write_text("no library")
    found = facts(status=1, TREENAIL_LIBRARY_DIR=str(place))
    assert found["installed_kernel_levels"] == [] and "none" in found["kernel_problem"]
    adapter = found["adapters"]['bad"\n']
    assert not adapter["loaded"] and "\n" in adapter["problem"] and adapter["libraries"] == []
    assert "\x1b" not in info(status=1, TREENAIL_LIBRARY_DIR=str(place))
    empty = facts(status=1, TREENAIL_LIBRARY_DIR=str(tmp_path / "nothing"))
    assert empty["adapters"] == {}


@needs_tool
def test_an_adapter_of_another_version_and_a_library_that_is_none(tmp_path):
    (tmp_path / "adapters").mkdir()
    for name, plugin in (("older", "of-another-version"), ("plugin", "example")):
        shutil.copy(os.path.join(BUILD, "tests", "plugins", "libtreenail-%s.so" % plugin),
                    tmp_path / "adapters" / ("libtreenail-%s.so" % name))
    found = facts(status=1, TREENAIL_LIBRARY_DIR=str(tmp_path))["adapters"]
    path = str(tmp_path / "adapters" / "libtreenail-%s.so")
    assert found["older"]["problem"] == "%s is of Treenail 0.0.7, this libtreenail of %s" % (
        path % "older", tn.__version__)
    assert found["plugin"]["problem"] == path % "plugin" + " is no adapter of Treenail"
    assert not any(adapter["loaded"] or adapter["libraries"] for adapter in found.values())


def test_the_blas_named_is_the_one_that_runs():
    """build_info() opens nothing; once a product has, its file is mapped. At the lowest level, for
    products at one with fused multiply-adds are Treenail's own."""
    if "blas" not in tn.build_info()["features"]:
        pytest.skip("built without BLAS")
    program = ("import json, numpy as np, treenail as tn\n"
               "ones = np.ones((1024, 1024), np.float32)\n"
               "tn.Session().run(tn.matmul(ones, ones))\n"
               "maps = [line.rstrip().split(maxsplit=5)[-1] for line in open('/proc/self/maps')]\n"
               "print(json.dumps([tn.build_info()['adapters']['blas'], maps]))")
    lowest = tn.build_info()["installed_kernel_levels"][0]
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True,
                          env=dict(os.environ, TREENAIL_CPU_ISA=lowest))
    adapter, mapped = json.loads(done.stdout)
    assert adapter["loaded"] and adapter["problem"] == ""
    files = adapter["libraries"] + adapter["indirect"]
    assert adapter["libraries"] and set(files) <= set(mapped)
    assert not any(re.search(r"/lib(c|m|stdc\+\+|treenail)[.-]", path) for path in files)


def test_nothing_is_opened_by_asking():
    program = ("import treenail as tn; a = tn.build_info()['adapters']; "
               "print([n for n in a if a[n]['loaded'] or a[n]['libraries']])")
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert done.stdout.split() == [b"[]"]


def test_the_program_is_named_when_it_sets_the_number_of_threads():
    program = ("import treenail as tn; tn.Session(config=tn.ConfigProto("
               "intra_op_parallelism_threads=2)); i = tn.build_info(); "
               "print(i['num_threads'], i['threads_origin'])")
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert done.stdout.split() == [b"2", b"the", b"program"]
