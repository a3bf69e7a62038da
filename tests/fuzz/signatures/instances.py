# SPDX-License-Identifier: Apache-2.0
"""An instance of each public class, whose methods are called."""

import inspect

import treenail as tn
from hostile_values import plausible


def _partitioned(_rng):
    return tn.get_variable("parts", [4, 2], partitioner=tn.fixed_size_partitioner(2))


def _saver(_rng):
    tn.Variable(1.0, name="saved")
    return tn.train.Saver()


def _queue_runner(_rng):
    queue = tn.FIFOQueue(3, tn.float32, [])
    return tn.train.QueueRunner(queue, [queue.enqueue([1.0])])


def _sparse_accumulator(_rng):
    return tn.SparseConditionalAccumulator(tn.float32, [2, 3])


# Classes that no program constructs, or that need something in the graph first.
MAKERS = {
    tn.Barrier: lambda rng: tn.Barrier([tn.float32, tn.string]),
    tn.ConditionalAccumulatorBase: lambda rng: tn.ConditionalAccumulator(tn.float32),
    tn.ConditionalAccumulator: lambda rng: tn.ConditionalAccumulator(tn.float32, [2, 3]),
    tn.StagingArea: lambda rng: tn.StagingArea([tn.float32, tn.int32]),
    tn.MapStagingArea: lambda rng: tn.MapStagingArea([tn.float32, tn.int32]),
    tn.SparseConditionalAccumulator: _sparse_accumulator,
    tn.DType: lambda rng: tn.float32,
    tn.Operation: lambda rng: tn.constant([1.0, 2.0]).op,
    tn.PartitionedVariable: _partitioned,
    tn.FIFOQueue: lambda rng: tn.FIFOQueue(3, tn.float32, []),
    tn.PaddingFIFOQueue: lambda rng: tn.PaddingFIFOQueue(3, tn.float32, [[None]]),
    tn.PriorityQueue: lambda rng: tn.PriorityQueue(3, tn.float32, [[]]),
    tn.QueueBase: lambda rng: tn.FIFOQueue(3, tn.float32, []),
    tn.RandomShuffleQueue: lambda rng: tn.RandomShuffleQueue(3, 1, tn.float32, []),
    tn.Tensor: lambda rng: tn.constant([[1.0, 2.0], [3.0, 4.0]]),
    tn.TensorArray: lambda rng: tn.TensorArray(tn.float32, 3, element_shape=[2]),
    tn.TensorShape: lambda rng: tn.TensorShape([2, None]),
    tn.Variable: lambda rng: tn.Variable([[1.0, 2.0], [3.0, 4.0]]),
    tn.VariableScope: lambda rng: tn.get_variable_scope(),
    tn.rnn.GRUBlockCellV2: lambda rng: tn.rnn.GRUBlockCellV2(2),
    tn.train.QueueRunner: _queue_runner,
    tn.train.Saver: _saver,
}
# What constructors take where the word of a name says something else to functions.
GIVEN = {
    "filters": 2, "kernel_size": 2, "strides": 1, "pool_size": 2, "units": 2, "dims": [2, 3],
    "cells": lambda: [tn.rnn.GRUCell(2)], "cell": lambda: tn.rnn.GRUCell(2), "device": "/cpu:0",
    "logdir": "events", "initial_value": 1.0, "values": lambda: tn.constant([[1.0, 2.0]]),
    "indices": lambda: tn.constant([0]), "op_type": "Exp", "name_or_scope": "scope",
    "dense_shape": [2, 3], "num_units": 2, "coord": tn.train.Coordinator,
    "timer_interval_secs": 0.1,
}


def instance(cls, rng):
    if cls in MAKERS:
        return MAKERS[cls](rng)
    if cls is tn.SparseTensor:
        return plausible("sparse", rng)
    named = {}
    for p in inspect.signature(cls).parameters.values():
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            value = GIVEN.get(p.name, plausible)
            named[p.name] = (plausible(p.name, rng) if value is plausible else
                             value() if callable(value) else value)
    return cls(**named)
