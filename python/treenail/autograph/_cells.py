# SPDX-License-Identifier: Apache-2.0
"""The variables of a converted function, as its blocks share them: cells, which may be empty."""

from __future__ import annotations

from treenail.autograph._places import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable


class _Unbound:
    """The only instance stands for a variable without a value."""

    def __repr__(self) -> str:
        return "unbound"


UNBOUND = _Unbound()


class Undecided:
    """The value of a variable that a branch or a loop may or may not have given one: whoever
    reads it is told why."""

    def __init__(self, kind: type, why: str) -> None:
        self._error = (kind, why)

    def refuse(self, name: str) -> None:
        """Raises what is to be said of variable `name`."""
        kind, why = self._error
        raise refusal(kind, "%r is read here, and %s" % (name, why))

    def _never(self, *unused: Any) -> Any:
        self.refuse("the variable")

    __bool__ = __iter__ = __len__ = __call__ = __getitem__ = __add__ = __radd__ = _never
    __mul__ = __rmul__ = __sub__ = __rsub__ = __lt__ = __gt__ = __float__ = __int__ = _never
    __treenail_tensor__ = _never


def read(value: Any, name: str) -> Any:
    """The value of a variable. Raises where none was decided on."""
    if type(value) is Undecided:
        value.refuse(name)
    return value


def cells_of(names: Iterable[str], *functions: Callable | None) -> dict:
    """{name: cell} of variables that these inner functions bind."""
    found: dict = {}
    for function in functions:
        if function is not None:
            code = function.__code__  # type: ignore[attr-defined]
            found.update(zip(code.co_freevars, function.__closure__ or ()))  # type: ignore
    return {name: found[name] for name in names}


def value_of(cell: Any) -> Any:
    """What a cell holds, or UNBOUND."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


def set_value(cell: Any, value: Any) -> None:
    """Makes a cell hold `value`; UNBOUND empties it."""
    if value is not UNBOUND:
        cell.cell_contents = value
    elif value_of(cell) is not UNBOUND:
        del cell.cell_contents


def values_of(cells: dict) -> dict:
    """{name: value or UNBOUND}"""
    return {name: value_of(cell) for name, cell in cells.items()}


def set_values(cells: dict, values: dict) -> None:
    """Makes each cell hold the value of its name."""
    for name, value in values.items():
        set_value(cells[name], value)
