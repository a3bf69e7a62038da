# SPDX-License-Identifier: Apache-2.0
"""Scopes of mixed precision. What is cast, op by op, is decided where operations are made
(binding/precision.cc); here is what a scope is, and what other code asks of it."""

from __future__ import annotations

from treenail import _treenail as _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DTYPES = {_core.bfloat16: _core.bfloat16, _core.float16: _core.float16, _core.float32: None}


class mixed_precision:  # noqa: N801 (used like a function, as tn.name_scope is)
    """A context manager in which operations are made in mixed precision.

    dtype: "bfloat16" or "float16", the narrow one; "float32" switches an outer scope off.

    Of the operations that are made inside, or run there with immediate execution,
    - matrix products, convolutions and the recurrent operations take their float32 inputs cast to
      the narrow dtype, and give it; a value is cast once;
    - sums, means, softmax, losses, norms, exponentials, logarithms and powers take narrow inputs
      cast to float32, and give it;
    - a bias takes the dtype of what it is added to; of batch normalisation the statistics are
      float32 and the results are as its inputs;
    - all others follow their inputs: narrow where all are, float32 where any is.

    Variables are float32: one of the narrow dtype that tn.get_variable or a layer is asked for is
    made as float32, and cast where it is used, so that its gradient is float32, too. Where a value
    of one of both dtypes is needed and one of the other is given, as for a variable, a TensorArray,
    the next value of a loop variable or the results of branches, it is cast. Gradients are of the
    operations that were made, wherever tn.gradients is called; what is traced inside (tn.function,
    branches, loops) belongs to the scope. Other dtypes stay as they are. A thread begins outside of
    all scopes, but those of replicas (tn.distribute) in that of their caller.

        with tn.train.mixed_precision("bfloat16"):
            logits = tn.layers.dense(tn.layers.dense(x, 64, activation=tn.nn.relu), 10)
            loss = tn.losses.sparse_softmax_cross_entropy(y, logits)
        train = tn.train.MixedPrecision(tn.train.AdamOptimizer(), "bfloat16").minimize(loss)

    Source: Micikevicius and others, Mixed Precision Training, 2018 (arXiv:1710.03740). Raises
    TypeError for what is no dtype, ValueError for another one.
    """

    __slots__ = ("_dtype",)

    def __init__(self, dtype: Any) -> None:
        self._dtype = checked_dtype(dtype, "mixed_precision(): dtype")

    def __enter__(self) -> None:
        _core.enter_precision(_DTYPES[self._dtype])

    def __exit__(self, *unused: Any) -> None:
        _core.leave_precision()

    def __repr__(self) -> str:
        return "<tn.train.mixed_precision %s>" % self._dtype.name


def checked_dtype(dtype: Any, what: str) -> Any:
    """The dtype of a scope. Raises TypeError and ValueError."""
    needed = "needed is 'bfloat16' or 'float16', or 'float32', which casts nothing"
    try:
        found = _core.as_dtype(dtype)
    except TypeError:
        raise TypeError("%s is %r; %s" % (what, dtype, needed)) from None
    if found not in _DTYPES:
        raise ValueError("%s is %r; %s" % (what, dtype, needed))
    return found


class as_around:  # noqa: N801 (a context manager)
    """The scope that is open where this is made, to be entered later."""

    __slots__ = ("_dtype",)

    def __init__(self) -> None:
        self._dtype = _core.precision()

    def __enter__(self) -> None:
        _core.enter_precision(self._dtype)

    def __exit__(self, *unused: Any) -> None:
        _core.leave_precision()


def common_precision(a: Any, b: Any) -> Any:
    """float32 where a scope would cast values of one of these two different dtypes to the other,
    else None."""
    narrow = _core.precision()
    if narrow is None or a == b:
        return None
    both = (narrow, _core.float32)
    return _core.float32 if a in both and b in both else None


def master_dtype(dtype: Any) -> Any:
    """The dtype of a variable that is asked for with this one."""
    return _core.float32 if dtype is not None and dtype == _core.precision() else dtype
