# SPDX-License-Identifier: Apache-2.0
"""Python's control flow over tensors: functions whose `if`, `while` and `for` become branches and
loops of the graph where a tensor decides, and stay Python's where none does.

    def collatz(n):
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps
    steps = tn.autograph.to_graph(collatz)(tn.placeholder(tn.int32, []))
"""

from __future__ import annotations

from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def to_graph(entity: Callable, recursive: bool = True, arg_values: Any = None,
             arg_types: Any = None, experimental_optional_features: Any = None) -> Callable:
    """The function `entity`, converted: called with tensors of a graph it adds branches and loops
    to it; called with Python values it does what `entity` does.

    recursive: the program's functions that it calls are converted, too. arg_values, arg_types,
    experimental_optional_features: TensorFlow 1's, not needed here.

    Raises TypeError for what is no function or method of Python's, NotImplementedError for a class,
    ValueError where the source cannot be found. The function it gives raises TypeError, ValueError
    or NotImplementedError for control flow that no graph can have, naming the line.
    """
    from treenail.autograph import _entry
    return _entry.to_graph(entity, recursive)


def to_code(entity: Callable, recursive: bool = True, arg_values: Any = None,
            arg_types: Any = None, indentation: str = "  ",
            experimental_optional_features: Any = None) -> str:
    """The source of what tn.autograph.to_graph makes of a function.

    recursive, arg_values, arg_types, indentation, experimental_optional_features: TensorFlow 1's;
    they change nothing here. Raises TypeError, NotImplementedError (for a class) and ValueError as
    tn.autograph.to_graph.
    """
    from treenail.autograph import _entry
    return _entry.to_code(entity)


def do_not_convert(func: Callable | None = None) -> Callable:
    """A decorator: the function is called as it is from converted ones, too. Raises TypeError for
    what is not callable."""
    from treenail.autograph import _entry
    return _entry.do_not_convert if func is None else _entry.do_not_convert(func)


def __getattr__(name: str) -> Any:
    if name == "experimental":
        import importlib
        return importlib.import_module("treenail.autograph.experimental")
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


__all__ = ["do_not_convert", "experimental", "to_code", "to_graph"]
_name_in_refusals(globals())
