# SPDX-License-Identifier: Apache-2.0
"""dense, dropout and flatten."""

from __future__ import annotations

from treenail import _normalization
from treenail._array import as_scalar, shape_of
from treenail._convert import convert_to_tensor
from treenail._initializer_values import ZEROS
from treenail._math import tensordot
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import Tensor
from treenail.layers._base import (InputSpec, Layer, activated, is_tensor, known_extent,
                                   named_activation)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class Dense(Layer):
    """activation(inputs @ kernel + bias): [..., n] gives [..., units].

    Variables: kernel [n, units] (glorot_uniform unless kernel_initializer or the scope says
    otherwise), bias [units].
    """

    def __init__(self, units: int, activation: Any = None, use_bias: bool = True,
                 kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
                 kernel_regularizer: Callable | None = None,
                 bias_regularizer: Callable | None = None,
                 activity_regularizer: Callable | None = None,
                 kernel_constraint: Callable | None = None, bias_constraint: Callable | None = None,
                 trainable: bool = True, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        if isinstance(units, bool) or not hasattr(units, "__index__") or units < 1:
            raise ValueError("units must be a positive int, not %r" % (units,))
        self.units, self.use_bias = int(units), use_bias
        self.activation = named_activation(activation)
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.kernel = self.bias = None
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: TensorShape) -> None:
        """Makes kernel and bias."""
        count = known_extent(input_shape, -1, "last dimension of the inputs to `Dense`")
        self.input_spec = InputSpec(min_ndim=2, axes={-1: count})
        self.kernel = self.add_variable("kernel", [count, self.units],
                                        initializer=self.kernel_initializer,
                                        regularizer=self.kernel_regularizer,
                                        constraint=self.kernel_constraint)
        if self.use_bias:
            self.bias = self.add_variable("bias", [self.units], initializer=self.bias_initializer,
                                          regularizer=self.bias_regularizer,
                                          constraint=self.bias_constraint)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        self._needs_variables()
        inputs = convert_to_tensor(inputs)
        ndims = inputs.shape.ndims
        outputs = ops.MatMul(inputs, self.kernel) if ndims == 2 else tensordot(inputs, self.kernel,
                                                                               [[ndims - 1], [0]])
        if self.use_bias:
            outputs = ops.BiasAdd(outputs, self.bias)
        return activated(self.activation, outputs)


def dense(inputs: Any, units: int, activation: Any = None, use_bias: bool = True,
          kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
          kernel_regularizer: Callable | None = None, bias_regularizer: Callable | None = None,
          activity_regularizer: Callable | None = None, kernel_constraint: Callable | None = None,
          bias_constraint: Callable | None = None, trainable: bool = True, name: str | None = None,
          reuse: Any = None) -> Tensor:
    """A new Dense layer applied to inputs [..., n], which gives [..., units]."""
    return Dense(units, activation, use_bias, kernel_initializer, bias_initializer,
                 kernel_regularizer, bias_regularizer, activity_regularizer, kernel_constraint,
                 bias_constraint, trainable, name, _scope=name, _reuse=reuse)(inputs)


class Dropout(Layer):
    """Sets elements to 0 with probability `rate` while training and scales the others by 1 / (1 -
    rate).

    training: a bool, or a bool scalar tensor (a placeholder): then the tensor decides in each run.
    """

    def __init__(self, rate: float = 0.5, noise_shape: Any = None, seed: int | None = None,
                 name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        if isinstance(rate, (int, float)) and not 0 <= rate < 1:
            raise ValueError("rate must be in the range [0, 1), got %g" % rate)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs: Tensor, training: Any = False) -> Tensor:
        """The outputs."""
        inputs = convert_to_tensor(inputs)
        if is_tensor(training):
            rate = convert_to_tensor(self.rate, inputs.dtype)
            training = as_scalar(convert_to_tensor(training), "training")
            return _normalization.dropout(inputs, noise_shape=self.noise_shape, seed=self.seed,
                                          rate=ops.Select(training, rate, ops.ZerosLike(rate)))
        if training:
            return _normalization.dropout(inputs, noise_shape=self.noise_shape, seed=self.seed,
                                          rate=self.rate)
        return ops.Identity(inputs)


def dropout(inputs: Any, rate: float = 0.5, noise_shape: Any = None, seed: int | None = None,
            training: Any = False, name: str | None = None) -> Tensor:
    """Elements set to 0 with probability `rate` where `training` (a bool or a bool tensor) says
    so."""
    return Dropout(rate, noise_shape, seed, name)(inputs, training=training)


class Flatten(Layer):
    """All axes but the first made one: [n, a, b, ...] gives [n, a * b * ...]."""

    def __init__(self, data_format: str = "channels_last", name: str | None = None,
                 **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.data_format = data_format
        self.input_spec = InputSpec(min_ndim=2)

    def call(self, inputs: Tensor) -> Tensor:
        """The outputs."""
        inputs = convert_to_tensor(inputs)
        ndims = inputs.shape.ndims
        if self.data_format == "channels_first" and ndims > 2:
            inputs = ops.Transpose(inputs, [0] + list(range(2, ndims)) + [1])
        shape = inputs.shape
        count = TensorShape(shape.as_list()[1:]).num_elements()
        if count is not None:
            return ops.Reshape(inputs, [-1, count])
        return ops.Reshape(inputs, ops.Pack([shape_of(inputs)[0], convert_to_tensor(-1)]))


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """All axes but the first made one."""
    return Flatten(data_format, name)(inputs)
