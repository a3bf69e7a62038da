# SPDX-License-Identifier: Apache-2.0
"""Learning rates as functions of the step."""

from __future__ import annotations

import math

from treenail import _treenail as _core
from treenail._convert import convert_to_tensor, scope_of
from treenail._math import cast
from treenail._ops import ops
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def _fraction(global_step: Any, decay_steps: Any, dtype: Any, staircase: bool) -> Tensor:
    if global_step is None:
        raise ValueError("global_step is required for a learning-rate schedule.")
    step = cast(global_step, dtype)
    fraction = ops.RealDiv(step, cast(decay_steps, dtype))
    return ops.Floor(fraction) if staircase else fraction


def exponential_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any,
                      staircase: bool = False, name: str | None = None) -> Tensor:
    """learning_rate * decay_rate ** (global_step / decay_steps); staircase: with the quotient
    rounded down."""
    with scope_of(name, "ExponentialDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="learning_rate")
        exponent = _fraction(global_step, decay_steps, rate.dtype, staircase)
        return ops.Mul(rate, ops.Pow(convert_to_tensor(decay_rate, rate.dtype), exponent),
                       name=scope)


def natural_exp_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any,
                      staircase: bool = False, name: str | None = None) -> Tensor:
    """learning_rate * exp(-decay_rate * global_step / decay_steps)."""
    with scope_of(name, "NaturalExpDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="learning_rate")
        exponent = -convert_to_tensor(decay_rate, rate.dtype) * _fraction(global_step, decay_steps,
                                                                          rate.dtype, staircase)
        return ops.Mul(rate, ops.Exp(exponent), name=scope)


def inverse_time_decay(learning_rate: Any, global_step: Any, decay_steps: Any, decay_rate: Any,
                       staircase: bool = False, name: str | None = None) -> Tensor:
    """learning_rate / (1 + decay_rate * global_step / decay_steps)."""
    with scope_of(name, "InverseTimeDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="learning_rate")
        growth = convert_to_tensor(decay_rate, rate.dtype) * _fraction(global_step, decay_steps,
                                                                       rate.dtype, staircase)
        return ops.RealDiv(rate, 1 + growth, name=scope)


def polynomial_decay(learning_rate: Any, global_step: Any, decay_steps: Any,
                     end_learning_rate: Any = 0.0001, power: Any = 1.0, cycle: bool = False,
                     name: str | None = None) -> Tensor:
    """From learning_rate to end_learning_rate in decay_steps, along (1 - step / decay_steps) **
    power; cycle: again and again."""
    with scope_of(name, "PolynomialDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="learning_rate")
        end = convert_to_tensor(end_learning_rate, rate.dtype)
        if global_step is None:
            raise ValueError("global_step is required for a learning-rate schedule.")
        step, steps = cast(global_step, rate.dtype), cast(decay_steps, rate.dtype)
        if cycle:
            cycles = ops.Select(ops.Equal(step, ops.ZerosLike(step)), ops.OnesLike(step),
                                ops.Ceil(step / steps))
            steps = steps * cycles
        else:
            step = ops.Minimum(step, steps)
        remaining = ops.Pow(1 - step / steps, convert_to_tensor(power, rate.dtype))
        return ops.Add((rate - end) * remaining, end, name=scope)


def cosine_decay(learning_rate: Any, global_step: Any, decay_steps: Any, alpha: float = 0.0,
                 name: str | None = None) -> Tensor:
    """Down half a cosine from learning_rate to alpha * learning_rate (Loshchilov and Hutter
    2016)."""
    with scope_of(name, "CosineDecay", [learning_rate, global_step]) as scope:
        rate = convert_to_tensor(learning_rate, name="learning_rate")
        fraction = ops.Minimum(_fraction(global_step, decay_steps, rate.dtype, False),
                               convert_to_tensor(1, rate.dtype))
        decayed = (1 - alpha) * (0.5 * (1 + ops.Cos(fraction * math.pi))) + alpha
        return ops.Mul(rate, decayed, name=scope)


def piecewise_constant(x: Any, boundaries: Sequence, values: Sequence,
                       name: str | None = None) -> Tensor:
    """values[0] while x <= boundaries[0], values[1] while x <= boundaries[1], ..., values[-1]
    beyond the last."""
    if len(boundaries) != len(values) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")
    with scope_of(name, "PiecewiseConstant", [x]) as scope:
        x = convert_to_tensor(x)
        limits = [convert_to_tensor(b) for b in boundaries]
        for i, limit in enumerate(limits):
            if limit.dtype != x.dtype:
                if limit.dtype == _core.int32 and x.dtype == _core.int64:
                    limits[i] = cast(limit, _core.int64)
                else:
                    raise ValueError("Boundaries (%s) must have the same dtype as x (%s)."
                                     % (limit.dtype.name, x.dtype.name))
        choices = [convert_to_tensor(v) for v in values]
        for choice in choices:
            if choice.dtype != choices[0].dtype:
                raise ValueError("Values must have elements all with the same dtype (%s vs %s)."
                                 % (choices[0].dtype.name, choice.dtype.name))
        if not limits:
            return ops.Identity(choices[0], name=scope)
        place = ops.Sum(ops.Cast(ops.Greater(x, ops.Pack(limits)), _core.int32), [0])
        return ops.Gather(ops.Pack(choices), place, 0, name=scope)


piecewise_constant_decay = piecewise_constant
