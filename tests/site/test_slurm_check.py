# SPDX-License-Identifier: Apache-2.0
"""ci/site/slurm_check.py where programs stand for Slurm's: the benchmark of two tasks, and what is
not waited for without end. The proof `slurm` runs all of it on a cluster."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "ci/site"))
import slurm_check  # noqa: E402  (the path must be set first)
import slurm_cluster  # noqa: E402

PROGRAMS = {
    "sinfo": "echo 2",
    "scontrol": "echo JobState=COMPLETED",
    # The job's output goes to the file of --output.
    "sbatch": """for word; do
  shift
  case $word in
    --output=*) log=${word#*=} ;;
    *.sbatch) SLURM_CPUS_PER_TASK=1 "$word" "$@" > "$log" 2>&1; break ;;
  esac
done
echo 7""",
    "srun": """shift 2
for rank in 0 1; do SLURM_PROCID=$rank "$@" | sed "s/^/$rank: /"; done""",
    "stack-env": 'exec "$@"',
    "treenail-bench": """echo "total images/sec: 12$SLURM_PROCID.5"
for report; do :; done
[ "$SLURM_PROCID" = "${SILENT:-}" ] || echo '{"rank": '$SLURM_PROCID', "tasks": 2,
  "batches_measured": 100}' > "${report%\\%t*}$SLURM_PROCID.json\"""",
}


def put(folder, programs):
    folder.mkdir()
    for name, text in programs.items():
        (folder / name).write_text("#!/bin/sh\n%s\n" % text)
        (folder / name).chmod(0o755)


@pytest.fixture
def check(tmp_path):
    """check(words, silent) -> (exit status, output); the task `silent` leaves no report."""
    put(tmp_path / "bin", PROGRAMS)

    def run(*words, silent=""):
        done = subprocess.run(
            [sys.executable, "-B", os.path.join(TOP, "ci/site/slurm_check.py"), "--treenail",
             str(tmp_path), *words, "template-benchmark"], cwd=tmp_path, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, encoding="utf-8", check=False, env=dict(
                os.environ, SILENT=silent, PATH="%s:%s" % (tmp_path / "bin", os.environ["PATH"])))
        return done.returncode, done.stdout

    return run


def test_the_reports_of_the_benchmark_are_kept(check, tmp_path):
    status, output = check("--reports", "kept")
    assert status == 0 and output.rstrip().endswith("mlp: 120.5, 121.5 images/s"), output
    kept = {path.name: json.loads(path.read_text()) for path in (tmp_path / "kept").iterdir()}
    assert {name: report["rank"] for name, report in kept.items()} == {
        "benchmark-slurm-0.json": 0, "benchmark-slurm-1.json": 1}


def test_each_task_must_have_measured(check):
    status, output = check(silent="1")
    assert status == 1 and "task 1 of 2 left no figure or no report of 100 steps: {}" in output


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """cluster(programs) -> one whose commands are those programs; it has patience for one look."""
    def make(**programs):
        put(tmp_path / "bin", dict({"sinfo": "echo 2", "stack-env": "", "link": "",
                                    "scancel": 'echo "$@" > cancelled'}, **programs))
        monkeypatch.setenv("PATH", "%s:%s" % (tmp_path / "bin", os.environ["PATH"]))
        monkeypatch.setattr(slurm_cluster, "HOSTS", str(tmp_path / "bin/link"))
        monkeypatch.setattr(slurm_cluster, "PATIENCE", -1.0)
        made = slurm_check.Cluster(SimpleNamespace(
            hosts=None, work=str(tmp_path), reports=None, treenail=str(tmp_path)))
        made.state = "state"
        return made
    return make


def failed(function, *arguments):
    with pytest.raises(slurm_check.Failed) as caught:
        function(*arguments)
    return str(caught.value)


def test_a_job_that_does_not_end_is_cancelled(cluster, tmp_path):
    one = cluster(sbatch="echo 7", scontrol="echo JobState=PENDING Reason=Resources")
    text = failed(one.job, "x.log", "x.sh")
    assert "for the end of job 7; instead there is:\nJobState=PENDING Reason=Resources" in text
    assert (tmp_path / "cancelled").read_text() == "7\n"


@pytest.mark.parametrize("lost", [slurm_check.lost_node, slurm_check.lost_node_of_srun])
def test_no_cable_is_pulled_for_what_has_ended(cluster, monkeypatch, lost):
    says = "echo srun: error: no task ran"
    one = cluster(scontrol="echo JobState=FAILED", srun=says, link="exit 9",
                  sbatch='for word; do case $word in --output=*) %s > "${word#*=}" ;; esac; done\n'
                  "echo 7" % says)
    monkeypatch.setattr(slurm_cluster, "PATIENCE", 60.0)
    text = failed(lost, one)
    assert text.startswith("it ended before 'started") and text.endswith(
        "' was in its log, which says:\nsrun: error: no task ran\n")


def test_what_never_begins_is_not_waited_for_without_end(cluster):
    one = cluster(srun="exec sleep 600")
    assert "for 'started.*started' in srun.log; instead there is:\n" in failed(
        slurm_check.lost_node_of_srun, one)


def test_a_node_that_stays_away_is_not_waited_for_without_end(cluster, tmp_path):
    one = cluster(sinfo="echo 1")
    (tmp_path / "x.log").write_text("started")
    with pytest.raises(slurm_check.Failed, match="for two nodes that can take work; instead.*\n1"):
        with slurm_check.pulled(one, "node2", "x.log", "started", lambda: False):
            pass
