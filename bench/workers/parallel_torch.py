# SPDX-License-Identifier: Apache-2.0
"""parallel_treenail.py's steps by torch's DistributedDataParallel over Gloo."""

import json
import os
import sys
import time

import networks
import numpy as np
import torch
import torch.distributed as dist

rank, size, directory = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 32, 5, padding=2), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(32, 64, 5, padding=2), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Flatten(), torch.nn.Linear(3136, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
if size > 1:
    dist.init_process_group("gloo", init_method="file://" + os.path.join(directory, "gloo"),
                            rank=rank, world_size=size)
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), networks.RATE)
inputs, labels = networks.batch("cnn")
x, y = torch.from_numpy(inputs.transpose(0, 3, 1, 2).copy()), torch.from_numpy(labels)
took = []
for _ in range(60):
    begin = time.perf_counter()
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    took.append(time.perf_counter() - begin)
if rank == 0:
    print(json.dumps({"seconds": float(np.median(took[10:]))}), flush=True)
if size > 1:
    dist.destroy_process_group()
