# SPDX-License-Identifier: Apache-2.0
"""The variables that objects hold, named by the attributes that lead to them.

An object leads to what its public attributes hold, a list, tuple or dict to its items, a layer to
its variables besides, an optimizer to its own. Where several ways lead to a variable the shortest
one names it, of equally long ones the first in the alphabet. Slots are named by the variable that
they are kept for: "optimizer/slots/m/model/kernel".
"""

from __future__ import annotations

import types
import weakref

from treenail._partitioned import PartitionedVariable
from treenail._treenail import Tensor
from treenail._variables import Variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_VARIABLES = (Variable, PartitionedVariable)
_NOT_FOLLOWED = (type, types.ModuleType, types.FunctionType, Tensor)


def is_followed(value: Any) -> bool:
    """Whether variables may be found through that value."""
    return isinstance(value, (list, tuple, dict, *_VARIABLES)) or (
        hasattr(value, "__dict__") and not isinstance(value, _NOT_FOLLOWED))


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")


def _children(value: Any) -> dict:
    if isinstance(value, (list, tuple)):
        found = {str(i): item for i, item in enumerate(value)}
    elif isinstance(value, dict):
        found = {str(key): item for key, item in value.items()}
    else:
        found = {name: item for name, item in vars(value).items() if name[0] != "_"}
        own = getattr(value, "_own_variables", None)
        found.update({} if own is None else own())
    return {_escaped(name): found[name] for name in sorted(found) if is_followed(found[name])}


def _reached(root: Any) -> list:
    """[(name, value)] of all that `root` leads to, what is nearer before what is farther."""
    found, seen = [], {id(root)}
    level = [("", root)]
    while level:
        following = []
        for path, value in level:
            for name, child in _children(value).items():
                if id(child) not in seen:
                    seen.add(id(child))
                    found.append((path + name, child))
                    if not isinstance(child, _VARIABLES):
                        following.append((path + name + "/", child))
        level = following
    return found


def named_variables(root: Any) -> dict:
    """{name: variable} of all that `root` leads to."""
    reached = _reached(root)
    named = {name: value for name, value in reached if isinstance(value, _VARIABLES)}
    names = {id(variable): name for name, variable in named.items()}
    for path, value in reached:
        if not hasattr(value, "get_slot_names"):
            continue
        for slot in value.get_slot_names():
            for variable, kept in value._slots[slot].items():
                if id(variable) in names:
                    named["%s/slots/%s/%s" % (path, _escaped(slot), names[id(variable)])] = kept
    return named


# --- Variables that are made when their values have been read ----------------------------------

_waiting: weakref.WeakSet = weakref.WeakSet()


def _may_get_variables(value: Any) -> bool:
    """Not so initializers and such, which many share."""
    return hasattr(value, "__dict__") and not isinstance(value, _VARIABLES) and (
        hasattr(value, "_own_variables") or not type(value).__module__.startswith("treenail."))


def wait(restoring: Any, root: Any) -> None:
    """restoring.go_on() is called whenever a layer, an optimizer or a checkpoint has got another
    variable; for as long as something is there that `root` leads to now."""
    _waiting.add(restoring)
    for value in [root, *(value for _, value in _reached(root))]:
        if _may_get_variables(value):
            vars(value).setdefault("_restoring", set()).add(restoring)


def forget(restoring: Any, root: Any) -> None:
    """Nothing is waited for any more."""
    _waiting.discard(restoring)
    for value in [root, *(value for _, value in _reached(root))]:
        if "_restoring" in getattr(value, "__dict__", ()):
            vars(value)["_restoring"].discard(restoring)


def tell_of_new_variable() -> None:
    """To be called by who has made one, with immediate execution."""
    for restoring in list(_waiting):
        restoring.go_on()
