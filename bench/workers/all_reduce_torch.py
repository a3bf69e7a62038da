# SPDX-License-Identifier: Apache-2.0
"""All-reduce by torch.distributed with Gloo. Arguments: rank, ranks, a directory. Rank 0 prints a
line of JSON per size."""

import json
import os
import sys
import time

import torch
import torch.distributed as dist

rank, size, directory = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + os.path.join(directory, "gloo"), rank=rank,
                        world_size=size)
for count in (1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 16 << 20, 64 << 20):
    value = torch.zeros(count // 4)
    took = []
    for _ in range(201 if count <= 1 << 20 else 11):
        dist.barrier()
        begin = time.perf_counter()
        dist.all_reduce(value)
        took.append(time.perf_counter() - begin)
    if rank == 0:
        print(json.dumps({"name": "all_reduce", "bytes": count,
                          "seconds": sorted(took)[len(took) // 2]}), flush=True)
dist.destroy_process_group()
