# SPDX-License-Identifier: Apache-2.0
"""The same single operations in torch. Arguments: threads, and `compiled` where torch.compile shall
make what otherwise runs eagerly.
"""

import os
import sys
from functools import partial

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402


def main() -> None:
    try:
        import torch
    except ImportError as error:
        harness.serve({"absent": str(error)}, lambda request: {})
        return
    import works
    functional = torch.nn.functional
    if sys.argv[2:] == ["compiled"]:
        compiled = partial(torch.compile, dynamic=False)
    else:
        def compiled(function):
            return function
    torch.set_num_threads(int(sys.argv[1]))

    def chain(work, x):
        y = functional.relu(x * 1.1 + 0.5) * 0.9
        return torch.tanh(y + x - 0.3) * 2.0

    def conv(work, x, f):
        return functional.conv2d(x, f, stride=work.stride, padding=f.shape[2] // 2)

    def conv_gradients(conv, inputs):
        with torch.enable_grad():
            y = conv(*inputs)
            return [y, *torch.autograd.grad(y, inputs, torch.ones_like(y))]

    def svd(work, x):
        u, s, vh = torch.linalg.svd(x, full_matrices=False)
        return [s, u, vh.mT]

    def eig(work, x):
        values, vectors = torch.linalg.eig(x)
        # By real, then by imaginary part.
        order = torch.argsort(values.imag, dim=-1, stable=True)
        by_real = torch.argsort(values.real.gather(-1, order), dim=-1, stable=True)
        order = order.gather(-1, by_real)
        return [values.gather(-1, order),
                vectors.gather(-1, order.unsqueeze(-2).expand_as(vectors))]

    functions = {
        "add": lambda work, x, y: x + y,
        "chain": chain,
        "tanh": lambda work, x: torch.tanh(x),
        "gelu": lambda work, x: functional.gelu(x, approximate="tanh"),
        "softmax": lambda work, x: functional.softmax(x, -1),
        "layer_norm": lambda work, x: functional.layer_norm(x, (1024,), torch.ones(1024),
                                                            torch.zeros(1024)),
        "sum": lambda work, x: torch.sum(x),
        "transpose": lambda work, x: x.t().contiguous(),
        "matmul": lambda work, x, y: torch.matmul(x, y),
        "conv": conv,
        "fft": lambda work, x: torch.fft.fft(x),
        "lgamma": lambda work, x: torch.lgamma(x),
        "digamma": lambda work, x: torch.digamma(x),
        "rfft": lambda work, x: torch.fft.rfft(x),
        "cholesky": lambda work, x: torch.linalg.cholesky(x),
        "solve": lambda work, x, b: torch.linalg.solve(x, b),
        "inverse": lambda work, x: torch.linalg.inv(x),
        "qr": lambda work, x: list(torch.linalg.qr(x)),
        "eigh": lambda work, x: list(torch.linalg.eigh(x)),
        "svd": svd,
        "expm": lambda work, x: torch.linalg.matrix_exp(x),
        "eig": eig,
    }
    torch.set_grad_enabled(False)

    def call_of(work):
        inputs = [torch.from_numpy(value) for value in works.channels_first_inputs(work)]
        if work.kind == "conv_gradients":
            for value in inputs:
                value.requires_grad_(True)
            return partial(conv_gradients, conv=compiled(partial(conv, work)), inputs=inputs)
        call = compiled(partial(functions[work.kind], work))
        return lambda: call(*inputs)

    def values_of(work, result):
        results = list(result) if isinstance(result, list) else [result]
        return works.channels_last_results(work, [value.detach().numpy() for value in results])

    harness.serve_works({"version": torch.__version__}, works.BY_TITLE, call_of, values_of)


main()
