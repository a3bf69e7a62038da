# SPDX-License-Identifier: Apache-2.0
"""What a run takes that moves a value from the task of rank 0 to that of rank 1, which mpirun has
started. Arguments: the addresses of the two, a file that rank 1 makes when it is done."""

import json
import os
import sys
import time

import treenail as tn
from cluster_treenail import MANY, median, moved_from


def ask(server):
    runs = {("moved", size): moved_from("/job:w/task:0", "/job:w/task:1", size)
            for size in (1 << 20, 16 << 20, 64 << 20)}
    runs["many", 1 << 20] = moved_from("/job:w/task:0", "/job:w/task:1", 1 << 20, MANY)
    nothing = tn.no_op()
    with tn.Session(server.target) as session:
        session.run(tn.global_variables_initializer())
        for (name, size), operation in runs.items():
            run = session.make_callable(operation)
            run()
            time.sleep(0.5)  # the first finds the way
            run()
            seconds = median(run, 40) / (MANY if name == "many" else 1)
            print(json.dumps({"name": name, "bytes": size, "seconds": seconds}), flush=True)
        seconds = median(session.make_callable(nothing), 200)
        print(json.dumps({"name": "empty", "bytes": 0, "seconds": seconds}), flush=True)
    way = server.transports["/job:w/replica:0/task:0"].split(",")[0].split(":")[0]
    print(json.dumps({"name": "way " + way, "bytes": 0, "seconds": 0}), flush=True)


def main():
    addresses, done = sys.argv[1].split(","), sys.argv[2]
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"])
    server = tn.train.Server({"w": addresses}, "w", rank)
    if rank == 1:
        try:
            ask(server)
        finally:
            open(done, "w").close()
    while not os.path.exists(done):
        time.sleep(0.05)


if __name__ == "__main__":
    main()
