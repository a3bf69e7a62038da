# SPDX-License-Identifier: Apache-2.0
"""A cluster of two hosts, which are network namespaces, and the cable between them that is pulled
while it trains."""

import subprocess
import sys
import threading
import time

import pytest

import treenail as tn
from cluster_processes import serving
from network_hosts import Hosts, why_not

pytestmark = [
    pytest.mark.skipif(not {"grpc", "hdf5"} <= set(tn.build_info()["features"]),
                       reason="this build has no gRPC, or no checkpoints"),
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")]
KEEPALIVE_MS, LAST = 1000, 60
LOST = "A task of the session was lost"

TRAIN = """
import sys, time
import treenail as tn
spec, folder, keepalive, last = eval(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
config = tn.ConfigProto(keepalive_in_ms=keepalive)
server = tn.train.Server(spec, "worker", 0, config=config, plain_text=True)
with tn.device(tn.train.replica_device_setter(cluster=tn.train.ClusterSpec(spec))):
    step = tn.train.get_or_create_global_step()
    v = tn.get_variable("v", [100], initializer=tn.zeros_initializer())
    train = tn.group(v.assign_add(tn.ones([100])), step.assign_add(1))
with tn.control_dependencies([train]):
    seen = step.read_value()
hooks = [tn.train.StopAtStepHook(last_step=last)]
with tn.train.MonitoredTrainingSession(
        server.target, checkpoint_dir=folder, save_checkpoint_steps=10, hooks=hooks,
        config=config, log_step_count_steps=None, save_summaries_steps=None) as session:
    while not session.should_stop():
        print(session.run(seen), flush=True)
        time.sleep(0.03)
print("ended", flush=True)
"""


class Lines:
    """What a process says, each line with its time."""

    def __init__(self, stream):
        self.all = []
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream):
        for line in stream:
            self.all.append((time.monotonic(), line.strip()))

    def wait_for(self, wanted, seconds=60):
        """When the first line came for which wanted(line) holds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for at, line in list(self.all):
                if wanted(line):
                    return at
            time.sleep(0.01)
        raise AssertionError("it said %r" % self.all[-20:])


def test_a_pulled_cable_is_noticed_and_training_goes_on_when_it_is_back(tmp_path):
    with Hosts() as hosts:
        spec = {"ps": [hosts.addresses[0] + ":2222"], "worker": [hosts.addresses[1] + ":2222"]}
        ps = serving(spec, "ps", 0, KEEPALIVE_MS, plain_text=True, within=hosts.within(0))
        worker = None
        try:
            assert ps.stdout.readline() == "listens\n"
            worker = subprocess.Popen(
                [*hosts.within(1), sys.executable, "-c", TRAIN, repr(spec), str(tmp_path),
                 str(KEEPALIVE_MS), str(LAST)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True)
            said, told = Lines(worker.stdout), Lines(worker.stderr)
            said.wait_for(lambda line: line == "15")
            hosts.cable("down")
            pulled = time.monotonic()
            noticed = told.wait_for(lambda line: LOST in line)
            assert noticed - pulled < 10
            assert any("/job:ps/replica:0/task:0" in line for _, line in told.all)
            hosts.cable("up")
            said.wait_for(lambda line: line == "ended")
            assert worker.wait(60) == 0
        finally:
            for process in (ps, worker):
                if process is not None:
                    process.kill()
                    process.wait()
    saved = tn.train.load_checkpoint(str(tmp_path))
    assert saved.get_tensor("global_step") == LAST
    assert (saved.get_tensor("v") == LAST).all()
    steps = [int(line) for _, line in said.all if line != "ended"]
    assert steps[-1] == LAST and len(steps) <= LAST + 11  # those since the checkpoint again
