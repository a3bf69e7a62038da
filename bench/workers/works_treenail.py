# SPDX-License-Identifier: Apache-2.0
"""Single operations by Session.run on variables; results are fresh. Argument: threads."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

import treenail as tn  # noqa: E402
import works  # noqa: E402


def chain(x):
    y = tn.nn.relu(x * 1.1 + 0.5) * 0.9
    return tn.tanh(y + x - 0.3) * 2.0


def conv(work, x, f):
    pad = [work.shapes[1][0] // 2] * 2
    return tn.nn.conv2d(x, f, strides=[1, work.stride, work.stride, 1],
                        padding=[[0, 0], pad, pad, [0, 0]])


def conv_gradients(work, x, f):
    y = conv(work, x, f)
    return [y, *tn.gradients(y, [x, f])]


FUNCTIONS = {
    "add": lambda work, x, y: x + y,
    "chain": lambda work, x: chain(x),
    "tanh": lambda work, x: tn.tanh(x),
    "gelu": lambda work, x: tn.nn.gelu(x, approximate=True),
    "softmax": lambda work, x: tn.nn.softmax(x),
    "layer_norm": lambda work, x: tn.nn.layer_norm(x, tn.ones([1024]), tn.zeros([1024])),
    "sum": lambda work, x: tn.reduce_sum(x),
    "transpose": lambda work, x: tn.transpose(x),
    "matmul": lambda work, x, y: tn.matmul(x, y),
    "conv": conv,
    "conv_gradients": conv_gradients,
    "fft": lambda work, x: tn.fft(x),
    "lgamma": lambda work, x: tn.lgamma(x),
    "digamma": lambda work, x: tn.digamma(x),
    "cholesky": lambda work, x: tn.linalg.cholesky(x),
    "solve": lambda work, x, b: tn.linalg.solve(x, b),
    "inverse": lambda work, x: tn.linalg.inv(x),
    "qr": lambda work, x: list(tn.linalg.qr(x)),
    "eigh": lambda work, x: list(tn.linalg.eigh(x)),
    "svd": lambda work, x: list(tn.linalg.svd(x)),
    "expm": lambda work, x: tn.linalg.expm(x),
    "eig": lambda work, x: list(tn.linalg.eig(x)),
    "rfft": lambda work, x: tn.raw_ops.RFFT(x, [x.shape.as_list()[-1]]),
}


def main() -> None:
    session = tn.Session(config=tn.ConfigProto(intra_op_parallelism_threads=int(sys.argv[1])))

    def call_of(work):
        inputs = [tn.Variable(value) for value in work.inputs()]
        fetched = FUNCTIONS[work.kind](work, *[tn.identity(x) for x in inputs])
        session.run(tn.variables_initializer(inputs))
        return lambda: session.run(fetched)

    harness.serve_works({"version": tn.__version__}, works.BY_TITLE, call_of)


main()
