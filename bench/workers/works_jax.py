# SPDX-License-Identifier: Apache-2.0
"""The same single operations in JAX: jit. Argument: threads (the processors that the process may
use).
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402


def main() -> None:
    import jax
    import works
    np = jax.numpy

    def chain(work, x):
        y = jax.nn.relu(x * 1.1 + 0.5) * 0.9
        return np.tanh(y + x - 0.3) * 2.0

    def layer_norm(work, x):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5)

    def conv(work, x, f):
        pad = (f.shape[0] // 2,) * 2
        return jax.lax.conv_general_dilated(x, f, (work.stride,) * 2, (pad, pad),
                                            dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def conv_gradients(work, x, f):
        y, gradients = jax.vjp(lambda x, f: conv(work, x, f), x, f)
        return [y, *gradients(np.ones_like(y))]

    functions = {
        "add": lambda work, x, y: x + y,
        "chain": chain,
        "tanh": lambda work, x: np.tanh(x),
        "gelu": lambda work, x: jax.nn.gelu(x, approximate=True),
        "softmax": lambda work, x: jax.nn.softmax(x),
        "layer_norm": layer_norm,
        "sum": lambda work, x: x.sum(),
        "transpose": lambda work, x: x.T,
        "matmul": lambda work, x, y: x @ y,
        "conv": conv,
        "conv_gradients": conv_gradients,
        "fft": lambda work, x: np.fft.fft(x),
        "rfft": lambda work, x: np.fft.rfft(x),
    }

    def call_of(work):
        if work.kind not in functions:  # linear algebra: theirs is LAPACK too, or slower
            raise NotImplementedError(work.kind)
        inputs = [np.asarray(value) for value in work.inputs()]
        call = jax.jit(lambda *given: functions[work.kind](work, *given))
        return lambda: jax.block_until_ready(call(*inputs))

    harness.serve_works({"version": jax.__version__}, works.BY_TITLE, call_of)


main()
