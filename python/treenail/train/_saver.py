# SPDX-License-Identifier: Apache-2.0
"""Saver: writes variables to checkpoints and reads them back, by operations of the graph."""

from __future__ import annotations

import os
import threading
import time
from operator import index

from treenail import _treenail as _core
from treenail import errors
from treenail._checks import having
from treenail._control import group
from treenail._convert import placeholder_with_default
from treenail._eager import eager
from treenail._framework import Graph, GraphKeys, device, executing_eagerly, get_default_graph
from treenail._ops import ops
from treenail._partitioned import PartitionedVariable, whole_of, without_parts
from treenail._shape import TensorShape
from treenail._treenail import Tensor
from treenail._variables import Variable, global_variables
from treenail.train._checkpoint import (check_state_file, checkpoint_exists, get_checkpoint_mtimes,
                                        path_text, remove_checkpoint, share_hdf5_lock,
                                        update_checkpoint_state)
from treenail.train._shards import (ShardedOperations, new_shard_names, remove_abandoned_shards,
                                    remove_shards, restored)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def _step_number(sess: Any, step: Any) -> int:
    value = sess.run(step) if hasattr(step, "op") or isinstance(step, str) else step
    if getattr(value, "shape", ()) == ():
        try:
            return index(value)
        except TypeError:
            pass
    raise TypeError("global_step must be an int or a scalar integer tensor, not %r" % (step,))


# How a run ends whose answer was lost: other tasks have made it to the end, or may yet. Then an
# index names the shards; otherwise the next save of the name removes them, or one of a later
# process.
_MAY_BE_SAVED = (errors.UnavailableError, errors.AbortedError, errors.DeadlineExceededError,
                 errors.CancelledError, KeyboardInterrupt)


class Saver:
    """Saves variables to checkpoints and restores them.

    var_list: a list of variables, or {name in the checkpoint: variable}; all global variables when
    None. max_to_keep: the oldest checkpoints are deleted beyond so many; None or 0 keeps all.
    keep_checkpoint_every_n_hours: one of that many hours is kept for good. reshape: restore into
    another shape of as many elements. allow_empty: no variables are no error. sharded: the
    variables of each device are written into a file of their own, by the task that has them;
    immediate execution has one task, and one file.

    A checkpoint is one HDF5 file, readable by h5py and h5dump, or, sharded, an index of several
    such files. It appears under its name only when it is complete. Whichever it is, any Saver
    restores it. Several threads may save at once.
    """

    def __init__(self, var_list: Any = None, reshape: bool = False, sharded: bool = False,
                 max_to_keep: int | None = 5, keep_checkpoint_every_n_hours: float = 10000.0,
                 name: str | None = None, restore_sequentially: bool = False, saver_def: Any = None,
                 builder: Any = None, defer_build: bool = False, allow_empty: bool = False,
                 write_version: Any = None, pad_step_number: bool = False,
                 save_relative_paths: bool = False, filename: str | None = None) -> None:
        self._var_list, self._reshape, self._allow_empty = var_list, reshape, allow_empty
        if max_to_keep is not None and index(max_to_keep) < 0:
            raise ValueError("max_to_keep must be at least 0, or None, not %d" % max_to_keep)
        self._max_to_keep = max_to_keep or 0
        self._keep_seconds = keep_checkpoint_every_n_hours * 3600
        self._pad_step_number = pad_step_number
        self._name, self._sharded = name, bool(sharded)
        self._begin: Any = None  # in shards: the tensor with what their names begin with
        self._lock = threading.Lock()  # of what is known of the checkpoints there are
        self._filename = filename or "model"
        self._last: list = []  # (path, time written), oldest first
        self._next_kept = time.time() + self._keep_seconds
        self._built = self._empty = self._immediate = False
        if not defer_build:
            self.build()

    # --- Operations -------------------------------------------------------------------------------

    def build(self) -> None:
        """Adds the saving and restoring operations to the graph; done by the constructor unless
        defer_build."""
        if self._built:
            return
        named = self._named_variables()
        self._built, self._named = True, named
        if not named:
            if not self._allow_empty:
                raise ValueError("No variables to save")
            self._empty = True
            return
        graph = next(iter(named.values()))._graph
        self._immediate = graph._immediate
        if self._immediate:
            return
        with graph.as_default(), graph.control_dependencies(None), graph.device(None), \
                graph.name_scope(self._name or "save"):
            self._path = placeholder_with_default(self._filename, shape=[], name="filename")
            assigns = self._in_shards(graph) if self._sharded else self._in_one_file(graph)
            self._restore_op = group(*assigns, name="restore_all")
        self._graph: Graph = graph

    def _in_one_file(self, graph: Graph) -> list:
        """Makes the operation that saves; the assignments that restore."""
        names, variables = list(self._named), list(self._named.values())
        read = [v.value() for v in variables]
        with graph.device("/cpu:0"):  # where files are written and read
            self._save_op = ops.Save(self._path, names, [""] * len(names), read, name="Save")
            values = ops.Restore(self._path, names, [""] * len(names),
                                 dtypes=[v.dtype for v in variables], name="Restore")
        return [assign for variable, value in zip(variables, values)
                for assign in self._assign(variable, value)]

    def _in_shards(self, graph: Graph) -> list:
        begin = placeholder_with_default(self._filename + ".shard-0-0-0", shape=[], name="shards")
        made = ShardedOperations(graph, self._named, self._path, begin, self._reshape)
        if len(made.shards) == 1:  # which needs no index
            begin = None
        self._begin, self._save_op = begin, made.save()
        return made.restore()

    def _assign(self, variable: Any, value: Tensor) -> list:
        if self._reshape:
            value = ops.Reshape(value, variable.shape.as_list())
        if not isinstance(variable, PartitionedVariable):
            return restored(variable, value)
        return [assign for part, share in zip(variable, variable.shares(value))
                for assign in restored(part, share)]

    def _named_variables(self) -> dict:
        given = self._var_list
        if given is None and executing_eagerly():
            raise RuntimeError("When eager execution is enabled, `var_list` must specify a list or "
                               "dict of variables to save")
        if given is None:
            given = get_default_graph().get_collection(GraphKeys.SAVEABLE_OBJECTS)
            given = global_variables() + given
        named = dict(given) if isinstance(given, dict) else self._named_list(given)
        for name, variable in named.items():
            if isinstance(variable, (list, tuple)) and variable and all(
                    getattr(part, "_slice_info", None) for part in variable):
                named[name] = variable = whole_of(variable)
            if not isinstance(variable, (Variable, PartitionedVariable)):
                raise TypeError("names_to_saveables must be a dict mapping string names to "
                                "variables. Variable to save is not a Variable: %r"
                                % (variable,))
            if not isinstance(name, str) or not name:
                raise TypeError("the name of a saved variable must be a str, not %r" % (name,))
        return dict(sorted(named.items()))

    @staticmethod
    def _named_list(variables: Sequence) -> dict:
        """{name: variable}; parts of one variable together, under the whole's name."""
        named: dict = {}
        parts: dict = {}
        for variable in without_parts(variables):
            if not isinstance(variable, Variable):
                raise TypeError("Variable to save is not a Variable: %r" % (variable,))
            info = variable._slice_info
            name = variable._shared_name if info is None else info.full_name
            if info is not None:
                parts.setdefault(name, {})[variable] = None
            elif named.setdefault(name, variable) is not variable:
                raise ValueError("At least two variables have the same name: %s" % name)
        for name, found in parts.items():
            if name in named:
                raise ValueError("At least two variables have the same name: %s" % name)
            named[name] = whole_of(list(found))
        return named

    # --- Saving -----------------------------------------------------------------------------------

    def save(self, sess: Any, save_path: str, global_step: Any = None,
             latest_filename: str | None = None, meta_graph_suffix: str = "meta",
             write_meta_graph: bool = True, write_state: bool = True,
             strip_default_attrs: bool = False) -> str | None:
        """Writes a checkpoint and gives its path: save_path, with "-<step>" appended where
        global_step is given.

        global_step: an int, or a tensor or variable evaluated in `sess`. latest_filename: the name
        of the state file ("checkpoint"). The graph is not written: see Graph.save.

        save_path: str, bytes or os.PathLike. What a killed process left of an earlier save under
        this path is removed.

        Raises ValueError when the directory does not exist, TypeError for another global_step,
        FailedPreconditionError when a variable has no value and where something other than a file
        has the name, ResourceExhaustedError when the disk is full; the checkpoint before stays as
        it was.
        """
        if not self._built and not self._empty:
            self.build()
        if not self._immediate:
            having(sess, "run", "sess", "a Session")
        name = latest_filename or "checkpoint"
        if os.path.split(name)[0]:
            raise ValueError("'latest_filename' must not contain path components")
        path = path_text(save_path)
        if global_step is not None:
            number = int(global_step) if self._immediate else _step_number(sess, global_step)
            path += ("-%08d" if self._pad_step_number else "-%d") % number
        directory = os.path.dirname(path)
        if os.path.basename(path) == name:
            raise ValueError("'latest_filename' collides with 'save_path': '%s' and '%s'"
                             % (name, path))
        if not os.path.isdir(directory or "."):
            raise ValueError("Parent directory of %s doesn't exist, can't save." % path)
        if write_state:
            check_state_file(directory, name)
        if self._empty:
            return None
        share_hdf5_lock()
        self._write(sess, path)
        if write_state:
            with self._lock:
                dropped = self._record(path)
                update_checkpoint_state(directory, path, self.last_checkpoints, name)
                for old in dropped:
                    remove_checkpoint(old)
        return path

    def _write(self, sess: Any, path: str) -> None:
        if self._immediate:
            self._save_now(path)
        elif self._begin is None:
            sess.run(self._save_op, {self._path: path})
            remove_shards(path)  # of a checkpoint in shards that had this name
        else:
            begin = new_shard_names(path)
            try:
                sess.run(self._save_op, {self._path: path, self._begin: begin})
            except _MAY_BE_SAVED:
                raise
            except BaseException:
                remove_shards(path, only=begin)
                raise
            remove_shards(path, but=begin)
            remove_abandoned_shards(path)

    def _record(self, path: str) -> list:
        """Remembers a new checkpoint; the oldest ones beyond max_to_keep, which may go."""
        self._last = [entry for entry in self._last if entry[0] != path]
        self._last.append((path, time.time()))
        dropped = []
        while self._max_to_keep and len(self._last) > self._max_to_keep:
            oldest, written = self._last.pop(0)
            if written > self._next_kept:
                self._next_kept += self._keep_seconds
                continue
            dropped.append(oldest)
        return dropped

    @property
    def last_checkpoints(self) -> list:
        """The paths of the checkpoints this saver wrote and did not delete, oldest first."""
        return [path for path, _ in self._last]

    def set_last_checkpoints(self, last_checkpoints: Sequence) -> None:
        """States which checkpoints are there, oldest first, without times."""
        self._last = [(path, float("inf")) for path in last_checkpoints]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: Sequence) -> None:
        """States which checkpoints are there: (path, time written), oldest first."""
        self._last = list(last_checkpoints_with_time)

    def recover_last_checkpoints(self, checkpoint_paths: Sequence) -> None:
        """Takes over checkpoints of an earlier process, so that they are deleted in their turn."""
        present = [path for path in checkpoint_paths if checkpoint_exists(path)]
        self._last = list(zip(present, get_checkpoint_mtimes(present)))

    # --- Restoring --------------------------------------------------------------------------------

    def restore(self, sess: Any, save_path: str) -> None:
        """Gives the variables the values of a checkpoint.

        Raises ValueError when `save_path` is None or no checkpoint, NotFoundError when a variable
        is not in it, InvalidArgumentError for other dtypes or shapes, DataLossError for a damaged
        file. Either all variables are restored or none is.
        """
        if not self._immediate:
            having(sess, "run", "sess", "a Session")
        if self._empty:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        path = path_text(save_path)
        if not self._built:
            self.build()
        if not checkpoint_exists(path):
            raise ValueError("The passed save_path is not a valid checkpoint: %s" % path)
        share_hdf5_lock()
        self._check_shapes(path)
        if self._immediate:
            self._restore_now(path)
        else:
            sess.run(self._restore_op, {self._path: path})

    def _save_now(self, path: str) -> None:
        with eager(), device("/cpu:0"):
            ops.Save(path, list(self._named), [""] * len(self._named),
                     [v.value().cpu() for v in self._named.values()])

    def _restore_now(self, path: str) -> None:
        with eager(), device("/cpu:0"):
            values = ops.Restore(path, list(self._named), [""] * len(self._named),
                                 dtypes=[v.dtype for v in self._named.values()])
            for variable, value in zip(self._named.values(), values):
                with device(variable.device):
                    self._assign(variable, ops.Identity(value))

    def _check_shapes(self, path: str) -> None:
        """Raises before anything is assigned; names and dtypes are the business of the one Restore
        operation."""
        reader = _core.open_checkpoint(path, False)
        shapes = {name: dims for name, _, dims in _core.checkpoint_entries(reader)}
        for name, variable in self._named.items():
            given, wanted = TensorShape(shapes.get(name)), variable.shape
            fits = given.is_compatible_with(wanted)
            if self._reshape:
                fits = given.num_elements() == wanted.num_elements()
            if name in shapes and not fits:
                first = without_parts([variable])[0]
                own = first._shared_name if first is variable else variable.name
                op = None if self._immediate else first.op
                raise errors.InvalidArgumentError(op and op.name, op,
                                                  "Assign requires shapes of both tensors to "
                                                  "match: variable %s has shape %s, "
                                                  "in checkpoint %s it has shape %s"
                                                  % (own, wanted, path, given))

    def export_meta_graph(self, filename: Any, collection_list: Sequence | None = None,
                          clear_devices: bool = False) -> None:
        """Writes the saver's graph and its collections, as tn.train.export_meta_graph()."""
        from treenail.train._meta_graph import export_meta_graph
        if not self._built and not self._empty:
            self.build()
        if self._immediate:
            raise RuntimeError("export_meta_graph() writes a graph, and there is none in immediate "
                               "execution")
        graph = get_default_graph() if self._empty else self._graph
        export_meta_graph(filename, graph, collection_list, clear_devices)

    def __repr__(self) -> str:
        if not self._built:
            return "<tn.train.Saver, not built yet>"
        count = len(self._named)
        return "<tn.train.Saver of %d variable%s>" % (count, "" if count == 1 else "s")
