# SPDX-License-Identifier: Apache-2.0
"""Training: optimizers, learning-rate schedules, moving averages, the global step, checkpoints."""

from treenail._names import no_attribute as _no_attribute
from treenail._precision import mixed_precision
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail.train._basic_hooks import (FeedFnHook, FinalOpsHook, GlobalStepWaiterHook,
                                         LoggingTensorHook, NanLossDuringTrainingError,
                                         NanTensorHook, SecondOrStepTimer, StopAtSignalHook,
                                         StopAtStepHook)
from treenail.train._checkpoint import (CheckpointState, checkpoint_exists, get_checkpoint_mtimes,
                                        get_checkpoint_state, latest_checkpoint, list_variables,
                                        load_checkpoint, load_variable, remove_checkpoint,
                                        update_checkpoint_state)
from treenail.train._cluster_spec import ClusterSpec
from treenail.train._coordinator import Coordinator, LooperThread
from treenail.train._device_setter import (GreedyLoadBalancingStrategy, RoundRobinStrategy,
                                           byte_size_load_fn, replica_device_setter)
from treenail.train._global_step import (assert_global_step, create_global_step, get_global_step,
                                         get_or_create_global_step, global_step)
from treenail.train._input import (batch, batch_join, input_producer, limit_epochs, maybe_batch,
                                   maybe_batch_join, maybe_shuffle_batch, maybe_shuffle_batch_join,
                                   range_input_producer, shuffle_batch, shuffle_batch_join,
                                   slice_input_producer, string_input_producer)
from treenail.train._meta_graph import export_meta_graph, import_meta_graph
from treenail.train._mixed_precision import MixedPrecision
from treenail.train._monitored_session import (ChiefSessionCreator, MonitoredSession,
                                               SessionCreator, SingularMonitoredSession,
                                               WorkerSessionCreator)
from treenail.train._moving_averages import ExponentialMovingAverage
from treenail.train._object_checkpoint import Checkpoint, CheckpointManager, CheckpointStatus
from treenail.train._optimizer import Optimizer
from treenail.train._optimizers import (AdadeltaOptimizer, AdagradOptimizer, AdamOptimizer,
                                        FtrlOptimizer, GradientDescentOptimizer, MomentumOptimizer,
                                        ProximalAdagradOptimizer, ProximalGradientDescentOptimizer,
                                        RMSPropOptimizer)
from treenail.train._progress_hook import ProgressBarHook
from treenail.train._queue_runner import QueueRunner, add_queue_runner, start_queue_runners
from treenail.train._saver import Saver
from treenail.train._saving_hooks import (CheckpointSaverHook, CheckpointSaverListener,
                                          ProfilerHook, StepCounterHook, SummarySaverHook)
from treenail.train._scaffold import Scaffold
from treenail.train._schedules import (cosine_decay, exponential_decay, inverse_time_decay,
                                       natural_exp_decay, piecewise_constant, polynomial_decay)
from treenail.train._server import Server
from treenail.train._session_manager import SessionManager
from treenail.train._session_run_hook import (SessionRunArgs, SessionRunContext, SessionRunHook,
                                              SessionRunValues)
from treenail.train._supervisor import Supervisor
from treenail.train._sync_replicas import SyncReplicasOptimizer
from treenail.train._training_session import MonitoredTrainingSession

__all__ = ["Optimizer", "GradientDescentOptimizer", "MomentumOptimizer", "AdamOptimizer",
           "AdagradOptimizer", "RMSPropOptimizer", "FtrlOptimizer", "AdadeltaOptimizer",
           "ProximalGradientDescentOptimizer", "ProximalAdagradOptimizer",
           "MixedPrecision", "mixed_precision", "Saver", "Checkpoint",
           "CheckpointManager", "CheckpointStatus",
           "CheckpointState", "get_checkpoint_state", "latest_checkpoint",
           "update_checkpoint_state", "checkpoint_exists", "get_checkpoint_mtimes",
           "remove_checkpoint", "list_variables", "load_variable", "load_checkpoint",
           "exponential_decay", "piecewise_constant", "polynomial_decay", "natural_exp_decay",
           "inverse_time_decay", "cosine_decay", "ExponentialMovingAverage", "get_global_step",
           "get_or_create_global_step", "create_global_step", "assert_global_step", "global_step",
           "Coordinator", "LooperThread", "QueueRunner", "add_queue_runner", "start_queue_runners",
           "batch", "batch_join", "input_producer", "limit_epochs", "maybe_batch",
           "maybe_batch_join", "maybe_shuffle_batch", "maybe_shuffle_batch_join",
           "range_input_producer", "shuffle_batch", "shuffle_batch_join", "slice_input_producer",
           "string_input_producer",
           "FeedFnHook", "FinalOpsHook", "GlobalStepWaiterHook", "LoggingTensorHook",
           "NanLossDuringTrainingError", "NanTensorHook", "SecondOrStepTimer", "StopAtSignalHook",
           "StopAtStepHook", "ChiefSessionCreator", "MonitoredSession", "SessionCreator",
           "SingularMonitoredSession", "WorkerSessionCreator", "ProgressBarHook",
           "CheckpointSaverHook", "CheckpointSaverListener", "ProfilerHook", "StepCounterHook",
           "SummarySaverHook", "Scaffold", "SessionManager", "SessionRunArgs", "SessionRunContext",
           "SessionRunHook", "SessionRunValues", "Supervisor", "MonitoredTrainingSession",
           "ClusterSpec", "GreedyLoadBalancingStrategy", "RoundRobinStrategy", "byte_size_load_fn",
           "replica_device_setter", "SyncReplicasOptimizer", "export_meta_graph",
           "import_meta_graph", "Server"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
