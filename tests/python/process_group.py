# SPDX-License-Identifier: Apache-2.0
"""Groups of processes on this host, for tests: each runs one Python program with its rank, and
leaves what it found in a file. Whatever happens, all have ended when run() returns."""

import os
import pickle
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROLOGUE = """
import os, pickle, sys, time
import numpy as np
import treenail as tn
rank, size, where = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
tn.set_num_threads(1) if hasattr(tn, "set_num_threads") else None

def join(**more):
    if "TEST_ADDRESSES" in os.environ:
        tn.distributed.init("grpc", rank=rank, cluster=os.environ["TEST_ADDRESSES"].split(","),
                            join_timeout=30, **more)
        return
    tn.distributed.init(rank=rank, size=size, directory=os.path.join(where, "group"),
                        join_timeout=30, **more)

def leave(result):
    with open(os.path.join(where, "result%d" % rank), "wb") as stream:
        pickle.dump(result, stream)

def error_of(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error)
    return None, ""
"""


class Group:
    """The processes of one program, while it runs. within: a command that starts rank 0."""

    def __init__(self, directory, program, size, environment=None, within=()):
        self.directory, self.size = str(directory), size
        given = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [
            HERE, os.environ.get("PYTHONPATH")])), **(environment or {})}
        self.processes = [subprocess.Popen(
            [*(within if rank == 0 else ()), sys.executable, "-c", PROLOGUE + program, str(rank),
             str(size), self.directory],
            env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for rank in range(size)]

    def wait(self, timeout=60):
        """What each process left; None for one that left nothing. And their exit statuses."""
        try:
            self.outputs = [process.communicate(timeout=timeout)[0] for process in self.processes]
        finally:
            for process in self.processes:
                process.kill()
                process.wait()
        return [self._result(rank) for rank in range(self.size)]

    def _result(self, rank):
        path = os.path.join(self.directory, "result%d" % rank)
        if not os.path.exists(path):
            return None
        with open(path, "rb") as stream:
            return pickle.load(stream)


def by_grpc(size):
    """The environment in which processes meet by gRPC."""
    from free_ports import free_ports
    return {"TEST_ADDRESSES": ",".join("127.0.0.1:%d" % port for port in free_ports(size))}


def run(directory, program, size, environment=None, timeout=60):
    """The results of all ranks. Fails with what they printed where one left none."""
    group = Group(directory, program, size, environment)
    results = group.wait(timeout)
    assert None not in results, "\n".join(group.outputs)
    return results
