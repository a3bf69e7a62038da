# SPDX-License-Identifier: Apache-2.0
"""Tries the extension: check_extension.py FOLDER, where its compiled module lies."""

import sys

import numpy as np
import oracle
import treenail as tn

sys.path.insert(0, sys.argv[1])
import tensor_product_extension as extension  # noqa: E402  (it lies in that folder)

generator = np.random.default_rng(4)


def tensor_product(x, y, l1, l2, degree):
    """The extension as a node of a graph, with its gradient: forward and backward are functions of
    Python, and a function of Python may be a node."""
    def forward(a, b):
        return extension.forward(a, b, l1, l2, degree)

    def backward(a, b, dz):
        return extension.backward(a, b, dz, l1, l2, degree)

    name = "TensorProductOf%dAnd%dTo%d" % (l1, l2, degree)
    if name not in known:
        known.add(name)
        tn.RegisterGradient(name)(lambda op, dz: tn.py_func(
            backward, [*op.inputs, dz], [dz.dtype, dz.dtype], stateful=False))
    with tn.get_default_graph().gradient_override_map({"PyFuncStateless": name}):
        z = tn.py_func(forward, [x, y], x.dtype, stateful=False)
    z.set_shape([None, 2 * degree + 1])
    return z


known = set()
for l1, l2, degree in [(0, 0, 0), (1, 1, 1), (1, 2, 2), (2, 2, 3), (3, 2, 4)]:
    at = [generator.standard_normal((4, 2 * n + 1)) for n in (l1, l2)]
    given = extension.forward(at[0], at[1], l1, l2, degree)
    z = given.numpy()
    wanted = np.einsum("abc,na,nb->nc", oracle.coefficients(l1, l2, degree, generator), *at)
    np.testing.assert_allclose(z * np.sign((z * wanted).sum()), wanted, atol=1e-8)
    tensors = [tn.from_dlpack(value) for value in at]
    for x, y in (tensors, [memoryview(value) for value in at], [at[0][::-1][::-1], at[1]],
                 [np.asfortranarray(at[0]), at[1]]):
        np.testing.assert_array_equal(extension.forward(x, y, l1, l2, degree).numpy(), z)
    x, y = (tn.placeholder(tn.float64, [None, 2 * n + 1]) for n in (l1, l2))
    loss = tn.reduce_sum(tn.tanh(tensor_product(x, y, l1, l2, degree)))
    slopes = tn.gradients(loss, [x, y])
    with tn.Session() as session:
        for i, name in enumerate((x, y)):
            way = generator.standard_normal(at[i].shape)
            ends = [session.run(loss, {x: at[0], y: at[1], name: at[i] + s * way})
                    for s in (1e-5, -1e-5)]
            slope = session.run(slopes[i], {x: at[0], y: at[1]})
            np.testing.assert_allclose((slope * way).sum(), (ends[0] - ends[1]) / 2e-5, rtol=1e-6)
a, b = generator.standard_normal((2, 5, 3)).astype(np.float32)
np.testing.assert_allclose(extension.forward(a, b, 1, 1, 1).numpy(), np.cross(a, b) / np.sqrt(2),
                           rtol=1e-4, atol=1e-6)
for wrong in ((a, b[:3], 1, 1, 1), (a, b, 1, 1, 3), (a, b, 2, 1, 1), (a, b.astype(float), 1, 1, 1),
              (a, 3, 1, 1, 1), (a, np.array(["x"]), 1, 1, 1), (a.astype(np.int32), b, 1, 1, 1)):
    try:
        extension.forward(*wrong)
        raise SystemExit("%r was accepted" % (wrong,))
    except (ValueError, TypeError, BufferError) as error:
        print(type(error).__name__, str(error).splitlines()[0])
print("the extension is right")
