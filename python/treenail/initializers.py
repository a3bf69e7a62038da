# SPDX-License-Identifier: Apache-2.0
"""First values of variables: objects called with a shape (a list of ints) and a dtype."""

from __future__ import annotations

import math

from treenail import _treenail as _core
from treenail._array import eye
from treenail._array import ones as _ones
from treenail._array import zeros as _zeros
from treenail._checks import having
from treenail._convert import constant as _constant
from treenail._names import no_attribute as _no_attribute
from treenail._ops import ops as _ops
from treenail._random import random_normal as _random_normal
from treenail._random import random_uniform as _random_uniform
from treenail._random import truncated_normal as _truncated_normal
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail._shown import arguments as _arguments
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Initializer:
    """The base: initializer(shape, dtype=None) gives a tensor."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The initial value. Raises NotImplementedError unless a subclass defines it."""
        raise NotImplementedError("an initializer defines __call__(shape, dtype)")

    def __repr__(self) -> str:
        return "%s(%s)" % (type(self).__name__, ", ".join(_arguments(self)))

    def get_config(self) -> dict:
        """The constructor's arguments."""
        return {key.lstrip("_"): value for key, value in self.__dict__.items()}

    @classmethod
    def from_config(cls, config: dict) -> Initializer:
        """An initializer made with such arguments."""
        return cls(**config)


def _whole_shape(shape: Any, partition_info: Any) -> list:
    """The shape of the variable of which a part is initialised: it decides the number of inputs."""
    return list(shape if partition_info is None else _full_shape(partition_info))


def _full_shape(partition_info: Any) -> Any:
    return having(partition_info, "full_shape", "partition_info",
                  "None or what a partitioned variable gives").full_shape


def _name(dtype: Any) -> str:
    return _core.as_dtype(dtype).name


class Zeros(Initializer):
    """All zeros."""

    def __init__(self, dtype: Any = _core.float32) -> None:
        self._dtype = _name(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return _zeros(shape, dtype or self._dtype)


class Ones(Initializer):
    """All ones."""

    def __init__(self, dtype: Any = _core.float32) -> None:
        self._dtype = _name(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return _ones(shape, dtype or self._dtype)


class Constant(Initializer):
    """One value everywhere, or the given values; a list shorter than the shape repeats its last
    element."""

    def __init__(self, value: Any = 0, dtype: Any = _core.float32,
                 verify_shape: bool = False) -> None:
        if not (isinstance(value, (int, float, complex, list, tuple, bool, str,
                                   bytes)) or hasattr(value, "dtype")):
            raise TypeError("Invalid type for initial value: %s (expected Python scalar, list or "
                            "tuple of values, or numpy.ndarray)." % type(value))
        self._value, self._dtype, self._verify_shape = value, _name(dtype), verify_shape

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None,
                 verify_shape: bool | None = None) -> Tensor:
        verify = self._verify_shape if verify_shape is None else verify_shape
        if partition_info is None or isinstance(self._value, (int, float, complex, str, bytes)):
            return _constant(self._value, dtype or self._dtype, shape, verify_shape=verify)
        values = _constant(self._value, dtype or self._dtype, _full_shape(partition_info),
                           verify_shape=verify)
        return _ops.Slice(values, partition_info.var_offset, list(shape))


class RandomUniform(Initializer):
    """Uniformly distributed in [minval, maxval)."""

    def __init__(self, minval: Any = 0, maxval: Any = None, seed: int | None = None,
                 dtype: Any = _core.float32) -> None:
        self._minval, self._maxval, self._seed, self._dtype = minval, maxval, seed, _name(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return _random_uniform(shape, self._minval, self._maxval, dtype or self._dtype,
                               seed=self._seed)


class RandomNormal(Initializer):
    """Normally distributed."""

    def __init__(self, mean: float = 0.0, stddev: float = 1.0, seed: int | None = None,
                 dtype: Any = _core.float32) -> None:
        self._mean, self._stddev, self._seed, self._dtype = mean, stddev, seed, _name(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return _random_normal(shape, self._mean, self._stddev, dtype or self._dtype,
                              seed=self._seed)


class TruncatedNormal(Initializer):
    """Normally distributed, without values further than two standard deviations from the mean."""

    def __init__(self, mean: float = 0.0, stddev: float = 1.0, seed: int | None = None,
                 dtype: Any = _core.float32) -> None:
        self._mean, self._stddev, self._seed, self._dtype = mean, stddev, seed, _name(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return _truncated_normal(shape, self._mean, self._stddev, dtype or self._dtype,
                                 seed=self._seed)


class UniformUnitScaling(Initializer):
    """Uniform with variance factor / number of inputs (Sussillo and Abbott, arXiv:1412.6558)."""

    def __init__(self, factor: float = 1.0, seed: int | None = None,
                 dtype: Any = _core.float32) -> None:
        self._factor, self._seed, self._dtype = factor, seed, _name(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        inputs = 1.0
        for extent in _whole_shape(shape, partition_info)[:-1]:
            inputs *= extent
        limit = math.sqrt(3 / max(1.0, inputs)) * self._factor
        return _random_uniform(shape, -limit, limit, dtype or self._dtype, seed=self._seed)


class VarianceScaling(Initializer):
    """Random values whose variance is scale / n, with n the number of inputs, of outputs, or their
    mean.

    mode: 'fan_in', 'fan_out' or 'fan_avg'. distribution: 'truncated_normal' ('normal'),
    'untruncated_normal' or 'uniform'.
    """

    def __init__(self, scale: float = 1.0, mode: str = "fan_in",
                 distribution: str = "truncated_normal", seed: int | None = None,
                 dtype: Any = _core.float32) -> None:
        if scale <= 0:
            raise ValueError("`scale` must be a positive number, not %r" % (scale,))
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError("Invalid `mode` argument: %r" % (mode,))
        distribution = str(distribution).lower()
        if distribution not in ("normal", "uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError("Invalid `distribution` argument: %r" % (distribution,))
        self._scale, self._mode, self._distribution = scale, mode, distribution
        self._seed, self._dtype = seed, _name(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        dtype = dtype or self._dtype
        fan_in, fan_out = _fans(_whole_shape(shape, partition_info))
        count = {"fan_in": fan_in, "fan_out": fan_out,
                 "fan_avg": (fan_in + fan_out) / 2}[self._mode]
        scale = self._scale / max(1.0, count)
        if self._distribution == "uniform":
            limit = math.sqrt(3.0 * scale)
            return _random_uniform(shape, -limit, limit, dtype, seed=self._seed)
        if self._distribution == "untruncated_normal":
            return _random_normal(shape, 0.0, math.sqrt(scale), dtype, seed=self._seed)
        # The standard deviation of a standard normal distribution truncated at 2 is 0.8796...
        return _truncated_normal(shape, 0.0, math.sqrt(scale) / 0.87962566103423978, dtype,
                                 seed=self._seed)


def _fans(shape: list) -> tuple:
    """Inputs and outputs of a layer whose weights have this shape."""
    if len(shape) < 2:
        count = shape[0] if shape else 1
        return count, count
    field = 1
    for extent in shape[:-2]:
        field *= extent
    return shape[-2] * field, shape[-1] * field


class Identity(Initializer):
    """gain times the identity matrix."""

    def __init__(self, gain: float = 1.0, dtype: Any = _core.float32) -> None:
        self._gain, self._dtype = gain, _name(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        extents = _whole_shape(shape, partition_info)
        if len(extents) != 2:
            raise ValueError("Identity matrix initializer can only be used for 2D matrices, not "
                             "for shape %s" % (extents,))
        matrix = eye(*extents, dtype=dtype or self._dtype)
        if partition_info is not None:
            matrix = _ops.Slice(matrix, partition_info.var_offset, list(shape))
        return matrix if self._gain == 1.0 else matrix * self._gain


class GlorotUniform(VarianceScaling):
    """Uniform with variance 2 / (inputs + outputs) (Glorot and Bengio 2010)."""

    def __init__(self, seed: int | None = None, dtype: Any = _core.float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)

    def get_config(self) -> dict:
        """The constructor's arguments."""
        return {"seed": self._seed, "dtype": self._dtype}


class GlorotNormal(VarianceScaling):
    """Truncated normal with variance 2 / (inputs + outputs) (Glorot and Bengio 2010)."""

    def __init__(self, seed: int | None = None, dtype: Any = _core.float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)

    def get_config(self) -> dict:
        """The constructor's arguments."""
        return {"seed": self._seed, "dtype": self._dtype}


def he_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal with variance 2 / inputs (He and others 2015, arXiv:1502.01852)."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform with variance 2 / inputs (He and others 2015, arXiv:1502.01852)."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal with variance 1 / inputs (LeCun and others 1998)."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform with variance 1 / inputs (LeCun and others 1998)."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


zeros, ones, constant = Zeros, Ones, Constant
random_uniform, random_normal, truncated_normal = RandomUniform, RandomNormal, TruncatedNormal
uniform_unit_scaling = UniformUnitScaling
variance_scaling, identity = VarianceScaling, Identity
glorot_uniform, glorot_normal = GlorotUniform, GlorotNormal

__all__ = ["Initializer", "Zeros", "Ones", "Constant", "RandomUniform", "RandomNormal",
           "TruncatedNormal", "UniformUnitScaling", "VarianceScaling", "Identity", "GlorotUniform",
           "GlorotNormal", "he_normal", "he_uniform", "lecun_normal", "lecun_uniform", "zeros",
           "ones", "constant", "random_uniform", "random_normal", "truncated_normal",
           "uniform_unit_scaling", "variance_scaling", "identity", "glorot_uniform",
           "glorot_normal"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
