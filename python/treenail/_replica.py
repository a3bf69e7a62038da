# SPDX-License-Identifier: Apache-2.0
"""In which strategy and replica a thread builds, for what asks on every variable and step; the
strategies themselves are in treenail.distribute."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Current(threading.local):
    """Of each thread. strategy: that of the innermost scope(). replica: the ReplicaContext, None
    where one builds for all replicas. component: while one updates the copies of variables one by
    one, the number of the copy."""

    def __init__(self) -> None:
        self.strategy: Any = None
        self.replica: Any = None
        self.component: int | None = None


current = _Current()


class entered:  # noqa: N801 (a context manager)
    """A context manager that sets what is given of `current`, and puts the old values back."""

    def __init__(self, **values: Any) -> None:
        self._values = values

    def __enter__(self) -> None:
        self._old = {name: getattr(current, name) for name in self._values}
        current.__dict__.update(self._values)

    def __exit__(self, *unused: Any) -> None:
        current.__dict__.update(self._old)


class VariableAggregation:
    """How what replicas give a variable becomes one value: the values of this class."""

    NONE = "NONE"
    SUM = "SUM"
    MEAN = "MEAN"
    ONLY_FIRST_REPLICA = "ONLY_FIRST_REPLICA"


class VariableSynchronization:
    """When the copies of a variable are brought together: the values of this class.

    AUTO, ON_WRITE: with every assignment. ON_READ: each replica keeps its own value, and who reads
    outside of replicas gets all of them aggregated. NONE: as AUTO.
    """

    AUTO = "AUTO"
    NONE = "NONE"
    ON_WRITE = "ON_WRITE"
    ON_READ = "ON_READ"


def checked_wishes(synchronization: Any, aggregation: Any) -> tuple:
    """(synchronization, aggregation) with defaults. Raises ValueError for what is neither."""
    sync = synchronization or VariableSynchronization.AUTO
    how = aggregation or VariableAggregation.NONE
    if sync not in ("AUTO", "NONE", "ON_WRITE", "ON_READ"):
        raise ValueError("Invalid variable synchronization mode: %r; needed is a value of "
                         "tn.VariableSynchronization" % (synchronization,))
    if how not in ("NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"):
        raise ValueError("Invalid variable aggregation mode: %r; needed is a value of "
                         "tn.VariableAggregation" % (aggregation,))
    return sync, how


__all__ = ["VariableAggregation", "VariableSynchronization"]
