# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation (Ioffe and Szegedy 2015)."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._array import as_scalar
from treenail._convert import convert_to_tensor
from treenail._initializer_values import ONES, ZEROS
from treenail._math import cast
from treenail._normalization import batch_normalization as _batch_normalization
from treenail._normalization import fused_batch_norm, moments
from treenail._ops import ops
from treenail._shape import TensorShape, as_shape
from treenail._treenail import Tensor
from treenail.layers._base import InputSpec, Layer, is_tensor, known_extent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


class BatchNormalization(Layer):
    """gamma * (x - mean) / sqrt(variance + epsilon) + beta, per entry of `axis` (the channels).

    While training, mean and variance are those of the batch, and moving averages of them are kept
    by operations in the collection UPDATE_OPS, which the training step must depend on; otherwise
    the moving averages are used. training: a bool, or a bool tensor, which then decides in each
    run.

    Variables: gamma (unless scale is False), beta (unless center is False), moving_mean,
    moving_variance. fused: use the fused operation, by default where it can: images whose channels
    are `axis`. moving_variance then follows the batch's variance with Bessel's correction, n /
    (n - 1) for n elements per channel, else without, as in TensorFlow 1.
    """

    def __init__(self, axis: int = -1, momentum: float = 0.99, epsilon: float = 1e-3,
                 center: bool = True, scale: bool = True, beta_initializer: Any = ZEROS,
                 gamma_initializer: Any = ONES, moving_mean_initializer: Any = ZEROS,
                 moving_variance_initializer: Any = ONES, beta_regularizer: Callable | None = None,
                 gamma_regularizer: Callable | None = None, beta_constraint: Callable | None = None,
                 gamma_constraint: Callable | None = None, trainable: bool = True,
                 name: str | None = None, fused: bool | None = None, **kwargs: Any) -> None:
        super().__init__(trainable, name, **kwargs)
        if isinstance(axis, (list, tuple)):
            if len(axis) != 1:
                raise ValueError("axis must be one axis, not %r" % (axis,))
            axis = axis[0]
        self.axis = axis
        self.momentum = momentum
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        self.beta_initializer, self.gamma_initializer = beta_initializer, gamma_initializer
        self.moving_mean_initializer = moving_mean_initializer
        self.moving_variance_initializer = moving_variance_initializer
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.beta_constraint, self.gamma_constraint = beta_constraint, gamma_constraint
        self.fused = fused
        self.beta = self.gamma = self.moving_mean = self.moving_variance = None

    def build(self, input_shape: TensorShape) -> None:
        """Makes the variables."""
        input_shape = as_shape(input_shape)
        ndims = input_shape.ndims
        if ndims is None:
            raise ValueError("Input has undefined rank: %s" % input_shape)
        if not -ndims <= self.axis < ndims:
            raise ValueError("Invalid axis: %d for an input of rank %d" % (self.axis, ndims))
        self._dtype = _core.float32 if self._dtype is None else self._dtype
        if not self._dtype.is_floating:
            raise ValueError("layer %r needs a floating input to normalise, not one of dtype %s"
                             % (self.name, self._dtype.name))
        channels = known_extent(input_shape, self.axis, "normalised dimension of the inputs")
        self.input_spec = InputSpec(ndim=ndims, axes={self.axis: channels})
        dtype = _core.float32 if self._dtype in (_core.float16, _core.bfloat16) else self._dtype
        if self.scale:
            self.gamma = self.add_variable("gamma", [channels], dtype, self.gamma_initializer,
                                           self.gamma_regularizer, constraint=self.gamma_constraint)
        if self.center:
            self.beta = self.add_variable("beta", [channels], dtype, self.beta_initializer,
                                          self.beta_regularizer, constraint=self.beta_constraint)
        self.moving_mean = self.add_variable("moving_mean", [channels], dtype,
                                             self.moving_mean_initializer, trainable=False,
                                             aggregation="MEAN")
        self.moving_variance = self.add_variable("moving_variance", [channels], dtype,
                                                 self.moving_variance_initializer, trainable=False,
                                                 aggregation="MEAN")

    def call(self, inputs: Tensor, training: Any = False) -> Tensor:
        """The outputs."""
        self._needs_variables()
        inputs = convert_to_tensor(inputs)
        axis = self.axis % inputs.shape.ndims
        if is_tensor(training):
            training = as_scalar(convert_to_tensor(training), "training")
        can_fuse = inputs.shape.ndims == 4 and axis in (1, 3)
        if self.fused and not can_fuse:
            raise ValueError("fused batch normalization needs images [batch, height, width, "
                             "channels] with axis -1 or 1, not inputs of shape %s with axis %d"
                             % (inputs.shape, self.axis))
        if can_fuse and self.fused is not False:
            return self._fused(inputs, axis, training)
        return self._plain(inputs, axis, training)

    def _update(self, mean: Tensor, variance: Tensor, rate: Any) -> None:
        for variable, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            change = (variable.value() - ops.StopGradient(value)) * cast(convert_to_tensor(rate),
                                                                         variable.dtype)
            self.add_update(variable.assign_sub(change, name="AssignMovingAvg", read_value=False))

    def _fused(self, inputs: Tensor, axis: int, training: Any) -> Tensor:
        data_format = "NHWC" if axis == 3 else "NCHW"
        channels = self.moving_mean.shape[0]
        dtype = self.moving_mean.dtype
        gamma = self.gamma if self.scale else convert_to_tensor([1.0] * channels, dtype)
        beta = self.beta if self.center else convert_to_tensor([0.0] * channels, dtype)
        if is_tensor(training) or not training:
            mean, variance = self.moving_mean, self.moving_variance
            if is_tensor(training):
                mean, variance = self._chosen(inputs, axis, training, correct=True)
            return fused_batch_norm(inputs, gamma, beta, mean, variance, self.epsilon,
                                    data_format, is_training=False)[0]
        outputs, mean, variance = fused_batch_norm(inputs, gamma, beta, epsilon=self.epsilon,
                                                   data_format=data_format, is_training=True)
        self._update(mean, variance, 1.0 - self.momentum)
        return outputs

    def _chosen(self, inputs: Tensor, axis: int, training: Any, correct: bool) -> tuple:
        """Mean and variance to normalise with, those of the batch while training, which then move
        the averages; correct: the variance with Bessel's correction."""
        mean, variance = self.moving_mean.value(), self.moving_variance.value()
        if not is_tensor(training) and not training:
            return mean, variance
        others = [i for i in range(inputs.shape.ndims) if i != axis]
        batch_mean, batch_variance = moments(cast(inputs, mean.dtype), others)
        unbiased = batch_variance
        if correct:
            n = ops.FloorDiv(ops.Size(inputs, out_type=_core.int64), self.moving_mean.shape[0])
            unbiased = batch_variance * ops.RealDiv(cast(n, mean.dtype),
                                                    cast(ops.Maximum(n - 1, 1), mean.dtype))
        if not is_tensor(training):
            self._update(batch_mean, unbiased, 1.0 - self.momentum)
            return batch_mean, batch_variance
        # Not training, the averages move to themselves: 0 times a batch's NaN would be NaN.
        mean_now = ops.Select(training, batch_mean, mean)
        self._update(mean_now, ops.Select(training, unbiased, variance), 1.0 - self.momentum)
        return mean_now, ops.Select(training, batch_variance, variance)

    def _plain(self, inputs: Tensor, axis: int, training: Any) -> Tensor:
        ndims = inputs.shape.ndims
        mean, variance = self._chosen(inputs, axis, training, correct=False)

        def spread(values: Any) -> Any:
            if values is None or axis == ndims - 1:
                return values
            return ops.Reshape(values, [-1 if i == axis else 1 for i in range(ndims)])
        outputs = _batch_normalization(cast(inputs, mean.dtype), spread(mean), spread(variance),
                                       spread(self.beta), spread(self.gamma), self.epsilon)
        return cast(outputs, inputs.dtype)


def batch_normalization(inputs: Any, axis: int = -1, momentum: float = 0.99, epsilon: float = 1e-3,
                        center: bool = True, scale: bool = True, beta_initializer: Any = ZEROS,
                        gamma_initializer: Any = ONES, moving_mean_initializer: Any = ZEROS,
                        moving_variance_initializer: Any = ONES,
                        beta_regularizer: Callable | None = None,
                        gamma_regularizer: Callable | None = None,
                        beta_constraint: Callable | None = None,
                        gamma_constraint: Callable | None = None, training: Any = False,
                        trainable: bool = True, name: str | None = None, reuse: Any = None,
                        fused: bool | None = None) -> Tensor:
    """A new BatchNormalization layer applied to inputs. The training step must depend on the
    collection UPDATE_OPS."""
    layer = BatchNormalization(axis, momentum, epsilon, center, scale, beta_initializer,
                               gamma_initializer, moving_mean_initializer,
                               moving_variance_initializer, beta_regularizer, gamma_regularizer,
                               beta_constraint, gamma_constraint, trainable, name, fused,
                               _scope=name, _reuse=reuse)
    return layer(inputs, training=training)
