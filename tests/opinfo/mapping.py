# SPDX-License-Identifier: Apache-2.0
"""How an entry of PyTorch's op_db is said in Treenail: the decorator that a file of maps/ uses.

    @maps("addcmul")
    def addcmul(x, a, b, value=1):
        return x + tn.cast(value, x.dtype) * a * b

The function gets the sample's input, args and kwargs with each torch tensor as a Treenail tensor
and each torch dtype as a Treenail dtype, and returns what the entry returns, built from Treenail's
own functions as a user of TensorFlow 1 would write it: no arithmetic on values happens in NumPy or
torch. What it cannot say it declines by `decline(why)`; such an entry does not count as passed.

There is no central list: every file of maps/ is loaded; an entry that none mentions is unmapped.
"""

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Tuple

MAPS = Path(__file__).resolve().parent / "maps"


class Declined(Exception):
    """The mapping does not cover this sample; the text says what is missing."""


def decline(why: str) -> None:
    raise Declined(why)


@dataclass(frozen=True)
class Said:
    """How one entry is computed and judged.

    dtypes: those that Treenail claims, None for all that the entry lists. slack: per dtype a
    multiple of the usual tolerance, with the reason beside it in maps/.
    random: values are drawn, so that only shape, dtype and `within` (bounds) are compared.
    distrust(input, *args, **kwargs): whether torch itself is known to be wrong on a sample, which
    is passed over; the reason stands beside it in maps/.
    asked(op, input, *args, **kwargs): how torch is asked, and the mapping says the same. Where a
    library may choose (the signs of vectors, the order of eigenvalues) it returns what does not
    depend on the choice; where an entry takes a form for granted (Hermitian, triangular) and
    gradients depend on what it makes of the rest, it gives the input that form.
    """

    function: Callable
    dtypes: Optional[Tuple[str, ...]] = None
    slack: Dict[str, float] = field(default_factory=dict)
    random: bool = False
    within: Optional[Tuple[float, float]] = None
    distrust: Optional[Callable[..., bool]] = None
    asked: Optional[Callable] = None


REGISTRY: Dict[str, Said] = {}


def maps(*names: str, **options: Any) -> Callable:
    """Registers the function below for the entries of these names (variants after a slash)."""

    def register(function: Callable) -> Callable:
        for name in names:
            if name in REGISTRY:
                raise ValueError("%s is mapped twice" % name)
            REGISTRY[name] = Said(function, **options)
        return function

    return register


def load_all() -> Dict[str, Said]:
    """The registry with every file of maps/ in it."""
    for path in sorted(MAPS.glob("*.py")):
        importlib.import_module("maps." + path.stem)
    return REGISTRY


def entry_name(entry: Any) -> str:
    """`max/binary`: name and variant of an OpInfo."""
    return entry.name + ("/" + entry.variant_test_name if entry.variant_test_name else "")
