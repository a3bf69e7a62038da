# SPDX-License-Identifier: Apache-2.0
"""Servers in processes of their own on this machine, for tests of what happens between them."""

import os
import signal
import subprocess
import sys

from free_ports import free_ports

SERVE = """
import sys
import tempfile
import treenail as tn
cluster, job, index = eval(sys.argv[1]), sys.argv[2], int(sys.argv[3])
keepalive, plain_text, listen = int(sys.argv[4]), sys.argv[5] == "plain", sys.argv[6]
server = tn.train.Server(cluster, job, index, config=tn.ConfigProto(keepalive_in_ms=keepalive),
                         listen=listen, plain_text=plain_text, allow_paths=[tempfile.gettempdir()])
print("listens", flush=True)
sys.stdin.read()
"""


def serving(spec, job, index, keepalive_in_ms=0, plain_text=False, within=(), listen=""):
    """A process that is this task of the cluster, started by the command `within` ahead of it."""
    return subprocess.Popen(
        [*within, sys.executable, "-c", SERVE, repr(spec), job, str(index), str(keepalive_in_ms),
         "plain" if plain_text else "", listen],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


class Cluster:
    """{job: number of tasks}, each task a process that ends when this is closed.

    absent: tasks, (job, index), that are started later. keepalive_in_ms: as of tn.ConfigProto.
    spec, listening: addresses, by job, and where the tasks listen instead."""

    def __init__(self, keepalive_in_ms=0, absent=(), spec=None, listening=None, **tasks):
        ports = iter(free_ports(sum(tasks.values())))
        self.spec = spec or {job: ["localhost:%d" % next(ports) for _ in range(count)]
                             for job, count in tasks.items()}
        self._listening = listening
        self._keepalive_in_ms = keepalive_in_ms
        self._processes = {}
        for job, count in tasks.items():
            for index in range(count):
                if (job, index) not in absent:
                    self.start(job, index)
        for task in self._processes:
            self.wait(*task)

    def start(self, job, index):
        listen = self._listening[job][index] if self._listening else ""
        self._processes[job, index] = serving(self.spec, job, index, self._keepalive_in_ms,
                                              listen=listen)

    def wait(self, job, index):
        """Until it listens."""
        assert self._processes[job, index].stdout.readline() == "listens\n"

    def target(self, job, index=0):
        return "grpc://" + self.spec[job][index]

    def signal(self, job, index, number):
        os.kill(self._processes[job, index].pid, number)

    def kill(self, job, index):
        self.signal(job, index, signal.SIGKILL)
        self._processes[job, index].wait()

    def close(self):
        for process in self._processes.values():
            process.kill()
            process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
