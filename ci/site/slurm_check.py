#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does Treenail work under this Slurm? Trainings by srun, sbatch and mpirun, as independent copies,
one per task, each checked; as many threads as Slurm grants; the job scripts of contrib/slurm; one
training of two nodes together (slurm_distributed.py).

  slurm_check.py --treenail build --hosts build/hosts    on a cluster of ci/hosts
  slurm_check.py --treenail /opt/stack                   on a site's own, from where jobs are sent

--treenail is a build directory, a prefix with bin/stack-env, or a prefix of `ninja install`. The
directory of --work (default: a new one in the current directory) must be the same on every node.
On a cluster of ci/hosts it also pulls a node's cable, and limits CPUs by a control group. Exit
status 0: every check that could be made held.
"""

import argparse
import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import slurm_cluster  # noqa: E402  (the path must be set first)
from slurm_cluster import (  # noqa: E402
    TEMPLATES, TOP, Cluster, Failed, NotRun, read, refused, wait)
from slurm_distributed import DISTRIBUTED  # noqa: E402

COPIES = 2


def checked(cluster: Cluster, name: str, copies: int, threads: int) -> str:
    """The reports of copies 0, 1, ...: each reached its accuracy, with so many threads."""
    reports = [read(cluster.at("%s-%d.json" % (name, rank)))
               for rank in range(copies)]
    if not all(reports):
        raise Failed("%s: no report of task %d" % (name, reports.index("")))
    found = [json.loads(text) for text in reports]
    for rank, report in enumerate(found):
        if report["needed"] <= 0 or report["accuracy"] < report["needed"]:
            raise Failed("%s, task %d: accuracy %.4f, needed %.4f" % (
                name, rank, report["accuracy"], report["needed"]))
        if report["num_threads"] != threads:
            raise Failed("%s, task %d: %d threads, Slurm granted %d CPUs" % (
                name, rank, report["num_threads"], threads))
    digests = {(report["kernel_level"], report["digest"]) for report in found}
    levels = {report["kernel_level"] for report in found}
    if len(digests) != len(levels):
        raise Failed("%s: copies on CPUs of one level ended with other bits" % name)
    hosts = {read(cluster.at("%s-%d.host" % (name, rank))).strip() for rank in range(copies)}
    place = "on %s: " % " and ".join(sorted(hosts)) if any(hosts) else ""
    return "%s%d trained, accuracy %s, threads of each: %d" % (
        place, copies, ", ".join("%.4f" % report["accuracy"] for report in found), threads)


def by_srun(cluster):
    """srun: independent copies of a training, one per task"""
    spread = min(COPIES, cluster.nodes())
    cluster.run("srun", "-N%d" % spread, "-n%d" % COPIES, "-c1", "./task", "srun")
    return checked(cluster, "srun", COPIES, 1)


def by_sbatch(cluster):
    """sbatch: the same by srun within a job"""
    spread = min(COPIES, cluster.nodes())
    cluster.job("sbatch.log", "-N%d" % spread, "-n%d" % COPIES, "-c1",
                cluster.script("sbatch.sh", "exec srun ./task sbatch\n"))
    return checked(cluster, "sbatch", COPIES, 1)


def by_mpirun(cluster):
    """mpirun: the same by Open MPI's launcher within a job"""
    if not shutil.which("mpirun"):
        raise NotRun("mpirun is not installed")
    spread = min(COPIES, cluster.nodes())
    cluster.job("mpirun.log", "-N%d" % spread, "-n%d" % COPIES, "-c1", cluster.script(
        "mpirun.sh", "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n"
                     "exec mpirun ./task mpirun\n"))
    return checked(cluster, "mpirun", COPIES, 1)


def threads(cluster):
    """threads: as many as the CPUs of a task, by what it is bound to and by what Slurm says"""
    found = []
    for cpus in (1, 2):
        try:
            info = cluster.info("-c%d" % cpus)
        except Failed as error:
            if "Requested node configuration is not available" in str(error):
                raise NotRun("no node has %d CPUs" % cpus) from None
            raise
        if info["num_threads"] != cpus:
            raise Failed("-c %d: %d threads by %s" % (cpus, info["num_threads"],
                                                      info["threads_origin"]))
        found.append("-c %d: %d by %s" % (cpus, cpus, info["threads_origin"]))
    if not cluster.state:
        return "; ".join(found)
    # As on a cluster that binds no tasks.
    info = cluster.info("-c1", "taskset", "--cpu-list", ",".join(
        map(str, sorted(os.sched_getaffinity(0)))))
    if (info["num_threads"], info["threads_origin"]) != (1, "SLURM_CPUS_PER_TASK"):
        raise Failed("-c 1, not bound: %d threads by %s" % (info["num_threads"],
                                                            info["threads_origin"]))
    return "; ".join(found + ["-c 1, not bound: 1 by SLURM_CPUS_PER_TASK"])


def quota(cluster):
    """threads: no more than a control group's quota of CPU time"""
    if not cluster.state or os.getuid() != 0:
        raise NotRun("only root can make a control group, and only on a cluster of ci/hosts")
    with control_group() as (procs, limit):
        found = []
        for cpus, wanted in ((0.5, 1), (1.0, 1), (1.5, 2)):
            limit(cpus)
            info = cluster.info("-c2", "sh", "-c", 'echo $$ > "$0" && exec "$@"', procs)
            if info["num_threads"] != wanted:
                raise Failed("a quota of %.1f CPUs: %d threads by %s" % (
                    cpus, info["num_threads"], info["threads_origin"]))
            found.append("%.1f CPUs: %d by %s" % (cpus, wanted, info["threads_origin"]))
    return "; ".join(found)


@contextlib.contextmanager
def control_group():
    """A new control group: its file of processes, and a function that sets the quota in CPUs."""
    period, name = 100000, "treenail-check-%d" % os.getpid()
    if os.path.isfile("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"):
        path, leaf, form = "/sys/fs/cgroup/cpu/" + name, "cpu.cfs_quota_us", "%d"
    elif "cpu" in read("/sys/fs/cgroup/cgroup.subtree_control").split():
        path, leaf, form = "/sys/fs/cgroup/" + name, "cpu.max", "%%d %d" % period
    else:
        raise NotRun("this machine has no control group with a quota of CPU time to put one into")
    procs = os.path.join(path, "cgroup.procs")
    try:
        os.mkdir(path)
    except OSError as error:
        raise NotRun("%s: %s" % (path, error.strerror)) from None

    def limit(cpus):
        with open(os.path.join(path, leaf), "w", encoding="ascii") as stream:
            stream.write(form % int(cpus * period))
    try:
        yield procs, limit
    finally:
        wait("the end of the processes in " + path, lambda: not read(procs).strip(),
             lambda: read(procs))
        os.rmdir(path)


def template_train(cluster):
    """contrib/slurm/train.sbatch trains, and refuses in a sentence what cannot be"""
    script = os.path.join(TEMPLATES, "train.sbatch")
    cluster.job("train.log", "-c1", script, os.path.join(TOP, "smoke/train.py"), "mlp",
                "--checkpoint-dir", "train-run", "--report", "template-0.json")
    said = checked(cluster, "template", 1, 1)
    if not glob.glob(cluster.at("train-run/model-*")):
        raise Failed("no checkpoint is there\n" + read(cluster.at("train.log")))
    refused(cluster, [script], "usage: sbatch train.sbatch PROGRAM.py")
    refused(cluster, ["--export=ALL,STACK_ENV=/nowhere", script, "x.py"],
            "/nowhere is not there: set STACK_ENV")
    return said


def template_array(cluster):
    """contrib/slurm/array.sbatch: trainings that differ by a number"""
    cluster.job("array-%a.log", "--array=1-2", os.path.join(TEMPLATES, "array.sbatch"),
                os.path.join(TOP, "smoke/train.py"), "mlp", "--quiet", "--seed", "{}", "--report",
                "array-{}.json")
    reports = [json.loads(read(cluster.at("array-%d.json" % number))) for number in (1, 2)]
    if reports[0]["digest"] == reports[1]["digest"]:
        raise Failed("both trained from the same seed")
    if any(report["accuracy"] < report["needed"] for report in reports):
        raise Failed("accuracy %s" % [report["accuracy"] for report in reports])
    return "accuracy " + ", ".join("%.4f" % report["accuracy"] for report in reports)


def template_benchmark(cluster):
    """contrib/slurm/benchmark.sbatch measures, on two nodes where there are two; a report a task"""
    try:
        cluster.run(cluster.stack, "sh", "-c", "command -v treenail-bench")
    except Failed:
        raise NotRun("this Treenail has no treenail-bench") from None
    copies = min(COPIES, cluster.nodes())
    cluster.job("benchmark.log", "-c1", "-N%d" % copies,
                os.path.join(TEMPLATES, "benchmark.sbatch"), "--model=mlp", "--batch-size", "32",
                "--num-batches", "100", "--report", "benchmark-slurm-%t.json")
    text, rates = read(cluster.at("benchmark.log")), []
    for rank in range(copies):
        path = cluster.at("benchmark-slurm-%d.json" % rank)
        report = json.loads(read(path) or "{}")
        rate = re.search(r"^%d: total images/sec: ([\d.]+)$" % rank, text, re.MULTILINE)
        found = [report.get(key) for key in ("rank", "tasks", "batches_measured")]
        if not rate or found != [rank, copies, 100]:
            raise Failed("task %d of %d left no figure or no report of 100 steps: %s\n%s" % (
                rank, copies, report, text[-2000:]))
        rates.append(rate.group(1))
        if cluster.reports:
            os.makedirs(cluster.reports, exist_ok=True)
            shutil.copy(path, cluster.reports)
    return "mlp: %s images/s" % ", ".join(rates)


def lost_node(cluster):
    """a node's cable is pulled during a job: the job ends and says why"""
    need_two_nodes(cluster)
    # Were the loss not noticed, the limit of two minutes would end the job as TIMEOUT.
    script = cluster.script("lost.sh", "echo started\nexec srun sleep 600\n")
    number = cluster.submitted("lost.log", "--no-requeue", "--time=2", "-N2", "-n2", script)
    with pulled(cluster, "node2", "lost.log", "started", lambda: cluster.ended(number)):
        begin = time.monotonic()
        states = cluster.finished(number)
        seconds = time.monotonic() - begin
    text = read(cluster.at("lost.log"))
    if states != ["NODE_FAIL"] or "Node failure on node2" not in text:
        raise Failed("the job ended as %s:\n%s" % (states, text))
    return "%s after %.0f s; srun: error: Node failure on node2" % (states[0], seconds)


def lost_node_of_srun(cluster):
    """the same while somebody waits for srun: it ends, with an error"""
    need_two_nodes(cluster)
    with open(cluster.at("srun.log"), "wb") as log:
        going = subprocess.Popen(
            [*cluster.enter, "srun", "--time=2", "-N2", "-n2", "sh", "-c",
             "echo started; sleep 600"], cwd=cluster.work, stdout=log, stderr=subprocess.STDOUT)
    try:
        with pulled(cluster, "node2", "srun.log", "started.*started",
                    lambda: going.poll() is not None):
            begin = time.monotonic()
            wait("the end of srun", lambda: going.poll() is not None,
                 lambda: read(cluster.at("srun.log")))
            seconds = time.monotonic() - begin
    finally:
        going.kill()
        status = going.wait()
    text = read(cluster.at("srun.log"))
    if status == 0 or "TIME LIMIT" in text or "Node failure on node2" not in text:
        raise Failed("exit status %d:\n%s" % (status, text))
    return "exit status %d after %.0f s; srun: error: Node failure on node2" % (status, seconds)


def need_two_nodes(cluster) -> None:
    if not cluster.state:
        raise NotRun("only on a cluster of ci/hosts")
    if cluster.nodes() < 2:
        raise NotRun("it needs two nodes")


@contextlib.contextmanager
def pulled(cluster, node: str, log: str, started: str, ended):
    """Pulls the node's cable when the log matches `started`; plugs it in again, and waits for the
    node. ended: whether that whose log it is has ended."""
    def begun():
        over = ended()
        text = read(cluster.at(log))
        if re.search(started, text, re.DOTALL):
            return True
        if over:
            raise Failed("it ended before '%s' was in its log, which says:\n%s" % (started, text))
        return False

    wait("'%s' in %s" % (started, log), begun, lambda: read(cluster.at(log)))
    link = [slurm_cluster.HOSTS, "link", "--state", cluster.state, node]
    subprocess.run([*link, "down"], check=True)
    try:
        yield
    finally:
        subprocess.run([*link, "up"], check=True)
    wait("two nodes that can take work", lambda: cluster.nodes() == 2,
         lambda: cluster.run("sinfo"))


COPIES_OF_ONE = (by_srun, by_sbatch, by_mpirun, threads, quota, template_train, template_array,
                 template_benchmark, lost_node, lost_node_of_srun)
GROUPS = {"copies": COPIES_OF_ONE, "together": DISTRIBUTED}
CHECKS = (*COPIES_OF_ONE, *DISTRIBUTED)


def name_of(check) -> str:
    return check.__name__.replace("_", "-")


def chosen(names: list, parser) -> list:
    """The checks of these names, or of the groups; all without any."""
    found = []
    for name in names or GROUPS:
        if name not in GROUPS and name not in map(name_of, CHECKS):
            parser.error("unknown check '%s'; known are %s, and the groups %s" % (
                name, ", ".join(map(name_of, CHECKS)), ", ".join(GROUPS)))
        found += GROUPS.get(name) or [each for each in CHECKS if name_of(each) == name]
    return found


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--treenail", metavar="DIR", required=True,
                        help="a build directory, or a prefix")
    parser.add_argument("--hosts", metavar="DIR", help="the state of a cluster of ci/hosts")
    parser.add_argument("--work", metavar="DIR", help="a directory that all nodes see, kept")
    parser.add_argument("--reports", metavar="DIR",
                        help="where reports of tasks are kept: benchmark-slurm-RANK.json of "
                        "treenail-bench, distributed-RANK.json of a training")
    parser.add_argument("names", nargs="*", metavar="CHECK", help="only these; all: %s" % "; ".join(
        "%s (%s)" % (group, ", ".join(map(name_of, checks))) for group, checks in GROUPS.items()))
    options = parser.parse_args(arguments)
    checks = chosen(options.names, parser)
    kept = options.work
    if kept:
        os.makedirs(kept, exist_ok=True)
    options.work = os.path.abspath(kept or tempfile.mkdtemp(prefix="slurm-check-", dir="."))
    bad = ran = 0
    try:
        cluster = Cluster(options)
        for check in checks:
            begin = time.monotonic()
            try:
                verdict, text = "ok", check(cluster)
                ran += 1
            except NotRun as reason:
                verdict, text = "not run", str(reason)
            except Failed as reason:
                verdict, text = "FAILED", str(reason)
                bad += 1
            print("%-20s %-8s %5.1f s  %s" % (name_of(check), verdict, time.monotonic() - begin,
                                              text), flush=True)
    except Failed as error:
        sys.stderr.write("slurm_check.py: %s\n" % error)
        return 1
    finally:
        if not kept:
            shutil.rmtree(options.work)
    return 1 if bad or not ran else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
