# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in shards: one file for the variables of each device, written there, and an index.

A shard of checkpoint "model-100" is "model-100.shard-<writer>-00001-of-00004"; the index, written
when every shard is on disk, has the name "model-100" itself. <writer> is of one save alone: host,
process, number. So no save writes over a shard that an index names, and what a killed process left
is told from what a live one is writing. The format: docs/formats/checkpoint.md.
"""

from __future__ import annotations

import itertools
import os
import re
import socket
import zlib

from treenail._array import stack
from treenail._devices import merged_device
from treenail._ops import ops
from treenail._partitioned import PartitionedVariable
from treenail._treenail import Operation, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_counter = itertools.count()
_SHARD = re.compile(r"\.shard-(?P<host>\d+)-(?P<process>\d+)-\d+-\d{5}-of-\d{5}"
                    r"(?:\.tmp-[-\d]+)?\Z")


class _Piece:
    """A variable or a part of one, as it stands in a checkpoint."""

    def __init__(self, name: str, part: str, variable: Any) -> None:
        self.name, self.part, self.variable = name, part, variable


def _pieces(named: dict) -> list:
    found = []
    for name, variable in named.items():
        if not isinstance(variable, PartitionedVariable):
            found.append(_Piece(name, "", variable))
            continue
        for part in variable:
            info = part._slice_info
            whole = " ".join(str(extent) for extent in info.full_shape)
            places = ":".join("%d,%d" % place for place in zip(info.var_offset, info.var_shape))
            found.append(_Piece(name, "%s %s" % (whole, places), part))
    return found


def host_of(device: str) -> str:
    """The first CPU of the task that has `device`: where its files are written."""
    return merged_device(device, "/device:CPU:0")


def restored(variable: Any, value: Tensor) -> list:
    """The assignments of a value to a variable; to one with copies, to each of them."""
    if not hasattr(variable, "_restored"):
        return [ops.AssignVariableOp(variable.handle, value, name="Assign")]
    assigns = []
    for handle, copy in variable._restored(value):
        with variable.graph.device(handle.device or None):
            assigns.append(ops.AssignVariableOp(handle, copy, name="Assign"))
    return assigns


class ShardedOperations:
    """The operations of a graph that write its variables in shards, and read them.

    path: a string tensor, the checkpoint's name; begin: one, what names of shards begin with.
    Variables are grouped by device. reshape: values take the variables' shapes.
    """

    def __init__(self, graph: Any, named: dict, path: Tensor, begin: Tensor,
                 reshape: bool) -> None:
        groups: dict = {}
        for piece in _pieces(named):
            groups.setdefault(piece.variable.device or "", []).append(piece)
        self.shards = [(host_of(name), groups[name]) for name in sorted(groups)]
        self._graph, self._path, self._begin, self._reshape = graph, path, begin, reshape

    def save(self) -> Operation:
        """One operation that writes every shard, and then the index; of one shard, that alone
        under the checkpoint's name."""
        if len(self.shards) == 1:
            return self._written(0, self._path)
        files, written = [], []
        for number, (device, _) in enumerate(self.shards):
            with self._graph.device(device):
                files.append(ops.ShardedFilename(self._begin, number, len(self.shards)))
            written.append(self._written(number, files[-1]))
        with self._graph.device(self.shards[0][0]), self._graph.control_dependencies(written):
            return ops.MergeCheckpoints(stack(files), self._path, delete_old_dirs=False,
                                        by_reference=True, name="MergeCheckpoints")

    def _written(self, number: int, file: Tensor) -> Operation:
        device, pieces = self.shards[number]
        values = [piece.variable.value() for piece in pieces]
        with self._graph.device(device):
            return ops.Save(file, [piece.name for piece in pieces],
                            [piece.part for piece in pieces], values, name="Save")

    def restore(self) -> list:
        """The assignments of all values; none before all are read."""
        values = []
        for device, pieces in self.shards:
            with self._graph.device(device):
                values.append(ops.Restore(
                    self._path, [piece.name for piece in pieces],
                    [piece.part for piece in pieces],
                    dtypes=[piece.variable.dtype for piece in pieces], name="Restore"))
        assigns = []
        with self._graph.control_dependencies([read[0].op for read in values]):
            for (_, pieces), read in zip(self.shards, values):
                for piece, value in zip(pieces, read):
                    if self._reshape:
                        value = ops.Reshape(value, piece.variable.shape.as_list())
                    with self._graph.device(piece.variable.device or None):
                        assigns += restored(piece.variable, value)
        return assigns


def _host() -> int:
    return zlib.crc32(socket.gethostname().encode())


def new_shard_names(path: str) -> str:
    """What the names of the shards of a new save of this checkpoint begin with."""
    return "%s.shard-%d-%d-%d" % (path, _host(), os.getpid(), next(_counter))


def _is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False


def _listed(path: str) -> list:
    """(name of a checkpoint, name of a file that is or was to be a shard of it, match) for all of
    a directory."""
    found = []
    try:
        leaves = os.listdir(os.path.dirname(path) or ".")
    except OSError:
        return found
    for leaf in leaves:
        match = _SHARD.search(leaf)
        if match:
            found.append((leaf[:match.start()], leaf, match))
    return found


def _remove(path: str, leaves: list) -> None:
    """What cannot be removed stays."""
    for leaf in leaves:
        try:
            os.remove(os.path.join(os.path.dirname(path), leaf))
        except OSError:
            pass


def remove_shards(path: str, but: str | None = None, only: str | None = None) -> None:
    """Removes the shards of a checkpoint: all but those whose names begin with `but`, or only
    those whose names begin with `only`. To be called when no index names them any more."""
    keep, drop = [None if begin is None else os.path.basename(begin) + "-" for begin in (but, only)]
    _remove(path, [leaf for name, leaf, _ in _listed(path) if name == os.path.basename(path)
                   and not (keep and leaf.startswith(keep))
                   and (drop is None or leaf.startswith(drop))])


def remove_abandoned_shards(path: str) -> None:
    """Removes what processes of this host that are gone left of checkpoints that were never
    complete: of this one and of other steps of it."""
    stem = re.sub(r"-\d+\Z", "", os.path.basename(path))
    folder = os.path.dirname(path)
    _remove(path, [leaf for name, leaf, match in _listed(path)
                   if re.sub(r"-\d+\Z", "", name) == stem
                   and int(match.group("host")) == _host() and _is_gone(int(match["process"]))
                   and not os.path.exists(os.path.join(folder, name))])
