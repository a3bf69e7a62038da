# SPDX-License-Identifier: Apache-2.0
"""A training over a parameter server and two workers, for what it takes when one of them is killed.

`serve CLUSTER JOB TASK` runs a task, which may write below the temporary directory, and says when;
`train CLUSTER FOLDER` trains for ever, with a checkpoint every 20 steps, and prints the number of
each step and when it was made.
"""

import json
import sys
import tempfile
import time

import treenail as tn


def serve(cluster, job, task):
    server = tn.train.Server(cluster, job, int(task), allow_paths=[tempfile.gettempdir()])
    print("listens", flush=True)
    server.join()


def train(cluster, folder):
    step = None
    with tn.device("/job:ps/task:0"):
        step = tn.train.get_or_create_global_step()
        w = tn.get_variable("w", [500, 200], initializer=tn.ones_initializer())
    parts = []
    for task in range(2):
        with tn.device("/job:worker/task:%d" % task):
            parts.append(tn.reduce_sum(tn.square(w)))
    with tn.device("/job:ps/task:0"):
        optimizer = tn.train.MomentumOptimizer(0.001, 0.9)
        made = optimizer.minimize(tn.add_n(parts), global_step=step)
        with tn.control_dependencies([made]):
            now = step.read_value()
    with tn.train.MonitoredTrainingSession(
            "grpc://" + cluster["worker"][0], checkpoint_dir=folder, save_checkpoint_steps=20,
            log_step_count_steps=None, save_summaries_steps=None) as session:
        while True:
            print(session.run(now), time.monotonic(), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(json.loads(sys.argv[2]), sys.argv[3], sys.argv[4])
    else:
        train(json.loads(sys.argv[2]), sys.argv[3])
