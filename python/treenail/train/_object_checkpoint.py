# SPDX-License-Identifier: Apache-2.0
"""Checkpoint: saves and restores what objects hold, with immediate execution and in graphs."""

from __future__ import annotations

import os
import time
from operator import index

from treenail import _treenail as _core
from treenail._checks import having
from treenail._framework import executing_eagerly, init_scope
from treenail._object_graph import (forget, is_followed, named_variables, tell_of_new_variable,
                                    wait)
from treenail._ops import ops
from treenail._session import get_default_session
from treenail._variables import Variable, variables_initializer
from treenail.train._checkpoint import (checkpoint_exists, get_checkpoint_mtimes,
                                        get_checkpoint_state, path_text, remove_checkpoint,
                                        share_hdf5_lock, update_checkpoint_state)
from treenail.train._saver import Saver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _session(session: Any, what: str) -> Any:
    """Of a graph's checkpoint. Raises ValueError where there is none."""
    session = session or get_default_session()
    if session is None:
        raise ValueError("%s of variables of a graph needs a session: pass one, or open it with "
                         "`with session.as_default()`" % what)
    having(session, "run", "session", "a Session")
    return session


class Checkpoint:
    """Groups objects, so that what they hold can be saved and restored.

    Each keyword argument becomes an attribute: a variable, a layer, an optimizer, another
    Checkpoint, an object of one's own whose attributes hold such, or a list, tuple or dict of them.
    More attributes can be set later. Variables are named in the file by the way that leads to them,
    "model/dense/kernel"; their own names do not count. Slots of optimizers are part of it.

    With immediate execution the variables that a layer or optimizer makes after restore() get
    their values when they are made.

    Raises ValueError for an argument that holds no variables by its nature: a number, say.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._savers: dict = {}
        for name, value in sorted(kwargs.items()):
            if not is_followed(value):
                raise ValueError(
                    "`Checkpoint` was expecting a trackable object (a variable, layer, optimizer "
                    "or an object, list or dict that holds such), got %s=%r" % (name, value))
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name[0] != "_":
            tell_of_new_variable()

    def _own_variables(self) -> dict:
        return {}  # attributes are all

    def __repr__(self) -> str:
        return "<tn.train.Checkpoint of %s>" % (", ".join(
            sorted(name for name in vars(self) if name[0] != "_")) or "nothing")

    def _counter(self) -> Variable:
        if "save_counter" not in vars(self):
            with init_scope():
                self.save_counter = Variable(0, name="save_counter", trainable=False,
                                             dtype=_core.int64)
        return self.save_counter

    def write(self, file_prefix: Any, session: Any = None) -> str:
        """Writes a checkpoint to that path, which it gives.

        session: of variables of a graph; by default the default one. Raises ValueError when there
        is nothing to save or no session, and what Saver.save raises.
        """
        named = named_variables(self)
        if not named:
            raise ValueError("No variables to save: %r leads to none" % self)
        if not executing_eagerly():
            session = _session(session, "saving")
        saver = self._saver(named)
        path = saver.save(session, file_prefix, write_state=False)
        return path  # type: ignore[return-value]

    def _saver(self, named: dict) -> Saver:
        """One for each set of variables: in a graph it consists of operations."""
        if executing_eagerly():
            return Saver(named, max_to_keep=None)
        key = tuple((name, id(variable)) for name, variable in sorted(named.items()))
        if key not in self._savers:
            self._savers[key] = Saver(named, max_to_keep=None)
        return self._savers[key]

    def save(self, file_prefix: Any, session: Any = None) -> str:
        """Writes a checkpoint to "<file_prefix>-<number>", counting up in the variable
        `save_counter`, which is part of it, and makes it the directory's latest. Gives its path.

        Raises as write(); where writing fails, the checkpoints before stay as they were.
        """
        counter = self._counter()
        prefix = path_text(file_prefix)
        if executing_eagerly():
            counter.assign_add(1)
            number = int(counter)
        else:
            session = _session(session, "saving")
            session.run(variables_initializer([counter]) if not session.run(
                ops.VarIsInitializedOp(counter.handle)) else [])
            number = int(session.run(counter.assign_add(1)))
        path = self.write("%s-%d" % (prefix, number), session)
        update_checkpoint_state(os.path.dirname(path), path, [path])
        return path

    def restore(self, save_path: Any) -> CheckpointStatus:
        """Gives the variables that these objects lead to the values of a checkpoint; what it holds
        besides goes to variables that are made later. In a graph nothing happens before the
        result's run_restore_ops() or initialize_or_restore() is called.

        save_path: as save() gave it; with None, as latest_checkpoint() gives it where there is
        none, nothing is restored.

        Raises ValueError for what is no checkpoint, InvalidArgumentError for a variable of another
        dtype or shape, DataLossError for a damaged file.
        """
        if save_path is None:
            return CheckpointStatus(self, None)
        path = path_text(save_path)
        if not checkpoint_exists(path):
            raise ValueError("The passed save_path is not a valid checkpoint: %s" % path)
        status = CheckpointStatus(self, path)
        if executing_eagerly():
            self._counter()
            if not status.go_on():
                wait(status, self)
        return status


class CheckpointStatus:
    """What Checkpoint.restore() gives: what was restored, and the rest."""

    def __init__(self, checkpoint: Checkpoint, path: str | None) -> None:
        self._checkpoint, self._path = checkpoint, path
        self._left: set = set()  # names in the file whose variables were not there yet
        if path is not None:
            share_hdf5_lock()
            entries = _core.checkpoint_entries(_core.open_checkpoint(path, False))
            self._left = {name for name, _, _ in entries}
        self._saved = frozenset(self._left)

    def go_on(self) -> bool:
        """Restores variables that are there by now; whether that is all."""
        named = {name: variable for name, variable in named_variables(self._checkpoint).items()
                 if name in self._left}
        if named:
            with init_scope():
                Saver(named, max_to_keep=None).restore(None, self._path)
            self._left -= set(named)
            if not self._left:
                forget(self, self._checkpoint)
        return not self._left

    def _named(self, what: str) -> dict:
        if self._path is None:
            raise AssertionError("CheckpointStatus.%s(): No checkpoint specified "
                                 "(save_path=None); nothing is being restored." % what)
        if executing_eagerly():
            self.go_on()
        return named_variables(self._checkpoint)

    def assert_existing_objects_matched(self) -> CheckpointStatus:
        """Raises AssertionError where a variable that is there now is not in the checkpoint."""
        named = self._named("assert_existing_objects_matched")
        for name in named:
            if name not in self._saved and name != "save_counter":
                raise AssertionError("Unresolved object: %s is not in the checkpoint %s, which has "
                                     "%s" % (name, self._path, _some(self._saved)))
        return self

    def assert_consumed(self) -> CheckpointStatus:
        """Raises AssertionError as assert_existing_objects_matched(), and where something in the
        checkpoint is no variable's value."""
        named = self._named("assert_consumed")
        self.assert_existing_objects_matched()
        left = self._saved - set(named) - {"save_counter"}
        if left:
            raise AssertionError("Unresolved object in checkpoint %s: no variable is there for %s"
                                 % (self._path, _some(left)))
        return self

    def assert_nontrivial_match(self) -> CheckpointStatus:
        """Raises AssertionError where nothing was restored."""
        if not set(self._named("assert_nontrivial_match")) & self._saved - {"save_counter"}:
            raise AssertionError("Nothing except the save counter matches: the checkpoint %s has "
                                 "%s" % (self._path, _some(self._saved)))
        return self

    def expect_partial(self) -> CheckpointStatus:
        """Accepted for programs that state it: nothing is said of what is left."""
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """In a graph: gives the variables their values. With immediate execution they have them.
        Raises as restore(), and ValueError without a session."""
        if self._path is None or executing_eagerly():
            return
        named = {name: variable for name, variable in named_variables(self._checkpoint).items()
                 if name in self._saved}
        if named:
            self._checkpoint._saver(named).restore(_session(session, "restoring"), self._path)

    def initialize_or_restore(self, session: Any = None) -> None:
        """In a graph: run_restore_ops(), and initialises the variables of these objects that are
        not in the checkpoint."""
        if executing_eagerly():
            return
        session = _session(session, "initialising")
        self._checkpoint._counter()
        fresh = [variable for name, variable in named_variables(self._checkpoint).items()
                 if name not in self._saved]
        session.run(variables_initializer(fresh))
        self.run_restore_ops(session)


def _some(names: Any) -> str:
    shown = sorted(names)
    return ", ".join(shown[:8]) + (", ..." if len(shown) > 8 else "") or "nothing"


class CheckpointManager:
    """Keeps the last checkpoints of a directory, which it makes.

    checkpoint: a Checkpoint. max_to_keep: the oldest are deleted beyond so many; None keeps all.
    keep_checkpoint_every_n_hours: one of that many hours is kept for good. checkpoint_name: what
    files begin with. Those of an earlier process, as the state file names them, are taken over.
    """

    def __init__(self, checkpoint: Checkpoint, directory: Any, max_to_keep: int | None,
                 keep_checkpoint_every_n_hours: float | None = None,
                 checkpoint_name: str = "ckpt") -> None:
        if not isinstance(checkpoint, Checkpoint):
            raise TypeError("checkpoint must be a tn.train.Checkpoint, not %r" % (checkpoint,))
        if max_to_keep is not None and index(max_to_keep) < 1:
            raise ValueError("Expected a positive integer or `None` for `max_to_keep`, got %r."
                             % (max_to_keep,))
        self._checkpoint, self._name = checkpoint, checkpoint_name
        self._directory = path_text(directory)
        os.makedirs(self._directory, exist_ok=True)
        self._most = max_to_keep
        self._keep_seconds = (keep_checkpoint_every_n_hours or 0) * 3600
        state = get_checkpoint_state(self._directory)
        self._paths = [path for path in state.all_model_checkpoint_paths
                       if checkpoint_exists(path)] if state else []
        self._last_kept = time.time()

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the last one, or None."""
        return self._paths[-1] if self._paths else None

    @property
    def checkpoints(self) -> list:
        """The paths of those that are kept, oldest first."""
        return list(self._paths)

    def save(self, checkpoint_number: Any = None, session: Any = None) -> str:
        """Writes the next one, and deletes the oldest beyond max_to_keep. Gives its path.

        checkpoint_number: a number in place of the checkpoint's `save_counter`, or a variable.
        Raises as Checkpoint.save.
        """
        prefix = os.path.join(self._directory, self._name)
        if checkpoint_number is None:
            path = self._checkpoint.save(prefix, session)
        else:
            number = checkpoint_number
            if isinstance(number, Variable) and not executing_eagerly():
                number = _session(session, "saving").run(number)
            path = self._checkpoint.write("%s-%d" % (prefix, int(number)), session)
        self._paths = [p for p in self._paths if p != path] + [path]
        self._sweep()
        update_checkpoint_state(self._directory, path, self._paths)
        return path

    def _sweep(self) -> None:
        while self._most is not None and len(self._paths) > self._most:
            oldest = self._paths.pop(0)
            if self._is_kept_for_good(oldest):
                continue
            remove_checkpoint(oldest)

    def _is_kept_for_good(self, path: str) -> bool:
        if not self._keep_seconds:
            return False
        written = get_checkpoint_mtimes([path])[0]
        if written - self._last_kept < self._keep_seconds:
            return False
        self._last_kept = written
        return True
