# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries as tensors by DLPack, without a copy. The other way is a method of
concrete tensors: numpy.from_dlpack(tensor), torch.from_dlpack(tensor)."""

from __future__ import annotations

from treenail import _treenail as _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from treenail._treenail import Tensor

__all__ = ["from_dlpack"]


def from_dlpack(x: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """The array `x` of another library (NumPy, PyTorch, JAX, ...) as a concrete tensor over the
    same memory, by DLPack.

    x: an object with __dlpack__ and __dlpack_device__, in the host's memory; or a capsule of
    DLPack, which can be taken once. device: None or "cpu". copy: None copies where the memory
    cannot be used as it lies (other strides, elements that are not aligned, bools other than 0 and
    1), True always, False never.

    The memory is x's: who writes to it later changes the tensor, so write only when it is no longer
    used; ops never write to it. It is given back when the last tensor that uses it ends.

    Raises TypeError for an object without these methods, BufferError for another device, elements
    that have no dtype here, a capsule that was taken before, or a copy that copy=False forbids.
    """
    if device is not None and device not in ("cpu", "/cpu:0", "/device:CPU:0"):
        raise BufferError("from_dlpack(): device = %r; needed is None or 'cpu'" % (device,))
    try:
        return _core.from_dlpack(x, copy)
    except BufferError as error:  # the library's own, too
        raise BufferError("from_dlpack(): %s" % error) from None
