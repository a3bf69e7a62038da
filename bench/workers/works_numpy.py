# SPDX-License-Identifier: Apache-2.0
"""The same single operations in NumPy, those it has; exponentials in SciPy; products by the BLAS.
Argument: threads (of the BLAS; NumPy itself has one).
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402


def main() -> None:
    try:
        import numpy as np
    except ImportError as error:
        harness.serve({"absent": str(error)}, lambda request: {})
        return
    import works

    def chain(x):
        y = np.maximum(x * np.float32(1.1) + np.float32(0.5), np.float32(0)) * np.float32(0.9)
        return np.tanh(y + x - np.float32(0.3)) * np.float32(2)

    def softmax(x):
        y = np.exp(x - x.max(-1, keepdims=True))
        return y / y.sum(-1, keepdims=True)

    def layer_norm(x):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-5))

    def svd(x):
        u, s, vh = np.linalg.svd(x, full_matrices=False)
        return [s, u, vh.T]

    def eig(x):
        values, vectors = np.linalg.eig(x)
        order = np.lexsort((values.imag, values.real))
        return [np.take_along_axis(values, order, -1),
                np.take_along_axis(vectors, order[..., None, :], -1)]

    functions = {
        "add": lambda x, y: x + y,
        "chain": chain,
        "tanh": np.tanh,
        "softmax": softmax,
        "layer_norm": layer_norm,
        "sum": np.sum,
        "transpose": lambda x: np.ascontiguousarray(x.T),
        "matmul": np.matmul,
        "fft": np.fft.fft,
        "rfft": np.fft.rfft,
        "cholesky": np.linalg.cholesky,
        "solve": np.linalg.solve,
        "inverse": np.linalg.inv,
        "qr": lambda x: list(np.linalg.qr(x)),
        "eigh": lambda x: list(np.linalg.eigh(x)),
        "svd": svd,
        "eig": eig,
    }

    try:
        from scipy.linalg import expm
        functions["expm"] = expm
    except ImportError:
        pass

    def call_of(work):
        if work.kind not in functions:
            raise NotImplementedError(work.kind)
        inputs = work.inputs()
        return lambda: functions[work.kind](*inputs)

    harness.serve_works({"version": np.__version__}, works.BY_TITLE, call_of)


main()
