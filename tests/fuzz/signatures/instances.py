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


def _checkpoint(_rng=None):
    return tn.train.Checkpoint(v=tn.Variable(1.0, name="saved"))


def _queue_runner(_rng):
    queue = tn.FIFOQueue(3, tn.float32, [])
    return tn.train.QueueRunner(queue, [queue.enqueue([1.0])])


def _step(_rng=None):
    return tn.train.get_or_create_global_step()


def _growing(made):
    """What has finalized the graph, to which arguments are still to be added."""
    tn.get_default_graph()._unsafe_unfinalize()
    return made


def _saving(_rng):
    _step()
    return tn.train.CheckpointSaverHook("run", save_steps=1, saver=tn.train.Saver())


def _sparse_accumulator(_rng):
    return tn.SparseConditionalAccumulator(tn.float32, [2, 3])


def _memory():
    return tn.ones([2, 3, 4])


def _attending(_rng):
    return tn.seq2seq.AttentionWrapper(tn.rnn.GRUCell(4), tn.seq2seq.LuongAttention(4, _memory()))


def _greedy(_rng=None):
    return tn.seq2seq.GreedyEmbeddingHelper(tn.ones([5, 3]), [0, 0], 1)


def _basic_decoder(_rng):
    return tn.seq2seq.BasicDecoder(tn.rnn.GRUCell(4), _greedy(), tn.zeros([2, 4]))


def _beam_decoder(_rng):
    return tn.seq2seq.BeamSearchDecoder(tn.rnn.GRUCell(5), tn.ones([5, 3]), [0, 0], 1,
                                        tn.zeros([6, 5]), 3)


def _of_functions(_rng):
    return tn.seq2seq.CustomHelper(
        lambda: (tn.constant([False]), tn.ones([1, 3])),
        lambda time, outputs, state: tn.constant([1]),
        lambda time, outputs, state, sample_ids: (tn.constant([True]), outputs, state))


def _scheduled_words(_rng):
    return tn.seq2seq.ScheduledEmbeddingTrainingHelper(_memory(), [3, 2], tn.ones([5, 4]), 0.5)


def _matrix():
    return tn.linalg.LinearOperatorFullMatrix(tn.constant([[2.0, 1.0], [1.0, 3.0]]))


def _explained(_rng=None):
    return tn.placement.explain(fetches=tn.exp(tn.constant([1.0])))


def _vocabulary(_rng=None):
    return tn.lookup.KeyValueTensorInitializer(["oak", "elm"], [0, 1], value_dtype=tn.int64)


def _text_file(_rng):
    return tn.lookup.TextFileInitializer("no_such_file", tn.string, -2, tn.int64, -1)


def _static_table(_rng):
    return tn.lookup.StaticHashTable(_vocabulary(), -1)


# Classes that no program constructs, or that need something in the graph first.
MAKERS = {
    tn.Barrier: lambda rng: tn.Barrier([tn.float32, tn.string]),
    tn.ConditionalAccumulatorBase: lambda rng: tn.ConditionalAccumulator(tn.float32),
    tn.ConditionalAccumulator: lambda rng: tn.ConditionalAccumulator(tn.float32, [2, 3]),
    tn.StagingArea: lambda rng: tn.StagingArea([tn.float32, tn.int32]),
    tn.MapStagingArea: lambda rng: tn.MapStagingArea([tn.float32, tn.int32]),
    tn.SparseConditionalAccumulator: _sparse_accumulator,
    tn.train.Server: lambda rng: tn.train.Server({"worker": ["localhost:0"]}, start=False),
    tn.lookup.KeyValueTensorInitializer: _vocabulary,
    tn.lookup.TableInitializerBase:
        lambda rng: tn.lookup.TableInitializerBase(tn.string, tn.int64),
    tn.lookup.TextFileInitializer: _text_file,
    tn.lookup.LookupInterface: lambda rng: tn.lookup.LookupInterface(tn.string, tn.int64),
    tn.lookup.StaticHashTable: _static_table,
    tn.lookup.StaticVocabularyTable: lambda rng: tn.lookup.StaticVocabularyTable(_vocabulary(), 2),
    tn.lookup.experimental.MutableHashTable:
        lambda rng: tn.lookup.experimental.MutableHashTable(tn.string, tn.int64, -1),
    tn.distributed.DistributedOptimizer: lambda rng: tn.distributed.DistributedOptimizer(
        tn.train.GradientDescentOptimizer(0.1)),
    tn.distribute.cluster_resolver.SimpleClusterResolver:
        lambda rng: tn.distribute.cluster_resolver.SimpleClusterResolver({"worker": ["a:1"]}),
    tn.distribute.DistributedValues:
        lambda rng: tn.distribute.DistributedValues([tn.constant(1.0), tn.constant(2.0)]),
    tn.distribute.MirroredStrategy: lambda rng: tn.distribute.MirroredStrategy(["/cpu:0"]),
    tn.distribute.OneDeviceStrategy: lambda rng: tn.distribute.OneDeviceStrategy("/cpu:0"),
    tn.distribute.ParameterServerStrategy: lambda rng: tn.distribute.ParameterServerStrategy(
        tn.distribute.cluster_resolver.SimpleClusterResolver({})),
    tn.distribute.ReplicaContext: lambda rng: tn.distribute.ReplicaContext(
        tn.distribute.Strategy(), 0),
    tn.distribute.StrategyExtended: lambda rng: tn.distribute.Strategy().extended,
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
    tn.linalg.LinearOperator: lambda rng: tn.linalg.LinearOperatorIdentity(2, [3]),
    tn.linalg.LinearOperatorAdjoint: lambda rng: tn.linalg.LinearOperatorAdjoint(_matrix()),
    tn.linalg.LinearOperatorBlockDiag:
        lambda rng: tn.linalg.LinearOperatorBlockDiag([_matrix(), _matrix()]),
    tn.linalg.LinearOperatorCirculant2D:
        lambda rng: tn.linalg.LinearOperatorCirculant2D(tn.ones([3, 2])),
    tn.linalg.LinearOperatorCirculant3D:
        lambda rng: tn.linalg.LinearOperatorCirculant3D(tn.ones([3, 2, 2])),
    tn.linalg.LinearOperatorComposition:
        lambda rng: tn.linalg.LinearOperatorComposition([_matrix(), _matrix()]),
    tn.linalg.LinearOperatorFullMatrix: lambda rng: _matrix(),
    tn.linalg.LinearOperatorIdentity: lambda rng: tn.linalg.LinearOperatorIdentity(2, [3]),
    tn.linalg.LinearOperatorInversion: lambda rng: tn.linalg.LinearOperatorInversion(_matrix()),
    tn.linalg.LinearOperatorKronecker:
        lambda rng: tn.linalg.LinearOperatorKronecker([_matrix(), _matrix()]),
    tn.linalg.LinearOperatorLowRankUpdate:
        lambda rng: tn.linalg.LinearOperatorLowRankUpdate(_matrix(), [[1.0], [0.5]]),
    tn.linalg.LinearOperatorPermutation: lambda rng: tn.linalg.LinearOperatorPermutation([1, 0]),
    tn.linalg.LinearOperatorScaledIdentity:
        lambda rng: tn.linalg.LinearOperatorScaledIdentity(2, 3.0),
    tn.linalg.LinearOperatorZeros: lambda rng: tn.linalg.LinearOperatorZeros(2, 3),
    tn.placement.DeviceModel: lambda rng: tn.placement.DeviceModel("/job:worker"),
    tn.placement.Explanation: _explained,
    tn.placement.Link: lambda rng: tn.placement.Link("/job:a", "/job:b", latency=0,
                                                     bytes_per_second=1e9),
    tn.rnn.GRUBlockCellV2: lambda rng: tn.rnn.GRUBlockCellV2(2),
    tn.seq2seq.AttentionWrapper: _attending,
    tn.seq2seq.AttentionWrapperState: lambda rng: _attending(rng).zero_state(2, tn.float32),
    tn.seq2seq.BahdanauAttention: lambda rng: tn.seq2seq.BahdanauAttention(4, _memory()),
    tn.seq2seq.BahdanauMonotonicAttention:
        lambda rng: tn.seq2seq.BahdanauMonotonicAttention(4, _memory()),
    tn.seq2seq.BasicDecoder: _basic_decoder,
    tn.seq2seq.BeamSearchDecoder: _beam_decoder,
    tn.seq2seq.CustomHelper: _of_functions,
    tn.seq2seq.GreedyEmbeddingHelper: _greedy,
    tn.seq2seq.InferenceHelper: lambda rng: tn.seq2seq.InferenceHelper(
        lambda outputs: outputs, [3], tn.float32, tn.ones([2, 3]), lambda x: tn.equal(x, 1)),
    tn.seq2seq.LuongAttention: lambda rng: tn.seq2seq.LuongAttention(4, _memory()),
    tn.seq2seq.LuongMonotonicAttention:
        lambda rng: tn.seq2seq.LuongMonotonicAttention(4, _memory()),
    tn.seq2seq.SampleEmbeddingHelper:
        lambda rng: tn.seq2seq.SampleEmbeddingHelper(tn.ones([5, 3]), [0, 0], 1),
    tn.seq2seq.ScheduledEmbeddingTrainingHelper: _scheduled_words,
    tn.seq2seq.ScheduledOutputTrainingHelper:
        lambda rng: tn.seq2seq.ScheduledOutputTrainingHelper(_memory(), [3, 2], 0.5),
    tn.seq2seq.TrainingHelper: lambda rng: tn.seq2seq.TrainingHelper(_memory(), [3, 2]),
    tn.train.Checkpoint: _checkpoint,
    tn.train.CheckpointManager: lambda rng: tn.train.CheckpointManager(_checkpoint(), "kept", 2),
    tn.train.CheckpointSaverHook: _saving,
    tn.train.ClusterSpec: lambda rng: tn.train.ClusterSpec({"ps": ["a:1", "b:1"]}),
    tn.train.FeedFnHook: lambda rng: tn.train.FeedFnHook(dict),
    tn.train.GreedyLoadBalancingStrategy: lambda rng: tn.train.GreedyLoadBalancingStrategy(
        2, tn.train.byte_size_load_fn),
    tn.train.LoggingTensorHook:
        lambda rng: tn.train.LoggingTensorHook([tn.constant(1.0)], every_n_iter=1),
    tn.train.MixedPrecision: lambda rng: tn.train.MixedPrecision(
        tn.train.GradientDescentOptimizer(0.1), "float16"),
    tn.train.mixed_precision: lambda rng: tn.train.mixed_precision("bfloat16"),
    tn.train.MonitoredSession: lambda rng: _growing(tn.train.MonitoredSession()),
    tn.train.SingularMonitoredSession:
        lambda rng: _growing(tn.train.SingularMonitoredSession()),
    tn.train.NanTensorHook: lambda rng: tn.train.NanTensorHook(tn.constant(1.0)),
    tn.train.ProfilerHook: lambda rng: tn.train.ProfilerHook(save_steps=1, output_dir="traces"),
    tn.train.RoundRobinStrategy: lambda rng: tn.train.RoundRobinStrategy(2),
    tn.train.SecondOrStepTimer: lambda rng: tn.train.SecondOrStepTimer(every_steps=1),
    tn.train.SessionRunContext: lambda rng: tn.train.SessionRunContext(
        tn.train.SessionRunArgs(None), None),
    tn.train.StopAtStepHook: lambda rng: tn.train.StopAtStepHook(last_step=1),
    tn.train.SyncReplicasOptimizer: lambda rng: tn.train.SyncReplicasOptimizer(
        tn.train.GradientDescentOptimizer(0.1), 2),
    tn.train.SummarySaverHook:
        lambda rng: tn.train.SummarySaverHook(save_steps=1, summary_op=tn.constant(b"")),
    tn.train.Supervisor: lambda rng: _growing(tn.train.Supervisor()),
    tn.train.CheckpointStatus: lambda rng: _checkpoint().restore(None),
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
    "tril": lambda: tn.ones([2, 2]), "diag": lambda: tn.ones([2]), "row": lambda: tn.ones([3]),
    "col": lambda: tn.ones([3]), "spectrum": lambda: tn.ones([3]),
    "reflection_axis": lambda: tn.ones([3]), "diagonals": lambda: tn.ones([3, 4]),
    "timer_interval_secs": 0.1, "threshold": 0.5,
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
