# SPDX-License-Identifier: Apache-2.0
"""The same coefficients by another way: what no rotation changes, found from spherical harmonics.

Nothing here knows of Clebsch and Gordan: rotations of degree l are fitted to values of real
spherical harmonics, and the coefficients are the vector that random ones leave alone, which is
unique.
"""

import numpy as np


def harmonics(degree, points):
    """Real spherical harmonics [..., 2l + 1] of unit vectors [..., 3], m = -l ... l; for l = 1 a
    multiple of (y, z, x). By recurrences of Legendre functions."""
    x, y, z = np.moveaxis(points, -1, 0)
    legendre = {}  # P_l^m / sin^m
    for m in range(degree + 1):
        legendre[m, m] = np.prod(np.arange(1.0, 2 * m, 2)) * np.ones_like(z)
        for n in range(m + 1, degree + 1):
            below = legendre.get((n - 2, m), 0.0)
            legendre[n, m] = ((2 * n - 1) * z * legendre[n - 1, m] - (n + m - 1) * below) / (n - m)
    rows = []
    for m in range(-degree, degree + 1):
        k = abs(m)
        around = (x + 1j * y) ** k
        ratio = np.prod(np.arange(degree - k + 1.0, degree + k + 1))
        length = np.sqrt((2 * degree + 1) * (2 if k else 1) / ratio)
        rows.append(length * legendre[degree, k] * (around.imag if m < 0 else around.real))
    return np.stack(rows, axis=-1)


def random_rotation(generator):
    matrix, _ = np.linalg.qr(generator.standard_normal((3, 3)))
    return matrix * np.sign(np.linalg.det(matrix))


def rotation_of_degree(degree, rotation, generator):
    """D [2l + 1, 2l + 1] with harmonics(R u) = D harmonics(u)."""
    points = generator.standard_normal((8 * degree + 8, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    turned = harmonics(degree, points @ rotation.T)
    return np.linalg.lstsq(harmonics(degree, points), turned, rcond=None)[0].T


def coefficients(l1, l2, degree, generator):
    """[2 l1 + 1, 2 l2 + 1, 2 L + 1], up to its sign; squares add up to 2 L + 1."""
    size = (2 * l1 + 1, 2 * l2 + 1, 2 * degree + 1)
    rows = []
    for _ in range(3):
        rotation = random_rotation(generator)
        parts = [rotation_of_degree(n, rotation, generator) for n in (l1, l2, degree)]
        rows.append(np.kron(np.kron(parts[0], parts[1]), parts[2]) - np.eye(np.prod(size)))
    _, lengths, directions = np.linalg.svd(np.concatenate(rows))
    assert lengths[-1] < 1e-8 and (lengths[:-1] > 1e-8).all(), "one and no other is left alone"
    return directions[-1].reshape(size) * np.sqrt(2 * degree + 1)
