# SPDX-License-Identifier: Apache-2.0
"""einsum against NumPy's by random equations, its gradients by differences, and the order in which
it contracts."""

import itertools
import random

import numpy as np
import pytest

import treenail as tn
from differences import differences_agree
from treenail import _einsum_path as paths

DTYPES = ("float64", "complex128", "float32", "complex64", "int32", "int64", "int8", "uint16")
TOLERANCE = {"float64": 1e-12, "complex128": 1e-12, "float32": 1e-4, "complex64": 1e-4}


class Program:
    """A random equation with operands that fit it: indices repeated within an operand, ellipses of
    different lengths, extents of 0 and 1, an output in any order or none, capitals and spaces."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        rng = self.rng
        self.letters = rng.sample("abcdefijXYZ", rng.randint(1, 6))
        self.extents = {c: rng.choice((1, 2, 3, 3, 4, 5)) for c in self.letters}
        if rng.random() < 0.05:
            self.extents[self.letters[0]] = 0
        self.ellipsis = [rng.choice((1, 2, 3)) for _ in range(rng.randint(0, 3))]
        self.dtype = rng.choice(DTYPES)
        self.parts, self.shapes = zip(*[self.operand() for _ in range(rng.randint(1, 4))])
        self.equation = self.spaced(",".join(self.parts) + self.output())
        data = np.random.default_rng(seed)
        self.arrays = [self.values(data, shape) for shape in self.shapes]

    def operand(self):
        rng = self.rng
        part = [rng.choice(self.letters) for _ in range(rng.randint(0, 4))]
        # Where an index does not stand twice, 1 may stand for its extent.
        shape = [1 if rng.random() < 0.1 and part.count(c) == 1 else self.extents[c] for c in part]
        if rng.random() < 0.4:
            at = rng.randint(0, len(part))
            dims = self.ellipsis[rng.randint(0, len(self.ellipsis)):]
            shape[at:at] = [1 if rng.random() < 0.3 else d for d in dims]
            part.insert(at, "...")
        return "".join(part), tuple(shape)

    def output(self):
        rng = self.rng
        if rng.random() < 0.2:
            return ""
        used = sorted(set("".join(self.parts)) - {"."})
        out = rng.sample(used, rng.randint(0, len(used)))
        if any("..." in part for part in self.parts):
            out.insert(rng.randint(0, len(out)), "...")
        return "->" + "".join(out)

    def spaced(self, equation):
        if self.rng.random() < 0.8:
            return equation
        short = equation.replace("...", "~").replace("->", ">")
        return " ".join(short).replace("~", "...").replace(">", "->")

    def values(self, data, shape):
        if np.dtype(self.dtype).kind in "iu":
            return data.integers(0, 5, shape).astype(self.dtype)
        x = data.normal(size=shape)
        return (x + 1j * data.normal(size=shape) if self.dtype[0] == "c" else x).astype(self.dtype)

    def known_shapes(self):
        """All, some extents, the ranks alone, or not even these."""
        how = self.rng.choice(("all", "some", "ranks", "none", "mixed"))

        def of(shape):
            if how == "none" or how == "mixed" and self.rng.random() < 0.5:
                return None
            chance = {"all": 0.0, "some": 0.5, "mixed": 0.3, "ranks": 1.0}[how]
            return [None if self.rng.random() < chance else n for n in shape]

        return [of(shape) for shape in self.shapes]


def agrees(found, wanted, dtype, equation):
    assert found.dtype == np.dtype(dtype)
    assert found.shape == wanted.shape, equation
    if dtype in TOLERANCE:
        scale = max(1, np.abs(wanted).max(initial=0))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE[dtype] * scale,
                                   err_msg=equation)
    else:
        np.testing.assert_array_equal(found, wanted, err_msg=equation)


@pytest.mark.parametrize("block", range(8))
def test_random_programs(block):
    with tn.Session() as session:
        for seed in range(50 * block, 50 * block + 50):
            p = Program(seed)
            wanted = np.einsum(p.equation, *p.arrays)
            shapes = p.known_shapes()
            given = [tn.placeholder(p.dtype, shape) for shape in shapes]
            optimize = p.rng.choice(("greedy", "optimal", False))
            y = tn.einsum(p.equation, *given, optimize=optimize)
            where = "%r %s of %s known %s (seed %d)" % (p.equation, p.dtype, p.shapes, shapes, seed)
            assert y.shape.is_compatible_with(wanted.shape), where
            agrees(session.run(y, dict(zip(given, p.arrays))), wanted, p.dtype, where)


def test_random_programs_at_once():
    with tn.eager():
        for seed in range(400, 500):
            p = Program(seed)
            agrees(tn.einsum(p.equation, *p.arrays).numpy(), np.einsum(p.equation, *p.arrays),
                   p.dtype, "%r of %s (seed %d)" % (p.equation, p.shapes, seed))


GRADIENTS = [("ij,jk->ik", [(2, 3), (3, 4)]), ("bij,bkj->bik", [(2, 2, 3), (2, 4, 3)]),
             ("ii->i", [(3, 3)]), ("ii", [(3, 3)]), ("ijk->kij", [(2, 3, 4)]), ("ij->", [(2, 3)]),
             ("iij,jk->k", [(2, 2, 3), (3, 2)]), ("ij,ij->ij", [(2, 3), (2, 3)]),
             ("i,j->ij", [(2,), (3,)]), ("...ij,...jk->...ik", [(2, 1, 2, 3), (4, 3, 2)]),
             ("...i,...i", [(2, 3), (3,)]), ("ab,bc,cd,da->", [(2, 3), (3, 2), (2, 4), (4, 2)]),
             ("ij,jk->ik", [(2, 1), (3, 4)]), ("...->...", [(2, 3)]), ("i->", [(0,)])]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("known", ["all", "ranks", "none"])
@pytest.mark.parametrize("equation,shapes", GRADIENTS)
def test_gradients(equation, shapes, known, dtype):
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=s) for s in shapes]
    if dtype == "complex128":
        arrays = [x + 1j * rng.normal(size=x.shape) for x in arrays]
    seen = {"all": shapes, "ranks": [[None] * len(s) for s in shapes], "none": [None] * len(shapes)}
    differences_agree(lambda *x: tn.einsum(equation, *x), arrays, seen[known])


# --- The order ------------------------------------------------------------------------------------

def cheapest(labels, output, extents):
    """By trying all."""
    best = []

    def go(left, path):
        if left == 1:
            best.append(paths.path_cost(labels, output, extents, path))
        for pair in itertools.combinations(range(left), 2):
            go(left - 1, path + [pair])

    go(len(labels), [])
    return min(best)


def test_orders_are_the_cheapest():
    rng = random.Random(3)
    for _ in range(60):
        letters = "abcdefg"[:rng.randint(3, 7)]
        labels = tuple("".join(rng.sample(letters, rng.randint(1, len(letters))))
                       for _ in range(rng.randint(3, 5)))
        used = sorted(set("".join(labels)))
        output = "".join(rng.sample(used, rng.randint(0, len(used))))
        extents = tuple((c, rng.randint(1, 30)) for c in used)
        path = paths.contraction_path(labels, output, extents, "greedy")
        cost = paths.path_cost(labels, output, extents, path)
        assert cost == pytest.approx(cheapest(labels, output, extents))


@pytest.mark.parametrize("count", [9, 20, 50])
def test_orders_of_many_operands(count):
    """A chain of matrices, thin at its end: from the left every step is a product of matrices."""
    labels = tuple(chr(97 + i) + chr(98 + i) for i in range(count))
    extents = tuple((chr(97 + i), 100 if i < count else 1) for i in range(count + 1))
    output = labels[0][0] + labels[-1][1]
    path = paths.contraction_path(labels, output, extents, "greedy")
    cost = paths.path_cost(labels, output, extents, path)
    left = paths.path_cost(labels, output, extents, paths.given_order(count))
    assert cost < left / 2 and len(path) == count - 1


def largest(graph):
    return max(np.prod(t.shape.as_list()) for op in graph.get_operations() for t in op.outputs
               if t.dtype == tn.float32)


@pytest.mark.parametrize("optimize,most", [("greedy", 900), ("optimal", 900), (True, 900),
                                           (False, 27000), ([(1, 2), (0, 1)], 900),
                                           ([(0, 1), (0, 1)], 27000)])
def test_the_order_is_taken(optimize, most):
    """a and b share no index: their product is 30 times as large as anything needed."""
    with tn.Graph().as_default() as graph:
        a, b, c = (tn.placeholder(tn.float32, s) for s in ((30,), (30, 30), (30, 30)))
        y = tn.einsum("i,jk,ij->k", a, b, c, optimize=optimize)
        assert largest(graph) == most
        with tn.Session() as session:
            ones = {a: np.ones(30), b: np.ones((30, 30)), c: np.ones((30, 30))}
            assert session.run(y, ones).tolist() == [900.0] * 30


@pytest.mark.parametrize("optimize,text", [
    ("best", "'optimize' must be one of 'greedy'"), ([(0, 2), (0, 1)], "not a pair of the 2"),
    ([(0, 0)], "not a pair"), ([], "0 pairs leave 2 of 2 operands"), ([(0, 1, 1)], "not a pair")])
def test_orders_that_there_are_not(optimize, text):
    with pytest.raises(ValueError, match=text):
        tn.einsum("ij,jk->ik", np.ones((2, 2)), np.ones((2, 2)), optimize=optimize)


def test_a_product_needs_no_transposition():
    """Layouts are told to the product of matrices, and the result comes in the order asked for."""
    for equation in ("ij,jk->ik", "ji,jk->ik", "ij,kj->ik", "ji,kj->ik", "ij,jk->ki",
                     "bij,bkj->bik", "bji,bjk->bki", "ijk,ij->ijk", "hij,ijk->hk"):
        with tn.Graph().as_default() as graph:
            parts = equation.partition("->")[0].split(",")
            tn.einsum(equation, *[tn.placeholder(tn.float32, [2] * len(p)) for p in parts])
            assert "Transpose" not in {op.type for op in graph.get_operations()}, equation


# --- Refusals -------------------------------------------------------------------------------------

@pytest.mark.parametrize("equation,shape,text", [
    ("...ijk->i", (2, 2), "operand 0, '...ijk', has rank 2"),
    ("ij->ij...k", (2, 2), "index 'k' of the output is in no operand"),
    ("ij->......", (2, 2), "only letters"), ("i1->i", (2, 2), "only letters"),
    ("ij->i->j", (2, 2), "only letters"), ("i,j", (2,), "names 2 operands, 1 were given"),
    ("ij->jj", (2, 2), "repeats an index within the output: 'j'"),
    ("iij->j", (2, 3, 4), r"axes of index 'i' within one operand .* \[2,3,4\]")])
def test_equations_that_do_not_fit(equation, shape, text):
    with pytest.raises(ValueError, match=text):
        tn.einsum(equation, np.ones(shape))


@pytest.mark.parametrize("equation,shapes,text", [
    ("ij->i", [(2, 3, 4)], "rank_of_operand_0"), ("ii->i", [(2, 3)], "diagonal_of_index_i"),
    ("ij,jk->ik", [(2, 3), (4, 5)], "extent_of_index_j"),
    ("bij,bjk->bik", [(2, 3, 4), (3, 4, 5)], "product_of_index_b"),
    ("i,i->i", [(2,), (3,)], "product_of_index_i"),
    ("...i,...i->...", [(2, 3), (4, 3)], "extents_of_the_ellipsis"),
    ("...ij->i", [(3,)], "einsum")])
def test_what_a_run_refuses(equation, shapes, text):
    """The node's name tells the operand or the index."""
    with tn.Session() as session:
        given = [tn.placeholder(tn.float32) for _ in shapes]
        y = tn.einsum(equation, *given)
        with pytest.raises(tn.errors.InvalidArgumentError, match=text):
            session.run(y, {t: np.ones(s) for t, s in zip(given, shapes)})


def test_equations_are_text():
    with pytest.raises(TypeError, match="equation must be a string"):
        tn.einsum(3, np.ones(2))


def test_dtypes_must_agree():
    with pytest.raises((ValueError, TypeError, tn.errors.InvalidArgumentError)):
        tn.einsum("i,i->", np.ones(2, np.float32), np.ones(2, np.float64))
