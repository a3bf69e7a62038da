# SPDX-License-Identifier: Apache-2.0
"""The LU factorisation of matrices whose elements are subnormal is exact where it can be."""

import ctypes
import itertools
import os
from fractions import Fraction

import patchtest
from support import getf2

# Small whole numbers, so that no step of the factorisation rounds, times a power of two.
REAL = ([[0, 1], [1, 0]], [[1, 2], [4, 1]], [[0, 2, 1], [4, 1, 0], [2, 0, 1]])
COMPLEX = ([[0, 1j], [1 + 1j, 0]], [[1, 2], [2j, 1]], [[1, 1j], [2 + 2j, 0]],
           [[1j, 1], [2 - 2j, 4]])
# The least exponent that leaves some bits below it, and one of normal numbers.
KINDS = (("s", ctypes.c_float, REAL, (-145, 3)), ("d", ctypes.c_double, REAL, (-1070, 3)),
         ("c", ctypes.c_float, COMPLEX, (-145, 3)), ("z", ctypes.c_double, COMPLEX, (-1070, 3)))


class Complex(tuple):
    """An exact complex number."""

    def __new__(cls, re, im=0):
        return super().__new__(cls, (Fraction(re), Fraction(im)))

    def __add__(self, other):
        return Complex(self[0] + other[0], self[1] + other[1])

    def __mul__(self, other):
        return Complex(self[0] * other[0] - self[1] * other[1],
                       self[0] * other[1] + self[1] * other[0])


def factored(function, kind, matrix, scale, parts):
    """(numbers by column, pivots from 0) of a library's ?getrf_."""
    n = len(matrix)
    numbers = [part * scale for column in range(n) for row in range(n)
               for part in (complex(matrix[row][column]).real,
                            complex(matrix[row][column]).imag)[:parts]]
    a, pivots, size, info = (kind * len(numbers))(*numbers), (ctypes.c_int * n)(), ctypes.c_int(
        n), ctypes.c_int(-1)
    function(*map(ctypes.byref, (size, size)), a, ctypes.byref(size), pivots, ctypes.byref(info))
    return list(a), [pivot - 1 for pivot in pivots], info.value


def difference(matrix, scale, numbers, pivots, parts):
    """What is wrong with a factorisation: P A = L U, exactly; an empty text where nothing is."""
    n = len(matrix)
    if not all(abs(number) < 2 ** 20 for number in numbers):  # neither infinite nor NaN
        return str(numbers)
    rows = [[Complex(complex(x).real, complex(x).imag) * Complex(Fraction(scale)) for x in row]
            for row in matrix]
    for row, pivot in enumerate(pivots):
        rows[row], rows[pivot] = rows[pivot], rows[row]
    element = {(row, column): Complex(*numbers[parts * (column * n + row):][:parts])
               for row, column in itertools.product(range(n), repeat=2)}
    for row, column in itertools.product(range(n), repeat=2):
        total = Complex(0)
        for k in range(min(row, column) + 1):
            total += (Complex(1) if k == row else element[row, k]) * element[k, column]
        if total != rows[row][column]:
            return "%s, whose L U differs from P A at (%d, %d)" % (numbers, row, column)
    return ""


def examined(path):
    library, wrong = ctypes.CDLL(path), []
    for letter, kind, matrices, exponents in KINDS:
        function, parts = getattr(library, letter + "getrf_"), 2 if letter in "cz" else 1
        function.restype = None
        for matrix, exponent in itertools.product(matrices, exponents):
            numbers, pivots, info = factored(function, kind, matrix, 2.0 ** exponent, parts)
            said = difference(matrix, 2.0 ** exponent, numbers, pivots, parts)
            if info or said:
                wrong.append("%sgetrf of %s times 2^%d gives %s%s" % (
                    letter, matrix, exponent, said, ", info %d" % info if info else ""))
    if wrong:
        patchtest.failed("%d of %d factorisations; %s" % (
            len(wrong), 2 * sum(len(kind[2]) for kind in KINDS), wrong[0]))


def tree(path):
    examined(getf2.library(path))


def prefix(path):
    library = os.path.join(path, "lib/libopenblas.so")
    if not os.path.exists(library):
        patchtest.cannot_tell("there is no lib/libopenblas.so")
    try:
        examined(library)
    except OSError as reason:
        patchtest.cannot_tell("it cannot be loaded here: %s" % reason)
    except AttributeError as reason:
        patchtest.cannot_tell("it has no LAPACK: %s" % reason)


patchtest.main(tree=tree, prefix=prefix)
