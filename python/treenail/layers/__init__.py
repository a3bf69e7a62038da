# SPDX-License-Identifier: Apache-2.0
"""Layers: operations together with their variables, as functions (dense, conv2d, ...) and as
classes (Dense, Conv2D, ...).

A class makes its variables at the first call and uses them again at every later one. A function
makes a new layer at each call, unless it is told to share: by a name and reuse=True (or
tn.AUTO_REUSE), or inside a variable_scope that reuses.

Activations, initializers and regularizers are functions, or names as TensorFlow's Keras spells
them: dense(x, 10, activation="relu", kernel_initializer="he_normal", kernel_regularizer="l2").
"""

from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail.layers._base import InputSpec, Layer
from treenail.layers._convolution import (Conv1D, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose,
                                          SeparableConv1D, SeparableConv2D, conv1d, conv2d,
                                          conv2d_transpose, conv3d, conv3d_transpose,
                                          separable_conv1d, separable_conv2d)
from treenail.layers._core_layers import Dense, Dropout, Flatten, dense, dropout, flatten
from treenail.layers._normalization import BatchNormalization, batch_normalization
from treenail.layers._pooling import (AveragePooling1D, AveragePooling2D, AveragePooling3D,
                                      MaxPooling1D, MaxPooling2D, MaxPooling3D, average_pooling1d,
                                      average_pooling2d, average_pooling3d, max_pooling1d,
                                      max_pooling2d, max_pooling3d)

__all__ = ["Layer", "InputSpec", "Dense", "Dropout", "Flatten", "Conv1D", "Conv2D",
           "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "SeparableConv1D", "SeparableConv2D",
           "BatchNormalization", "AveragePooling1D", "AveragePooling2D", "AveragePooling3D",
           "MaxPooling1D", "MaxPooling2D", "MaxPooling3D", "dense", "dropout", "flatten", "conv1d",
           "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "separable_conv1d",
           "separable_conv2d", "batch_normalization", "average_pooling1d", "average_pooling2d",
           "average_pooling3d", "max_pooling1d", "max_pooling2d", "max_pooling3d"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
