# SPDX-License-Identifier: Apache-2.0
"""How the cases reach Treenail: immediate execution, graphs, gradients."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

import numpy as np
import treenail as tn
from treenail import _treenail as core
from treenail._nest import flatten

from harness import Value

DESCRIPTIONS: Dict[str, Dict[str, Any]] = {d["name"]: d for d in core.describe_ops()}


def flat(values: Sequence[Any]) -> List[Value]:
    """The inputs with list arguments spread out."""
    return [v for value in values for v in (value if isinstance(value, list) else [value])]


def tensor(value: Value) -> Any:
    """Never an array: those are converted to the dtype of the inputs before them."""
    return core.tensor(value.array, value.dtype)


def _fed(value: Value) -> Any:
    return tensor(value) if value.dtype == "bfloat16" else value.array


def execute(op: str, values: Sequence[Any], attrs: Dict[str, Any]) -> List[np.ndarray]:
    """The op's outputs, computed at once; bfloat16 as bits."""
    inputs = [
        [tensor(v) for v in value] if isinstance(value, list) else tensor(value)
        for value in values
    ]
    return [np.asarray(output) for output in core.execute(op, inputs, attrs)]


def call(op: str, values: Sequence[Any], tensors: Iterator[Any], attrs: Dict[str, Any]) -> List[Any]:
    """The op's outputs, of tensors in place of the values, by its Python function."""
    inputs = [
        [next(tensors) for _ in value] if isinstance(value, list) else next(tensors)
        for value in values
    ]
    outputs = flatten(getattr(tn.raw_ops, op)(*inputs, **attrs))
    return [o for o in outputs if isinstance(o, tn.Tensor)]


def with_constants(op: str, values: Sequence[Any], tensors: Sequence[Any]) -> List[Any]:
    """The tensors, constants in place of those that the op wants in host memory."""
    host: List[bool] = []
    for value, argument in zip(values, DESCRIPTIONS[op]["inputs"]):
        host += [argument["host"]] * (len(value) if isinstance(value, list) else 1)
    return [
        tn.constant(v.array, v.dtype) if there else t
        for there, v, t in zip(host, flat(values), tensors)
    ]


class OpNode:
    """One op in the default graph, fed by placeholders, their shapes known or not."""

    def __init__(
        self,
        op: str,
        values: Sequence[Any],
        attrs: Dict[str, Any],
        known_shapes: bool = True,
        name: str = "op",
    ) -> None:
        self.placeholders: List[Any] = []
        self.values = values
        inputs = []
        for value, argument in zip(values, DESCRIPTIONS[op]["inputs"]):
            if isinstance(value, list):
                inputs.append([self._placeholder(v, known_shapes) for v in value])
            elif argument["host"]:  # known while the graph is built, as axes and shapes mostly are
                inputs.append(self._constant(value))
            else:
                inputs.append(self._placeholder(value, known_shapes))
        self.node = tn.get_default_graph().create_op(op, inputs, attrs=dict(attrs), name=name)
        self.outputs = list(self.node.outputs)

    def _placeholder(self, value: Value, known_shape: bool) -> Any:
        shape = list(value.array.shape) if known_shape else None
        self.placeholders.append(tn.placeholder(value.dtype, shape=shape))
        return self.placeholders[-1]

    def _constant(self, value: Value) -> Any:
        self.placeholders.append(None)
        return tn.constant(value.array, dtype=value.dtype)

    def feed(self, values: Sequence[Any] = ()) -> Dict[Any, Any]:
        """These values, or those it was made with."""
        given = zip(self.placeholders, flat(values or self.values))
        return {p: _fed(v) for p, v in given if p is not None}


class OpGraph(OpNode):
    """A graph of one op, and its gradients."""

    def __init__(
        self,
        op: str,
        values: Sequence[Any],
        attrs: Dict[str, Any],
        known_shapes: bool = True,
        device: str = "",
    ) -> None:
        """On a device, what that cannot compute runs on the CPU."""
        self.graph, self.device = tn.Graph(), device or None
        with self.graph.as_default(), self.graph.device(self.device):
            super().__init__(op, values, attrs, known_shapes)
        config = tn.ConfigProto(allow_soft_placement=True) if device else None
        self.session = tn.Session(graph=self.graph, config=config)

    def run(
        self, fetches: Any, values: Sequence[Any], arriving: Iterable[Tuple[Any, Any]] = ()
    ) -> List[np.ndarray]:
        """`arriving`: what gradients_of_fed() is fed, by its placeholders."""
        return self.session.run(fetches, feed_dict={**self.feed(values), **dict(arriving)})

    def gradients(
        self, ys: Sequence[Any], xs: Sequence[Any], weights: Sequence[Optional[np.ndarray]]
    ) -> List[Any]:
        """Gradients of sum(weights * ys), None where there is none."""
        with self.graph.as_default(), self.graph.device(self.device):
            grad_ys = [tn.constant(w) for w in weights]
            gradients = tn.gradients(list(ys), list(xs), grad_ys=grad_ys)
            # Slices (of gathers) are made dense.
            return [None if g is None else tn.convert_to_tensor(g) for g in gradients]

    def gradients_of_fed(
        self, ys: Sequence[Any], xs: Sequence[Any]
    ) -> Tuple[List[Any], List[Any]]:
        """Placeholders of the gradients that arrive at ys, and what goes on to xs, where any does."""
        with self.graph.as_default():
            arriving = [tn.placeholder(y.dtype, y.shape) for y in ys]
            gradients = tn.gradients(list(ys), list(xs), grad_ys=arriving)
            return arriving, [tn.convert_to_tensor(g) for g in gradients if g is not None]

    def op_types(self) -> List[str]:
        return sorted({node.type for node in self.graph.get_operations()})

    def close(self) -> None:
        self.session.close()


def error_class(code: str) -> type:
    return getattr(tn.errors, code + "Error")


def other_levels() -> List[str]:
    """Installed ISA levels that this CPU runs beside the one in use: those below it."""
    installed = core.build_info()["installed_kernel_levels"]
    return installed[: installed.index(core.kernel_level())]


def run_at_level(level: str, command: Sequence[str]) -> str:
    """What a Python command prints at another ISA level; fails with its end where it does."""
    done = subprocess.run(
        [sys.executable, *command],
        env=dict(os.environ, TREENAIL_CPU_ISA=level),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20000:]
    return done.stdout


def kernel_types(op: str) -> Set[str]:
    """Dtypes of attribute T with kernels; empty where kernels are not told apart by T."""
    types: Set[str] = set()
    for line in DESCRIPTIONS[op]["kernels"]:
        match = re.search(r"\bT in \{([^}]*)\}", line)
        if match:
            types |= {name.strip() for name in match.group(1).split(",")}
    return types
