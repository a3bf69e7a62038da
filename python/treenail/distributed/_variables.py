# SPDX-License-Identifier: Apache-2.0
"""Beginning alike: all ranks take the variables of one."""

from __future__ import annotations

from treenail._control import group
from treenail._partitioned import without_parts
from treenail._treenail import Operation
from treenail._variables import Variable, global_variables
from treenail.distributed._operations import broadcast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def broadcast_variables(variables: Sequence | None = None, root: int = 0,
                        name: str | None = None) -> Operation:
    """An operation that gives the variables, by default all global ones, the values that rank
    `root` has. They must be initialised, and be alike in number, order, shape and dtype on all
    ranks. Raises TypeError for what is no variable."""
    chosen = global_variables() if variables is None else without_parts(variables)
    for variable in chosen:
        if not isinstance(variable, Variable):
            raise TypeError("variables has %r; needed are Variables" % (variable,))
    return group(*[variable.assign(broadcast(variable.read_value(), root), read_value=False)
                   for variable in chosen], name=name or "broadcast_variables")


class BroadcastVariablesHook:
    """A session hook that makes all ranks begin with the variables of rank `root`: initialised
    there, or restored from a checkpoint."""

    def __init__(self, root: int = 0) -> None:
        self._root = root
        self._operation: Any = None

    def begin(self) -> None:
        """Adds the operation to the default graph."""
        self._operation = broadcast_variables(root=self._root)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs it in a new session whose variables are initialised. Raises RuntimeError before
        begin()."""
        if self._operation is None:
            raise RuntimeError("BroadcastVariablesHook.after_create_session(): begin() must be "
                               "called before it is given a session, %r" % (session,))
        session.run(self._operation)

    def before_run(self, run_context: Any) -> None:
        """Asks for nothing."""

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Does nothing."""

    def end(self, session: Any) -> None:
        """Does nothing."""
