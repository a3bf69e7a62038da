# SPDX-License-Identifier: Apache-2.0
"""Random programs of nested branches, loops and calls, as data.

A program is a list of statements, of which each appends one value to those there are; the last is
the result. Statements with bodies (if, case, while, call) hold such lists. A plain interpreter over
NumPy says what they mean; body_modes.py runs them by Treenail.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy as np

UNARY: Dict[str, Any] = {"tanh": np.tanh, "neg": np.negative, "abs": np.abs, "sin": np.sin,
                         "square": np.square}
BINARY: Dict[str, Any] = {"add": np.add, "sub": np.subtract, "mul": np.multiply,
                          "maximum": np.maximum, "minimum": np.minimum}
SHAPES = ((3,), (), (2, 3), (17,), (0,), (1, 40))
Block = List[tuple]


@dataclass
class BodyProgram:
    block: Block
    inputs: List[np.ndarray]


class Maker:
    """Makes statements for so many values that there are."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def block(self, count: int, depth: int, length: int) -> Block:
        statements = []
        for k in range(length):
            statements.append(self.statement(count + k, depth))
        return statements

    def statement(self, count: int, depth: int) -> tuple:
        kinds = ["unary", "binary", "scale", "total"] + ["if", "case", "while", "call"] * (
            1 if depth > 0 else 0)
        kind = kinds[self.rng.integers(len(kinds))]
        a, b = (int(i) for i in self.rng.integers(count, size=2))
        if kind == "unary":
            return kind, str(self.rng.choice(list(UNARY))), a
        if kind == "binary":
            return kind, str(self.rng.choice(list(BINARY))), a, b
        if kind == "scale":
            return kind, float(np.float32(self.rng.uniform(-0.9, 0.9))), a
        if kind == "total":
            return kind, a
        inner = [self.block(count + 2 * (kind == "while"), depth - 1, int(self.rng.integers(1, 4)))
                 for _ in range({"if": 2, "case": 3}.get(kind, 1))]
        if kind == "while":
            return kind, int(self.rng.integers(4)), a, b, inner[0]
        return (kind, a, *inner) if kind != "call" else (kind, inner[0])


def generate(seed: int) -> BodyProgram:
    """The same program for the same seed."""
    rng = np.random.default_rng([seed, 23])
    shape, dtype = SHAPES[rng.integers(len(SHAPES))], str(rng.choice(["float32", "float64"]))
    inputs = [np.asarray(rng.uniform(-1, 1, shape), dtype) for _ in range(2)]
    block = Maker(rng).block(2, int(rng.integers(1, 4)), int(rng.integers(2, 6)))
    return BodyProgram(block, inputs)


class Numbers:
    """What a program means, by NumPy, in the dtype of what it is given."""

    def __init__(self) -> None:
        self.chosen: List[int] = []  # by every branch that was taken, in turn

    def run(self, block: Block, values: List[Any]) -> Any:
        values = list(values)
        for kind, *rest in block:
            values.append(getattr(self, "on_" + kind)(values, *rest))
        return values[-1]

    def on_unary(self, values: List[Any], name: str, a: int) -> Any:
        return UNARY[name](values[a])

    def on_binary(self, values: List[Any], name: str, a: int, b: int) -> Any:
        return BINARY[name](values[a], values[b])

    def on_scale(self, values: List[Any], factor: float, a: int) -> Any:
        return values[a] * values[a].dtype.type(factor)

    def on_total(self, values: List[Any], a: int) -> Any:
        return np.zeros_like(values[a]) + np.tanh(values[a].sum())

    def on_if(self, values: List[Any], a: int, first: Block, second: Block) -> Any:
        return self._taken(int(not values[a].sum() > 0), (first, second), values)

    def on_case(self, values: List[Any], a: int, *blocks: Block) -> Any:
        total = values[a].sum()
        return self._taken(int(total > -0.5) + int(total > 0.5), blocks, values)

    def _taken(self, index: int, blocks: Tuple[Block, ...], values: List[Any]) -> Any:
        self.chosen.append(index)
        return self.run(blocks[index], values)

    def on_while(self, values: List[Any], times: int, a: int, b: int, block: Block) -> Any:
        first, second = values[a], values[b]
        for _ in range(times):
            first, second = np.tanh(self.run(block, values + [first, second])), first
        return first + second

    def on_call(self, values: List[Any], block: Block) -> Any:
        return self.run(block, values)


# --- Making a program smaller: candidates, the boldest first
# --------------------------------------------------------------------------------------------------


def kinds(block: Block) -> Iterator[str]:
    """The kind of every statement."""
    for statement in block:
        yield statement[0]
        for part in statement:
            if isinstance(part, list):
                yield from kinds(part)


def smaller(block: Block) -> Iterator[Block]:
    """The block with its end gone, a statement replaced by a plain one, or a body made smaller."""
    for end in range(1, len(block)):
        yield block[:end]
    for at, statement in enumerate(block):
        if any(isinstance(part, list) for part in statement):
            yield [*block[:at], ("unary", "neg", 0), *block[at + 1:]]
        for place, part in enumerate(statement):
            if isinstance(part, list):
                for less in smaller(part):
                    yield [*block[:at], (*statement[:place], less, *statement[place + 1:]),
                           *block[at + 1:]]
        if statement[0] == "while" and statement[1] > 1:
            yield [*block[:at], (statement[0], statement[1] - 1, *statement[2:]), *block[at + 1:]]


def smallest(block: Block, fails: Callable[[Block], bool], end: float) -> Block:
    """A block that still fails, of which no smaller one does; or what was found until `end`."""
    for candidate in smaller(block):
        if time.monotonic() > end:
            break
        if fails(candidate):
            return smallest(candidate, fails, end)
    return block


def show(program: BodyProgram) -> str:
    """A Python program that runs it."""
    inputs = ", ".join("np.array(%r, %r)" % (x.tolist(), x.dtype.name) for x in program.inputs)
    return ("import os\nimport sys\n\nimport numpy as np\n\n"
            "sys.path[:0] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]\n"
            "import cases_path  # noqa: E402, F401\nimport body_modes  # noqa: E402\n"
            "from bodies import BodyProgram  # noqa: E402\n\n"
            "body_modes.check(BodyProgram(%r, [%s]))\n" % (program.block, inputs))
