# SPDX-License-Identifier: Apache-2.0
"""Every kind of linear operator beside its dense matrix: all methods, immediately and in graphs
whose shapes are known, partly known or unknown, with batches that are broadcast; gradients; what
products and inverses are; hints and errors."""

import numpy as np
import pytest

import treenail as tn
from linear_operators import (KINDS, NAMES, TYPED, adjoint, kind_of, numbers, positive, real_part,
                              regular)

L = tn.linalg
DTYPES = ["float32", "float64", "complex64", "complex128"]
FLAGS = [(a, b) for a in (False, True) for b in (False, True)]


def seeded(*key):
    return np.random.default_rng([ord(c) for c in repr(key)])


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


# --- Algebra --------------------------------------------------------------------------------------

def simple_operators():
    """{name: an operator of order 4}."""
    rng = seeded("algebra")
    near = rng.normal(size=(4, 4)) + 4 * np.eye(4)
    return {
        "identity": L.LinearOperatorIdentity(4, dtype=tn.float64),
        "identities": L.LinearOperatorIdentity(4, [3], dtype=tn.float64),
        "scaled": L.LinearOperatorScaledIdentity(4, np.float64(2.5), is_non_singular=True),
        "diag": L.LinearOperatorDiag(rng.uniform(1, 2, (4,)), is_positive_definite=True),
        "diags": L.LinearOperatorDiag(rng.uniform(1, 2, (3, 4)), is_positive_definite=True),
        "full": L.LinearOperatorFullMatrix(near, is_non_singular=True),
        "lower": L.LinearOperatorLowerTriangular(near, is_non_singular=True),
        "circulant": L.LinearOperatorCirculant(
            np.fft.fft(rng.normal(size=4) + [9, 0, 0, 0]), input_output_dtype=tn.float64),
        "circulant of 2": L.LinearOperatorCirculant2D(
            np.fft.fft2(rng.normal(size=(2, 2)) + [[9, 0], [0, 0]]),
            input_output_dtype=tn.float64),
        "blocks": L.LinearOperatorBlockDiag([L.LinearOperatorFullMatrix(near[:2, :2]),
                                             L.LinearOperatorFullMatrix(near[2:, 2:])]),
        "kronecker": L.LinearOperatorKronecker([L.LinearOperatorFullMatrix(near[:2, :2]),
                                                L.LinearOperatorDiag(near[0, :2])]),
        "householder": L.LinearOperatorHouseholder(near[0]),
        "permutation": L.LinearOperatorPermutation([2, 0, 3, 1], dtype=tn.float64),
        "tridiagonal": L.LinearOperatorTridiag(near, "matrix"),
        "toeplitz": L.LinearOperatorToeplitz(near[0], near[0]),
        "update": L.LinearOperatorLowRankUpdate(L.LinearOperatorDiag(near[0]), near[:, :1]),
        "zeros": L.LinearOperatorZeros(4, dtype=tn.float64),
        "adjoint": L.LinearOperatorAdjoint(L.LinearOperatorLowerTriangular(near)),
        "inverse": L.LinearOperatorInversion(L.LinearOperatorFullMatrix(near)),
    }


# What products are, where TensorFlow or structure has more to say than that they are products.
PRODUCTS = {
    ("identity", "full"): "FullMatrix", ("full", "identity"): "FullMatrix",
    ("identity", "identity"): "Identity", ("identities", "full"): "Composition",
    ("identities", "diags"): "Diag", ("identity", "identities"): "Identity",
    ("scaled", "scaled"): "ScaledIdentity", ("scaled", "diag"): "Diag", ("diag", "scaled"): "Diag",
    ("diag", "diag"): "Diag", ("diag", "diags"): "Diag", ("diag", "lower"): "LowerTriangular",
    ("lower", "diags"): "LowerTriangular", ("circulant", "circulant"): "Circulant",
    ("circulant", "circulant of 2"): "Composition", ("circulant of 2", "circulant of 2"):
    "Circulant2D", ("blocks", "blocks"): "BlockDiag", ("kronecker", "kronecker"): "Kronecker",
    ("zeros", "full"): "Zeros", ("diags", "zeros"): "Zeros", ("full", "full"): "Composition",
    ("full", "diag"): "Composition"}


def test_products_of_operators():
    with tn.eager():
        operators = simple_operators()
        for a, left in operators.items():
            for b, right in operators.items():
                wanted = left.to_dense().numpy() @ right.to_dense().numpy()
                product = left.matmul(right)
                np.testing.assert_allclose(product.to_dense().numpy(), wanted, atol=1e-9,
                                           err_msg="%s x %s" % (a, b))
                assert product.shape == wanted.shape
                if (a, b) in PRODUCTS:
                    assert type(product).__name__ == "LinearOperator" + PRODUCTS[a, b], (a, b)
                if b not in ("zeros",) and a not in ("zeros",):
                    np.testing.assert_allclose(
                        left.solve(right).to_dense().numpy(),
                        np.linalg.inv(left.to_dense().numpy()) @ right.to_dense().numpy(),
                        atol=1e-9, err_msg="%s \\ %s" % (a, b))
        left, right = operators["full"], operators["diag"]
        np.testing.assert_allclose(
            left.matmul(right, adjoint=True, adjoint_arg=True).to_dense().numpy(),
            left.to_dense().numpy().T @ right.to_dense().numpy())
        assert isinstance(left @ right, L.LinearOperatorComposition)


def test_inverses_and_adjoints_keep_their_kind():
    with tn.eager():
        operators = simple_operators()
        for name, cls in {
                "identity": "Identity", "scaled": "ScaledIdentity", "diag": "Diag",
                "circulant": "Circulant", "circulant of 2": "Circulant2D", "blocks": "BlockDiag",
                "kronecker": "Kronecker", "householder": "Householder",
                "permutation": "Permutation", "full": "Inversion", "inverse": "FullMatrix",
                "tridiagonal": "Inversion"}.items():
            assert type(operators[name].inverse()).__name__ == "LinearOperator" + cls, name
        for name, cls in {
                "diag": "Diag", "circulant of 2": "Circulant2D", "blocks": "BlockDiag",
                "kronecker": "Kronecker", "householder": "Householder", "full": "FullMatrix",
                "permutation": "Permutation", "toeplitz": "Toeplitz", "update": "LowRankUpdate",
                "tridiagonal": "Tridiag", "lower": "Adjoint", "adjoint": "LowerTriangular",
                "inverse": "Inversion"}.items():
            assert type(operators[name].adjoint()).__name__ == "LinearOperator" + cls, name
        diag = operators["diag"]
        assert diag.adjoint() is diag  # a real one


def test_hints_of_products():
    with tn.eager():
        o = simple_operators()
        assert (o["diag"] @ o["diags"]).is_positive_definite
        assert (o["diag"] @ o["scaled"]).is_self_adjoint
        assert (o["diag"] @ o["scaled"]).is_positive_definite is None
        assert (o["full"] @ o["lower"]).is_non_singular
        assert (o["full"] @ o["toeplitz"]).is_non_singular is None
        assert (o["full"] @ o["toeplitz"]).is_square
        assert (o["full"] @ L.LinearOperatorComposition([o["zeros"], o["full"]])
                ).is_non_singular is False
        assert o["full"].inverse().is_non_singular
        assert L.LinearOperatorKronecker([o["diag"], o["diag"]]).is_positive_definite
        assert L.LinearOperatorBlockDiag([o["diag"], o["full"]]).is_self_adjoint is None


def test_the_nearest_registration_is_called():
    from treenail.linalg._algebra import Dispatch

    class Base:
        pass

    class Left(Base):
        pass

    class Right(Base):
        pass

    function = Dispatch("product")
    function.of(Base, Base)(lambda a, b: "general")
    function.of(Left, Base)(lambda a, b: "left")
    function.of(Base, Right)(lambda a, b: "right")
    assert function(Base(), Base()) == "general"
    assert function(Left(), Left()) == "left" and function(Right(), Right()) == "right"
    assert function(Left(), Right()) == "left"  # of equal distances the first argument's
    function.of(Left, Right)(lambda a, b: NotImplemented)
    assert function(Left(), Right()) == "left"
    with pytest.raises(ValueError, match="product of Base, Base has already been registered"):
        function.of(Base, Base)(None)
    with pytest.raises(ValueError, match="no product is registered for int, Base"):
        function(1, Base())


def test_structure_is_used():
    """No matrix of the whole order is formed where there is another way."""
    n = 1 << 17
    rng = seeded("large")
    x = rng.normal(size=(n, 1))
    with tn.eager():
        d = rng.uniform(1, 2, n)
        diag = L.LinearOperatorDiag(d, is_positive_definite=True)
        u = rng.normal(size=(n, 2)) / np.sqrt(n)
        operators = [diag, L.LinearOperatorIdentity(n, dtype=tn.float64),
                     L.LinearOperatorScaledIdentity(n, np.float64(3.0)),
                     L.LinearOperatorHouseholder(d), L.LinearOperatorLowRankUpdate(diag, u),
                     L.LinearOperatorLowRankUpdate(diag, u, v=u[::-1].copy()),
                     L.LinearOperatorCirculant(np.fft.fft(d / n) + 2,
                                               input_output_dtype=tn.float64),
                     L.LinearOperatorCirculant2D(np.ones((512, 256)) + 1,
                                                 input_output_dtype=tn.float64),
                     L.LinearOperatorTridiag(np.stack([d, 5 * d, d])),
                     L.LinearOperatorKronecker([L.LinearOperatorDiag(d[:512]),
                                                L.LinearOperatorFullMatrix(
                                                    rng.normal(size=(256, 256)) + 9 * np.eye(256))
                                                ]),
                     L.LinearOperatorBlockDiag([L.LinearOperatorDiag(d[:1000]),
                                                L.LinearOperatorDiag(d[1000:])]),
                     L.LinearOperatorPermutation(rng.permutation(n), tn.float64)]
        for operator in operators:
            y = operator.matmul(operator.solve(x))
            np.testing.assert_allclose(y.numpy(), x, rtol=1e-7, atol=1e-9)
            assert np.isfinite(operator.trace().numpy())
            if not isinstance(operator, (L.LinearOperatorTridiag, L.LinearOperatorPermutation)):
                assert np.isfinite(operator.log_abs_determinant().numpy())
        col = 0.5 ** np.minimum(np.arange(n), 60)
        toeplitz = L.LinearOperatorToeplitz(col, col)
        assert abs(toeplitz.matmul(np.ones((n, 1)))[n // 2, 0].numpy() - 3) < 1e-9


def test_one_factorisation_serves_a_batch_of_right_sides():
    with tn.Graph().as_default() as graph:
        rhs = tn.placeholder(tn.float32, [7, 5, 3, 2])
        x = L.LinearOperatorFullMatrix(np.eye(3, dtype="float32")).solve(rhs)
        assert x.shape == [7, 5, 3, 2]
        (solve,) = [op for op in graph.get_operations() if op.type == "MatrixSolve"]
        assert solve.inputs[0].shape == [3, 3] and solve.inputs[1].shape == [3, 70]


# --- Assertions, hints and errors -----------------------------------------------------------------

def holds(make, operator, at_once=False):
    """Whether an assertion holds when it is run."""
    try:
        if at_once:
            with tn.eager():
                make(operator())
        else:
            with tn.Graph().as_default(), tn.Session() as session:
                session.run(make(operator()))
    except tn.errors.InvalidArgumentError:
        return False
    return True


SKEW = np.array([[1.0, 2.0], [-2.0, 1.0]])
HERMITIAN = np.array([[2.0, 1j], [-1j, 1.0]])
ASSERTED = [  # operator, non-singular, positive definite, self-adjoint
    (lambda: L.LinearOperatorFullMatrix(SKEW), True, True, False),
    (lambda: L.LinearOperatorFullMatrix(-SKEW), True, False, False),
    (lambda: L.LinearOperatorFullMatrix(HERMITIAN), True, True, True),
    (lambda: L.LinearOperatorFullMatrix(HERMITIAN, is_self_adjoint=True), True, True, True),
    (lambda: L.LinearOperatorFullMatrix(np.ones((3, 2, 2))), False, False, True),
    (lambda: L.LinearOperatorLowerTriangular([[2.0, 0], [1, 2]]), True, True, False),
    (lambda: L.LinearOperatorLowerTriangular(SKEW - np.eye(2)), False, False, False),
    (lambda: L.LinearOperatorLowerTriangular(np.eye(2), is_self_adjoint=True), True, True, True),
    (lambda: L.LinearOperatorDiag([1.0, 2.0]), True, True, True),
    (lambda: L.LinearOperatorDiag([1.0, -2.0]), True, False, True),
    (lambda: L.LinearOperatorDiag([0.0, 2.0]), False, False, True),
    (lambda: L.LinearOperatorDiag([1j, 2.0]), True, False, False),
    (lambda: L.LinearOperatorDiag([np.nan, 2.0]), False, False, True),
    (lambda: L.LinearOperatorIdentity(3), True, True, True),
    (lambda: L.LinearOperatorScaledIdentity(3, 2.0), True, True, True),
    (lambda: L.LinearOperatorScaledIdentity(3, 0.0), False, False, True),
    (lambda: L.LinearOperatorScaledIdentity(3, 1j), True, False, False),
    (lambda: L.LinearOperatorZeros(3), False, False, True),
    (lambda: L.LinearOperatorHouseholder([1.0, 2.0]), True, False, True),
    (lambda: L.LinearOperatorPermutation([1, 0]), True, False, True),
    (lambda: L.LinearOperatorPermutation([1, 2, 0]), True, False, False),
    (lambda: L.LinearOperatorCirculant([1.0, 2.0]), True, True, True),
    (lambda: L.LinearOperatorCirculant([1.0, 0.0]), False, False, True),
    (lambda: L.LinearOperatorCirculant([1.0, 1j]), True, False, False),
    (lambda: L.LinearOperatorToeplitz([2.0, 1.0], [2.0, 1.0]), True, True, True),
    (lambda: L.LinearOperatorToeplitz([1.0, 1.0], [1.0, 1.0]), False, False, True),
    (lambda: L.LinearOperatorTridiag([[1.0, 0], [2, 2], [0, 1]]), True, True, True),
    (lambda: L.LinearOperatorTridiag([[1.0, 0], [2, 2], [0, 2]]), True, True, False),
    (lambda: L.LinearOperatorBlockDiag([L.LinearOperatorDiag([1.0]),
                                        L.LinearOperatorDiag([-1.0])]), True, False, True),
    (lambda: L.LinearOperatorKronecker([L.LinearOperatorDiag([1.0]),
                                        L.LinearOperatorDiag([0.0])]), False, False, True),
    (lambda: L.LinearOperatorAdjoint(L.LinearOperatorDiag([1j, 0])), False, False, False),
    (lambda: L.LinearOperatorInversion(L.LinearOperatorFullMatrix(SKEW)), True, True, False),
    (lambda: L.LinearOperatorComposition([L.LinearOperatorDiag([1.0, 0.0]),
                                          L.LinearOperatorFullMatrix(np.eye(2, dtype="f"))]),
     False, False, True),
    (lambda: L.LinearOperatorLowRankUpdate(L.LinearOperatorIdentity(2), [[1.0], [1.0]], [-0.5]),
     False, False, True)]


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("case", range(len(ASSERTED)))
def test_assertions(case, at_once):
    operator, non_singular, positive_definite, self_adjoint = ASSERTED[case]
    assert holds(lambda o: o.assert_non_singular(), operator, at_once) is non_singular
    assert holds(lambda o: o.assert_positive_definite(), operator, at_once) is positive_definite
    assert holds(lambda o: o.assert_self_adjoint(), operator, at_once) is self_adjoint


def test_spectra_of_real_kernels():
    assert holds(lambda o: o.assert_hermitian_spectrum(), lambda: L.LinearOperatorCirculant(
        np.fft.fft(np.arange(5.0)).astype("complex64")))
    assert not holds(lambda o: o.assert_hermitian_spectrum(), lambda: L.LinearOperatorCirculant(
        np.array([1, 1j, 1, 1], "complex64")))
    with tn.eager():
        operator = L.LinearOperatorCirculant2D(np.fft.fft2(np.arange(6.0).reshape(2, 3)),
                                               input_output_dtype=tn.float64)
        np.testing.assert_allclose(operator.convolution_kernel().numpy(),
                                   np.arange(6.0).reshape(2, 3), atol=1e-12)
        assert operator.block_depth == 2 and operator.block_shape == [2, 3]
        assert operator.block_shape_tensor().numpy().tolist() == [2, 3]


def make(cls, *args, **kwargs):
    return lambda: getattr(L, "LinearOperator" + cls)(*args, **kwargs)


@pytest.mark.parametrize("build, words", [
    (make("FullMatrix", np.eye(2), is_positive_definite=True, is_non_singular=False),
     "A positive definite matrix is always non-singular."),
    (make("FullMatrix", np.eye(2), is_non_singular=True, is_square=False),
     "A non-singular matrix is always square."),
    (make("FullMatrix", np.eye(2), is_self_adjoint=True, is_square=False),
     "A self-adjoint matrix is always square."),
    (make("Diag", [1.0], is_self_adjoint=False), "A real diagonal operator is always self adjoint"),
    (make("Diag", [1.0], is_square=False), "Only square diagonal operators"),
    (make("Diag", 1.0), "at least 1 dimension"),
    (make("FullMatrix", [1.0]), "at least 2 dimensions"),
    (make("LowerTriangular", np.eye(2), is_square=False), "Only square lower triangular"),
    (make("Identity", 2, is_self_adjoint=False), "An identity operator is always self adjoint"),
    (make("Identity", -2), "num_rows must be non-negative"),
    (make("Identity", [2]), "num_rows must be a 0-D Tensor"),
    (make("Identity", 2, [[2]]), "batch_shape must be a 1-D Tensor"),
    (make("Identity", 2, [-2]), "batch_shape must be non-negative"),
    (make("Zeros", 2, is_non_singular=True), "A zero operator is always singular"),
    (make("Zeros", 2, is_positive_definite=True), "always not positive definite"),
    (make("Householder", [1.0], is_positive_definite=True), "always non-positive definite"),
    (make("Householder", [1.0], is_self_adjoint=False), "always self adjoint"),
    (make("Circulant", [1.0], is_self_adjoint=False), "real spectrum always corresponds"),
    (make("Circulant", [1.0], is_square=False), "always square"),
    (make("Toeplitz", [1.0], [1.0, 2.0]), "Expected square matrix"),
    (make("Toeplitz", [1.0], [1.0], is_square=False), "Only square Toeplitz"),
    (make("Permutation", [0], is_non_singular=False), "always non-singular"),
    (make("Tridiag", np.ones((2, 3))), "3 rows in the format 'compact'"),
    (make("Tridiag", np.ones((2, 3)), "sparse"), "diagonals_format must be one of"),
    (make("BlockDiag", []), "non-empty list of operators"),
    (lambda: L.LinearOperatorBlockDiag([L.LinearOperatorFullMatrix(np.ones((2, 3)))]),
     "block diagonal of square matrices"),
    (lambda: L.LinearOperatorInversion(L.LinearOperatorZeros(2)), "is_non_singular=True"),
    (lambda: L.LinearOperatorAdjoint(L.LinearOperatorZeros(2), is_non_singular=True),
     "`is_non_singular` False"),
    (lambda: L.LinearOperatorComposition([L.LinearOperatorIdentity(2),
                                          L.LinearOperatorIdentity(3)]), "incompatible"),
    (lambda: L.LinearOperatorLowRankUpdate(L.LinearOperatorIdentity(2), np.ones((3, 1), "f")),
     "Argument u has shape"),
    (lambda: L.LinearOperatorLowRankUpdate(
        L.LinearOperatorIdentity(2), np.ones((2, 1), "f"), [1.0], is_self_adjoint=False,
        is_diag_update_positive=True), "always self-adjoint and positive definite"),
    (lambda: L.LinearOperatorIdentity(2).matmul(np.ones((3, 1), "f")), "not compatible"),
    (lambda: L.LinearOperatorIdentity(2).matmul([1.0, 2.0]), "at least 2 dimensions"),
    (lambda: L.LinearOperatorIdentity(2).matvec(np.ones(3, "f")), "not compatible"),
    (lambda: L.LinearOperatorIdentity(2).solve(np.ones((1, 3), "f"), adjoint_arg=True),
     "not compatible"),
    (lambda: L.LinearOperatorIdentity(2).matmul(L.LinearOperatorIdentity(3)),
     "Operators are incompatible. Expected `x` to have dimension 2 but got 3."),
    (lambda: L.LinearOperatorZeros(2).inverse(), "represents a singular matrix"),
    (lambda: L.LinearOperatorFullMatrix(np.ones((2, 3))).inverse(), "non square"),
    (lambda: L.LinearOperatorFullMatrix(np.eye(2)).cholesky(),
     "Not a positive definite self adjoint matrix"),
    (lambda: L.LinearOperatorFullMatrix(np.eye(2), is_square=False).is_square,
     "User set is_square hint to False, but the operator was square."),
    (lambda: L.LinearOperator(tn.float32, [1.0]), "Graph parent item 0 is not a Tensor")])
def test_contradictions_are_refused(build, words):
    with pytest.raises(ValueError, match=words):
        build()


@pytest.mark.parametrize("build, words", [
    (make("Diag", [1, 2]), "Argument diag must have dtype in"),
    (make("Permutation", [1.0, 0.0]), "dtype int32 or int64"),
    (make("Circulant", np.ones(2)), "the same precision"),
    (make("Identity", 2.5), "integer type"),
    (make("Adjoint", np.eye(2)), "Expected a LinearOperator"),
    (lambda: L.LinearOperatorKronecker([L.LinearOperatorIdentity(2),
                                        L.LinearOperatorIdentity(2, dtype=tn.float64)]),
     "the same dtype"),
    (lambda: L.LinearOperatorIdentity(2).matmul(np.eye(2)), "Expected argument to have dtype"),
    (lambda: L.LinearOperatorIdentity(2).matmul(L.LinearOperatorIdentity(2, dtype=tn.float64)),
     "Expected argument to have dtype"),
    (lambda: L.LinearOperator(tn.int32), "must have dtype float32")])
def test_wrong_dtypes_are_refused(build, words):
    with pytest.raises(TypeError, match=words):
        build()


@pytest.mark.parametrize("build, words", [
    (lambda: L.LinearOperatorZeros(2).solve(np.ones((2, 1), "f")), "expected to be singular"),
    (lambda: L.LinearOperatorFullMatrix(np.ones((2, 3))).solve(np.ones((2, 1))),
     "expected to not be square"),
    (lambda: L.LinearOperatorFullMatrix(np.ones((2, 3))).determinant(), "not be square"),
    (lambda: L.LinearOperatorFullMatrix(np.ones((2, 3))).log_abs_determinant(), "not be square"),
    (lambda: L.LinearOperator(tn.float32).shape, "_shape is not implemented")])
def test_what_there_is_not(build, words):
    with pytest.raises(NotImplementedError, match=words):
        build()


def test_singular_operators_are_refused_when_run(evaluate):
    singular = np.eye(3)
    singular[2, 2] = 0
    for operator, words in (
            (L.LinearOperatorFullMatrix(singular), "not invertible"),
            (L.LinearOperatorLowerTriangular(np.stack([np.eye(3), singular])),
             r"\[1\] of the batch"),
            (L.LinearOperatorTridiag(singular, "matrix"), "The matrix is not invertible"),
            (L.LinearOperatorFullMatrix(-singular, is_self_adjoint=True,
                                        is_positive_definite=True), "Cholesky")):
        with pytest.raises(tn.errors.InvalidArgumentError, match=words):
            evaluate(operator.solve(np.ones((3, 1))))


def test_extents_are_checked_in_a_run_where_it_is_asked_for(evaluate):
    rows = tn.placeholder(tn.int32, [])
    operator = L.LinearOperatorIdentity(rows, assert_proper_shapes=True)
    y = operator.matmul(np.ones((3, 2), "f"))
    assert evaluate(y, {rows: 3}).shape == (3, 2)
    with pytest.raises(tn.errors.InvalidArgumentError, match="another number of rows"):
        evaluate(y, {rows: 2})


def test_what_an_update_is_made_of(evaluate):
    u, d, v = np.ones((3, 2)), np.array([1.0, 2.0]), np.zeros((3, 2))
    base = L.LinearOperatorIdentity(3, dtype=tn.float64)
    update = L.LinearOperatorLowRankUpdate(base, u, d, v, is_diag_update_positive=True)
    assert update.base_operator is base and update.is_diag_update_positive
    for found, wanted in zip(evaluate([update.u, update.v, update.diag_update,
                                       update.diag_operator.to_dense()]), (u, v, d, np.diag(d))):
        np.testing.assert_array_equal(found, wanted)
    ones = L.LinearOperatorLowRankUpdate(base, u)
    assert ones.diag_update is None and ones.diag_operator.is_positive_definite
    np.testing.assert_array_equal(evaluate(ones.diag_operator.to_dense()), np.eye(2))
    # Zeros on the diagonal of the update are no reason to fail.
    none = L.LinearOperatorLowRankUpdate(base, u, 0 * d)
    np.testing.assert_array_equal(evaluate(none.solve(u)), u)


def test_names_and_parents():
    x = tn.constant([1.0, 2.0])
    operator = L.LinearOperatorDiag(x, name="scales")
    assert operator.name == "scales" and operator.graph_parents == [x]
    assert operator.matmul([[1.0], [2.0]]).op.name.startswith("scales/matmul/")
    assert operator.solvevec([1.0, 2.0]).op.name.startswith("scales_1/solve/")
    composed = operator @ L.LinearOperatorFullMatrix([[1.0, 0.0], [0.0, 1.0]])
    assert composed.name == "scales_o_LinearOperatorFullMatrix"
    assert len(composed.graph_parents) == 2 and len(composed.operators) == 2
    assert repr(operator) == "<tn.linalg.LinearOperatorDiag 'scales' shape=(2, 2) dtype=float32>"


class Doubling(L.LinearOperator):
    """As a program would write one."""

    def __init__(self, rows):
        super().__init__(tn.float64)
        self._count = rows

    def _shape(self):
        return tn.TensorShape([self._count, self._count])

    def _shape_tensor(self):
        return tn.constant([self._count, self._count])

    def _matmul(self, x, adjoint=False, adjoint_arg=False):
        return 2.0 * (L.adjoint(x) if adjoint_arg else x)


def test_an_operator_of_a_program_has_all_methods(evaluate):
    operator = Doubling(3)
    found = evaluate([operator.to_dense(), operator.solve(np.ones((3, 1))), operator.determinant(),
                      operator.trace(), (operator @ operator).to_dense(),
                      operator.inverse().matmul(np.eye(3)), operator.adjoint().to_dense()])
    eye = np.eye(3)
    for x, wanted in zip(found, (2 * eye, np.full((3, 1), 0.5), 8, 6, 4 * eye, eye / 2, 2 * eye)):
        np.testing.assert_allclose(x, wanted)


def test_immediately_the_results_are_those_of_graphs():
    rng = seeded("same")
    a, x = regular(rng, "float32", (2,), 5), numbers(rng, "float32", (5, 3))
    spd = positive(rng, "float32", (), 5)

    def results():
        full = L.LinearOperatorFullMatrix(a)
        update = L.LinearOperatorLowRankUpdate(
            L.LinearOperatorFullMatrix(spd, is_self_adjoint=True, is_positive_definite=True), x)
        return [full.solve(x), update.solve(x), update.log_abs_determinant(),
                L.LinearOperatorToeplitz(a[0, 0], a[0, 1]).matmul(x)]
    with tn.eager():
        at_once = [t.numpy() for t in results()]
    with tn.Session() as session:
        for left, right in zip(at_once, session.run(results())):
            np.testing.assert_array_equal(left, right)
    assert real_part("complex64") == "float32"
