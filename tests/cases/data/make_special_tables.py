#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the tables of special functions anew (tests/cases/data/special), by mpmath at 60 digits.

Nothing else needs mpmath. A line is the operands, the value rounded to float64, and what that
rounding left, as hexadecimal floats. Usage: make_special_tables.py [NAME ...]
"""

import pathlib
import random
import sys

from mpmath import mp, mpf

FOLDER = pathlib.Path(__file__).resolve().parent / "special"


def _rounded(x, bits):
    """x rounded to so many bits: the numbers that float32, float16 and bfloat16 have, too."""
    with mp.workprec(bits):
        return float(+mpf(x))


def lgamma(x):
    return mp.re(mp.loggamma(x))


def ndtri(p):
    """By Newton's method on the logarithm of the smaller tail."""
    if p == 0.5:
        return mpf(0)
    tail = p if p < 0.5 else 1 - p
    r = mp.sqrt(-2 * mp.log(tail))
    y = mp.findroot(lambda y: mp.log(mp.erfc(y / mp.sqrt(2)) / 2) - mp.log(tail),
                    max(r - mp.log(r + 1) / (r + 1), mpf("0.1")) if tail > 1e-3 else r - 1 / r)
    return -y if p < 0.5 else y


def bessel(order):
    return lambda x: mp.besseli(order, x) * mp.exp(-abs(x))


def zeta(s, q):
    if q > 0:
        with mp.workdps(400):  # its error is absolute, and values may be small
            return mp.zeta(s, q)
    return (-1) ** int(s) * mp.psi(int(s) - 1, q) / mp.factorial(int(s) - 1)


def polygamma(n, x):
    return mp.psi(int(n), x)


def lower_gamma(a, x):
    """P(a, x) by its power series, whose terms are positive."""
    term = total = mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))
    n = 0
    while n < x or term > total * mp.eps:
        n += 1
        term *= x / (a + n)
        total += term
    return total


def upper_gamma(a, x):
    with mp.workdps(380):
        return 1 - lower_gamma(a, x)


def lower_gamma_slope(a, x):
    """By a central difference; P may be 1 but for a three-hundredth digit."""
    with mp.workdps(480):
        h = mpf(10) ** -60
        return (lower_gamma(a + h, x) - lower_gamma(a - h, x)) / (2 * h)


def beta_ratio(a, b, x):
    """I_x(a, b) by a power series with positive terms, from the nearer end."""
    if x > 0.5:
        with mp.workdps(380):
            return 1 - beta_ratio(b, a, 1 - x)
    term = total = mp.exp(a * mp.log(x) + b * mp.log1p(-x) - mp.log(a) - mp.loggamma(a)
                          - mp.loggamma(b) + mp.loggamma(a + b))
    n = 0
    while (a + b + n) * x > a + 1 + n or term > total * mp.eps:
        term *= (a + b + n) * x / (a + 1 + n)
        total += term
        n += 1
    return total


def log_uniform(low, high):
    return 10 ** random.uniform(low, high)


def gamma_points():
    """Everywhere, near the zeros and the poles."""
    zeros = [1.0, 2.0, 1.4616321449683622, -0.504083008264455, -1.573498473162391,
             -2.4570247382208006, -2.7476826467274127, -3.143580888349980, -3.955294284858598]
    for _ in range(220):
        yield log_uniform(-30, 30)
        yield random.uniform(0, 10)
        yield random.uniform(-30, 0)
    for zero in zeros:
        for _ in range(10):
            yield zero + random.choice([-1, 1]) * log_uniform(-8, -1)
    for _ in range(50):
        yield -random.randint(0, 40) + random.choice([-1, 1]) * log_uniform(-6, -1)


def signed(points):
    for x in points:
        yield random.choice([-1, 1]) * x


def erfinv_points():
    for _ in range(300):
        yield random.uniform(-1, 1)
        yield random.choice([-1, 1]) * (1 - log_uniform(-15, -1))
        yield random.choice([-1, 1]) * log_uniform(-20, -1)


def ndtri_points():
    for _ in range(300):
        yield random.uniform(0, 1)
        yield 1 - log_uniform(-15, -1)
        yield log_uniform(-300, -1)
        yield 0.5 + random.choice([-1, 1]) * log_uniform(-12, -1)


def bessel_points():
    for _ in range(300):
        yield random.uniform(-40, 40)
        yield random.choice([-1, 1]) * log_uniform(-10, 10)
        yield random.uniform(0, 20)


def zeta_points():
    for i in range(2000):
        if i % 10 == 0:
            yield random.randint(2, 12), -log_uniform(-2, 2.5)
        else:
            yield 1 + log_uniform(-3, 2), log_uniform(-3, 3)


def polygamma_points():
    for i in range(2000):
        n = random.randint(0, 8) if i % 2 else random.randint(0, 60)
        yield n, -log_uniform(-2, 1.5) if i % 10 == 0 else log_uniform(-2, 3)


def gamma_pairs(count):
    for i in range(count):
        a = log_uniform(-2, 4)
        x = a * log_uniform(-1, 1) if i % 2 else abs(a + random.gauss(0, 3) * a ** 0.5)
        yield a, min(x, 20000.0)


def beta_triples():
    for i in range(2300):
        a, b = log_uniform(-2, 4), log_uniform(-2, 4)
        mean = a / (a + b)
        spread = (mean * (1 - mean) / (a + b + 1)) ** 0.5
        x = random.random() if i % 3 == 0 else mean + random.gauss(0, 2) * spread
        yield a, b, min(max(x, 1e-6), 1 - 2.0**-30)


def unary(points):
    """Doubles, and every other time a number that has few bits."""
    for i, x in enumerate(points):
        x = _rounded(x, (53, 24, 53, 24, 8, 11)[i % 6])
        if abs(x) > 1e-30:
            yield (x,)


TABLES = {
    "Lgamma": (lgamma, lambda: unary(gamma_points())),
    "Digamma": (mp.digamma, lambda: unary(gamma_points())),
    "Erfinv": (mp.erfinv, lambda: unary(x for x in erfinv_points())),
    "Ndtri": (ndtri, lambda: unary(ndtri_points())),
    "BesselI0e": (bessel(0), lambda: unary(bessel_points())),
    "BesselI1e": (bessel(1), lambda: unary(bessel_points())),
    "Zeta": (zeta, zeta_points),
    "Polygamma": (polygamma, polygamma_points),
    "Igamma": (lower_gamma, lambda: gamma_pairs(2300)),
    "Igammac": (upper_gamma, lambda: gamma_pairs(2300)),
    "IgammaGradA": (lower_gamma_slope, lambda: gamma_pairs(800)),
    "Betainc": (beta_ratio, beta_triples),
}


def rows(name):
    function, points = TABLES[name]
    random.seed(name)
    for operands in points():
        operands = [float(x) for x in operands]
        if name in ("Erfinv", "Ndtri") and not abs(operands[0]) < 1:
            continue
        if name in ("Lgamma", "Digamma") and operands[0] <= 0 and operands[0].is_integer():
            continue
        value = function(*[mpf(x) for x in operands])
        if not 1e-290 < abs(value) < 1e300:
            continue
        rounded = float(value)
        yield " ".join(float(x).hex() for x in (*operands, rounded, float(value - mpf(rounded))))


def main():
    mp.dps = 60
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or TABLES:
        lines = list(rows(name))[:2000]
        (FOLDER / (name + ".txt")).write_text("\n".join(lines) + "\n")
        print(name, len(lines), flush=True)


if __name__ == "__main__":
    main()
