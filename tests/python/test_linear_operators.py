# SPDX-License-Identifier: Apache-2.0
"""Every kind of linear operator beside its dense matrix: all methods, immediately and in graphs
whose shapes are known, partly known or unknown, with batches that are broadcast; gradients."""

import numpy as np
import pytest

import treenail as tn
from linear_operators import KINDS, NAMES, TYPED, adjoint, kind_of, numbers, seeded

L = tn.linalg
DTYPES = ["float32", "float64", "complex64", "complex128"]
FLAGS = [(a, b) for a in (False, True) for b in (False, True)]


def given(array, mode):
    """(tensor, feeds)."""
    if mode in ("immediate", "static"):
        return tn.constant(array), {}
    shape = None if mode == "unknown rank" else [None] * array.ndim
    tensor = tn.placeholder(array.dtype.name, shape)
    return tensor, {tensor: array}


def products(operator, dense, rng, dtype, batch, mode, feeds):
    """(what it gives, what NumPy gives) of products with both flags."""
    for of_adjoint, of_argument in FLAGS:
        matrix = adjoint(dense) if of_adjoint else dense
        x = numbers(rng, dtype, batch + (matrix.shape[-1], 2))
        tensor, fed = given(adjoint(x) if of_argument else x, mode)
        feeds.update(fed)
        yield operator.matmul(tensor, of_adjoint, of_argument), matrix @ x
    for of_adjoint, matrix in ((False, dense), (True, adjoint(dense))):
        x = numbers(rng, dtype, batch + (matrix.shape[-1],))
        tensor, fed = given(x, mode)
        feeds.update(fed)
        yield operator.matvec(tensor, of_adjoint), (matrix @ x[..., None])[..., 0]


def solutions(operator, dense, rng, dtype, batch, mode, feeds):
    for of_adjoint, of_argument in FLAGS:
        matrix = adjoint(dense) if of_adjoint else dense
        rhs = numbers(rng, dtype, batch + (matrix.shape[-1], 2))
        tensor, fed = given(adjoint(rhs) if of_argument else rhs, mode)
        feeds.update(fed)
        yield operator.solve(tensor, of_adjoint, of_argument), np.linalg.inv(matrix) @ rhs
    for of_adjoint, matrix in ((False, dense), (True, adjoint(dense))):
        rhs = numbers(rng, dtype, batch + (matrix.shape[-1],))
        tensor, fed = given(rhs, mode)
        feeds.update(fed)
        wanted = (np.linalg.inv(matrix) @ rhs[..., None])[..., 0]
        yield operator.solvevec(tensor, of_adjoint), wanted
    sign, size = np.linalg.slogdet(dense)
    yield operator.determinant(), sign * np.exp(size)
    yield operator.log_abs_determinant(), size
    inverse = operator.inverse()
    yield inverse.to_dense(), np.linalg.inv(dense)
    yield inverse.determinant(), 1 / np.linalg.det(dense)
    yield inverse.adjoint().to_dense(), adjoint(np.linalg.inv(dense))


def the_matrix(operator, dense, rng, dtype, mode, feeds):
    shape = dense.shape
    for found, wanted in (
            (operator.shape_tensor(), shape), (operator.batch_shape_tensor(), shape[:-2]),
            (operator.tensor_rank_tensor(), len(shape)),
            (operator.domain_dimension_tensor(), shape[-1]),
            (operator.range_dimension_tensor(), shape[-2])):
        assert found.dtype == tn.int32
        yield found, np.array(wanted, "int32")
    yield operator.to_dense(), dense
    yield operator.diag_part(), np.diagonal(dense, axis1=-2, axis2=-1)
    yield operator.trace(), np.trace(dense, axis1=-2, axis2=-1)
    yield operator.adjoint().to_dense(), adjoint(dense)
    yield operator.H.H.to_dense(), dense
    for batch in ((), (2,) + shape[:-2]):
        x = numbers(rng, dtype, batch + shape[-2:])
        tensor, fed = given(x, mode)
        feeds.update(fed)
        yield operator.add_to_tensor(tensor), dense + x
    if operator.is_self_adjoint and operator.is_positive_definite:
        yield operator.cholesky().to_dense(), np.linalg.cholesky(dense)


def check(found, wanted, dtype):
    rtol = 3e-4 if dtype in ("float32", "complex64") else 1e-10
    scale = max(1.0, np.abs(wanted).max(initial=0))
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * scale)


def compare(pairs, dtype, mode, feeds):
    pairs = list(pairs)
    for tensor, wanted in pairs:
        assert tensor.shape.is_compatible_with(np.shape(wanted)), (tensor, np.shape(wanted))
        if mode in ("static", "immediate"):
            assert tensor.shape.is_fully_defined(), tensor
        assert tensor.dtype in (tn.int32, tn.as_dtype(dtype))
    if mode == "immediate":
        found = [tensor.numpy() for tensor, _ in pairs]
    else:
        with tn.Session() as session:
            found = session.run([tensor for tensor, _ in pairs], feeds)
    for result, (_, wanted) in zip(found, pairs):
        check(result, wanted, dtype)


def compare_all(name, dtype, mode, batch):
    rng = seeded(name, dtype, batch)
    kind, build = kind_of(name, dtype)
    arrays, feeds = kind.make(rng, dtype, batch), {}
    tensors = []
    for array in arrays:
        tensor, fed = given(array, mode)
        feeds.update(fed)
        tensors.append(tensor)
    operator = build(*tensors)
    dense = kind.dense(*arrays)
    if not np.dtype(dtype).kind == "c":
        dense = dense.real
    assert operator.dtype == tn.as_dtype(dtype)
    assert operator.shape.is_compatible_with(dense.shape)
    if mode in ("static", "immediate"):
        assert operator.shape == dense.shape and operator.tensor_rank == dense.ndim
        assert operator.batch_shape == dense.shape[:-2]
        assert (operator.range_dimension, operator.domain_dimension) == dense.shape[-2:]
        assert operator.is_square is (dense.shape[-1] == dense.shape[-2])
    pairs = list(the_matrix(operator, dense, rng, dtype, mode, feeds))
    for of_x in (dense.shape[:-2], (2, *[1] * (dense.ndim - 2)), ()):
        pairs += products(operator, dense, rng, dtype, of_x, mode, feeds)
        if kind.square:
            pairs += solutions(operator, dense, rng, dtype, of_x, mode, feeds)
    compare(pairs, dtype, mode, feeds)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_methods_give_what_the_dense_matrix_gives(name, dtype):
    kind = (KINDS.get(name) or TYPED[name])
    for batch in kind.batches:
        with tn.Graph().as_default():
            compare_all(name, dtype, "static", batch)


@pytest.mark.parametrize("mode", ["unknown extents", "unknown rank"])
@pytest.mark.parametrize("name", NAMES)
def test_methods_where_shapes_are_unknown(name, mode):
    kind = (KINDS.get(name) or TYPED[name])
    for batch in kind.batches[:2]:
        for dtype in ("float64", "complex64"):
            with tn.Graph().as_default():
                compare_all(name, dtype, mode, batch)


@pytest.mark.parametrize("name", NAMES)
def test_methods_at_once(name):
    kind = (KINDS.get(name) or TYPED[name])
    with tn.eager():
        for dtype in ("float32", "complex128"):
            compare_all(name, dtype, "immediate", kind.batches[-1])


NONE = {
    "diag": lambda: L.LinearOperatorDiag(np.zeros(0)),
    "diag, no batch": lambda: L.LinearOperatorDiag(np.ones((0, 3))),
    "full": lambda: L.LinearOperatorFullMatrix(np.zeros((0, 0))),
    "full, no batch": lambda: L.LinearOperatorFullMatrix(np.zeros((0, 3, 3))),
    "lower": lambda: L.LinearOperatorLowerTriangular(np.zeros((0, 0))),
    "toeplitz": lambda: L.LinearOperatorToeplitz(np.zeros(0), np.zeros(0)),
    "circulant": lambda: L.LinearOperatorCirculant(np.zeros(0), input_output_dtype=tn.float64),
    "tridiagonal": lambda: L.LinearOperatorTridiag(np.zeros((3, 0))),
    "identity": lambda: L.LinearOperatorIdentity(0, dtype=tn.float64),
    "householder": lambda: L.LinearOperatorHouseholder(np.ones((0, 3))),
    "kronecker": lambda: L.LinearOperatorKronecker([L.LinearOperatorDiag(np.zeros(0)),
                                                    L.LinearOperatorDiag(np.ones(2))]),
    "blocks": lambda: L.LinearOperatorBlockDiag([L.LinearOperatorDiag(np.zeros(0)),
                                                 L.LinearOperatorDiag(np.ones(2))]),
    "update": lambda: L.LinearOperatorLowRankUpdate(L.LinearOperatorDiag(np.ones(3)),
                                                    np.ones((3, 0))),
    "permutation": lambda: L.LinearOperatorPermutation(np.zeros(0, "int32"), tn.float64)}


@pytest.mark.parametrize("name", sorted(NONE))
def test_operators_of_nothing(name):
    with tn.eager():
        operator = NONE[name]()
        dense = operator.to_dense().numpy()
        batch, n = dense.shape[:-2], dense.shape[-1]
        assert operator.shape == dense.shape
        for columns in (0, 2):
            x = np.ones((n, columns))
            for found in (operator.matmul(x), operator.solve(x), operator.matmul(x, adjoint=True)):
                assert found.shape == batch + (n, columns)
        np.testing.assert_array_equal(operator.determinant().numpy(), np.linalg.det(dense))
        assert operator.log_abs_determinant().shape == operator.trace().shape == batch
        assert operator.inverse().to_dense().shape == operator.H.to_dense().shape == dense.shape
        operator.assert_non_singular()


# --- Gradients ------------------------------------------------------------------------------------

def loss_of(operator, x, square):
    def weighted(value, seed):
        weights = np.random.default_rng(seed).normal(size=value.shape.as_list())
        return tn.reduce_sum(tn.real(value) * weights) + tn.reduce_sum(tn.imag(value) * weights**2)
    loss = weighted(operator.matmul(x), 1) + weighted(operator.matmul(operator.matmul(x), True), 2)
    loss += weighted(operator.diag_part(), 3) + weighted(operator.to_dense(), 4)
    if square:
        loss += weighted(operator.solve(x), 5) + weighted(operator.solve(x, True), 6)
        loss += weighted(operator.log_abs_determinant(), 7)
        loss += weighted(operator.determinant(), 8) / 100
    return loss


def directional(session, value, tensors, feeds, directions, step=1e-5):
    ends = []
    for sign in (1, -1):
        moved = {t: feeds[t] + sign * step * directions[t] for t in tensors}
        ends.append(session.run(value, {**feeds, **moved}))
    return (ends[0] - ends[1]) / (2 * step)


# Hermitian matrices have Hermitian gradients, which differences in one direction do not show.
SMOOTH = [n for n in NAMES if "positive" not in n and n not in ("permutation", "identity",
                                                                "zeros, not square")]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_those_of_differences(name, dtype):
    rng = seeded(name, dtype)
    kind, build = kind_of(name, dtype)
    arrays = kind.make(rng, dtype, kind.batches[len(kind.batches) // 2])
    with tn.Graph().as_default(), tn.Session() as session:
        tensors = [tn.placeholder(a.dtype.name, a.shape) for a in arrays]
        operator = build(*tensors)
        x = tn.constant(numbers(rng, dtype, (operator.shape[-1], 2)))
        loss = loss_of(operator, x, kind.square)
        feeds = dict(zip(tensors, arrays))
        directions = {t: numbers(rng, a.dtype.name, a.shape) for t, a in feeds.items()}
        gradients = tn.gradients(loss, tensors)
        slope = tn.add_n([tn.reduce_sum(tn.real(tn.conj(g) * directions[t]))
                          for g, t in zip(gradients, tensors)])
        found = session.run(slope, feeds)
        wanted = directional(session, loss, tensors, feeds, directions)
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-6)
        # And once more.
        second = tn.gradients(slope, tensors)
        curve = tn.add_n([tn.reduce_sum(tn.real(tn.conj(g) * directions[t]))
                          for g, t in zip(second, tensors) if g is not None])
        np.testing.assert_allclose(
            session.run(curve, feeds), directional(session, slope, tensors, feeds, directions),
            rtol=5e-6, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_of_positive_operators(dtype):
    """Of parameters that keep them positive: a factor of the matrix, a diagonal."""
    rng = seeded(dtype)
    a = numbers(rng, dtype, (2, 3, 3))
    d = rng.uniform(1, 2, (2, 3))
    with tn.Graph().as_default(), tn.Session() as session:
        fed, diagonal = tn.placeholder(dtype, a.shape), tn.placeholder(tn.float64, d.shape)
        product = tn.matmul(fed, fed, adjoint_b=True) + tn.eye(3, dtype=dtype)
        full = L.LinearOperatorFullMatrix(product, is_self_adjoint=True, is_positive_definite=True)
        diag = L.LinearOperatorDiag(tn.cast(diagonal, dtype), is_self_adjoint=True,
                                    is_positive_definite=True)
        x = tn.constant(numbers(rng, dtype, (9, 2)))
        loss = 0.0
        for operator in (L.LinearOperatorKronecker([full, diag]),
                         L.LinearOperatorLowRankUpdate(
                             L.LinearOperatorKronecker([diag, full]), x,
                             is_diag_update_positive=True)):
            loss += loss_of(operator, x, True)
            loss += tn.reduce_sum(tn.real(operator.cholesky().matmul(x)))
        feeds = {fed: a, diagonal: d}
        directions = {fed: numbers(rng, dtype, a.shape), diagonal: rng.normal(size=d.shape)}
        slope = tn.add_n([tn.reduce_sum(tn.real(tn.conj(g) * directions[t]))
                          for g, t in zip(tn.gradients(loss, list(feeds)), feeds)])
        np.testing.assert_allclose(
            session.run(slope, feeds), directional(session, loss, list(feeds), feeds, directions),
            rtol=2e-6)
