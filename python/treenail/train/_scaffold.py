# SPDX-License-Identifier: Apache-2.0
"""Scaffold: what a training needs besides its step, made where the program gives nothing else."""

from __future__ import annotations

from treenail._array import concat
from treenail._control import group
from treenail._framework import GraphKeys, get_default_graph
from treenail._variables import (global_variables, global_variables_initializer,
                                 local_variables_initializer, report_uninitialized_variables)
from treenail.train._saver import Saver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from treenail._treenail import Operation


def _all_global() -> Operation:
    return group(global_variables_initializer(), name="init_all")


def _all_ready() -> Any:
    return concat([report_uninitialized_variables()], 0, name="ready")


def _default_saver() -> Saver:
    return Saver(sharded=True, allow_empty=True)


class Scaffold:
    """The operations with which a session is initialised, checked and saved.

    Each may be given; else it is taken from the graph's collection of its name (GraphKeys.INIT_OP,
    ...), which must not hold several, else made by finalize() and put there.

    init_op: initialises what a checkpoint keeps; by default all global variables. init_feed_dict:
    feeds for it. init_fn(scaffold, session): called after init_op. ready_op: gives the names of
    variables without values, none where all have some. ready_for_local_init_op: the same of those
    that local_init_op needs. local_init_op: initialises what each process has for itself, after
    init_op and after restoring; by default local variables and tables. local_init_feed_dict: feeds
    for it. summary_op: merges all summaries. saver: by default of all global variables, sharded.
    copy_from_scaffold: a Scaffold whose values stand for what is not given.
    """

    def __init__(self, init_op: Any = None, init_feed_dict: dict | None = None,
                 init_fn: Callable | None = None, ready_op: Any = None,
                 ready_for_local_init_op: Any = None, local_init_op: Any = None,
                 summary_op: Any = None, saver: Saver | None = None,
                 copy_from_scaffold: Scaffold | None = None,
                 local_init_feed_dict: dict | None = None) -> None:
        base = copy_from_scaffold
        if base is not None and not isinstance(base, Scaffold):
            raise TypeError("copy_from_scaffold must be a Scaffold, not %r" % (base,))

        def chosen(value: Any, name: str) -> Any:
            return getattr(base, name) if value is None and base is not None else value
        self._init_op = chosen(init_op, "_init_op")
        self._init_feed_dict = chosen(init_feed_dict, "_init_feed_dict")
        given = chosen(init_fn, "_user_init_fn")
        if given is not None and not callable(given):
            raise TypeError("init_fn must be a function of (scaffold, session), not %r" % (given,))
        self._user_init_fn = given
        self._init_fn = None if given is None else lambda session: given(self, session)
        self._ready_op = chosen(ready_op, "_ready_op")
        self._ready_for_local_init_op = chosen(ready_for_local_init_op, "_ready_for_local_init_op")
        self._local_init_op = chosen(local_init_op, "_local_init_op")
        self._local_init_feed_dict = chosen(local_init_feed_dict, "_local_init_feed_dict")
        self._summary_op = chosen(summary_op, "_summary_op")
        self._saver = chosen(saver, "_saver")

    def finalize(self) -> Scaffold:
        """Makes what is missing, and finalizes the default graph. Gives the scaffold."""
        from treenail.summary import merge_all
        get = self.get_or_default
        self._init_op = get("init_op", GraphKeys.INIT_OP, _all_global)
        self._ready_op = get("ready_op", GraphKeys.READY_OP, _all_ready)
        self._ready_for_local_init_op = get(
            "ready_for_local_init_op", GraphKeys.READY_FOR_LOCAL_INIT_OP,
            lambda: report_uninitialized_variables(
                global_variables(), name="report_uninitialized_globals"))
        self._local_init_op = get("local_init_op", GraphKeys.LOCAL_INIT_OP,
                                  Scaffold.default_local_init_op)
        self._summary_op = get("summary_op", GraphKeys.SUMMARY_OP, merge_all)
        self._saver = get("saver", GraphKeys.SAVERS, _default_saver)
        self._saver.build()
        get_default_graph().finalize()
        return self

    def get_or_default(self, arg_name: str, collection_key: str,
                       default_constructor: Callable) -> Any:
        """What was given as `arg_name`, else the one element of that collection of the default
        graph, else what default_constructor() makes, which joins the collection. Raises
        RuntimeError for a collection of several."""
        given = getattr(self, "_" + arg_name, None)
        if given is not None:
            return given
        found = get_default_graph().get_collection(collection_key)
        if len(found) > 1:
            raise RuntimeError("More than one item in the collection \"%s\". Please indicate which "
                               "one to use by passing it to the tn.train.Scaffold constructor as: "
                               "tn.train.Scaffold(%s=item to use)" % (collection_key, arg_name))
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            get_default_graph().add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Operation:
        """One operation that initialises the local variables and the tables of the default
        graph."""
        from treenail.lookup._tables import tables_initializer
        return group(local_variables_initializer(), tables_initializer(), name="local_init")

    @property
    def init_op(self) -> Any:
        """What initialises global variables; None before finalize() unless given."""
        return self._init_op

    @property
    def init_feed_dict(self) -> Any:
        """Feeds of init_op."""
        return self._init_feed_dict

    @property
    def init_fn(self) -> Callable | None:
        """The function that was given, of the session alone."""
        return self._init_fn

    @property
    def ready_op(self) -> Any:
        """What gives the names of variables without values."""
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        """The same, of those that local_init_op needs."""
        return self._ready_for_local_init_op

    @property
    def local_init_op(self) -> Any:
        """What initialises each process's own variables."""
        return self._local_init_op

    @property
    def local_init_feed_dict(self) -> Any:
        """Feeds of local_init_op."""
        return self._local_init_feed_dict

    @property
    def summary_op(self) -> Any:
        """What merges all summaries; None where there are none."""
        return self._summary_op

    @property
    def saver(self) -> Any:
        """The Saver."""
        return self._saver


__all__ = ["Scaffold"]
