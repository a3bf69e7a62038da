# SPDX-License-Identifier: Apache-2.0
"""What all strategies have in common, and the one that is there without any: one replica, which
computes where it is told to."""

from __future__ import annotations

from contextlib import ExitStack

from treenail._framework import get_default_graph
from treenail._math import cast
from treenail._ops import ops
from treenail._replica import current, entered
from treenail._shown import public_name
from treenail._variables import Variable
from treenail.distribute import _reductions
from treenail.distribute._mirrored_variable import MirroredVariable
from treenail.distribute._replica_context import ReplicaContext, reduction_of
from treenail.distribute._replica_threads import call_for_each
from treenail.distribute._values import DistributedValues, PerReplica, regroup, select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

_NO_DATASETS = ("Treenail has no tn.data yet, so that %s has no data to share out: give each "
                "replica its part by experimental_distribute_values_from_function(), or by "
                "tn.distribute.get_replica_context().replica_id_in_sync_group")


class StrategyExtended:
    """What libraries ask of a strategy: Strategy.extended."""

    _mirrors = True  # whether variables have copies, or are plain ones

    def __init__(self, strategy: Any, devices: Sequence) -> None:
        self._strategy = strategy
        self._devices = tuple(devices)

    # --- What it is -------------------------------------------------------------------------------

    @property
    def worker_devices(self) -> tuple:
        """The devices of this process's replicas; "" is whatever device there is."""
        return self._devices

    @property
    def parameter_devices(self) -> tuple:
        """The devices of variables' copies."""
        return self._devices

    @property
    def _num_replicas_in_sync(self) -> int:
        return len(self._devices)

    @property
    def _first_replica(self) -> int:
        """The number of this process's first replica among all."""
        return 0

    @property
    def experimental_between_graph(self) -> bool:
        """Whether each process builds a graph of its own for the same training."""
        return False

    @property
    def experimental_should_init(self) -> bool:
        """Whether this process initialises variables."""
        return True

    @property
    def should_checkpoint(self) -> bool:
        """Whether this process saves checkpoints."""
        return True

    @property
    def should_save_summary(self) -> bool:
        """Whether this process saves summaries."""
        return True

    # --- Building ---------------------------------------------------------------------------------

    def call_for_each_replica(self, fn: Callable, args: tuple = (),
                              kwargs: dict | None = None) -> Any:
        """fn(*args, **kwargs) of each replica of this process. Raises RuntimeError within one."""
        if current.replica is not None or current.component is not None:
            raise RuntimeError("a strategy runs a function for each replica, and cannot be called "
                               "within one of them")
        replicas = [ReplicaContext(self._strategy, self._first_replica + i, i)
                    for i in range(len(self._devices))]
        with self._strategy.scope():
            if len(replicas) > 1:
                return call_for_each(self._strategy, replicas, fn, tuple(args), kwargs or {})
            around = [entered(replica=replicas[0])]
            if self._mirrors and self._devices[0]:  # else its scope says the device
                around.append(get_default_graph().device(self._devices[0]))
            with ExitStack() as contexts:
                for context in around:
                    contexts.enter_context(context)
                return fn(*select(0, tuple(args)), **select(0, kwargs or {}))

    def update(self, var: Variable, fn: Callable, args: tuple = (), kwargs: dict | None = None,
               group: bool = True) -> Any:
        """fn(copy, *args, **kwargs) of each copy of a variable, on its device.

        Arguments that are DistributedValues are each copy's own. Returns one operation, with
        group=False the list of what fn returned. Raises RuntimeError within a replica, TypeError
        for what is no variable or function.
        """
        if current.replica is not None:
            raise RuntimeError("update() is called for all replicas together: by merge_call()")
        if not isinstance(var, Variable):
            raise TypeError("var must be a Variable, not %r" % (var,))
        if not callable(fn):
            raise TypeError("fn must be a function, not %r" % (fn,))
        done = []
        for number, copy in enumerate(getattr(var, "values", None) or [var]):
            with self._updating(number), copy.graph.device(copy.device or None):
                done.append(fn(copy, *select(number, tuple(args)), **select(number, kwargs or {})))
        if not group:
            return done
        from treenail._control import group as grouped
        return grouped(*[each for each in done if each is not None])

    def _updating(self, number: int) -> entered:
        """Where variables stand for their copies of that number."""
        return entered(component=number, replica=None)

    def value_container(self, value: Any) -> Any:
        """The variable that a copy of one belongs to."""
        return getattr(getattr(value, "handle", None), "_variable", None) or value

    def variable_created_in_scope(self, v: Variable) -> bool:
        """Whether the variable was made in the scope of this strategy."""
        if not isinstance(v, Variable):
            raise TypeError("v must be a Variable, not %r" % (v,))
        return getattr(v, "_own_strategy", None) is self._strategy

    def read_var(self, v: Variable) -> Any:
        """The value of a variable, outside of replicas. Raises TypeError for anything else."""
        if not isinstance(v, Variable):
            raise TypeError("v must be a Variable, not %r" % (v,))
        return v.read_value()

    # --- Reducing ---------------------------------------------------------------------------------

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any = None) -> Any:
        """The sum or mean of a value over all replicas, in their order. `destinations` is accepted:
        the result may be used on every device. Raises RuntimeError within a replica."""
        return self.batch_reduce_to(reduce_op, [(value, destinations)])[0]

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Sequence) -> list:
        """reduce_to() of several."""
        if current.replica is not None:
            raise RuntimeError("values are reduced for all replicas together: by merge_call() or "
                               "Strategy.reduce(), not within a replica")
        how = reduction_of(reduce_op)
        totals = self._total([self._summed(value, how) for value, _ in value_destination_pairs])
        if how == "SUM":
            return totals
        return [_reductions.divided(total, self._num_replicas_in_sync) for total in totals]

    def _summed(self, value: Any, how: str) -> Any:
        """The sum over this process's replicas."""
        count = len(self._devices)
        if isinstance(value, DistributedValues):
            return _reductions.summed(value.values)
        if count == 1:
            return _reductions.summed([value])
        if how == "MEAN":
            return _reductions.summed([value] * count)
        if isinstance(value, (int, float)) and value == 0:
            return _reductions.summed([value])
        raise ValueError("A non-DistributedValues value %r cannot be reduced with the given reduce "
                         "op SUM: it is one value for %d replicas" % (value, count))

    def _total(self, values: list) -> list:
        """The sums over all processes of this process's."""
        return values

    def _combined(self, values: Sequence, aggregation: str) -> Any:
        """What replicas give a variable as one value."""
        if aggregation in ("ONLY_FIRST_REPLICA", "NONE"):
            return values[0]
        return self.batch_reduce_to(aggregation, [(PerReplica(values), None)])[0]

    def _combined_of(self, value: Any, aggregation: str) -> Any:
        if isinstance(value, DistributedValues):
            return self._combined(value.values, aggregation)
        if aggregation == "MEAN" and len(self._devices) > 1:
            return value
        return self._combined([value] * len(self._devices), aggregation)

    # --- Variables --------------------------------------------------------------------------------

    def _new_variable(self, name: str | None) -> Variable:
        """For Variable.__new__: what is to be initialised, or what the first replica has made."""
        if not self._mirrors:
            return object.__new__(Variable)
        replica = current.replica
        if replica is None or replica._thread is None:
            return object.__new__(MirroredVariable)
        return replica._thread.new_variable(name)

    def _surroundings(self) -> list:
        """Further contexts of its scope."""
        return []

    def _beginning(self, value: Any, dtype: Any) -> Any:
        """The initial value of the first copy."""
        return value


class Strategy:
    """How a model is computed by several replicas: a subclass says where they are. One of this
    class itself has one replica."""

    def __init__(self, extended: StrategyExtended | None = None) -> None:
        self._extended = StrategyExtended(self, [""]) if extended is None else extended

    @property
    def extended(self) -> StrategyExtended:
        """What libraries ask of it."""
        return self._extended

    @property
    def num_replicas_in_sync(self) -> int:
        """Of how many replicas gradients are added up."""
        return self._extended._num_replicas_in_sync

    def scope(self) -> Any:
        """A context manager in which variables are the strategy's, and it is the current one.

        Raises RuntimeError in immediate execution, and where another strategy is in force.
        """
        return _Scope(self)

    def run(self, fn: Callable, args: tuple = (), kwargs: dict | None = None) -> Any:
        """fn(*args, **kwargs), built once for each replica, each with its part of arguments that
        are DistributedValues.

        Returns what the replicas have returned as one nest: what is one object for all stands for
        itself (as the operation of an optimizer's minimize()), other leaves are DistributedValues.
        Raises RuntimeError within a replica, TypeError for no function, and what fn raises.
        """
        if not callable(fn):
            raise TypeError("fn must be a function, not %r" % (fn,))
        return self._extended.call_for_each_replica(fn, args, kwargs)

    experimental_run_v2 = run

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """The sum or mean of a value of run() over all replicas, in their order.

        axis: also over this axis; the mean is then that of all elements, however many each replica
        has. Raises ValueError for one value that is no DistributedValues, where it would have to be
        added to itself.
        """
        how = reduction_of(reduce_op)
        if axis is None:
            return self._extended.reduce_to(how, value)

        def along(value: Any) -> Any:
            return ops.Sum(value, axis)

        def count(value: Any) -> Any:
            return cast(ops.Shape(value)[axis], value.dtype)
        totals = self._extended.batch_reduce_to("SUM", [
            (self._each(along, value), None), (self._each(count, value), None)])
        return totals[0] if how == "SUM" else ops.RealDiv(totals[0], totals[1])

    @staticmethod
    def _each(function: Callable, value: Any) -> Any:
        if isinstance(value, DistributedValues):
            return PerReplica([function(each) for each in value.values])
        return function(value)

    def experimental_local_results(self, value: Any) -> tuple:
        """The values of this process's replicas, as a tuple; of anything else a tuple of it."""
        return value.values if isinstance(value, DistributedValues) else (value,)

    unwrap = experimental_local_results

    def experimental_distribute_values_from_function(self, value_fn: Callable) -> Any:
        """A value for each replica of this process: value_fn(context), whose context has
        replica_id_in_sync_group and num_replicas_in_sync. An argument for run()."""
        extended = self._extended
        return regroup([value_fn(ReplicaContext(self, extended._first_replica + i, i))
                        for i in range(len(extended.worker_devices))])

    def experimental_distribute_dataset(self, dataset: Any) -> Any:
        """Raises NotImplementedError: there are no datasets yet."""
        raise NotImplementedError(_NO_DATASETS % "experimental_distribute_dataset()")

    def make_dataset_iterator(self, dataset: Any) -> Any:
        """Raises NotImplementedError: there are no datasets yet."""
        raise NotImplementedError(_NO_DATASETS % "make_dataset_iterator()")

    def make_input_fn_iterator(self, input_fn: Callable, replication_mode: Any = None) -> Any:
        """Raises NotImplementedError: there are no datasets yet."""
        raise NotImplementedError(_NO_DATASETS % "make_input_fn_iterator()")

    def __repr__(self) -> str:
        return "<%s of %d replicas>" % (public_name(self), self.num_replicas_in_sync)


class _Scope:
    """Strategy.scope()."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    def __enter__(self) -> Strategy:
        strategy, own = current.strategy, self._strategy
        if get_default_graph()._root._immediate:
            raise RuntimeError("a strategy of tn.distribute needs a graph: with immediate "
                               "execution, call its scope() in `with tn.Graph().as_default()`")
        if strategy is not None and strategy is not own:
            raise RuntimeError("Mixing different tn.distribute.Strategy objects: %r is in force, "
                               "and not %r" % (strategy, own))
        self._contexts = [entered(strategy=own)]
        if strategy is None:
            self._contexts += own.extended._surroundings()
        for context in self._contexts:
            context.__enter__()
        return own

    def __exit__(self, *unused: Any) -> None:
        for context in reversed(self._contexts):
            context.__exit__(*unused)


_default = Strategy()
_default_replica = ReplicaContext(_default, 0)


def get_strategy() -> Strategy:
    """The strategy in whose scope() this is; without one, a strategy of one replica."""
    return current.strategy or _default


def has_strategy() -> bool:
    """Whether this is in the scope() of a strategy."""
    return current.strategy is not None


def in_cross_replica_context() -> bool:
    """Whether one builds for all replicas together: in a scope(), and not in a replica."""
    return current.strategy is not None and current.replica is None


def get_replica_context() -> ReplicaContext | None:
    """The replica that is built; None for all together (in_cross_replica_context()); without a
    strategy that of the one replica there is."""
    if current.strategy is None:
        return _default_replica
    return current.replica
