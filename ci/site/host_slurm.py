# SPDX-License-Identifier: Apache-2.0
"""A test cluster of Slurm: `login` with slurmctld, and nodes with slurmd, each with a network leg,
a hostname, processes, /tmp and /dev/shm of its own, and this machine's files for the rest, as nodes
share a site's software. Nothing listens outside the bridge; /etc/slurm and /etc/munge are left
alone."""

import contextlib
import os
import time

from host_machine import HostsError, call, is_running, need

# Without it srun waits without end for what a lost node would have printed. It is longer than
# SlurmdTimeout, so that slurmctld's word on the node comes first.
KEEPALIVE = "keepalivetime=20,keepaliveinterval=5,keepaliveprobes=2"
NODE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "slurm_node.sh")


def configuration(place: str, login: str, nodes: dict, cpus: int, megabytes: int) -> str:
    """slurm.conf. place: a directory with a short name; login: address; nodes: addresses by name.
    The timeouts are short: what a test breaks is noticed within seconds."""
    lines = """
        ClusterName=treenail
        SlurmctldHost=login(%(login)s)
        SlurmUser=root
        SlurmdUser=root
        AuthType=auth/munge
        AuthInfo=socket=%(place)s/local/munge/socket
        CommunicationParameters=NoInAddrAny,NoCtldInAddrAny,%(keepalive)s
        ProctrackType=proctrack/linuxproc
        TaskPlugin=task/affinity
        JobAcctGatherType=jobacct_gather/none
        AccountingStorageType=accounting_storage/none
        SelectType=select/cons_tres
        SelectTypeParameters=CR_Core
        SwitchType=switch/none
        MpiDefault=pmix
        ReturnToService=2
        SlurmdTimeout=10
        MessageTimeout=5
        TCPTimeout=2
        KillWait=5
        SlurmctldPidFile=%(place)s/slurmctld.pid
        SlurmdPidFile=%(place)s/slurmd-%%n.pid
        StateSaveLocation=%(place)s/ctld
        SlurmdSpoolDir=%(place)s/spool/%%n
        """ % {"login": login, "place": place, "keepalive": KEEPALIVE}
    text = "# Written by ci/hosts for a test cluster.\n"
    text += "".join(line.strip() + "\n" for line in lines.strip().splitlines())
    for name, address in nodes.items():
        text += ("NodeName=%s NodeAddr=%s Sockets=1 CoresPerSocket=%d RealMemory=%d "
                 "State=UNKNOWN\n" % (name, address, cpus, megabytes))
    return text + "PartitionName=all Nodes=%s Default=YES MaxTime=INFINITE State=UP\n" % (
        ",".join(nodes))


def check_programs() -> None:
    for program, dependency in (("slurmctld", "slurm"), ("slurmd", "slurm"), ("srun", "slurm"),
                                ("munged", "munge"), ("mungekey", "munge")):
        need(program, dependency)


def _memory() -> int:
    """Megabytes that a node claims to have: less than the machine has, or slurmd refuses."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 4 // 5 // 2 ** 20


def cluster(state, legs: dict, shared: list) -> list:
    """Starts `login` and the nodes. legs: by name, `login` first; shared: directories that all of
    them see, even below /tmp."""
    place = os.path.join(state.run, "slurm")
    addresses = {name: leg["address"] for name, leg in legs.items()}
    nodes = {name: address for name, address in addresses.items() if name != "login"}
    state.record("tree", path=place)
    for folder in ["local", "ctld", *("spool/" + name for name in nodes)]:
        os.makedirs(os.path.join(place, folder), mode=0o755)
    conf = state.write("slurm.conf", configuration(
        place, addresses["login"], nodes, len(os.sched_getaffinity(0)), _memory()))
    key = os.path.join(place, "munge.key")
    call("mungekey", "--create", "--keyfile", key)
    hosts = state.write("etc-hosts", "127.0.0.1 localhost\n" + "".join(
        "%s %s\n" % (address, name) for name, address in addresses.items()))
    hidden = [path for path in map(os.path.realpath, shared)
              if path.startswith(("/tmp/", "/dev/shm/"))]
    for path in hidden:
        if len(path.split()) != 1:
            raise HostsError("%s cannot be shared with the nodes: there is a blank in its name"
                             % path)
    made = []
    for name, leg in legs.items():
        daemon = ["slurmctld", "-D", "-f", conf] if name == "login" else [
            "slurmd", "-D", "-N", name, "-f", conf]
        log = state.at("log", name + ".log")
        process = state.process(
            ["env", "SHARED=" + " ".join(hidden), "SLURM_CONF=" + conf,
             "nsenter", "--net=/run/netns/" + leg["namespace"], "unshare", "--mount", "--uts",
             "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", NODE, name,
             os.path.join(place, "local"), key, hosts, *daemon], log)
        made.append(dict(leg, name=name, kind="slurm", process=process, log=log,
                         environment={"SLURM_CONF": conf}))
    return made


def ready(hosts: list, enter, patience: float = 30.0) -> None:
    """Waits until every node is idle. enter: the words that run a command on a host."""
    login, nodes = hosts[0], len(hosts) - 1
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and all(is_running(host["process"]) for host in hosts):
        with contextlib.suppress(HostsError):  # its namespaces are still being made
            text = call(*enter(login, ["sinfo", "-h", "-o", "%T %D"]), check=False)
            if text.split() == ["idle", str(nodes)]:
                return
        time.sleep(0.1)
    logs = ""
    for host in hosts:
        with open(host["log"], encoding="utf-8", errors="replace") as stream:
            logs += "%s: %s\n" % (host["name"], stream.read().strip()[-800:])
    raise HostsError("the cluster does not come up; the logs end with:\n" + logs)
