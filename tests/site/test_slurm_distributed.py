# SPDX-License-Identifier: Apache-2.0
"""The checks of slurm_check.py in which tasks work together, where programs stand for Slurm's: what
their verdicts stand on. The proof `slurm` and the stage two-nodes run them on a cluster."""

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
import slurm_distributed  # noqa: E402
from slurm_cluster import Failed, NotRun  # noqa: E402

INFO = {"features": ["grpc", "mpi-openmpi"], "num_threads": 1}
GOOD = {"rank": 0, "size": 2, "transport": "mpi", "began": 0, "needed": 0.95, "accuracy": 0.97,
        "host": "n0", "digest": "d", "losses": [2.0, 1.0, 0.5], "kernel_level": "x86-64"}


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """cluster(**programs): two nodes, and a srun that knows PMIx and treenail-info."""
    def make(info=None, nodes=2, kinds="pmix pmix_v4", **programs):
        folder = tmp_path / "bin"
        folder.mkdir()
        found = {"sinfo": "echo %d" % nodes, "stack-env": 'exec "$@"',
                 "srun": "case $* in\n*--mpi=list*) echo '%s';;\n*treenail-info*) echo '%s';;\n"
                         "*) %s;;\nesac" % (kinds, json.dumps(info or INFO),
                                            programs.pop("srun", "exit 7")), **programs}
        for name, text in found.items():
            (folder / name).write_text("#!/bin/sh\n%s\n" % text)
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", "%s:%s" % (folder, os.environ["PATH"]))
        return slurm_cluster.Cluster(SimpleNamespace(
            hosts=None, work=str(tmp_path), reports=str(tmp_path / "kept"),
            treenail=str(tmp_path)))
    return make


def reports(folder, *changes, name="distributed"):
    """Those of two good tasks and of one process, with these changes."""
    made = [dict(GOOD), dict(GOOD, rank=1, host="n1"),
            dict(GOOD, size=2, transport="none")]
    for report, change in zip(made, changes):
        report.update(change)
    for at, report in zip((name + "-0", name + "-1", "alone-0"), made):
        (folder / (at + ".json")).write_text(json.dumps(report))


def test_good_reports_are_kept(cluster, tmp_path):
    reports(tmp_path)
    one = cluster(srun="true")
    assert slurm_distributed.distributed(one) == (
        "on n0 and n1: 2 ranks over MPI, accuracy 0.9700, the bits of one process")
    assert sorted(os.listdir(tmp_path / "kept")) == ["distributed-0.json", "distributed-1.json"]


@pytest.mark.parametrize("changes, sentence", [
    (({}, {"rank": 0}), r"task 1: rank, size, transport, first step are \[0, 2, 'mpi', 0\]"),
    (({"size": 1},), "task 0: rank, size"),
    (({}, {"transport": "shared_memory"}), "shared_memory"),
    (({"began": 5}, {"began": 5}), "'mpi', 5"),
    (({"host": "n1"},), "both tasks were on n1"),
    (({}, {"digest": "e"}), "the tasks ended with different variables"),
    (({}, {}, {"digest": "e"}), "other bits than those of one process"),
    (({}, {}, {"losses": [2.0, 1.0, 0.4]}), "other bits than those of one process"),
    (({"accuracy": 0.94},), r"accuracy 0.9400, needed 0.9500"),
    (({"needed": 0.0},), "needed 0.0000")])
def test_what_no_training_of_two_nodes_leaves(cluster, tmp_path, changes, sentence):
    reports(tmp_path, *changes)
    with pytest.raises(Failed, match=sentence):
        slurm_distributed.distributed(cluster(srun="true"))


def test_processors_of_other_kinds_are_not_compared(cluster, tmp_path):
    reports(tmp_path, {}, {}, {"kernel_level": "x86-64-v3", "digest": "e"})
    assert slurm_distributed.distributed(cluster(srun="true")).endswith(
        "; one process has no CPU like both")


@pytest.mark.parametrize("about, sentence", [
    ({"nodes": 1}, "it needs two nodes"),
    ({"info": {"features": ["grpc"]}}, "this Treenail is built without mpi-openmpi"),
    ({"kinds": "none pmi2"}, "this Slurm has no PMIx")])
def test_what_cannot_be_tried_is_said(cluster, about, sentence):
    with pytest.raises(NotRun, match=sentence):
        slurm_distributed.distributed(cluster(**about))


def test_a_failed_task_fails_the_check(cluster):
    with pytest.raises(Failed, match="exit status 7"):
        slurm_distributed.distributed(cluster())


@pytest.mark.parametrize("told, sentence", [
    (["n0:17000", "n1:17000"], ""), (["n1:17000", "n0:17000"], "task 0 on n0 was told")])
def test_elsewhere_tasks_are_named_and_nothing_serves(cluster, tmp_path, told, sentence):
    for rank in range(2):
        (tmp_path / ("resolved-%d.json" % rank)).write_text(json.dumps({
            "cluster": {"worker": told}, "task": ["worker", rank], "host": "n%d.site" % rank}))
    one = cluster(srun='for last; do :; done; [ "$last" = tell ]')
    if not sentence:
        assert slurm_distributed.resolver(one) == (
            "n0:17000, n1:17000; no servers were started: this is no cluster of ci/hosts")
        return
    with pytest.raises(Failed, match=sentence):
        slurm_distributed.resolver(one)


def test_names_and_groups_of_checks():
    def names(*words):
        parser = SimpleNamespace(error=lambda text: (_ for _ in ()).throw(ValueError(text)))
        return [slurm_check.name_of(check) for check in slurm_check.chosen(list(words), parser)]
    assert names("together") == ["distributed", "template-distributed", "resolver"]
    assert names("quota", "resolver") == ["quota", "resolver"]
    assert names() == names("copies", "together") and len(names()) == len(slurm_check.CHECKS)
    with pytest.raises(ValueError, match="unknown check 'srun'; known are by-srun, .*groups copie"):
        names("srun")


def test_the_job_script_starts_all_processes_by_pmix(tmp_path):
    for name, text in (("srun", 'echo "$SRUN_CPUS_PER_TASK: $*"'), ("stack", "")):
        (tmp_path / name).write_text("#!/bin/sh\n%s\n" % text)
        (tmp_path / name).chmod(0o755)

    def run(*words, stack=str(tmp_path / "stack")):
        return subprocess.run(
            [os.path.join(TOP, "contrib/slurm/distributed.sbatch"), *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False,
            env={"PATH": "%s:/usr/bin:/bin" % tmp_path, "STACK_ENV": stack,
                 "SLURM_CPUS_PER_TASK": "3"})
    done = run("train.py", "--name", "a b")
    assert (done.returncode, done.stdout) == (
        0, "3: --mpi=pmix --kill-on-bad-exit=1 %s/stack python3 train.py --name a b\n" % tmp_path)
    assert run().returncode == 2 and "usage: sbatch distributed.sbatch" in run().stdout
    assert "/nowhere is not there: set STACK_ENV" in run("x.py", stack="/nowhere").stdout
