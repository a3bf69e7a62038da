# SPDX-License-Identifier: Apache-2.0
"""Models computed by several replicas, and where the tasks of a distributed program run: TensorFlow
1's tf.distribute. Groups of processes that train one model, by themselves: treenail.distributed."""

from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail.distribute import cluster_resolver, experimental
from treenail.distribute._cross_device_ops import (CrossDeviceOps, HierarchicalCopyAllReduce,
                                                   NcclAllReduce, ReductionToOneDevice)
from treenail.distribute._mirrored import MirroredStrategy, OneDeviceStrategy
from treenail.distribute._multi_worker import MultiWorkerMirroredStrategy
from treenail.distribute._parameter_server import ParameterServerStrategy
from treenail.distribute._replica_context import ReduceOp, ReplicaContext
from treenail.distribute._strategy import (Strategy, StrategyExtended, get_replica_context,
                                           get_strategy, has_strategy, in_cross_replica_context)
from treenail.distribute._values import DistributedValues

__all__ = ["cluster_resolver", "experimental", "Strategy", "StrategyExtended", "MirroredStrategy",
           "OneDeviceStrategy", "MultiWorkerMirroredStrategy", "ParameterServerStrategy",
           "CrossDeviceOps", "ReductionToOneDevice", "HierarchicalCopyAllReduce", "NcclAllReduce",
           "ReplicaContext", "ReduceOp", "DistributedValues", "get_strategy", "has_strategy",
           "in_cross_replica_context", "get_replica_context"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
