# SPDX-License-Identifier: Apache-2.0
"""The networks for ImageNet, as published: (layers, images) -> logits of 1000 classes.

Their parameters and multiply-adds are held to published figures by tests/python/test_benchmark.py.
"""

from __future__ import annotations

import treenail as tn
from treenail.benchmark._layers import Layers

CLASSES = 1000


def _logits(values: tn.Tensor) -> tn.Tensor:
    return tn.layers.dense(values, CLASSES, name="logits")


# --- ResNet-50 ------------------------------------------------------------------------------------

def _bottleneck(layers: Layers, images: tn.Tensor, filters: int, strides: int) -> tn.Tensor:
    """A residual block; the 3x3 convolution has the stride, which is what makes it version 1.5."""
    shortcut = images
    if layers.channels(images) != 4 * filters:
        shortcut = layers.conv(images, 4 * filters, 1, strides, activation=None)
    outputs = layers.conv(images, filters, 1)
    outputs = layers.conv(outputs, filters, 3, strides, "SYMMETRIC")
    outputs = layers.conv(outputs, 4 * filters, 1, activation=None)
    return tn.nn.relu(outputs + shortcut)


def resnet50(layers: Layers, images: tn.Tensor) -> tn.Tensor:
    """ResNet-50 (He and others 2015, arXiv:1512.03385) in version 1.5 (Goyal and others 2017,
    arXiv:1706.02677): strides in the 3x3 convolutions."""
    outputs = layers.conv(images, 64, 7, 2, "SYMMETRIC")
    outputs = layers.max_pool(outputs, 3, 2, "SYMMETRIC")
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            strides = 2 if stage > 0 and block == 0 else 1
            outputs = _bottleneck(layers, outputs, 64 << stage, strides)
    return _logits(layers.global_mean(outputs))


# --- VGG-16 ---------------------------------------------------------------------------------------

def vgg16(layers: Layers, images: tn.Tensor) -> tn.Tensor:
    """VGG-16 (Simonyan and Zisserman 2014, arXiv:1409.1556), configuration D, with dropout."""
    outputs = images
    for filters, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            outputs = layers.conv(outputs, filters, 3, normalized=False)
        outputs = layers.max_pool(outputs, 2, 2)
    outputs = tn.layers.flatten(outputs)
    for _ in range(2):
        outputs = tn.layers.dense(outputs, 4096, activation=tn.nn.relu, kernel_initializer=(
            tn.initializers.VarianceScaling(2.0)))
        outputs = layers.dropout(outputs, 0.5)
    return _logits(outputs)


# --- Inception v3 ---------------------------------------------------------------------------------

def _row(layers: Layers, images: tn.Tensor, *convolutions: tuple) -> tn.Tensor:
    """Convolutions one after another; each is (filters, size) or the further arguments, too."""
    for arguments in convolutions:
        images = layers.conv(images, *arguments)
    return images


def _inception_a(layers: Layers, images: tn.Tensor, pooled: int) -> tn.Tensor:
    return layers.concat([
        layers.conv(images, 64, 1),
        _row(layers, images, (48, 1), (64, 5)),
        _row(layers, images, (64, 1), (96, 3), (96, 3)),
        layers.conv(layers.average_pool(images, 3, 1, "SAME"), pooled, 1)])


def _reduction_a(layers: Layers, images: tn.Tensor) -> tn.Tensor:
    return layers.concat([
        layers.conv(images, 384, 3, 2, "VALID"),
        _row(layers, images, (64, 1), (96, 3), (96, 3, 2, "VALID")),
        layers.max_pool(images, 3, 2)])


def _inception_b(layers: Layers, images: tn.Tensor, inner: int) -> tn.Tensor:
    return layers.concat([
        layers.conv(images, 192, 1),
        _row(layers, images, (inner, 1), (inner, (1, 7)), (192, (7, 1))),
        _row(layers, images, (inner, 1), (inner, (7, 1)), (inner, (1, 7)), (inner, (7, 1)),
             (192, (1, 7))),
        layers.conv(layers.average_pool(images, 3, 1, "SAME"), 192, 1)])


def _reduction_b(layers: Layers, images: tn.Tensor) -> tn.Tensor:
    return layers.concat([
        _row(layers, images, (192, 1), (320, 3, 2, "VALID")),
        _row(layers, images, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2, "VALID")),
        layers.max_pool(images, 3, 2)])


def _inception_c(layers: Layers, images: tn.Tensor) -> tn.Tensor:
    narrow = layers.conv(images, 384, 1)
    deep = _row(layers, images, (448, 1), (384, 3))
    return layers.concat([
        layers.conv(images, 320, 1),
        layers.conv(narrow, 384, (1, 3)), layers.conv(narrow, 384, (3, 1)),
        layers.conv(deep, 384, (1, 3)), layers.conv(deep, 384, (3, 1)),
        layers.conv(layers.average_pool(images, 3, 1, "SAME"), 192, 1)])


def inception3(layers: Layers, images: tn.Tensor) -> tn.Tensor:
    """Inception v3 (Szegedy and others 2015, arXiv:1512.00567) without its auxiliary head: every
    convolution normalised with scale and offset, as torchvision has it."""
    outputs = _row(layers, images, (32, 3, 2, "VALID"), (32, 3, 1, "VALID"), (64, 3))
    outputs = layers.max_pool(outputs, 3, 2)
    outputs = _row(layers, outputs, (80, 1), (192, 3, 1, "VALID"))
    outputs = layers.max_pool(outputs, 3, 2)
    for pooled in (32, 64, 64):
        outputs = _inception_a(layers, outputs, pooled)
    outputs = _reduction_a(layers, outputs)
    for inner in (128, 160, 160, 192):
        outputs = _inception_b(layers, outputs, inner)
    outputs = _reduction_b(layers, outputs)
    for _ in range(2):
        outputs = _inception_c(layers, outputs)
    return _logits(layers.dropout(layers.global_mean(outputs), 0.5))
