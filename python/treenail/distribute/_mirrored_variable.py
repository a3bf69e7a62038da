# SPDX-License-Identifier: Apache-2.0
"""Variables with a copy for each replica of a process, which have one value."""

from __future__ import annotations

from treenail._control import group
from treenail._convert import IndexedSlices
from treenail._framework import GraphKeys, control_dependencies, get_default_graph, init_scope
from treenail._ops import ops
from treenail._replica import checked_wishes, current, entered
from treenail._treenail import Operation, Tensor
from treenail._variables import Variable, delegated_operators

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


class MirroredVariable(Variable):
    """A variable made in the scope of a strategy. In a replica it is that replica's copy; outside
    of replicas reading gives the first copy, and writing writes them all. Its name, and what
    checkpoints keep, are those of a Variable without a strategy.

    A replica that assigns to it needs to be told how the replicas' values become one: aggregation.
    With synchronization ON_READ each replica keeps a value of its own.
    """

    def __init__(self, initial_value: Any = None, trainable: bool = True,
                 collections: Sequence | None = None, validate_shape: bool = True,
                 caching_device: Any = None, name: str | None = None, variable_def: Any = None,
                 dtype: Any = None, expected_shape: Any = None, import_scope: Any = None,
                 constraint: Callable | None = None, use_resource: bool | None = None,
                 synchronization: Any = None, aggregation: Any = None) -> None:
        if "_components" in self.__dict__:  # the first replica has made it
            return
        self._synchronization, self._aggregation = checked_wishes(synchronization, aggregation)
        self._own_strategy = current.strategy
        graph = get_default_graph()._root
        value = self._own_strategy.extended._beginning(initial_value, dtype)
        self._components: list = []
        for number, device in enumerate(self._own_strategy.extended.worker_devices):
            self._components.append(self._copy_on(device, number, value, validate_shape, name,
                                                  dtype, expected_shape, constraint))
            value = self._components[0]._initial_value
        first = self._components[0]
        self._graph, self._initial_value, self._shape = graph, value, first._shape
        self._dtype, self._trainable, self._constraint = first._dtype, bool(trainable), constraint
        with init_scope():
            self._initialized = first._initializer if len(self._components) == 1 else group(
                *[c._initializer for c in self._components], name=first._shared_name + "/mirror")
            self._total = self._aggregated() if self._own_in_replicas else None
        names = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
        if trainable and not self._own_in_replicas and GraphKeys.TRAINABLE_VARIABLES not in names:
            names.append(GraphKeys.TRAINABLE_VARIABLES)
        graph.add_to_collections(names, self)

    def _copy_on(self, device: str, number: int, value: Any, validate_shape: bool,
                 name: str | None, dtype: Any, expected_shape: Any, constraint: Any) -> Variable:
        graph = get_default_graph()._root
        made = object.__new__(Variable)
        with graph.device(device):
            if number == 0:
                made.__init__(value, False, [], validate_shape, None, name, None, dtype,
                              expected_shape, None, constraint)
            else:
                with graph.name_scope(None):
                    made.__init__(value, False, [], validate_shape, None, "%s/replica_%d" % (
                        self._components[0]._shared_name, number), None, dtype, expected_shape)
        made._handle._variable = self
        return made

    # --- Which copy -------------------------------------------------------------------------------

    @property
    def _own_in_replicas(self) -> bool:
        return self._synchronization == "ON_READ"

    def _number(self) -> int | None:
        """Of the copy that is meant; None: all."""
        if current.component is not None:
            return current.component
        if current.replica is not None and current.strategy is self._own_strategy:
            return current.replica._local
        return None

    @property
    def _component(self) -> Variable:
        return self._components[self._number() or 0]

    @property
    def _handle(self) -> Tensor:
        return self._component._handle

    @property
    def _snapshot(self) -> Tensor:
        if self._own_in_replicas and self._number() is None:
            return self._total
        return self._component._snapshot

    @property
    def _initializer(self) -> Operation:
        return self._initialized

    @property
    def name(self) -> str:
        """The variable's name, 'scope/name:0', in all replicas."""
        return self._components[0].name

    @property
    def _shared_name(self) -> str:
        return self._components[0]._shared_name

    @property
    def aggregation(self) -> str:
        """How what replicas assign becomes one value."""
        return self._aggregation

    @property
    def synchronization(self) -> str:
        """When the copies are brought together."""
        return self._synchronization

    @property
    def values(self) -> tuple:
        """The copies of this process's replicas, Variables."""
        return tuple(self._components)

    def _admit_all_shapes(self) -> None:
        for component in self._components:
            component._admit_all_shapes()
        self._shape = self._components[0]._shape

    # --- Reading ----------------------------------------------------------------------------------

    def _aggregated(self) -> Tensor:
        """Of copies that differ."""
        values = [component.read_value() for component in self._components]
        return self._own_strategy.extended._combined(values, self._aggregation)

    def value(self) -> Tensor:
        """As of Variable: in a replica of its copy; outside, with ON_READ, of all aggregated."""
        if self._own_in_replicas and self._number() is None:
            return self._aggregated()
        return super().value()

    def read_value(self) -> Tensor:
        """A new read, of the same."""
        if self._own_in_replicas and self._number() is None:
            return self._aggregated()
        return super().read_value()

    def load(self, value: Any, session: Any = None) -> None:
        """Assigns a concrete value to all copies in `session`."""
        from treenail._session import session_or_default
        session_or_default(session).run(self._initialized, {self._initial_value: value})

    # --- Writing ----------------------------------------------------------------------------------

    def _restored(self, value: Tensor) -> list:
        """[(handle, value)] for a value from a checkpoint."""
        values = [value] * len(self._components)
        if self._own_in_replicas and self._aggregation == "SUM":
            values[1:] = [ops.ZerosLike(value)] * (len(values) - 1)
        return [(c._handle, v) for c, v in zip(self._components, values)]

    def _write(self, write: Callable, value: Any) -> Any:
        """write(copy, value) of the copies that are meant."""
        if self._number() is None:
            return self._write_all(self._own_strategy, write, value)
        if current.component is not None or self._own_in_replicas:
            return write(self._component, value)
        if self._aggregation == "NONE":
            raise ValueError(
                "You must specify an aggregation method to update a MirroredVariable in Replica "
                "Context: variable %s was made without aggregation=tn.VariableAggregation.SUM, "
                "MEAN or ONLY_FIRST_REPLICA, and replicas assign to it" % self._shared_name)

        def merged(strategy: Any, value: Any) -> Any:
            value = strategy.extended._combined_of(value, self._aggregation)
            return self._write_all(strategy, write, value)
        return current.replica.merge_call(merged, (value,))

    def _write_all(self, strategy: Any, write: Callable, value: Any) -> Any:
        from treenail.distribute._values import select
        written = []
        for number, component in enumerate(self._components):
            with entered(component=number):
                written.append(write(component, select(number, value)))
        if len(written) == 1:
            return written[0]
        if isinstance(written[0], Operation):
            return group(*written)
        with control_dependencies(written):
            return ops.Identity(written[0])

    def _written(self, op_name: str, value: Any, name: str | None, default: str,
                 read_value: bool) -> Any:
        return self._write(lambda component, value: component._written(
            op_name, value, name, default, read_value), value)

    def _scattered(self, op_name: str, slices: IndexedSlices, name: str | None) -> Tensor:
        if not isinstance(slices, IndexedSlices):
            raise ValueError("slices is not an IndexedSlices: %s" % (slices,))
        return self._write(lambda component, value: component._scattered(op_name, value, name),
                           slices)

    def _scattered_nd(self, op_name: str, indices: Any, updates: Any, name: str | None) -> Tensor:
        if self._number() is not None and current.component is None and not self._own_in_replicas:
            raise ValueError("scatter_nd_* of the mirrored variable %s cannot be called in a "
                             "replica: its indices may differ from replica to replica"
                             % self._shared_name)
        return self._write(lambda component, _: component._scattered_nd(op_name, indices, updates,
                                                                        name), None)

    def count_up_to(self, limit: int) -> Tensor:
        """As of Variable, on all copies; outside of replicas alone."""
        if self._number() is not None and current.component is None:
            raise ValueError("count_up_to() of the mirrored variable %s cannot be called in a "
                             "replica" % self._shared_name)
        return self._write(lambda component, _: component.count_up_to(limit), None)

    def __getitem__(self, key: Any) -> Tensor:
        """As of Variable: assign() of the part writes to all copies."""
        part = self.value()[key]

        def assign(value: Any, name: str | None = None) -> Tensor:
            """Writes `value` to this part of the variable; the result is its new value."""
            return self._write(lambda component, value: component[key].assign(value, name), value)
        part.assign = assign
        return part

    def __repr__(self) -> str:
        return "<tn.distribute.MirroredVariable '%s' shape=%s dtype=%s of %d replicas>" % (
            self.name, self._shape, self._dtype.name, len(self._components))


delegated_operators(MirroredVariable, MirroredVariable.value)
