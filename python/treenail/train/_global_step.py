# SPDX-License-Identifier: Apache-2.0
"""The global step: an int64 variable that counts training steps."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._framework import Graph, GraphKeys, get_default_graph
from treenail._initializer_values import ZEROS
from treenail._treenail import Tensor
from treenail._variable_scope import get_variable
from treenail._variables import Variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def assert_global_step(global_step_tensor: Any) -> None:
    """Raises TypeError or ValueError unless it is an integer scalar."""
    if not isinstance(global_step_tensor, (Variable, Tensor)):
        raise TypeError("Existing \"global_step\" must be a Variable or Tensor: %r."
                        % (global_step_tensor,))
    if not global_step_tensor.dtype.is_integer:
        raise TypeError("Existing \"global_step\" does not have integer type: %s"
                        % global_step_tensor.dtype.name)
    if global_step_tensor.shape.ndims not in (0, None):
        raise ValueError("Existing \"global_step\" is not scalar: %s" % global_step_tensor.shape)


def _graph(graph: Any) -> Graph:
    if graph is not None and not isinstance(graph, Graph):
        raise TypeError("graph must be a Graph, not %r" % (graph,))
    return get_default_graph() if graph is None else graph


def get_global_step(graph: Graph | None = None) -> Any:
    """The global step of a graph (the default one), or None."""
    graph = _graph(graph)
    steps = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(steps) > 1:
        raise ValueError("Multiple tensors in global_step collection.")
    if not steps:
        return None
    assert_global_step(steps[0])
    return steps[0]


def create_global_step(graph: Graph | None = None) -> Variable:
    """A new global step. Raises ValueError when there is one already."""
    graph = _graph(graph)
    if get_global_step(graph) is not None:
        raise ValueError("\"global_step\" already exists.")
    with graph.as_default(), graph.name_scope(None):
        return get_variable(GraphKeys.GLOBAL_STEP, [], _core.int64, ZEROS, trainable=False,
                            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
                            aggregation="ONLY_FIRST_REPLICA")


def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """The global step of a graph (the default one), made if there is none."""
    step = get_global_step(graph)
    return create_global_step(graph) if step is None else step


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The number of steps so far, in `sess`."""
    if not hasattr(sess, "run"):
        raise TypeError("sess must be a Session, not %r" % (sess,))
    return int(sess.run(global_step_tensor))
