# SPDX-License-Identifier: Apache-2.0
"""`while` and `for`: iterations that Python decides on run one after the other; from the first that
a tensor decides on, the rest is a loop of the graph (_graph_loop.py)."""

from __future__ import annotations

from types import CellType

from treenail._array import unstack
from treenail._convert import convert_to_tensor
from treenail._framework import executing_eagerly
from treenail._treenail import Tensor
from treenail.autograph._branches import any_of, choose, guarded, negated
from treenail.autograph._cells import cells_of
from treenail.autograph._graph_loop import GraphLoop
from treenail.autograph._iterables import Counted, counted
from treenail.autograph._places import place, refusal
from treenail.autograph._values import is_symbolic, truth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

_INDEX = "ag__index"


def while_loop(test: Callable, body: Callable, names: Sequence, own: Sequence,
               exits: Callable) -> None:
    """`while test(): body()`; exits() gives the flags that end the loop, and
    `own` are the names that each iteration writes before it reads them."""
    goes_on = test()
    while not is_symbolic(goes_on):
        if not goes_on:
            return
        body()
        goes_on = _unless_left(exits, test, names, test, body)

    def step() -> Any:
        body()
        return _unless_left(exits, test, names, test, body)
    GraphLoop("the `while` at " + place(), own, cells_of(names, test, body), step,
              [test, body]).run(truth(goes_on))


def _unless_left(exits: Callable, test: Callable, names: Sequence, *functions: Callable) -> Any:
    """What test() says, unless a flag is set."""
    flag = any_of(exits())
    if flag is False:
        return test()
    if flag is True:
        return False
    return choose("the condition at " + place(), truth(flag), lambda: False, test,
                  cells_of(names, *functions))


def for_loop(values: Any, body: Callable, names: Sequence, own: Sequence,
             exits: Callable) -> None:
    """`for item in values: body(item)`; exits() gives the flags that end the loop, and
    `own` are the names that each iteration writes before it reads them."""
    if not executing_eagerly():
        rows = counted(values)
        if rows is not None:
            _counted_loop(rows, body, names, own, exits)
            return
    flags = exits()
    for item in values:
        flag = any_of(flags)
        if flag is True:
            return
        if flag is False:
            body(item)
        else:
            _guarded(values, flag, item, body, names)
        flags = exits()
        if any_of(flags) is True:
            return


def _guarded(values: Any, flag: Any, item: Any, body: Callable, names: Sequence) -> None:
    """An iteration over Python values behind a `break` that a tensor decides on."""
    if not hasattr(values, "__len__"):
        raise refusal(NotImplementedError, "the `for` at %s goes through %r, whose length is not "
                      "known, and a tensor decides whether it ends" % (place(), type(values)))
    guarded("the `for` at " + place(), flag, lambda: body(item), cells_of(names, body))


def _counted_loop(rows: Counted, body: Callable, names: Sequence, own: Sequence,
                  exits: Callable) -> None:
    cells = cells_of(names, body)
    cells[_INDEX] = index = CellType(rows.first())

    def step() -> Any:
        item = rows.item(index.cell_contents)
        body(item)
        following = index.cell_contents + rows.step()
        index.cell_contents = following
        flag = any_of(exits())
        if flag is True:
            return False
        more = rows.holds(following)
        return more if flag is False else convert_to_tensor(more) & negated(flag)
    GraphLoop("the `for` at " + place(), own, cells, step, [body]).run(
        truth(rows.holds(rows.first())))


def iterated(values: Any) -> Any:
    """What a comprehension goes through. Raises TypeError for a tensor of unknown extent."""
    if isinstance(values, Tensor) and is_symbolic(values):
        if values.shape.rank is None or not values.shape.rank or values.shape[0] is None:
            raise refusal(TypeError, "a comprehension or generator cannot go through a tensor of "
                          "shape %s: how many elements it has, a run tells; tn.map_fn, or a `for` "
                          "that appends to a list, can" % values.shape)
        return unstack(values)
    rows = None if executing_eagerly() else counted(values)
    if rows is not None:
        raise refusal(TypeError, "a comprehension or generator cannot go through what has as many "
                      "elements as a run tells; tn.map_fn, or a `for` that appends to a list, can")
    return values
