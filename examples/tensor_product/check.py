# SPDX-License-Identifier: Apache-2.0
"""Tries the op TensorProduct of a plugin: check.py ./tensor_product.so"""

import sys

import numpy as np
import oracle
import treenail as tn

DEGREES = [(0, 0, 0), (1, 1, 0), (1, 1, 1), (1, 1, 2), (2, 1, 2), (2, 2, 3), (1, 3, 2), (3, 2, 4)]
generator = np.random.default_rng(3)
ops = tn.load_op_library(sys.argv[1])


def product(x, y, l1, l2, degree):
    return tn.execute("TensorProduct", [x, y], l1=l1, l2=l2, L=degree).numpy()


def vectors(count, degree):
    return generator.standard_normal((count, 2 * degree + 1))


def check_values(l1, l2, degree):
    x, y = vectors(5, l1), vectors(5, l2)
    z = product(x, y, l1, l2, degree)
    wanted = np.einsum("abc,na,nb->nc", oracle.coefficients(l1, l2, degree, generator), x, y)
    np.testing.assert_allclose(z * np.sign((z * wanted).sum()), wanted, atol=1e-8)
    rotation = oracle.random_rotation(generator)
    turn = [oracle.rotation_of_degree(n, rotation, generator) for n in (l1, l2, degree)]
    np.testing.assert_allclose(product(x @ turn[0].T, y @ turn[1].T, l1, l2, degree),
                               z @ turn[2].T, atol=1e-8)
    single = product(x.astype(np.float32), y.astype(np.float32), l1, l2, degree)
    np.testing.assert_allclose(single, z, rtol=1e-4, atol=1e-5)


def check_gradient(l1, l2, degree):
    """Against central differences, and the gradient of the gradient likewise."""
    x, y = tn.placeholder(tn.float64, [None, 2 * l1 + 1]), tn.placeholder(tn.float64)
    z = ops.tensor_product(x, y, l1=l1, l2=l2, L=degree)
    loss = tn.reduce_sum(tn.tanh(z))
    slopes = tn.gradients(loss, [x, y])
    bend = tn.gradients(tn.reduce_sum(tn.tanh(slopes[0])), [x])[0]
    at = {x: vectors(2, l1), y: vectors(2, l2)}
    with tn.Session() as session:
        for value, inner, slope in ((loss, x, slopes[0]), (loss, y, slopes[1]),
                                    (tn.reduce_sum(tn.tanh(slopes[0])), x, bend)):
            way = generator.standard_normal(at[inner].shape)
            ends = [session.run(value, {**at, inner: at[inner] + s * way}) for s in (1e-5, -1e-5)]
            np.testing.assert_allclose((session.run(slope, at) * way).sum(),
                                       (ends[0] - ends[1]) / 2e-5, rtol=1e-6, atol=1e-8)


for degrees in DEGREES:
    check_values(*degrees)
    check_gradient(*degrees)
a, b = vectors(4, 1), vectors(4, 1)
np.testing.assert_allclose(product(a, b, 1, 1, 1), np.cross(a, b) / np.sqrt(2), atol=1e-12)
np.testing.assert_allclose(product(a, b, 1, 1, 0)[:, 0], (a * b).sum(1) / np.sqrt(3), atol=1e-12)
for wrong in ({"l1": 1, "l2": 1, "L": 3}, {"l1": 2, "l2": 1, "L": 2}, {"l1": 1, "l2": -1, "L": 0}):
    try:
        product(a, b, wrong["l1"], wrong["l2"], wrong["L"])
        raise SystemExit("%s was accepted" % wrong)
    except tn.errors.InvalidArgumentError as error:
        print(error)
print("TensorProduct is right")
