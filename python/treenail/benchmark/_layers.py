# SPDX-License-Identifier: Apache-2.0
"""Convolution, pooling and dense layers with the settings that all layers of one network share."""

from __future__ import annotations

from dataclasses import dataclass

import treenail as tn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

# He and others 2015 (arXiv:1502.01852), by the outputs: activations keep their variance through
# many layers of rectifiers.
HE_NORMAL = tn.initializers.VarianceScaling(2.0, "fan_out", "untruncated_normal")


@dataclass(frozen=True)
class Layers:
    """training: batch statistics and dropout, else moving averages and none.

    data_format: "NHWC" or "NCHW". epsilon: of batch normalisation, whose moving averages decay by
    `momentum`.
    """

    training: bool
    data_format: str = "NHWC"
    epsilon: float = 1e-3
    momentum: float = 0.9

    @property
    def channel_axis(self) -> int:
        """The axis of channels."""
        return 3 if self.data_format == "NHWC" else 1

    @property
    def spatial_axes(self) -> list:
        """The axes of height and width."""
        return [1, 2] if self.data_format == "NHWC" else [2, 3]

    def channels(self, images: tn.Tensor) -> int:
        """How many there are."""
        return images.shape[self.channel_axis]

    def _padding(self, padding: str, height: int, width: int) -> Any:
        """SYMMETRIC: as much before as behind, whatever the stride. SAME pads an even image less in
        front of it when the stride is 2."""
        if padding != "SYMMETRIC":
            return padding
        pairs = [[0, 0] for _ in range(4)]
        for axis, size in zip(self.spatial_axes, (height, width)):
            pairs[axis] = [(size - 1) // 2] * 2
        return pairs

    def conv(self, images: tn.Tensor, filters: int, size: Any, strides: int = 1,
             padding: str = "SAME", normalized: bool = True,
             activation: Callable | None = tn.nn.relu) -> tn.Tensor:
        """activation(norm(conv(images))), without a bias; or with one, when not normalised. size:
        an int, or (height, width)."""
        height, width = size if isinstance(size, tuple) else (size, size)
        with tn.variable_scope(None, "conv"):
            kernel = tn.get_variable("kernel", [height, width, self.channels(images), filters],
                                     initializer=HE_NORMAL)
            outputs = tn.nn.conv2d(images, kernel, strides, self._padding(padding, height, width),
                                   data_format=self.data_format)
            if normalized:
                outputs = tn.layers.batch_normalization(
                    outputs, self.channel_axis, self.momentum, self.epsilon,
                    training=self.training, name="norm")
            else:
                bias = tn.get_variable("bias", [filters], initializer=tn.initializers.Zeros())
                outputs = tn.nn.bias_add(outputs, bias, data_format=self.data_format)
        return activation(outputs) if activation else outputs

    def max_pool(self, images: tn.Tensor, size: int, strides: int,
                 padding: str = "VALID") -> tn.Tensor:
        """The largest value of each window."""
        return tn.nn.max_pool(images, size, strides, self._padding(padding, size, size),
                              data_format=self.data_format)

    def average_pool(self, images: tn.Tensor, size: int, strides: int,
                     padding: str = "VALID") -> tn.Tensor:
        """The mean of each window, padding not counted."""
        return tn.nn.avg_pool(images, size, strides, padding, data_format=self.data_format)

    def global_mean(self, images: tn.Tensor) -> tn.Tensor:
        """[batch, channels]: the mean of each map."""
        return tn.reduce_mean(images, self.spatial_axes)

    def concat(self, branches: list) -> tn.Tensor:
        """The channels of all branches."""
        return tn.concat(branches, self.channel_axis)

    def dropout(self, values: tn.Tensor, rate: float) -> tn.Tensor:
        """While training, elements are set to 0 with probability `rate`."""
        return tn.layers.dropout(values, rate, training=self.training)
