# SPDX-License-Identifier: Apache-2.0
"""Checks of slurm_check.py in which the tasks of a job work together: one training over MPI, which
PMIx brings together, and a cluster of servers that finds itself by what Slurm says."""

import glob
import json
import os
import shutil

from slurm_cluster import TEMPLATES, TOP, Failed, NotRun, read, refused

TRAINING = os.path.join(TOP, "smoke/train_distributed.py")
TASKS = 2
PORT = 17000

# Each task says what it was told; with a port it serves, and task 0 sends work to the other.
RESOLVED = """
import json, os, socket, sys
import treenail as tn
resolver = tn.distribute.cluster_resolver.SlurmClusterResolver(port_base=int(sys.argv[1]))
report = {"cluster": resolver.cluster_spec(), "task": list(resolver.get_task_info()),
          "host": socket.gethostname()}
if sys.argv[3] == "serve":
    # Between the network namespaces of this machine; elsewhere certificates are needed.
    server = tn.train.Server(resolver.cluster_spec(), "worker", resolver.task_id, plain_text=True)
    with tn.device("/job:worker/task:1"):
        v = tn.get_variable("v", initializer=tn.constant([1.5, 2.5]))
        done = tn.FIFOQueue(1, [tn.int32], [[]], shared_name="done")
    limit = tn.RunOptions(timeout_in_ms=90000)
    with tn.Session(server.target) as session:
        if resolver.task_id == 0:
            session.run(v.initializer, options=limit)
            report["values"] = session.run(v * 2.0, options=limit).tolist()
            report["devices"] = sorted(d.name for d in session.list_devices())
            session.run(done.enqueue(7), options=limit)
        else:
            report["values"] = int(session.run(done.dequeue(), options=limit))
with open(sys.argv[2] % resolver.task_id, "w") as stream:
    json.dump(report, stream)
"""


def needs(cluster, feature: str) -> None:
    """Two nodes, and a Treenail with this feature of its build."""
    if cluster.nodes() < TASKS:
        raise NotRun("it needs two nodes")
    if feature not in cluster.info("-c1")["features"]:
        raise NotRun("this Treenail is built without " + feature)


def needs_mpi(cluster) -> None:
    """Two nodes, Open MPI, and a Slurm that starts it by PMIx."""
    needs(cluster, "mpi-openmpi")
    if "pmix" not in cluster.run("srun", "--mpi=list"):
        raise NotRun("this Slurm has no PMIx; srun --mpi=list tells what it has")


def compared(cluster, name: str, began: int = 0) -> str:
    """The reports NAME-0.json and -1.json of one training on two nodes, against alone-0.json of one
    process that computed the same parts."""
    reports = [json.loads(read(cluster.at("%s-%d.json" % (name, rank))) or "{}")
               for rank in range(TASKS)]
    alone = json.loads(read(cluster.at("alone-0.json")))
    for rank, report in enumerate(reports):
        found = [report.get(key) for key in ("rank", "size", "transport", "began")]
        if found != [rank, TASKS, "mpi", began]:
            raise Failed("%s, task %d: rank, size, transport, first step are %s" % (
                name, rank, found))
        if report["needed"] <= 0 or report["accuracy"] < report["needed"]:
            raise Failed("%s, task %d: accuracy %.4f, needed %.4f" % (
                name, rank, report["accuracy"], report["needed"]))
    hosts = sorted({report["host"] for report in reports})
    if len(hosts) != TASKS:
        raise Failed("%s: both tasks were on %s" % (name, hosts[0]))
    if len({report["digest"] for report in reports}) != 1:
        raise Failed("%s: the tasks ended with different variables" % name)
    same = "; one process has no CPU like both"
    if {report["kernel_level"] for report in reports} == {alone["kernel_level"]}:
        if (reports[0]["digest"], reports[1]["losses"]) != (alone["digest"],
                                                            alone["losses"][began:]):
            raise Failed("%s: other bits than those of one process" % name)
        same = ", the bits of one process"
    return "on %s: %d ranks over MPI, accuracy %.4f%s" % (
        " and ".join(hosts), TASKS, reports[0]["accuracy"], same)


def alone(cluster) -> None:
    """Trains in one process, once, what the others are compared with."""
    if not os.path.exists(cluster.at("alone-0.json")):
        cluster.run("srun", "-n1", "-c1", cluster.stack, "python3", TRAINING, "mlp", "--quiet",
                    "--alone", TASKS, "--report", cluster.at("alone-%d.json"))


def distributed(cluster):
    """srun --mpi=pmix: one training on two nodes, with the bits of one process"""
    needs_mpi(cluster)
    alone(cluster)
    cluster.run("srun", "--mpi=pmix", "-N%d" % TASKS, "-n%d" % TASKS, "-c1", cluster.stack,
                "python3", TRAINING, "mlp", "--quiet", "--report",
                cluster.at("distributed-%d.json"))
    said = compared(cluster, "distributed")
    if cluster.reports:
        os.makedirs(cluster.reports, exist_ok=True)
        for path in glob.glob(glob.escape(cluster.at("distributed-")) + "?.json"):
            shutil.copy(path, cluster.reports)
    return said


def template_distributed(cluster):
    """contrib/slurm/distributed.sbatch trains on two nodes, and goes on from its checkpoint"""
    needs_mpi(cluster)
    script = os.path.join(TEMPLATES, "distributed.sbatch")
    alone(cluster)
    words = ["-N%d" % TASKS, "-c1", script, TRAINING, "mlp", "--quiet", "--checkpoint-dir",
             cluster.at("distributed-run"), "--report", cluster.at("job-%d.json")]
    cluster.job("distributed.log", *words, "--steps", "100")
    if not glob.glob(cluster.at("distributed-run/model*-100*")):
        raise Failed("no checkpoint is there\n" + read(cluster.at("distributed.log")))
    cluster.job("distributed.log", *words)
    said = compared(cluster, "job", began=100)
    refused(cluster, [script], "usage: sbatch distributed.sbatch PROGRAM.py")
    refused(cluster, ["--export=ALL,STACK_ENV=/nowhere", script, "x.py"],
            "/nowhere is not there: set STACK_ENV")
    return said + ", went on from step 100"


def resolver(cluster):
    """SlurmClusterResolver: a step's tasks find each other; on a cluster of ci/hosts, as servers"""
    needs(cluster, "grpc")
    program = cluster.at("resolved.py")
    with open(program, "w", encoding="utf-8") as stream:
        stream.write(RESOLVED)
    # Where others have access, a server without certificates is none of ours to start.
    serve = "serve" if cluster.state else "tell"
    cluster.run("srun", "--mpi=none", "-N%d" % TASKS, "-n%d" % TASKS, "-c1", "--time=3",
                cluster.stack, "python3", program, PORT, cluster.at("resolved-%d.json"), serve)
    reports = [json.loads(read(cluster.at("resolved-%d.json" % rank))) for rank in range(TASKS)]
    nodes = [report["host"].split(".")[0] for report in reports]
    wanted = {"worker": ["%s:%d" % (node, PORT) for node in nodes]}
    for rank, report in enumerate(reports):
        if report["task"] != ["worker", rank] or report["cluster"] != wanted:
            raise Failed("task %d on %s was told: %s" % (rank, nodes[rank], report))
    if serve == "tell":
        return "%s; no servers were started: this is no cluster of ci/hosts" % ", ".join(
            wanted["worker"])
    devices = ["/job:worker/replica:0/task:%d/device:CPU:0" % rank for rank in range(TASKS)]
    if reports[0]["values"] != [3.0, 5.0] or reports[1]["values"] != 7 or (
            reports[0]["devices"] != devices):
        raise Failed("a session at task 0 found: %s" % reports)
    return "servers at %s; a session at one, variables and a queue at the other" % (
        " and ".join(wanted["worker"]))


DISTRIBUTED = (distributed, template_distributed, resolver)
