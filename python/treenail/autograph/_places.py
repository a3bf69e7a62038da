# SPDX-License-Identifier: Apache-2.0
"""Where in the program something happens, and within which branches and loops that tensors
decide."""

from __future__ import annotations

import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

MARK = "treenail.autograph"  # in the last constant of converted code, (MARK, whether it is a block)
ADVICE = "; write it with tn.cond or tn.while_loop, or as Python values that no tensor decides"


def mark_of(code: CodeType) -> Any:
    """(MARK, whether it is a block's) for converted code, else None."""
    last = code.co_consts[-1] if code.co_consts else None
    return last if type(last) is tuple and len(last) == 2 and last[0] is MARK else None


def _frame() -> FrameType | None:
    """The innermost frame of converted code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and mark_of(frame.f_code) is None:
        frame = frame.f_back
    return frame


def place() -> str:
    """"file:line" of the program's statement that runs."""
    frame = _frame()
    return "an unknown place" if frame is None else "%s:%d" % (frame.f_code.co_filename,
                                                               frame.f_lineno)


def refusal(kind: type, text: str, where: str | None = None) -> Exception:
    """The error that says where the program asks for what is not possible."""
    where = where or place()
    error = kind("%s: %s%s" % (where, text.replace(" at " + where, ""), ADVICE))
    error._decided = None
    return error


class _Blocks(threading.local):
    """What a tensor decides on, and is being traced: (place, the codes of its functions)."""

    def __init__(self) -> None:
        self.stack: list = []


_blocks = _Blocks()


class decided:  # noqa: N801
    """A context manager around the trace of a branch or of a loop's body."""

    __slots__ = ("_entry",)

    def __init__(self, what: str, functions: list) -> None:
        """what: "the `if` at file:line"."""
        self._entry = (what, {id(f.__code__) for f in functions if f is not None})

    def __enter__(self) -> None:
        _blocks.stack.append(self._entry)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        _blocks.stack.pop()
        if isinstance(error, Exception) and not hasattr(error, "_decided"):
            error._decided = self._entry[0]


def innermost() -> str | None:
    """What a tensor decides on at this moment, with its place; None: nothing."""
    return _blocks.stack[-1][0] if _blocks.stack else None


def changing(what: str) -> None:
    """Refuses a change that would be made once, when the graph is built."""
    around = innermost()
    if around is not None:
        raise refusal(NotImplementedError, "%s is changed within %s, which a tensor decides: the "
                      "change would be made once, while the graph is built, whatever the tensor is"
                      % (what, around))


def changing_around(name: str) -> None:
    """Refuses to set a variable of a function around, unless only branches and loops of this very
    function decide on it: these keep account of it."""
    if innermost() is not None and len(_lexical()) < len(_blocks.stack):
        changing("the variable %r of the function around" % name)


def _lexical() -> list:
    """The branches and loops that a tensor decides on and in whose own lines the program is."""
    found: list = []
    frame = _frame()
    while frame is not None:
        found += [what for what, codes in _blocks.stack if id(frame.f_code) in codes]
        mark = mark_of(frame.f_code)
        if mark is not None and not mark[1]:
            break  # the function itself
        frame = frame.f_back
    return found


def lexically_inside() -> str | None:
    """The innermost of these."""
    return next(iter(_lexical()), None) if _blocks.stack else None


def raising() -> None:
    """Refuses `raise` in a branch that a tensor decides on."""
    around = lexically_inside()
    if around is not None:
        raise refusal(NotImplementedError, "`raise` within %s, which a tensor decides: it would "
                      "raise while the graph is built, whatever the tensor is; use `assert` or "
                      "tn.Assert" % around)


def caught() -> None:
    """Refuses to handle an exception that a branch or loop let out which a tensor decides on."""
    error: Any = sys.exc_info()[1]
    if not hasattr(error, "_decided"):
        return
    if error._decided is None:
        raise error
    raise refusal(NotImplementedError, "`except` around %s, which a tensor decides: the exception "
                  "came while the graph was built, whatever the tensor is" % error._decided
                  ) from error
