# SPDX-License-Identifier: Apache-2.0
"""The single operations that are timed in every framework: their names, inputs and attributes.

A framework's worker has a function per kind; inputs come from fixed seeds. Images are [batch,
height, width, channels], filters [height, width, in, out].
"""

from dataclasses import dataclass
from typing import List, Tuple

import numpy as np

BIG = 1 << 24


@dataclass(frozen=True)
class Work:
    title: str
    kind: str                            # the function of the worker
    shapes: Tuple[Tuple[int, ...], ...]  # of the inputs
    promised: Tuple[float, float]        # ratio to the fastest peer, at 1 and at 2 threads
    stride: int = 1                      # of a convolution, padded by half its taps on each side
    beside_guests: Tuple[float, ...] = ()  # the ratio where guests run, if another
    positive: bool = False               # e to the power of what inputs are otherwise
    dtype: str = "float32"

    def wanted(self, threads: int, guests: bool) -> float:
        return (self.beside_guests if guests and self.beside_guests else self.promised)[threads - 1]

    def well_conditioned(self, a: np.ndarray) -> np.ndarray:
        """So that results of several libraries agree; Hermitian ones where the kind needs them."""
        n = a.shape[-1]
        if self.kind == "cholesky":
            a = a @ a.swapaxes(-1, -2) / n
        elif self.kind == "eigh":
            a = a + a.swapaxes(-1, -2)
        elif self.kind in ("solve", "inverse", "expm"):
            a = a / n ** 0.5
        return (a + 2 * np.eye(n)).astype(self.dtype)

    def inputs(self) -> List[np.ndarray]:
        random = np.random.RandomState(3)
        out = [random.standard_normal(shape).astype(self.dtype) for shape in self.shapes]
        if self.kind in MATRIX_KINDS:
            out[0] = self.well_conditioned(out[0])
        if self.kind == "lgamma":  # which has poles at whole numbers
            out = [np.where(value == np.round(value), np.float32(0.5), value) for value in out]
        if self.positive:
            out = [np.exp(value) for value in out]
        if self.kind == "fft":
            out = [out[0] + 1j * out[1]]
        return out


# Kinds whose first input is a batch of matrices.
MATRIX_KINDS = ("cholesky", "solve", "inverse", "qr", "eigh", "svd", "expm", "eig")


def images(batch: int, side: int, channels: int, filters: int, taps: int) -> tuple:
    return ((batch, side, side, channels), (taps, taps, channels, filters))


def convolutions(title: str, shapes: tuple, forward: float, both: float, **more) -> List[Work]:
    """Forward, and forward with both gradients."""
    return [Work("convolution %s, forward" % title, "conv", shapes, (forward, forward), **more),
            Work("convolution %s, forward and backward" % title, "conv_gradients", shapes,
                 (both, both), **more)]


WORKS = [
    Work("add, 16 M floats", "add", ((BIG,), (BIG,)), (4, 4)),
    Work("chain of 8 element-wise ops, 16 M floats", "chain", ((BIG,),), (10, 10),
         beside_guests=(2, 2)),  # XLA fuses
    Work("tanh, 16 M floats", "tanh", ((BIG,),), (3.5, 3.5)),
    Work("gelu (tanh form), 16 M floats", "gelu", ((BIG,),), (3, 3)),
    Work("softmax, 16384x1024", "softmax", ((16384, 1024),), (1.1, 1)),
    Work("layer norm, 16384x1024", "layer_norm", ((16384, 1024),), (1.8, 1.6)),
    Work("sum of 16 M floats", "sum", ((BIG,),), (1, 1)),
    Work("transpose, 4096x4096", "transpose", ((4096, 4096),), (1, 1)),
    Work("matmul, 64x512x784", "matmul", ((64, 784), (784, 512)), (1, 1)),
    Work("matmul, 1024x1024x1024", "matmul", ((1024, 1024), (1024, 1024)), (1, 1)),
    *convolutions("3x3, 64 channels, 56x56, batch 8", images(8, 56, 64, 64, 3), 3, 2.5),
    *convolutions("3x3, 128 channels, 28x28, batch 8", images(8, 28, 128, 128, 3), 3, 2.5),
    *convolutions("3x3, 256 channels, 14x14, batch 8", images(8, 14, 256, 256, 3), 2.2, 2),
    *convolutions("3x3, 512 channels, 7x7, batch 8", images(8, 7, 512, 512, 3), 2.2, 2),
    *convolutions("5x5, 32 to 64 channels, 14x14, batch 64", images(64, 14, 32, 64, 5), 2.2, 2),
    *convolutions("1x1, 128 to 512 channels, 28x28, batch 8", images(8, 28, 128, 512, 1), 1, 1),
    *convolutions("3x3 stride 2, 64 to 128 channels, 56x56, batch 8", images(8, 56, 64, 128, 3), 1,
                  1, stride=2),
    *convolutions("7x7 stride 2, 3 to 64 channels, 224x224, batch 2", images(2, 224, 3, 64, 7), 1,
                  1, stride=2),
    # MKL is among the guests.
    Work("FFT of 1 M complex numbers", "fft", ((1 << 20,), (1 << 20,)), (1, 1),
         beside_guests=(0.9, 0.9)),
    Work("FFT of 1 M real numbers", "rfft", ((1 << 20,),), (1, 1), beside_guests=(0.9, 0.9)),
]
# A family of their own; guests have none of them.
SPECIAL = [
    Work("lgamma, 16 M positive floats", "lgamma", ((BIG,),), (3, 3), positive=True),
    Work("lgamma, 16 M floats of either sign", "lgamma", ((BIG,),), (3, 3)),
    Work("digamma, 16 M positive floats", "digamma", ((BIG,),), (3, 3), positive=True),
]
EIGHT, LARGE = (100000, 8, 8), (2048, 2048)
LINALG = [
    *(Work("Cholesky, 100,000 of 8x8, " + dtype, "cholesky", (EIGHT,), (promised,) * 2, dtype=dtype)
      for dtype, promised in (("float32", 3), ("float64", 5))),
    *(Work("solve, 100,000 of 8x8, " + dtype, "solve", (EIGHT, (100000, 8, 1)), (5, 5), dtype=dtype)
      for dtype in ("float32", "float64")),
    *(Work("inverse, 100,000 of 8x8, " + dtype, "inverse", (EIGHT,), (5, 5), dtype=dtype)
      for dtype in ("float32", "float64")),
    # One matrix is worked on by one thread.
    *(Work("%s, 2048x2048, float64" % title, kind, shapes, (0.95, 0.5), dtype="float64")
      for title, kind, shapes in (("solve", "solve", (LARGE, (2048, 1))), ("QR", "qr", (LARGE,)),
                                  ("eigenvalues and vectors", "eigh", (LARGE,)),
                                  ("singular values and vectors", "svd", (LARGE,)))),
    Work("exponential, 64x64, float64", "expm", ((64, 64),), (1, 1), dtype="float64"),
    Work("exponential, 1,000 of 8x8, float64", "expm", ((1000, 8, 8),), (1, 1), dtype="float64"),
    Work("eigenvalues and vectors of general matrices, 1,000 of 8x8, float64", "eig",
         ((1000, 8, 8),), (5, 5), dtype="float64"),
    Work("eigenvalues and vectors of a general matrix, 512x512, float64", "eig", ((512, 512),),
         (0.95, 0.5), dtype="float64"),
]
BY_TITLE = {work.title: work for work in WORKS + SPECIAL + LINALG}
# What the chain does, in order.
CHAIN = ("mul 1.1", "add 0.5", "relu", "mul 0.9", "add x", "sub 0.3", "tanh", "mul 2")


def channels_first_inputs(work: Work) -> List[np.ndarray]:
    """For frameworks that have channels before height and width: filters [out, in, ...]."""
    inputs = work.inputs()
    if work.kind.startswith("conv"):
        inputs = [inputs[0].transpose(0, 3, 1, 2), inputs[1].transpose(3, 2, 0, 1)]
    return [np.ascontiguousarray(value) for value in inputs]


def channels_last_results(work: Work, results: List[np.ndarray]) -> List[np.ndarray]:
    """In Treenail's order: a convolution's result and, where there are gradients, those."""
    if work.kind.startswith("conv"):
        results = [value.transpose((0, 2, 3, 1) if i < 2 else (2, 3, 1, 0))
                   for i, value in enumerate(results)]
    return [np.ascontiguousarray(value) for value in results]
