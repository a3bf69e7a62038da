# SPDX-License-Identifier: Apache-2.0
"""In which order einsum contracts its operands: pair by pair, so that the whole is cheap.

A pair costs two operations for each combination of its indices, and the elements that are read and
written, each as dear as some operations. Up to eight operands all orders are weighed, by dynamic
programming over subsets; among more, the pair that shrinks the data most is contracted first
(Smith and Gray, opt_einsum, Journal of Open Source Software 3(26), 2018), unless the order in which
they were given is cheaper. Only equation and static extents count, so that a graph always computes
alike.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

UNKNOWN = 64       # what an extent counts for that a run tells
_PER_ELEMENT = 16  # operations in the time of moving an element
_ALL_ORDERS = {"greedy": 8, "auto": 8, "auto-hq": 10, "optimal": 12, "dp": 12, "branch-all": 10,
               "branch-2": 8, "branch-1": 8}  # the most operands whose orders are all weighed


class _Costs:
    """Operands, by number, as the sets of their indices; a set of indices is a bit mask."""

    def __init__(self, labels: Sequence[str], output: str, extents: Sequence[tuple]) -> None:
        sizes = dict(extents)
        self._factors = [float(sizes[c]) for c in sizes]
        bits = {c: 1 << i for i, c in enumerate(sizes)}
        self.operands = [sum(bits[c] for c in set(part)) for part in labels]
        self.output = sum(bits[c] for c in output)
        self._known: dict = {}

    def size(self, indices: int) -> float:
        """The product of their extents."""
        if indices not in self._known:
            product = 1.0
            for i, factor in enumerate(self._factors):
                if indices >> i & 1:
                    product *= factor
            self._known[indices] = product
        return self._known[indices]

    def pair(self, a: int, b: int, result: int) -> float:
        moved = self.size(a) + self.size(b) + self.size(result)
        return 2 * self.size(a | b) + _PER_ELEMENT * moved


def _best_tree(costs: _Costs) -> Any:
    """The cheapest order, as nested pairs of numbers of operands."""
    count = len(costs.operands)
    everything = (1 << count) - 1
    union = [0] * (everything + 1)
    for subset in range(1, everything + 1):
        low = subset & -subset
        union[subset] = union[subset ^ low] | costs.operands[low.bit_length() - 1]
    legs = [union[s] & (costs.output | union[everything ^ s]) for s in range(everything + 1)]
    best: dict = {}
    for i in range(count):  # on its own an operand still has what nobody else needs
        legs[1 << i] = costs.operands[i]
        best[1 << i] = (0.0, i)
    for subset in range(3, everything + 1):
        low = subset & -subset
        part = rest = subset ^ low
        while rest:  # `part` runs over the parts that lack the first operand
            if part != 0:
                other = subset ^ part
                cost = (best[part][0] + best[other][0]
                        + costs.pair(legs[other], legs[part], legs[subset]))
                if subset not in best or cost < best[subset][0]:
                    best[subset] = (cost, (best[other][1], best[part][1]))
            if part == 0:
                break
            part = (part - 1) & rest
    return best[everything][1]


def _path_of(tree: Any, count: int) -> list:
    """The pairs of a tree as positions in a list that loses the two and gains their result."""
    left: list = list(range(count))
    path = []

    def contract(node: Any) -> None:
        if isinstance(node, tuple):
            for child in node:
                contract(child)
            pair = sorted(left.index(child) for child in node)
            path.append(tuple(pair))
            del left[pair[1]], left[pair[0]]
            left.append(node)

    contract(tree)
    return path


def _needed(indices: Sequence[int], output: int, without: tuple) -> int:
    """Indices of the output and of the operands but two."""
    for k, other in enumerate(indices):
        if k not in without:
            output |= other
    return output


def _greedy(costs: _Costs) -> list:
    indices, path = list(costs.operands), []
    while len(indices) > 1:
        best: Any = None
        for i, j in combinations(range(len(indices)), 2):
            a, b = indices[i], indices[j]
            result = (a | b) & _needed(indices, costs.output, (i, j))
            grown = costs.size(result) - costs.size(a) - costs.size(b)
            key = (grown, costs.pair(a, b, result))
            if best is None or key < best[0]:
                best = (key, (i, j), result)
        path.append(best[1])
        del indices[best[1][1]], indices[best[1][0]]
        indices.append(best[2])
    return path


def path_cost(labels: Sequence[str], output: str, extents: Sequence[tuple],
              path: Sequence[tuple]) -> float:
    """What contracting in this order costs, in operations."""
    costs = _Costs(labels, output, extents)
    indices, total = list(costs.operands), 0.0
    for i, j in path:
        a, b = indices[i], indices[j]
        result = (a | b) & _needed(indices, costs.output, (i, j))
        total += costs.pair(a, b, result)
        for k in sorted((i, j), reverse=True):
            del indices[k]
        indices.append(result)
    return total


def given_order(count: int) -> list:
    """The first two, then their result with the next one, and so on."""
    return [(0, 1)] + [(0, k) for k in range(count - 2, 0, -1)] if count > 1 else []


@lru_cache(maxsize=256)
def contraction_path(labels: tuple, output: str, extents: tuple, optimize: str) -> list:
    """Pairs of positions in the list of operands; a pair's result goes to the end of the list.

    labels: the indices of each operand; extents: pairs of an index and its extent.
    """
    count = len(labels)
    if count <= 2:
        return given_order(count)
    costs = _Costs(labels, output, extents)
    if count <= _ALL_ORDERS[optimize]:
        return _path_of(_best_tree(costs), count)
    return min(_greedy(costs), given_order(count),
               key=lambda path: path_cost(labels, output, extents, path))


def checked_path(optimize: Any, count: int) -> Any:
    """A way to look for an order, by name, or an order as pairs.

    Raises ValueError for another name and for pairs that do not contract all operands to one.
    """
    if optimize is True:
        return "greedy"
    if optimize is None or optimize is False:
        return given_order(count)
    if isinstance(optimize, str):
        if optimize not in _ALL_ORDERS:
            raise ValueError("'optimize' must be one of %s, a bool or a list of pairs of operands, "
                             "got %r" % (", ".join(map(repr, _ALL_ORDERS)), optimize))
        return optimize
    path = [tuple(pair) for pair in optimize]
    left = count
    for pair in path:
        if len(pair) != 2 or pair[0] == pair[1] or not all(0 <= k < left for k in pair):
            raise ValueError("'optimize': %r is not a pair of the %d operands that are left"
                             % (pair, left))
        left -= 1
    if left != min(count, 1):
        raise ValueError("'optimize': %d pairs leave %d of %d operands" % (len(path), left, count))
    return path
