# SPDX-License-Identifier: Apache-2.0
"""Many processes that train one model: a group of processes, collective operations among them, and
an optimizer that averages gradients over it.

    import treenail as tn
    tn.distributed.init()                    # under mpirun, srun, or alone
    optimizer = tn.distributed.DistributedOptimizer(tn.train.AdamOptimizer(1e-3))
    train = optimizer.minimize(loss)
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        session.run(tn.distributed.broadcast_variables())
        ...

Every process runs the same program. docs/distributed-training.md says how to start it.
"""

from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail.distributed._group import (init, is_initialized, local_rank, local_size, rank,
                                         shutdown, size, transport)
from treenail.distributed._operations import (all_gather, all_reduce, all_to_all, barrier,
                                              broadcast, reduce_scatter)
from treenail.distributed._optimizer import DistributedOptimizer
from treenail.distributed._variables import BroadcastVariablesHook, broadcast_variables

__all__ = ["init", "shutdown", "is_initialized", "rank", "size", "local_rank", "local_size",
           "transport", "all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all",
           "barrier", "DistributedOptimizer", "BroadcastVariablesHook", "broadcast_variables"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
