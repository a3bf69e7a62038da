# SPDX-License-Identifier: Apache-2.0
"""What products, inverses and adjoints of linear operators are; that their structure is used."""

import numpy as np
import pytest

import treenail as tn
from linear_operators import seeded

L = tn.linalg


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
