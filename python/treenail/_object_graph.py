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


def named_variables(root: Any) -> dict:
    """{name: variable} of all that `root` leads to."""
    named: dict = {}
    names: dict = {}  # by identity, and the objects, which keep it
    optimizers = []
    level = [("", root)]
    while level:
        following = []
        for path, value in level:
            for name, child in _children(value).items():
                if id(child) in names:
                    continue
                name = path + name
                names[id(child)] = name, child
                if isinstance(child, _VARIABLES):
                    named[name] = child
                    continue
                following.append((name + "/", child))
                if hasattr(child, "get_slot_names"):
                    optimizers.append((name, child))
        level = following
    for path, optimizer in optimizers:
        for slot in optimizer.get_slot_names():
            for variable, kept in optimizer._slots[slot].items():
                if id(variable) in names:
                    named["%s/slots/%s/%s" % (path, _escaped(slot), names[id(variable)][0])] = kept
    return named


# --- Variables that are made when their values have been read ----------------------------------

_waiting: weakref.WeakSet = weakref.WeakSet()


def wait(restoring: Any) -> None:
    """restoring.go_on() is called whenever a layer, an optimizer or a checkpoint has got another
    variable; for as long as it gives True."""
    _waiting.add(restoring)


def tell_of_new_variable() -> None:
    """To be called by who has made one, with immediate execution."""
    for restoring in list(_waiting):
        if not restoring.go_on():
            _waiting.discard(restoring)
