# SPDX-License-Identifier: Apache-2.0
"""The test runner: no failure, crash, hang or silence may look like success."""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from small_tree import SOURCE

sys.path.insert(0, str(SOURCE / "gen" / "tools"))
import junit  # noqa: E402  (the path must be set first)
import run_tests  # noqa: E402

GTEST = '''#!/bin/sh
for word in "$@"; do case $word in --gtest_output=xml:*) out=${word#*xml:};; esac; done
cat > "$out" <<'END'
<testsuites><testsuite name="S">%s</testsuite></testsuites>
END
%s
'''
PASS = '<testcase name="a" classname="S" status="run" result="completed"/>'
FAIL = '<testcase name="b" classname="S"><failure message="one is not two"/></testcase>'
SKIP = ('<testcase name="c" classname="S" result="skipped"><skipped message="x_test.cc:3 no '
        'such CPU"/></testcase>')
DISABLED = '<testcase name="d" classname="S" status="notrun"/>'


@pytest.fixture
def runner(tmp_path):
    """run(programs, pytest files) -> (exit status, output) of the runner in a made-up build."""
    def run(programs=(), files=(), environment=None, missing=None, shards=1, words=()):
        manifest = {"source": str(tmp_path), "programs": {}, "python": sys.executable,
                    "pytest": [{"folder": "checks", "shards": shards}], "missing": missing or {}}
        for name, text in programs:
            path = tmp_path / (name + "_test")
            path.write_text(text)
            path.chmod(0o755)
            manifest["programs"][name] = {"path": str(path), "checks": ["thread"]}
        (tmp_path / "checks").mkdir(exist_ok=True)
        for name, text in files:
            (tmp_path / "checks" / name).write_text(text)
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        env = {k: v for k, v in os.environ.items() if not k.startswith("TREENAIL_TEST")}
        env.update(environment or {})
        done = subprocess.run(
            [sys.executable, "-B", str(SOURCE / "gen/tools/run_tests.py"), "--manifest",
             "manifest.json", *words], cwd=tmp_path, env=env, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, universal_newlines=True, check=False)
        return done.returncode, done.stdout
    return run


def test_all_pass(runner):
    status, out = runner([("one", GTEST % (PASS, ""))], [("test_x.py", "def test_y(): pass\n")])
    assert status == 0
    assert re.search(r"^2 passed, 0 failed, 0 skipped in \d+ s$", out, re.MULTILINE)


def test_the_module_of_the_build_is_compiled_beforehand(runner, tmp_path):
    (tmp_path / "python" / "made").mkdir(parents=True)
    (tmp_path / "source.py").write_text("NUMBER = 3\n")
    (tmp_path / "python" / "made" / "__init__.py").symlink_to(tmp_path / "source.py")
    status, out = runner(files=[("test_x.py", "import made, os\ndef test_y():\n"
                                 "    assert made.NUMBER == 3\n"
                                 "    assert os.path.exists(made.__cached__)\n")])
    assert status == 0 and "1 passed" in out
    assert not (tmp_path / "__pycache__").exists()


def test_failure_of_a_program(runner):
    status, out = runner([("one", GTEST % (PASS + FAIL, "exit 1"))])
    assert status == 1 and "1 passed, 1 failed" in out
    assert "FAILED tests/one: S.b: one is not two" in out


def test_failure_of_a_python_test_shows_its_output(runner):
    status, out = runner(files=[("test_x.py", "def test_y():\n    assert 1 == 2, 'numbers'\n")])
    assert status == 1 and "numbers" in out and "0 passed, 1 failed" in out


def test_skips_list_their_reasons(runner):
    status, out = runner([("one", GTEST % (PASS + SKIP + DISABLED, ""))], [
        ("test_x.py", "import pytest\n@pytest.mark.skip(reason='no GPU')\ndef test_y(): pass\n")])
    assert status == 0 and "1 passed, 0 failed, 3 skipped" in out
    for reason in ("no such CPU", "no GPU", "disabled"):
        assert re.search(r"skipped +1: .*" + reason, out), reason


def test_crash_after_the_report_is_a_failure(runner):
    status, out = runner([("one", GTEST % (PASS, "kill -SEGV $$"))])
    assert status == 1 and "died of SIGSEGV" in out


def test_crash_before_the_report_is_a_failure(runner):
    status, out = runner([("one", "#!/bin/sh\nkill -ABRT $$\n")])
    assert status == 1 and "died of SIGABRT" in out


def test_silence_is_a_failure(runner):
    status, out = runner([("one", "#!/bin/sh\nexit 0\n")])
    assert status == 1 and "gave no report (exit status 0)" in out


def test_bad_status_with_a_clean_report_is_a_failure(runner):
    status, out = runner([("one", GTEST % (PASS, "exit 3"))])
    assert status == 1 and "ended with exit status 3" in out


def test_report_of_an_earlier_run_is_not_believed(runner):
    assert runner([("one", GTEST % (PASS, ""))])[0] == 0
    assert runner([("one", "#!/bin/sh\nexit 0\n")])[0] == 1


def test_what_a_job_leaves_behind_is_a_failure(runner, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    status, out = runner([("one", GTEST % (PASS, 'touch "$TMPDIR/core" "$TMPDIR/data"'))], [
        ("test_x.py", "import tempfile\ndef test_y(tmp_path): tempfile.TemporaryFile()\n")],
        environment={"TMPDIR": str(scratch)})
    assert status == 1 and "2 passed, 1 failed" in out
    assert "FAILED tests/one: tests/one: left core, data in its temporary directory" in out
    assert not list(scratch.iterdir())


def test_error_while_collecting_is_a_failure(runner):
    status, out = runner(files=[("test_x.py", "import no_such_module\n")])
    assert status == 1 and "no_such_module" in out


def test_nothing_to_run_is_a_failure(runner):
    status, out = runner()
    assert status == 1 and "no test ran at all" in out


def test_missing_googletest_is_a_failure(runner):
    status, out = runner(files=[("test_x.py", "def test_y(): pass\n")],
                         missing={"GoogleTest": "not installed"})
    assert status == 1 and "not run: the tests that need GoogleTest (not installed)" in out


def test_junit_gathers_every_job(runner, tmp_path):
    """Cases of all jobs, a job that died, and tests that could not be built, in one report."""
    runner([("one", GTEST % (PASS + FAIL + SKIP + DISABLED, "exit 1")),
            ("two", "#!/bin/sh\nkill -SEGV $$\n")],
           [("test_x.py", "def test_y():\n    assert 1 == 2, 'num\\x01bers'\n")],
           missing={"valgrind": "not installed"}, words=["--junit", "reports/all.xml"])
    root = ElementTree.parse(tmp_path / "reports/all.xml").getroot()
    found = {}
    for suite in root.iter("testsuite"):
        counts = tuple(int(suite.get(name)) for name in ("tests", "failures", "skipped"))
        found[suite.get("name")] = counts
    assert found == {"tests/one": (4, 1, 2), "tests/two": (1, 1, 0),
                     "checks/test_x.py": (1, 1, 0), "not run": (1, 1, 0)}
    messages = {case.get("name"): case.find("failure").get("message")
                for case in root.iter("testcase") if case.find("failure") is not None}
    assert messages["b"] == "one is not two" and messages["job"] == "died of SIGSEGV"
    assert "numbers" not in messages["test_y"] and "num" in messages["test_y"]
    assert messages["valgrind"] == "not installed"
    assert junit.counts(str(tmp_path / "reports/all.xml")) == (1, 4, 2)


def test_hang_ends(runner, monkeypatch, tmp_path):
    job = run_tests.Job("slow", "cxx", ["sleep", "60"], str(tmp_path / "slow.xml"), {})
    monkeypatch.setattr(run_tests, "JOB_SECONDS", 0.2)
    monkeypatch.chdir(tmp_path)
    os.makedirs("tests/log")
    run_tests.run([job], 1)
    assert "no end after" in job.failed[0][1]


@pytest.mark.parametrize("cores, parts", [("1", 2), ("3", 3), ("8", 4)])
def test_shards_cover_every_test_once(runner, cores, parts):
    text = "import pytest\n@pytest.mark.parametrize('i', range(11))\ndef test_y(i): pass\n"
    status, out = runner([("one", GTEST % (PASS, ""))], [("test_x.py", text)], shards=4,
                         environment={"TREENAIL_TEST_JOBS": cores})
    assert status == 0 and "12 passed, 0 failed" in out
    assert out.count("checks:") == parts
    if cores == "1":  # nothing is known of their times: the parts are first
        assert out.index("checks:2") < out.index("tests/one")


def test_more_shards_than_tests(runner):
    status, out = runner(files=[("test_x.py", "def test_y(): pass\n")], shards=3)
    assert status == 0 and "1 passed, 0 failed" in out


def test_filter(runner):
    programs = [("one", GTEST % (PASS, "")), ("two", GTEST % (FAIL, "exit 1"))]
    assert runner(programs)[0] == 1
    status, out = runner(programs, environment={"TREENAIL_TEST_FILTER": "tests/one"})
    assert status == 0 and "1 passed" in out


@pytest.fixture
def idle_cores(tmp_path, monkeypatch):
    """make(), and pass_time(seconds, of which all cores together were idle for so many)."""
    for name in ("TREENAIL_TEST_JOBS", "MESON_TESTTHREADS", "RPM_BUILD_NCPUS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1, 3})
    clock, idle = [100.0], [0.0]
    monkeypatch.setattr(run_tests.time, "monotonic", lambda: clock[0])
    path = tmp_path / "stat"

    def pass_time(seconds, of_these):
        clock[0] += seconds
        idle[0] += of_these * os.sysconf("SC_CLK_TCK")
        path.write_text("cpu 1 2 3 9 9\ncpu1 5 5 5 %d 7 0\ncpu2 5 5 5 %d 0 0\ncpu3 5 5 5 8 3 0\n"
                        % (idle[0], 1000 * clock[0]))
    pass_time(0, 0)
    return lambda: run_tests.IdleCores(2, str(path)), pass_time


def test_one_more_job_where_cores_are_idle(idle_cores):
    make, pass_time = idle_cores
    cores = make()
    pass_time(0.9, 0.9)
    assert not cores.admit(2)  # it may be about to begin
    pass_time(0.2, 0.1)
    assert cores.admit(2)
    pass_time(2, 0.9)
    assert not cores.admit(2)
    pass_time(2, 1.1)
    assert cores.admit(3)
    pass_time(2, 4)
    assert not cores.admit(4)


def test_no_more_jobs_than_the_environment_says(idle_cores, monkeypatch):
    make, pass_time = idle_cores
    monkeypatch.setenv("RPM_BUILD_NCPUS", "2")
    cores = make()
    pass_time(2, 4)
    assert not cores.admit(2)


def test_no_more_jobs_where_the_system_does_not_tell(idle_cores):
    _, pass_time = idle_cores
    cores = run_tests.IdleCores(2, "/nonexistent/stat")
    pass_time(2, 4)
    assert not cores.admit(2)


@pytest.mark.parametrize("name", ["TREENAIL_TEST_JOBS", "MESON_TESTTHREADS", "RPM_BUILD_NCPUS"])
def test_width(monkeypatch, name):
    for other in ("TREENAIL_TEST_JOBS", "MESON_TESTTHREADS", "RPM_BUILD_NCPUS"):
        monkeypatch.delenv(other, raising=False)
    assert run_tests.width() == len(os.sched_getaffinity(0))
    monkeypatch.setenv(name, "7")
    assert run_tests.width() == 7
    monkeypatch.setenv(name, "many")
    assert run_tests.width() == len(os.sched_getaffinity(0))
