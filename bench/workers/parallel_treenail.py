# SPDX-License-Identifier: Apache-2.0
"""Steps of the CNN, 64 images in each process, one thread each. Arguments: rank, ranks, directory.
Rank 0 prints the median of seconds per step."""

import json
import os
import sys
import time

import networks
import numpy as np
import treenail as tn

rank, size, directory = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
tn.distributed.init(rank=rank, size=size, directory=os.path.join(directory, "group"))


def pooled(x, weight, bias):
    x = tn.nn.conv2d(x, weight, strides=[1, 1, 1, 1], padding="SAME")
    return tn.nn.max_pool(tn.nn.relu(tn.nn.bias_add(x, bias)), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")


inputs, labels = networks.batch("cnn")
x, y = tn.placeholder(tn.float32, (None,) + inputs.shape[1:]), tn.placeholder(tn.int64, [None])
w = {name: tn.Variable(value) for name, value in networks.weights("cnn").items()}
h = pooled(pooled(x, w["f1"], w["c1"]), w["f2"], w["c2"])
h = tn.nn.relu(tn.matmul(tn.reshape(h, [-1, 3136]), w["w1"]) + w["b1"])
loss = tn.reduce_mean(tn.nn.sparse_softmax_cross_entropy_with_logits(
    labels=y, logits=tn.matmul(h, w["w2"]) + w["b2"]))
optimizer = tn.train.GradientDescentOptimizer(networks.RATE)
if size > 1:
    optimizer = tn.distributed.DistributedOptimizer(optimizer)
train = optimizer.minimize(loss)
took = []
with tn.Session(config=tn.ConfigProto(intra_op_parallelism_threads=1)) as session:
    session.run(tn.global_variables_initializer())
    for _ in range(60):
        begin = time.perf_counter()
        session.run(train, {x: inputs, y: labels})
        took.append(time.perf_counter() - begin)
if rank == 0:
    print(json.dumps({"seconds": float(np.median(took[10:]))}), flush=True)
tn.distributed.shutdown()
