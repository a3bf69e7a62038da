# SPDX-License-Identifier: Apache-2.0
"""Runs a program in Treenail in every way there is, and compares.

The reference is a session without folding, merging and fusion, on one thread, that fetches every
tensor: interpreter.py judges it node by node. All other ways must give the same bits as it: passes
on and off, 1, 2, 3 and 8 threads, shapes known while the graph is built or only when it is run,
few fetches (so that buffers are shared and element-wise ops fused), runs repeated on the arena, the
generic plan of a session whose shapes never repeat, other shapes in between.
"""

from __future__ import annotations

import functools
import itertools
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Set

import numpy as np
import treenail as tn
from treenail import _treenail as core

import interpreter  # sets the path for the next
import backend
from program import HANDLES, Node, Program, Ref, dense

THREADS = (1, 2, 3, 8)
PASSES = tuple(itertools.product((False, True), repeat=3))
# Where all nodes are asked to run, what has no kernel there on the CPU; "": nowhere in particular.
DEVICE = os.environ.get("TREENAIL_FUZZ_DEVICE", "")
# The session keeps a plan per shape until so many shapes in a row were new.
MISSES_BEFORE_GENERIC = 16


@dataclass(frozen=True)
class Way:
    folding: bool = False
    merging: bool = False
    fusion: bool = False
    threads: int = 1
    known_shapes: bool = True
    generic: bool = False

    def text(self) -> str:
        return ", ".join("%s=%r" % item for item in sorted(self.__dict__.items()))


class Failure(Exception):
    """A defect. kind: bits, oracle, shape, error, gradient; crash and hang are seen from outside.

    key is what must stay the same while it is shrunk.
    """

    def __init__(self, kind: str, text: str, node: Optional[int] = None, key: str = "") -> None:
        super().__init__("%s: %s" % (kind, text))
        self.kind, self.text, self.node, self.key = kind, text, node, key or kind


@dataclass
class Trial:
    """One run, in one way, beside the reference's: what a failure is shrunk with."""

    way: Way
    fetches: List[Any]  # empty: everything
    fed: bool = False  # Program.feeds too, beside the placeholders
    other: bool = False  # placeholders have their other shapes


def given(array: np.ndarray, dtype: str) -> Any:
    """bfloat16 crosses as bits."""
    return core.tensor(array, dtype) if dtype == "bfloat16" else array


class Built:
    """The program as a graph: tensors by Ref, operations by node."""

    def __init__(self, program: Program, known_shapes: bool = True, other: bool = False,
                 lenient: bool = False) -> None:
        self.program, self.graph = program, tn.Graph()
        self.refused: Set[int] = set()
        self.tensors: Dict[Ref, Any] = {}
        self.operations: Dict[int, Any] = {}
        self.initial: List[Any] = []
        with self.graph.as_default(), self.graph.device(DEVICE or None):
            self.ticket = tn.placeholder("float32", None)
            self.stamp = tn.identity(self.ticket)
            for i, node in program.nodes.items():
                if lenient and any(r[0] in self.refused for r in node.refs()):
                    self.refused.add(i)
                    continue
                try:
                    self._add(i, node, known_shapes, other)
                except (tn.errors.OpError, ValueError, TypeError) as error:
                    if not lenient:
                        raise Failure("error", "%s is refused: %s" % (node.op, error), i,
                                      "refused " + node.op) from error
                    self.refused.add(i)

    def _add(self, i: int, node: Node, known_shapes: bool, other: bool) -> None:
        control = [self.operations[c] for c in node.control if c in self.operations]
        with self.graph.control_dependencies(control):
            outputs = self._outputs(i, node, known_shapes, other)
        for k, tensor in enumerate(outputs):
            self.tensors[(i, k)] = tensor

    def _outputs(self, i: int, node: Node, known_shapes: bool, other: bool) -> List[Any]:
        if node.op == "Const":
            tensor = tn.constant(given(node.value, node.dtypes[0]))
        elif node.op == "Placeholder":
            shape = list((node.value if node.other is None or not other else node.other).shape)
            tensor = tn.placeholder(node.dtypes[0], shape if known_shapes else None)
        elif node.op == "Gradients":
            return self._gradients(i, node)
        else:
            inputs = [[self.tensors[r] for r in item] if isinstance(item, list)
                      else self.tensors[item] for item in node.inputs]
            attrs = dict(node.attrs)
            if node.op == "VarHandleOp":
                attrs["shared_name"] = "v%d" % i
            operation = self.graph.create_op(node.op, inputs, attrs=attrs, name="n%d" % i)
            self.operations[i] = operation
            if node.op == "VarHandleOp":
                self._initialise(operation.outputs[0], node)
            return list(operation.outputs)
        self.operations[i] = tensor.op
        return [tensor]

    def _initialise(self, handle: Any, node: Node) -> None:
        with self.graph.control_dependencies(None):
            value = tn.constant(given(node.value, node.attrs["dtype"]))
            self.initial.append(self.graph.create_op("AssignVariableOp", [handle, value], attrs={}))

    def _gradients(self, i: int, node: Node) -> List[Any]:
        ys, xs = [[self.tensors[r] for r in item] for item in node.inputs]
        found = tn.gradients(ys, xs, stop_gradients=None)
        outputs = [tn.zeros_like(x) if g is None else tn.identity(tn.convert_to_tensor(g))
                   for g, x in zip(found, xs)]
        self.operations[i] = outputs[0].op
        return outputs


@functools.lru_cache(maxsize=None)
def need_device() -> None:
    """Raises where DEVICE is not there: everything would run on the CPU."""
    if DEVICE:
        with tn.Graph().as_default(), tn.device(DEVICE):
            y = tn.exp(tn.placeholder("float32", []))
            with tn.Session() as session:
                session.run(y, {y.op.inputs[0]: 0.0})


class Runner:
    """One session over one graph."""

    def __init__(self, built: Built, way: Way) -> None:
        self.built, self.way = built, way
        self.sizes = itertools.count(2)  # of tickets: none comes back in this session
        options = tn.OptimizerOptions(
            do_constant_folding=way.folding, do_common_subexpression_elimination=way.merging,
            do_elementwise_fusion=way.fusion)
        self.session = tn.Session(graph=built.graph, config=tn.ConfigProto(
            allow_soft_placement=bool(DEVICE),
            graph_options=tn.GraphOptions(optimizer_options=options)))

    def run(self, fetches: Sequence[Any], feeds: Dict[Ref, np.ndarray]) -> List[Any]:
        """Values of Refs, None for operations. Variables begin anew each time."""
        built, program = self.built, self.built.program
        core.set_num_threads(self.way.threads)
        if built.initial:
            self.session.run(built.initial)
        feed = {built.tensors[r]: given(v, program.dtype(r)) for r, v in feeds.items()}
        wanted = [built.operations[f] if isinstance(f, int) else built.tensors[f] for f in fetches]
        if not self.way.generic:
            return self.session.run(wanted, feed)
        for _ in range(MISSES_BEFORE_GENERIC + 2):
            feed[built.ticket] = np.zeros(next(self.sizes), np.float32)
            if built.initial:
                self.session.run(built.initial)
            metadata = tn.RunMetadata()
            results = self.session.run(wanted + [built.stamp], feed, run_metadata=metadata)[:-1]
        if metadata.specialized:
            raise Failure("error", "the plan was specialised for shapes that never repeat")
        return results

    def close(self) -> None:
        self.session.close()


def bits(value: Any) -> Any:
    return None if value is None else (value.dtype.str, value.shape, value.tobytes())


def arrays(results: Sequence[Any]) -> List[Any]:
    return [None if r is None else dense(np.asarray(r))
            for r in results]


def placeholders(program: Program, other: bool = False) -> Dict[Ref, np.ndarray]:
    return {(i, 0): n.other if other and n.other is not None else n.value
            for i, n in program.nodes.items() if n.op == "Placeholder"}


def attempt(runner: Runner, fetches: Sequence[Any], feeds: Dict[Ref, np.ndarray]) -> List[Any]:
    """A run that must succeed."""
    try:
        return arrays(runner.run(fetches, feeds))
    except (tn.errors.OpError, ValueError, TypeError, RuntimeError) as error:
        raise Failure("error", "%s: %s" % (type(error).__name__, str(error)[:600]),
                      key="error " + type(error).__name__) from error


def reference(built: Built, feeds: Dict[Ref, np.ndarray],
              dead: Sequence[int] = ()) -> Dict[Any, np.ndarray]:
    """Every value, by the plainest run; judged."""
    program = built.program
    dead = set(dead)
    fetches: List[Any] = [r for r in program.tensors() if r[0] not in dead] + [
        i for i in program.operations() if i not in dead]
    runner = Runner(built, Way())
    try:
        results = attempt(runner, fetches, feeds)
    finally:
        runner.close()
    values = dict(zip(fetches, results))
    judge_all(program, values, feeds, dead)
    return values


def judge_all(program: Program, values: Dict[Any, np.ndarray], feeds: Dict[Ref, np.ndarray],
              dead: Any) -> None:
    states: Dict[int, np.ndarray] = {}
    for ref, array in feeds.items():
        if ref in values and bits(values[ref]) != bits(dense(array)):
            raise Failure("oracle", "what is fed is not what is fetched of n%d" % ref[0], ref[0])
    for i, node in program.nodes.items():
        if i in dead:
            continue
        if node.op == "VarHandleOp":
            states[i] = interpreter.numbers(node.value, node.attrs["dtype"])
        fed = [r for r in feeds if r[0] == i]
        try:
            if node.op == "Const" and not fed:
                if bits(values[(i, 0)]) != bits(dense(node.value)):
                    raise interpreter.Wrong(i, "constant n%d has another value" % i)
            elif node.inputs and not isinstance(node.inputs[0], list) and (
                    node.inputs[0][0] in states):
                if not fed:
                    interpreter.judge_access(program, i, values, states)
            elif not fed:
                interpreter.judge(program, i, values)
        except interpreter.Wrong as wrong:
            raise Failure("oracle", str(wrong), wrong.node, "oracle " + node.op) from wrong


def check_static_shapes(built: Built, values: Dict[Any, np.ndarray]) -> None:
    for ref, tensor in built.tensors.items():
        if ref not in values or values[ref] is None or built.program.nodes[ref[0]].op in HANDLES:
            continue
        shape = tensor.shape
        dims = None if shape.ndims is None else shape.as_list()
        got = values[ref].shape
        if dims is not None and (len(dims) != len(got) or any(
                d is not None and d != g for d, g in zip(dims, got))):
            raise Failure("shape", "n%d is %s, its shape said %s" % (ref[0], list(got), dims),
                          ref[0], "shape " + built.program.nodes[ref[0]].op)


def compare(runner: Runner, fetches: Sequence[Any], feeds: Dict[Ref, np.ndarray],
            values: Dict[Any, np.ndarray]) -> None:
    """The same bits as the reference's."""
    for fetch, got in zip(fetches, attempt(runner, fetches, feeds)):
        if isinstance(fetch, int) or bits(got) == bits(values[fetch]):
            continue
        op = runner.built.program.nodes[fetch[0]].op
        raise Failure("bits", "%s (n%d): %s" % (op, fetch[0], difference(got, values[fetch])),
                      fetch[0])


def difference(got: np.ndarray, want: np.ndarray) -> str:
    if got.dtype != want.dtype or got.shape != want.shape:
        return "%s%s instead of %s%s" % (got.dtype, list(got.shape), want.dtype, list(want.shape))
    step = got.dtype.itemsize
    a = np.frombuffer(got.tobytes(), np.uint8).reshape(-1, step)
    b = np.frombuffer(want.tobytes(), np.uint8).reshape(-1, step)
    wrong = np.flatnonzero((a != b).any(1))
    at = int(wrong[0])
    return "element %d of %d wrong ones is %r instead of %r" % (
        at, len(wrong), got.reshape(-1)[at], want.reshape(-1)[at])


def levels() -> List[str]:
    """Installed ISA levels that this CPU runs, lowest first."""
    return [*backend.other_levels(), core.kernel_level()]


def level() -> str:
    return os.environ.get("TREENAIL_CPU_ISA") or core.kernel_level()


def fetch_sets(program: Program, rng: np.random.Generator, live: Sequence[Any]) -> List[List[Any]]:
    """Everything; what nobody reads; a few at random. With operations always: assignments."""
    counts = program.consumers()
    tensors = [f for f in live if not isinstance(f, int)]
    rest = [f for f in live if isinstance(f, int)]
    ends = [r for r in tensors if counts[r[0]] == 0]
    few = [tensors[int(j)] for j in rng.integers(0, len(tensors), 3)] if tensors else []
    return [s for s in ([*ends, *rest], [*dict.fromkeys(few), *rest[:1]], list(live)) if s]


def ways(rng: np.random.Generator) -> List[Way]:
    """All combinations of passes, each with known and with unknown shapes, threads in turn."""
    start = int(rng.integers(4))
    found = []
    for j, passes in enumerate(PASSES):
        for known in (True, False):
            found.append(Way(*passes, threads=THREADS[(start + j + 2 * known) % 4],
                             known_shapes=known))
    return found
