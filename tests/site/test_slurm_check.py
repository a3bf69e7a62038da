# SPDX-License-Identifier: Apache-2.0
"""ci/site/slurm_check.py where programs stand for Slurm's: the benchmark of two tasks. The proof
`slurm` runs all of it on a cluster."""

import json
import os
import subprocess
import sys

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
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


@pytest.fixture
def check(tmp_path):
    """check(words, silent) -> (exit status, output); the task `silent` leaves no report."""
    (tmp_path / "bin").mkdir()
    for name, text in PROGRAMS.items():
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n%s\n" % text)
        (tmp_path / "bin" / name).chmod(0o755)

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
