# SPDX-License-Identifier: Apache-2.0
"""What a model's constants alone determine, evaluated while its graph is built.

Exporters compute shapes and axes by operations; converters want them as numbers. A node whose
inputs are all constants is run at once and its outputs become constants, so that the extents of
whatever follows are exact and no constant grows unseen: what is large stays an operation. A model
cannot make this take long: there is a limit of time for all of it.
"""

from __future__ import annotations

import time

from treenail import errors
from treenail._convert import constant
from treenail._session import RunOptions, Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from treenail._treenail import Tensor

# Shapes, axes, masks; what is larger is left to a run of the graph.
MAX_ELEMENTS = 1 << 20
MAX_SECONDS = 20.0
SECONDS_PER_ELEMENT = 1e-7  # more for larger weights


class Constants:
    """The tensors of a graph that depend on nothing a run is given."""

    def __init__(self, graph: Any) -> None:
        self._graph, self._session = graph, None
        self._fixed: set = set()
        self._left, self._room = MAX_SECONDS, 0

    def __contains__(self, tensor: Tensor) -> bool:
        return tensor in self._fixed

    def add(self, tensor: Tensor) -> None:
        """Notes a constant of the model."""
        self._fixed.add(tensor)
        size = tensor.shape.num_elements() or 0
        self._room += 2 * size
        self._left += SECONDS_PER_ELEMENT * size

    def settled(self, tensor: Tensor) -> Tensor:
        """Weights in another order, as a constant. In all there may be twice as many elements as
        the model's weights have: many nodes may use one weight."""
        size = tensor.shape.num_elements()
        if size is None or size > self._room:
            return tensor
        self._room -= size
        return self.fixed(tensor, size)

    def fixed(self, tensor: Tensor, limit: int = MAX_ELEMENTS) -> Tensor:
        """A tensor that depends on constants alone, as a constant; itself where it is large, of
        bfloat16 (no NumPy type), or cannot be computed, which a run will tell."""
        if tensor.op.type != "Const":
            value = tensor._known_value
            if value is None and tensor.dtype.name != "bfloat16":
                value = self.value(tensor, limit)
            if value is None:
                return tensor
            tensor = constant(value, tensor.dtype)
        self._fixed.add(tensor)
        return tensor

    def value(self, tensor: Tensor, limit: int = MAX_ELEMENTS) -> Any:
        """The value of a tensor that depends on constants alone, or None; limit: of elements."""
        if (tensor.shape.num_elements() or 0) > limit or self._left <= 0:
            return None
        if self._session is None:
            self._session = Session(graph=self._graph)
        begin = time.monotonic()
        try:
            options = RunOptions(timeout_in_ms=int(self._left * 1000) + 1)
            return self._session.run(tensor, options=options)
        except errors.OpError:
            return None
        finally:
            self._left -= time.monotonic() - begin

    def close(self) -> None:
        """Frees the session."""
        if self._session is not None:
            self._session.close()
