# SPDX-License-Identifier: Apache-2.0
"""Random numbers. Each operation owns a counter: every run draws the next numbers of its stream,
which the seeds choose."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._array import shape_tensor
from treenail._convert import constant_value_as_shape, convert_to_tensor, scope_of
from treenail._framework import get_seed
from treenail._ops import ops
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _seeds(seed: int | None) -> dict:
    graph_seed, op_seed = get_seed(seed)
    return {"seed": graph_seed or 0, "seed2": op_seed or 0}


def _shape(shape: Any) -> Tensor:
    shape = shape_tensor(shape)
    if isinstance(shape, (list, tuple)) and not shape:
        return convert_to_tensor(shape, _core.int32)
    return convert_to_tensor(shape, None)


def random_normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = _core.float32,
                  seed: int | None = None, name: str | None = None) -> Tensor:
    """Normally distributed numbers of the given mean and standard deviation."""
    with scope_of(name, "random_normal") as scope:
        standard = ops.RandomStandardNormal(_shape(shape), dtype=dtype, **_seeds(seed))
        return ops.Add(ops.Mul(standard, convert_to_tensor(stddev, dtype)),
                       convert_to_tensor(mean, dtype), name=scope)


def truncated_normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = _core.float32,
                     seed: int | None = None, name: str | None = None) -> Tensor:
    """Normally distributed numbers, those further than two standard deviations from the mean drawn
    again."""
    with scope_of(name, "truncated_normal") as scope:
        standard = ops.TruncatedNormal(_shape(shape), dtype=dtype, **_seeds(seed))
        return ops.Add(ops.Mul(standard, convert_to_tensor(stddev, dtype)),
                       convert_to_tensor(mean, dtype), name=scope)


def random_uniform(shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = _core.float32,
                   seed: int | None = None, name: str | None = None) -> Tensor:
    """Numbers uniformly distributed in [minval, maxval); for integers maxval must be given."""
    dtype = _core.as_dtype(dtype)
    if maxval is None:
        if dtype.is_integer:
            raise ValueError("Must specify maxval for integer dtype %r" % dtype.name)
        maxval = 1
    with scope_of(name, "random_uniform") as scope:
        low, high = convert_to_tensor(minval, dtype), convert_to_tensor(maxval, dtype)
        if dtype.is_integer:
            return ops.RandomUniformInt(_shape(shape), low, high, name=scope, **_seeds(seed))
        standard = ops.RandomUniform(_shape(shape), dtype=dtype, **_seeds(seed))
        return ops.Add(ops.Mul(standard, ops.Sub(high, low)), low, name=scope)


def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """The rows of `value` in random order."""
    return ops.RandomShuffle(value, name=name, **_seeds(seed))


def multinomial(logits: Any, num_samples: Any, seed: int | None = None, name: str | None = None,
                output_dtype: Any = _core.int64) -> Tensor:
    """Class numbers drawn from unnormalised log-probabilities: logits [batch, classes] give [batch,
    num_samples]."""
    return ops.Multinomial(logits, num_samples, output_dtype=output_dtype, name=name,
                           **_seeds(seed))


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A slice of shape `size` at a random place. Raises InvalidArgumentError when it does not
    fit."""
    with scope_of(name, "random_crop", [value]) as scope:
        value = convert_to_tensor(value)
        size = convert_to_tensor(size, _core.int32)
        wanted, given = constant_value_as_shape(size), value.shape
        if wanted.is_fully_defined() and given.is_fully_defined() and any(
                w > g for w, g in zip(wanted.as_list(), given.as_list())):
            raise ValueError("cannot crop shape %s out of shape %s" % (wanted, given))
        limit = ops.Shape(value) - size + 1
        offset = random_uniform(ops.Shape(size), dtype=_core.int32, maxval=_core.int32.max,
                                seed=seed)
        return ops.Slice(value, ops.FloorMod(offset, limit), size, name=scope)


def stateless_random_normal(shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0,
                            dtype: Any = _core.float32, name: str | None = None) -> Tensor:
    """As random_normal, but a function of `seed`, two integers, alone."""
    with scope_of(name, "stateless_random_normal", [seed]) as scope:
        standard = ops.StatelessRandomNormal(_shape(shape), seed, dtype=dtype)
        return ops.Add(ops.Mul(standard, convert_to_tensor(stddev, dtype)),
                       convert_to_tensor(mean, dtype), name=scope)


def stateless_random_uniform(shape: Any, seed: Any, minval: Any = 0, maxval: Any = None,
                             dtype: Any = _core.float32, name: str | None = None) -> Tensor:
    """As random_uniform, but a function of `seed`, two integers, alone."""
    dtype = _core.as_dtype(dtype)
    if maxval is None:
        if dtype.is_integer:
            raise ValueError("Must specify maxval for integer dtype %r" % dtype.name)
        maxval = 1
    with scope_of(name, "stateless_random_uniform", [seed]) as scope:
        low, high = convert_to_tensor(minval, dtype), convert_to_tensor(maxval, dtype)
        if dtype.is_integer:
            return ops.StatelessRandomUniformInt(_shape(shape), seed, low, high, name=scope)
        standard = ops.StatelessRandomUniform(_shape(shape), seed, dtype=dtype)
        return ops.Add(ops.Mul(standard, ops.Sub(high, low)), low, name=scope)


def stateless_truncated_normal(shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0,
                               dtype: Any = _core.float32, name: str | None = None) -> Tensor:
    """As truncated_normal, but a function of `seed`, two integers, alone."""
    with scope_of(name, "stateless_truncated_normal", [seed]) as scope:
        standard = ops.StatelessTruncatedNormal(_shape(shape), seed, dtype=dtype)
        return ops.Add(ops.Mul(standard, convert_to_tensor(stddev, dtype)),
                       convert_to_tensor(mean, dtype), name=scope)


__all__ = ["random_normal", "truncated_normal", "random_uniform", "random_shuffle", "multinomial",
           "random_crop", "stateless_random_normal", "stateless_random_uniform",
           "stateless_truncated_normal"]
