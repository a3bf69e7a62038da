# SPDX-License-Identifier: Apache-2.0
"""Checkpoint files, and the text file `checkpoint` that says which ones a directory holds.

A checkpoint is one HDF5 file under the very name Saver.save gives back, or the index of several.
The state file has TensorFlow 1's form:

    model_checkpoint_path: "model-200"
    all_model_checkpoint_paths: "model-100"
    all_model_checkpoint_paths: "model-200"
"""

from __future__ import annotations

import os
import sys

from treenail import _treenail as _core
from treenail import errors
from treenail._checks import a_path
from treenail.train._shards import remove_shards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


class CheckpointState:
    """What a state file says. model_checkpoint_path: the latest; all_model_checkpoint_paths: all,
    oldest first."""

    def __init__(self, model_checkpoint_path: str = "",
                 all_model_checkpoint_paths: Sequence = ()) -> None:
        self.model_checkpoint_path = model_checkpoint_path
        self.all_model_checkpoint_paths = list(all_model_checkpoint_paths)

    def __repr__(self) -> str:
        return "CheckpointState(model_checkpoint_path=%r, all_model_checkpoint_paths=%r)" % (
            self.model_checkpoint_path, self.all_model_checkpoint_paths)


def share_hdf5_lock() -> None:
    """Where h5py is loaded and libhdf5 is not thread-safe, takes h5py's lock around our own use of
    it."""
    objects = sys.modules.get("h5py._objects")
    if objects is not None:
        _core.share_h5py_lock(objects.phil)


def _quoted(text: str) -> str:
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _unquoted(text: str) -> str | None:
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return None
    out, escaped = [], False
    for c in text[1:-1]:
        if escaped:
            out.append("\n" if c == "n" else c)
            escaped = False
        elif c == "\\":
            escaped = True
        else:
            out.append(c)
    return "".join(out)


def _state_file(directory: str, latest_filename: str | None) -> str:
    return os.path.join(directory, latest_filename or "checkpoint")


def path_text(path: Any) -> str:
    """A path (str, bytes or os.PathLike) as str. Raises TypeError for anything else, ValueError for
    one that is not UTF-8: state files are."""
    text = os.fsdecode(a_path(path, "a path"))
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("the path %r cannot be encoded as UTF-8" % (text,)) from None
    return text


def check_state_file(directory: str, latest_filename: str | None) -> str:
    """The path of the state file. Raises FailedPreconditionError where something else stands in its
    place."""
    path = _state_file(directory, latest_filename)
    if os.path.exists(path) and not os.path.isfile(path):
        raise errors.FailedPreconditionError(
            None, None, "%s is %s; needed in its place is a checkpoint state file or nothing"
            % (path, "a directory" if os.path.isdir(path) else "no regular file"))
    return path


def update_checkpoint_state(save_dir: str, model_checkpoint_path: str,
                            all_model_checkpoint_paths: Sequence | None = None,
                            latest_filename: str | None = None) -> None:
    """Writes the state file of a directory. Paths inside the directory are stored relative to
    it."""
    model_checkpoint_path = path_text(model_checkpoint_path)
    paths = [path_text(path) for path in all_model_checkpoint_paths or []]
    if model_checkpoint_path not in paths:
        paths.append(model_checkpoint_path)
    save_dir = path_text(save_dir)
    base = os.path.abspath(save_dir or ".")

    def stored(path: str) -> str:
        relative = os.path.relpath(os.path.abspath(path), base)
        return os.path.abspath(path) if relative.startswith(os.pardir) else relative
    lines = ["model_checkpoint_path: %s" % _quoted(stored(model_checkpoint_path))]
    lines += ["all_model_checkpoint_paths: %s" % _quoted(stored(path)) for path in paths]
    _core.write_file(check_state_file(save_dir or ".", latest_filename), "\n".join(lines) + "\n")


def get_checkpoint_state(checkpoint_dir: str,
                         latest_filename: str | None = None) -> CheckpointState | None:
    """What the state file of a directory says, or None when there is none. Raises DataLossError for
    another text, FailedPreconditionError where it is no file."""
    checkpoint_dir = path_text(checkpoint_dir)
    path = check_state_file(checkpoint_dir, latest_filename)
    try:
        with open(path, encoding="utf-8") as stream:
            lines = stream.read().splitlines()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise errors.DataLossError(None, None,
                                   "%s is no checkpoint state file: it is not UTF-8 text"
                                   % path) from None
    state = CheckpointState()
    for number, line in enumerate(lines, 1):
        key, _, value = line.partition(":")
        key = key.strip()
        if not line.strip() or key in ("all_model_checkpoint_timestamps",
                                       "last_preserved_timestamp"):
            continue
        name = _unquoted(value.strip())
        if name is None or key not in ("model_checkpoint_path", "all_model_checkpoint_paths"):
            raise errors.DataLossError(None, None, "%s is no checkpoint state file: line %d is %r, "
                                       "needed is e.g. model_checkpoint_path: \"model-1\""
                                       % (path, number, line[:80]))
        name = os.path.join(checkpoint_dir, name)
        if key == "model_checkpoint_path":
            state.model_checkpoint_path = name
        else:
            state.all_model_checkpoint_paths.append(name)
    return state


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Whether there is a checkpoint of that name."""
    return os.path.isfile(a_path(checkpoint_prefix, "checkpoint_prefix"))


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """The latest checkpoint of a directory that is really there, or None."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    for path in [state.model_checkpoint_path] + state.all_model_checkpoint_paths[::-1]:
        if path and checkpoint_exists(path):
            return path
    return None


def get_checkpoint_mtimes(checkpoint_prefixes: Sequence) -> list:
    """When each of these checkpoints was written, in seconds since 1970; those that are not there
    are left out."""
    text = isinstance(checkpoint_prefixes, (str, bytes))
    if text or not hasattr(checkpoint_prefixes, "__iter__"):
        raise TypeError("checkpoint_prefixes must be a list of paths, not %r"
                        % (checkpoint_prefixes,))
    return [os.path.getmtime(path) for path in checkpoint_prefixes if checkpoint_exists(path)]


def remove_checkpoint(checkpoint_prefix: str) -> None:
    """Deletes a checkpoint, if it is there: an index before its shards, so that nobody finds half
    of it."""
    path = path_text(checkpoint_prefix)
    try:
        os.remove(path)
    except FileNotFoundError:
        pass
    remove_shards(path)


def _resolved(path: str) -> str:
    """A checkpoint, or the latest one of a directory. Raises NotFoundError."""
    path = path_text(path)
    if os.path.isdir(path):
        found = latest_checkpoint(path)
        if found is None:
            raise errors.NotFoundError(None, None, "Couldn't find 'checkpoint' file or checkpoints "
                                       "in given directory %s" % path)
        return found
    return path


class CheckpointReader:
    """Reads the tensors of a checkpoint by name. The file is checked and stays open: where another
    checkpoint takes its name, this one is still what is read."""

    def __init__(self, path: str, allow_foreign: bool = False) -> None:
        share_hdf5_lock()
        self._reader = _core.open_checkpoint(_resolved(path), allow_foreign)
        self._entries = {name: (dtype, dims) for name, dtype,
                         dims in _core.checkpoint_entries(self._reader)}

    def get_variable_to_shape_map(self) -> dict:
        """{name: shape as a list}."""
        return {name: list(dims) for name, (_, dims) in self._entries.items()}

    def get_variable_to_dtype_map(self) -> dict:
        """{name: DType}."""
        return {name: dtype for name, (dtype, _) in self._entries.items()}

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether there is a tensor of that name."""
        return tensor_str in self._entries

    def get_tensor(self, tensor_str: str) -> Any:
        """The tensor as an array. Raises NotFoundError naming what is there."""
        return _core.checkpoint_tensor(self._reader, tensor_str)


def load_checkpoint(ckpt_dir_or_file: str, allow_foreign: bool = False) -> CheckpointReader:
    """A reader for a checkpoint, or for the latest one of a directory.

    allow_foreign: also take HDF5 files without Treenail's length and checksum; only for files you
    trust.
    """
    return CheckpointReader(ckpt_dir_or_file, allow_foreign)


def list_variables(ckpt_dir_or_file: str) -> list:
    """[(name, shape)] of a checkpoint, sorted by name."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file: str, name: str) -> Any:
    """One tensor of a checkpoint as an array."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)
