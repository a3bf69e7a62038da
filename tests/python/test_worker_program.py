# SPDX-License-Identifier: Apache-2.0
"""treenail-worker: what it says, how it refuses, that it serves, and its unit of systemd."""

import os
import re
import shutil
import signal
import subprocess

import pytest

import treenail as tn
from free_ports import free_ports

BUILD = os.environ.get("TREENAIL_BUILD_DIR", "")
SOURCE = os.environ.get("TREENAIL_SOURCE_DIR") or os.path.dirname(os.path.dirname(
    os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(BUILD, "bin", "treenail-worker")
UNIT = os.path.join(SOURCE, "framework/tools/treenail-worker@.service")
needs_tool = pytest.mark.skipif(not os.path.exists(TOOL),
                                reason="TREENAIL_BUILD_DIR names no build with gRPC")
needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None,
                                   reason="there is no systemd-analyze")


def worker(*arguments, status):
    done = subprocess.run([TOOL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False, timeout=60)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done.stdout if status == 0 else done.stderr


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as stream:
        return stream.read()


@needs_tool
def test_version_help_manual_page_and_completion():
    assert worker("--version", status=0) == tn.__version__ + "\n"
    options = set(re.findall(r"^  (--[\w-]+)", worker("--help", status=0), re.MULTILINE))
    assert {"--job", "--help"} <= options
    page = read("docs/man/treenail-worker.1")
    assert options == {option.replace("\\", "") for option in
                       re.findall(r"^\.BI? ((?:\\-|-)(?:\\-|-)[\w\\-]+)", page, re.MULTILINE)}
    words = read("framework/tools/treenail-worker.bash").split(" -W", 1)[1]
    assert options == set(re.findall(r"--[\w-]+", words))


@needs_tool
def test_it_serves_until_it_is_told_to_end(tmp_path):
    port, = free_ports(1)
    config = tmp_path / "ps.conf"
    config.write_text("# a parameter server\ncluster = ps=localhost:%d\njob = none\ncpus = 2\n"
                      % port)
    process = subprocess.Popen([TOOL, "--config=%s" % config, "--job=ps"], stdout=subprocess.PIPE,
                               text=True)
    try:
        assert process.stdout.readline() == (
            "/job:ps/replica:0/task:0 listens at grpc://localhost:%d\n" % port)
        v = tn.Variable(3.0)
        with tn.Session("grpc://localhost:%d" % port) as session:
            assert len(session.list_devices()) == 2
            session.run(v.initializer)
            assert session.run(v + 1) == 4
            called = tn.py_func(lambda: 1.0, [], tn.float64)
            with pytest.raises(tn.errors.PermissionDeniedError, match="--allow-ops=PyFunc"):
                session.run(called)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


@needs_tool
def test_check_says_what_is_open_to_whom():
    said = worker("--cluster=ps=localhost:0", "--job=ps", "--check", status=0)
    assert "task     /job:ps/replica:0/task:0\n" in said
    assert "open to  the users and programs of this machine, without a password" in said
    said = worker("--cluster=ps=0.0.0.0:0", "--job=ps", "--plain-text", "--check", status=0)
    assert "open to  whoever reaches the address, without a password and unencrypted" in said


@needs_tool
def test_check_says_which_operations_clients_may_run(tmp_path):
    def lines(*arguments):
        said = worker("--cluster=ps=localhost:0", "--job=ps", "--check", *arguments, status=0)
        found = dict(line.split(None, 1) for line in said.replace("may run", "may").splitlines())
        assert "partial runs 1000" in found["limits"]
        return found["may"].rpartition(": ")[2].split(), found["refused"].split()
    allowed, refused = lines()
    assert allowed == ["none"] and {"Save", "Restore", "Print", "PyFunc"} <= set(refused)
    allowed, others = lines("--allow-path=%s" % tmp_path, "--allow-ops=Print")
    assert {"Save", "Restore", "Print"} <= set(allowed) and "PyFunc" in others
    assert set(allowed) | set(others) == set(refused)


@needs_tool
@pytest.mark.parametrize("arguments, status, message", [
    ([], 2, "--cluster is needed"),
    (["--cluster=ps=localhost:1"], 2, "--job is needed"),
    (["--clustr=x"], 2, 'did you mean "cluster"?'),
    (["--check=yes"], 2, "--check=yes takes no value"),
    (["--cluster"], 2, "--cluster needs a value, --cluster=..."),
    (["cluster=x"], 2, '"cluster=x" on the command line is not understood'),
    (["--cluster=ps", "--job=ps"], 2, 'has no "="'),
    (["--cluster=ps=localhost", "--job=ps"], 2, 'needed is "host:port"'),
    (["--cluster=ps=localhost:1", "--job=worker"], 2, "the cluster has no /job:worker"),
    (["--cluster=ps=localhost:1,localhost:2", "--job=ps"], 2, "--task is needed: job ps has 2"),
    (["--cluster=ps=localhost:1", "--job=ps", "--task=x"], 2, 'a number from 0, not "x"'),
    (["--cluster=ps=localhost:1", "--job=ps", "--cpus=0"], 2, 'a number from 1, not "0"'),
    (["--cluster=ps=0.0.0.0:1", "--job=ps"], 1, "say --plain-text (Python"),
    (["--config=/nowhere"], 2, 'cannot read the file "/nowhere"'),
])
def test_what_is_refused(arguments, status, message):
    assert message in worker(*arguments, status=status)


@needs_tool
def test_a_file_that_is_not_understood_is_told_by_line(tmp_path):
    config = tmp_path / "x.conf"
    config.write_text("\njob = ps\nlisten localhost:1\n")
    said = worker("--config=%s" % config, status=2)
    assert "in line 3 of %s" % config in said


@needs_systemd
def test_the_unit_is_sound_and_shut_in(tmp_path):
    unit = tmp_path / "treenail-worker@.service"
    unit.write_text(read(UNIT).replace("ExecStart=treenail-worker", "ExecStart=true"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--threshold=30",
                           str(unit)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[-500:]
