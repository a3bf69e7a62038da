# SPDX-License-Identifier: Apache-2.0
"""Which operator a product, inverse, adjoint, Cholesky factor or solution of operators is: a
function for classes of operators, registered beside the class that knows better than the general
case. Neither a base class nor a list knows all of them.

    @products.of(LinearOperatorDiag, LinearOperatorDiag)
    def _product(left, right): ...
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class Dispatch:
    """A function of operators whose code depends on the classes of all of them.

    The nearest registration is called: the one with the fewest steps to base classes in all, of
    equal ones that with the fewest in the first argument. It may give NotImplemented, and then the
    next one is.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._registered: dict = {}

    def of(self, *classes: type) -> Callable:
        """Registers the decorated function. Raises ValueError where there is one for these
        classes."""
        def register(function: Callable) -> Callable:
            if classes in self._registered:
                raise ValueError("%s of %s has already been registered"
                                 % (self._what, ", ".join(c.__name__ for c in classes)))
            self._registered[classes] = function
            return function
        return register

    def __call__(self, *operators: Any) -> Any:
        for function in self._candidates([type(o) for o in operators]):
            result = function(*operators)
            if result is not NotImplemented:
                return result
        raise ValueError("no %s is registered for %s"
                         % (self._what, ", ".join(type(o).__name__ for o in operators)))

    def _candidates(self, kinds: list) -> list:
        found = []
        for classes, function in self._registered.items():
            if len(classes) == len(kinds) and all(map(issubclass, kinds, classes)):
                steps = [kind.__mro__.index(cls) for kind, cls in zip(kinds, classes)]
                found.append(((sum(steps), steps), function))
        return [function for _, function in sorted(found, key=lambda item: item[0])]


adjoints = Dispatch("adjoint")
inverses = Dispatch("inverse")
cholesky_factors = Dispatch("Cholesky factor")
products = Dispatch("product")
solutions = Dispatch("solution")
