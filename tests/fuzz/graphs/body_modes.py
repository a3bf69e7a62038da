# SPDX-License-Identifier: Apache-2.0
"""Runs programs of branches, loops and calls (bodies.py) in every mode: in sessions, at once and by
tn.function, with gradients.

All values must have the same bits, and gradients too, but where they are summed in another
association and agree to rounding: of branches that run at once, without the branches around them,
and of functions called against the same in place.
Values are held to the interpreter over NumPy, in float64, and gradients in float64 to differences
of it.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import numpy as np
import treenail as tn
from treenail import _treenail as core

from bodies import Block, BodyProgram, Numbers
from configurations import Failure, bits

Results = List[Optional[np.ndarray]]  # the value, and its gradient by each input


class Tensors(Numbers):
    """The same by Treenail, in whatever mode; functions: calls are of tn.function."""

    def __init__(self, functions: bool) -> None:
        super().__init__()
        self.functions = functions

    def on_unary(self, values: List[Any], name: str, a: int) -> Any:
        return getattr(tn, name)(values[a])

    def on_binary(self, values: List[Any], name: str, a: int, b: int) -> Any:
        return getattr(tn, name)(values[a], values[b])

    def on_scale(self, values: List[Any], factor: float, a: int) -> Any:
        return values[a] * factor

    def on_total(self, values: List[Any], a: int) -> Any:
        return tn.zeros_like(values[a]) + tn.tanh(tn.reduce_sum(values[a]))

    def on_if(self, values: List[Any], a: int, first: Block, second: Block) -> Any:
        return tn.cond(tn.reduce_sum(values[a]) > 0.0, lambda: self.run(first, values),
                       lambda: self.run(second, values))

    def on_case(self, values: List[Any], a: int, *blocks: Block) -> Any:
        total = tn.reduce_sum(values[a])
        index = tn.cast(total > -0.5, tn.int32) + tn.cast(total > 0.5, tn.int32)
        return tn.switch_case(index, [lambda b=b: self.run(b, values) for b in blocks])

    def on_while(self, values: List[Any], times: int, a: int, b: int, block: Block) -> Any:
        def step(i: Any, first: Any, second: Any) -> tuple:
            return i + 1, tn.tanh(self.run(block, values + [first, second])), first
        _, first, second = tn.while_loop(lambda i, *_: i < times, step,
                                         (tn.constant(0), values[a], values[b]))
        return first + second

    def on_call(self, values: List[Any], block: Block) -> Any:
        if not self.functions:
            return self.run(block, values)
        return tn.function(lambda *given: self.run(block, list(given)), autograph=False)(*values)


def in_a_session(program: BodyProgram, functions: bool, passes: bool = True,
                 known_shapes: bool = True) -> Results:
    options = tn.OptimizerOptions(
        do_constant_folding=passes, do_common_subexpression_elimination=passes,
        do_elementwise_fusion=passes)
    config = tn.ConfigProto(graph_options=tn.GraphOptions(optimizer_options=options))
    with tn.Graph().as_default() as graph:
        given = [tn.placeholder(x.dtype, x.shape if known_shapes else None)
                 for x in program.inputs]
        y = Tensors(functions).run(program.block, given)
        gradients = tn.gradients(y, given)
        fetched = [y] + [g for g in gradients if g is not None]
        with tn.Session(graph=graph, config=config) as session:
            feed = dict(zip(given, program.inputs))
            first = session.run(fetched, feed)
            found = iter(session.run(fetched, feed))
        results = [next(found)] + [None if g is None else next(found) for g in gradients]
        same("a second run", [r for r in results if r is not None], first)
        return results


def at_once(program: BodyProgram, functions: bool, whole: bool = False,
            known_shapes: bool = True) -> Results:
    """whole: all of it is one tn.function."""
    with tn.eager():
        given = [tn.constant(x) for x in program.inputs]

        def run(*values: Any) -> Any:
            return Tensors(functions).run(program.block, list(values))
        if whole:
            signature = None if known_shapes else [tn.TensorSpec(None, x.dtype) for x in given]
            run = tn.function(run, input_signature=signature, autograph=False)
        with tn.GradientTape() as tape:
            tape.watch(given)
            y = run(*given)
        gradients = tape.gradient(y, given)
        if whole:  # the same trace, whose branches and loops have others beside them by now
            same("a call without a tape", [run(*given).numpy()], [y.numpy()])
        return [y.numpy()] + [None if g is None else g.numpy() for g in gradients]


def same(mode: str, found: Sequence[Any], reference: Sequence[Any], rounded: bool = False) -> None:
    """No path, and a path that a branch leaves, are both no gradient. rounded: but the value."""
    for number, (x, y) in enumerate(zip(found, reference)):
        if x is None or y is None:
            agree = not np.any(x if y is None else y)
        elif rounded and number > 0:
            scale = max(1.0, float(np.max(np.abs(y), initial=0.0)))
            agree = np.allclose(x, y, rtol=0, atol=1e-5 * scale, equal_nan=True)
        else:
            x, y = np.asarray(x), np.asarray(y)
            if number > 0 and mode.endswith("shapes unknown"):
                x, y = x + 0.0, y + 0.0  # a sum over no axes, left out otherwise, makes -0 a 0
            agree = bits(x) == bits(y)
        if not agree:
            what = "gradient %d" % (number - 1) if number else "the value"
            raise Failure("bits", "%s: %s is\n%r\nnot\n%r" % (mode, what, x, y),
                          key="bits of " + mode)


def judge(program: BodyProgram, results: Results) -> bool:
    """By NumPy; False where a branch hangs on the last digits, so that it cannot tell."""
    narrow, exact = Numbers(), Numbers()
    with np.errstate(all="ignore"):
        rounded = narrow.run(program.block, program.inputs)
        want = exact.run(program.block, [x.astype(np.float64) for x in program.inputs])
        value = np.asarray(results[0])
        if narrow.chosen != exact.chosen or not np.isfinite(want).all():
            return False
        epsilon = np.finfo(value.dtype).eps
        allowed = 1000 * np.abs(rounded - want) + 1e4 * epsilon * np.maximum(1, np.abs(want))
        if value.shape != want.shape or (np.abs(value - want) > allowed).any():
            raise Failure("oracle", "the value is\n%r\nby NumPy\n%r" % (value, want),
                          key="oracle")
        if value.dtype == np.float64:
            judge_gradient(program, results[1:])
    return True


def judge_gradient(program: BodyProgram, gradients: Results) -> None:
    """Along a random direction; not at a kink or a jump, where steps of two lengths differ."""
    rng = np.random.default_rng(5)
    ways = [rng.uniform(-1, 1, x.shape) for x in program.inputs]

    def slope(step: float) -> float:
        ends = [Numbers().run(program.block, [x + s * w for x, w in zip(program.inputs, ways)])
                for s in (step, -step)]
        return float((ends[0].sum() - ends[1].sum()) / (2 * step))
    measured = slope(1e-6)
    found = float(sum(np.sum(g * w) for g, w in zip(gradients, ways) if g is not None))
    scale = max([1.0] + [float(np.max(np.abs(g), initial=0)) for g in gradients if g is not None])
    if abs(measured - slope(3e-6)) > 1e-6 * scale or scale > 1e6:
        return
    if abs(measured - found) > 1e-4 * scale:
        raise Failure("gradient", "along a direction it is %r, differences give %r" % (
            found, measured), key="gradient")


# By a program and whether its calls are functions of their own.
MODES: Dict[str, Any] = {
    "a session without passes": lambda p, calls: in_a_session(p, calls, passes=False),
    "a session, shapes unknown": lambda p, calls: in_a_session(p, calls, known_shapes=False),
    "a function": lambda p, calls: at_once(p, calls, whole=True),
    "a function, shapes unknown": lambda p, calls: at_once(p, calls, whole=True,
                                                           known_shapes=False),
    "at once": at_once,
}


def check(program: BodyProgram) -> int:
    """How many runs it was. Errors: Failure."""
    mode = "a session"
    try:
        references = []
        for calls in (False, True):
            core.set_num_threads(1)
            references.append(in_a_session(program, calls))
            core.set_num_threads(3)
            for mode, run in MODES.items():
                same(mode, run(program, calls), references[-1], rounded=mode == "at once")
        # The gradients of what a call reads are summed there first.
        same("calls", references[1], references[0], rounded=True)
    except (tn.errors.OpError, ValueError, TypeError, RuntimeError) as error:
        raise Failure("error", "%s: %s: %s" % (mode, type(error).__name__, str(error)[:600]),
                      key="error in " + mode) from error
    judge(program, references[0])
    return 2 * (1 + len(MODES))
