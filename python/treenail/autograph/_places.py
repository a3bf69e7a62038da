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
    return kind("%s: %s%s" % (where, text.replace(" at " + where, ""), ADVICE))


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

    def __exit__(self, *unused: Any) -> None:
        _blocks.stack.pop()


def innermost() -> str | None:
    """What a tensor decides on at this moment, with its place; None: nothing."""
    return _blocks.stack[-1][0] if _blocks.stack else None


def lexically_inside() -> str | None:
    """The branch or loop that a tensor decides on and in whose own lines the program is."""
    frame = _frame()
    while frame is not None:
        for what, codes in _blocks.stack:
            if id(frame.f_code) in codes:
                return what
        mark = mark_of(frame.f_code)
        if mark is not None and not mark[1]:
            return None  # the function itself
        frame = frame.f_back
    return None


def changing(what: str) -> None:
    """Refuses a change that would be made once, when the graph is built."""
    around = innermost()
    if around is not None:
        raise refusal(NotImplementedError, "%s is changed within %s, which a tensor decides: the "
                      "change would be made once, while the graph is built, whatever the tensor is"
                      % (what, around))


def raising() -> None:
    """Refuses `raise` in a branch that a tensor decides on."""
    around = lexically_inside()
    if around is not None:
        raise refusal(NotImplementedError, "`raise` within %s, which a tensor decides: it would "
                      "raise while the graph is built, whatever the tensor is; use `assert` or "
                      "tn.Assert" % around)
