# SPDX-License-Identifier: Apache-2.0
"""All-reduce over MPI by Session.run, started by mpirun: rank 0 prints a line of JSON per size. The
value is a variable, the result is not fetched."""

import json
import time

import numpy as np
import treenail as tn

D = tn.distributed
D.init("mpi")
for size in (1 << 10, 1 << 20, 16 << 20, 64 << 20):
    with tn.Graph().as_default(), tn.Session() as session:
        value = tn.Variable(np.zeros(size // 4, np.float32))
        run = D.all_reduce(value).op
        together = D.barrier()
        session.run(value.initializer)
        took = []
        for _ in range(500 if size <= 1 << 10 else 100 if size <= 1 << 20 else 11):
            session.run(together)
            begin = time.perf_counter()
            session.run(run)
            took.append(time.perf_counter() - begin)
    if D.rank() == 0:
        print(json.dumps({"name": "treenail", "bytes": size,
                          "seconds": sorted(took)[len(took) // 2]}), flush=True)
