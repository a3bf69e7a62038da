# SPDX-License-Identifier: Apache-2.0
"""tn.distribute.cluster_resolver: what Slurm, MPI launchers and TF_CONFIG say of a cluster."""

import random
import shutil
import subprocess

import pytest

import treenail as tn
from treenail.distribute import _node_list
from treenail.distribute import cluster_resolver as cr

VARIABLES = ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_STEP_TASKS_PER_NODE",
             "SLURM_TASKS_PER_NODE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "TF_CONFIG",
             "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
             "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_SIZE", "PMI_RANK", "TREENAIL_SIZE")


@pytest.fixture
def given(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)

    def give(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))
    return give


@pytest.mark.parametrize("text, hosts", [
    ("login", ["login"]), ("a,b", ["a", "b"]),
    ("cn[01-03,7]", ["cn01", "cn02", "cn03", "cn7"]),
    ("cn[9-11],gpu-2", ["cn9", "cn10", "cn11", "gpu-2"]),
    ("r[1-2]n[0-1]", ["r1n0", "r1n1", "r2n0", "r2n1"]),
    ("x[098-101].site", ["x098.site", "x099.site", "x100.site", "x101.site"])])
def test_node_lists(text, hosts):
    assert _node_list.expand(text) == hosts


def _lists_hosts():
    """Whether scontrol is installed and has a configuration, which it wants even for that."""
    return shutil.which("scontrol") is not None and subprocess.run(
        ["scontrol", "show", "hostnames", "a1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        timeout=60, check=False).returncode == 0


@pytest.mark.skipif(not _lists_hosts(), reason="scontrol lists no hosts here")
def test_node_lists_are_read_as_slurm_reads_them():
    choice = random.Random(3)
    for _ in range(10):
        low = choice.randrange(200)
        text = "a%d[%0*d-%d,%d]" % (choice.randrange(9), choice.randrange(1, 5), low,
                                    low + choice.randrange(20), choice.randrange(900))
        done = subprocess.run(["scontrol", "show", "hostnames", text], stdout=subprocess.PIPE,
                              text=True, check=True)
        assert _node_list.expand(text) == done.stdout.split()


@pytest.mark.parametrize("text", ["", ",", "a[1", "a1]", "a[[1]]", "a[]", "a[1-]", "a[x]",
                                  "a[3-1]", "a[0-99999999]", "a[0-999]b[0-999]", "a[1]]"])
def test_node_lists_that_are_none(text):
    with pytest.raises(ValueError, match="node list"):
        _node_list.expand(text)


def test_any_text_is_read_or_refused():
    choice = random.Random(1)
    for _ in range(3000):
        text = "".join(choice.choice("ab1092-,[]. ") for _ in range(choice.randrange(14)))
        try:
            hosts = _node_list.expand(text)
        except ValueError:
            continue
        assert hosts and not any(c in host for host in hosts for c in "[],"), text


def test_slurm(given):
    given(SLURM_STEP_NODELIST="cn[1-3]", SLURM_STEP_TASKS_PER_NODE="2(x2),1", SLURM_PROCID=3)
    resolver = cr.SlurmClusterResolver({"ps": 1, "worker": 4}, auto_set_gpu=False)
    assert resolver.cluster_spec().num_tasks("worker") == 4
    assert resolver.cluster_spec() == {
        "ps": ["cn1:8888"], "worker": ["cn1:8889", "cn2:8888", "cn2:8889", "cn3:8888"]}
    assert resolver.get_task_info() == ("worker", 2)
    assert resolver.master() == "grpc://cn2:8889"
    assert resolver.master("ps", 0, "") == "cn1:8888"
    assert cr.SlurmClusterResolver(port_base=1, rpc_layer=None).master() == "cn2:2"
    with pytest.raises(ValueError, match="jobs asks for 2 tasks; Slurm's step has 5"):
        cr.SlurmClusterResolver({"worker": 2})
    with pytest.raises(ValueError, match="no task 1 of job 'ps'; it has 1"):
        resolver.master("ps", 1)
    given(SLURM_STEP_TASKS_PER_NODE="2(x2)")
    with pytest.raises(ValueError, match="Slurm names 3 hosts .cn1, cn2, cn3., and .* for 2"):
        cr.SlurmClusterResolver()
    given(SLURM_STEP_TASKS_PER_NODE="two")
    with pytest.raises(ValueError, match="is 'two'; it should look like"):
        cr.SlurmClusterResolver()


def test_slurm_without_slurm(given):
    with pytest.raises(ValueError, match="SLURM_STEP_NODELIST is not set"):
        cr.SlurmClusterResolver()


def test_tf_config(given):
    assert cr.TFConfigClusterResolver().cluster_spec() == {}
    assert cr.TFConfigClusterResolver().master() == ""
    given(TF_CONFIG='{"cluster": {"ps": ["a:1"], "worker": ["b:2", "c:3"]},'
                    ' "task": {"type": "worker", "index": 1}}')
    resolver = cr.TFConfigClusterResolver()
    assert resolver.cluster_spec() == {"ps": ["a:1"], "worker": ["b:2", "c:3"]}
    assert (resolver.task_type, resolver.task_id, resolver.rpc_layer) == ("worker", 1, "grpc")
    assert resolver.master() == "grpc://c:3" and resolver.num_accelerators() == {}
    assert cr.TFConfigClusterResolver("ps", 0, "").master() == "a:1"


@pytest.mark.parametrize("text, words", [
    ("{", "no JSON"), ("[]", "needed is a JSON object"), ('{"task": 3}', "needed is an object"),
    ('{"cluster": {"ps": "a:1"}}', "needed is a list"), ('{"cluster": [1]}', "job|addresses"),
    ('{"task": {"type": "ps", "index": "x"}}', "\"index\" is 'x'; needed is a number")])
def test_tf_config_that_is_none(given, text, words):
    given(TF_CONFIG=text)
    with pytest.raises(ValueError, match=words):
        cr.TFConfigClusterResolver()


def test_mpi(given):
    with pytest.raises(ValueError, match="no launcher"):
        cr.MPIClusterResolver()
    given(OMPI_COMM_WORLD_SIZE=3, OMPI_COMM_WORLD_RANK=2, OMPI_COMM_WORLD_LOCAL_RANK=2,
          OMPI_COMM_WORLD_LOCAL_SIZE=3)
    resolver = cr.MPIClusterResolver({"ps": 1, "worker": 2})
    assert resolver.cluster_spec() == {"ps": ["localhost:8888"],
                                       "worker": ["localhost:8889", "localhost:8890"]}
    assert resolver.master() == "grpc://localhost:8890"
    given(OMPI_COMM_WORLD_LOCAL_SIZE=2)
    with pytest.raises(ValueError, match="hosts must name the host of each rank"):
        cr.MPIClusterResolver()
    assert cr.MPIClusterResolver(hosts=["a", "b", "a"]).cluster_spec() == {
        "worker": ["a:8888", "b:8888", "a:8889"]}
    with pytest.raises(ValueError, match="names 1 hosts; needed are 3"):
        cr.MPIClusterResolver(hosts=["a"])


def test_simple():
    resolver = cr.SimpleClusterResolver({"worker": ["a:1"]}, "grpc://m:1", "worker", 0)
    assert resolver.master() == "grpc://m:1" and resolver.master("worker", 0) == "grpc://a:1"
    assert resolver.cluster_spec() == {"worker": ["a:1"]}
    with pytest.raises(ValueError, match="cluster_spec"):
        cr.SimpleClusterResolver([])
    spec = tn.train.ClusterSpec({"worker": {1: "b:2"}})  # task 0 is not told
    resolver = cr.SimpleClusterResolver(spec, task_type="worker", task_id=1, environment="site",
                                        num_accelerators={"GPU": 2})
    assert resolver.cluster_spec() is spec and resolver.master() == "grpc://b:2"
    assert (resolver.environment, resolver.num_accelerators()) == ("site", {"GPU": 2})
    with pytest.raises(ValueError, match="no task 0 of job 'worker'"):
        resolver.master("worker", 0)
    with pytest.raises(NotImplementedError):
        cr.ClusterResolver().cluster_spec()
    assert tn.distribute.cluster_resolver is cr
