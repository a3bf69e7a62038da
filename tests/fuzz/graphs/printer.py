# SPDX-License-Identifier: Apache-2.0
"""A program and the run that fails, as a short Python program that stands on its own.

It ends with status 0 where Treenail does right: the plain run gives what the oracle says and the
other way gives the same bits (of gradients, what differences say is in the comment alone).
"""

from __future__ import annotations

from typing import Any, Dict, List

import numpy as np

import checker
import configurations
import interpreter
from configurations import Trial, Way, placeholders
from program import Node, Program, Ref

HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""%s"""

import numpy as np
import treenail as tn
from treenail import _treenail as core
from treenail import raw_ops

graph = tn.Graph()
with graph.as_default(), graph.device(%s):
'''
RUNS = '''


def run(fetches, threads=1, runs=1, generic=False, **passes):
    """Values as arrays; variables begin anew. generic: by the plan for shapes that never repeat."""
    core.set_num_threads(threads)
    options = tn.OptimizerOptions(**passes)
    config = tn.ConfigProto(graph_options=tn.GraphOptions(optimizer_options=options),
                            allow_soft_placement=True)
    with tn.Session(graph=graph, config=config) as session:
        for size in range(18 if generic else runs):
            session.run(initial)
            feeds[ticket] = np.zeros(size + 2 if generic else 1, np.float32)
            results = session.run([*fetches, stamp], feeds)[:-1]
        return [None if r is None else np.asarray(r) for r in results]


plain = run(fetches, do_constant_folding=False, do_common_subexpression_elimination=False,
            do_elementwise_fusion=False)
'''


def literal(array: np.ndarray, dtype: str) -> str:
    """An expression for the array; zeros keep their sign."""
    values = array.reshape(-1)
    if array.size > 12 and array.size and len({v.tobytes() for v in values}) == 1:
        return "np.full(%r, %r, np.%s)" % (array.shape, values[0].item(), array.dtype)
    text = "np.array(%s, np.%s)" % (_listed(array.tolist()), array.dtype)
    return text + (".reshape(%r)" % (array.shape,) if 0 in array.shape else "")


def _listed(values: Any) -> str:
    text = repr(values)
    return text.replace("nan", "np.nan").replace("inf", "np.inf")


def given(array: np.ndarray, dtype: str) -> str:
    text = literal(array, dtype)
    return 'core.tensor(%s, "bfloat16")' % text if dtype == "bfloat16" else text


class Names:
    """How tensors are called: n3, or n3[1] of a node with several outputs."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def tensor(self, ref: Ref) -> str:
        node = self.program.nodes[ref[0]]
        declared = interpreter.backend.DESCRIPTIONS.get(node.op, {"outputs": []})["outputs"]
        several = len(declared) > 1 or any(o["is_list"] for o in declared) or (
            node.op == "Gradients")
        return "n%d[%d]" % ref if several else "n%d" % ref[0]

    def operation(self, i: int) -> str:
        node = self.program.nodes[i]
        return "n%d" % i if not node.dtypes else self.tensor((i, 0)) + ".op"


def statement(program: Program, names: Names, i: int, node: Node, known: bool) -> List[str]:
    if node.op == "Const":
        return ["n%d = tn.constant(%s)" % (i, given(node.value, node.dtypes[0]))]
    if node.op == "Placeholder":
        shape = repr(list(node.value.shape)) if known else "None"
        return ["n%d = tn.placeholder(%r, %s)" % (i, node.dtypes[0], shape)]
    inputs = ["[%s]" % ", ".join(map(names.tensor, item)) if isinstance(item, list)
              else names.tensor(item) for item in node.inputs]
    if node.op == "Gradients":
        return ["n%d = [tn.zeros_like(x) if g is None else tn.identity(g) for g, x in" % i,
                "       zip(tn.gradients(%s, %s), %s)]" % (inputs[0], inputs[1], inputs[1])]
    words = inputs + ["%s=%r" % item for item in node.attrs.items()]
    if node.op == "VarHandleOp":
        return ["n%d = raw_ops.VarHandleOp(%s, shared_name='v%d')" % (i, ", ".join(words), i),
                "initial.append(raw_ops.AssignVariableOp(n%d, tn.constant(%s)))" % (
                    i, given(node.value, node.attrs["dtype"]))]
    return ["n%d = raw_ops.%s(%s)" % (i, node.op, ", ".join(words))]


def show(program: Program, trial: Trial, about: str) -> str:
    """The text."""
    if trial.other:
        program = checker.with_other_shapes(program)
    names = Names(program)
    lines = ["    initial = []", "    ticket = tn.placeholder('float32', None)",
             "    stamp = tn.identity(ticket)"]
    for i, node in program.nodes.items():
        found = statement(program, names, i, node, trial.way.known_shapes)
        indent = "    "
        if node.control:
            lines.append("    with graph.control_dependencies([%s]):" % ", ".join(
                names.operation(c) for c in node.control))
            indent = "        "
        lines += [indent + line for line in found]
    feeds: Dict[Ref, np.ndarray] = placeholders(program, trial.other)
    if trial.fed:
        feeds.update(program.feeds)
    lines.append("feeds = {%s}" % ",\n         ".join(
        "%s: %s" % (names.tensor(r), given(v, program.dtype(r))) for r, v in feeds.items()))
    fetches = trial.fetches or [*program.tensors(), *program.operations()]
    lines.append("fetches = [%s]" % ", ".join(
        names.operation(f) if isinstance(f, int) else names.tensor(f) for f in fetches))
    title = about.split("\n", 1)[0][:90].replace("\\", "").replace('"', "'")
    head = HEAD % (title, repr(configurations.DEVICE or None))
    return head + "\n".join(lines) + RUNS + _checks(program, trial, fetches, feeds)


def _checks(program: Program, trial: Trial, fetches: List[Any], feeds: Any) -> str:
    text = ""
    if trial.way != Way():
        way = trial.way
        text += ("other = run(fetches, threads=%d, runs=2, generic=%r, do_constant_folding=%r,\n"
                 "            do_common_subexpression_elimination=%r, do_elementwise_fusion=%r)\n"
                 "for a, b in zip(plain, other):\n"
                 "    assert a is None or a.tobytes() == b.tobytes(), (a, b)\n") % (
                     way.threads, way.generic, way.folding, way.merging, way.fusion)
    if "gradient" in program.traits and trial.way == Way():
        return text
    run = interpreter.Run(program, feeds, skip=True).all()
    for at, fetch in enumerate(fetches):
        if isinstance(fetch, int) or fetch not in run.values or run.values[fetch].size > 40:
            continue
        if program.dtype(fetch) == "bfloat16" or (
                run.values[fetch].dtype.kind == "c" and not np.isfinite(run.values[fetch]).all()):
            continue
        text += "np.testing.assert_allclose(plain[%d], %s,\n                           %s)\n" % (
            at, literal(run.values[fetch], program.dtype(fetch)),
            "rtol=2e-2, atol=2e-2" if "16" in program.dtype(fetch) else "rtol=1e-4, atol=1e-4")
    return text
