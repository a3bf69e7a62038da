# SPDX-License-Identifier: Apache-2.0
"""Gradients of functions of several tensors against central differences."""

import numpy as np

import treenail as tn

STEP = 1e-6


def random_like(x, rng):
    step = rng.uniform(-1, 1, x.shape)
    return step + 1j * rng.uniform(-1, 1, x.shape) if x.dtype.kind == "c" else step


def weighted_sum(y, rng, shape):
    """A real number that depends on each part of each element by a factor of its own."""
    def of(part):
        return tn.reduce_sum(part * rng.uniform(0.5, 1.5, shape))

    return of(tn.real(y)) + of(tn.imag(y)) if y.dtype.is_complex else of(y)


def _one_agrees(session, number, slopes, feed, rng, tolerance):
    analytic = session.run(slopes, feed)
    largest = max([1.0] + [np.abs(a).max() for a in analytic if a.size])
    for _ in range(3):
        steps = [random_like(x, rng) for x in feed.values()]
        ends = [session.run(number, {t: x + sign * STEP * s
                                     for (t, x), s in zip(feed.items(), steps)})
                for sign in (1, -1)]
        wanted = (ends[0] - ends[1]) / (2 * STEP)
        found = sum((np.conj(a) * s).real.sum() for a, s in zip(analytic, steps))
        assert abs(found - wanted) <= tolerance * largest * sum(s.size for s in steps)


def differences_agree(build, arrays, shapes=None, tolerance=1e-7, second=True):
    """First and (by default) second gradients of build(*tensors) by all tensors. shapes: what is
    known of each when the graph is built, by default all. The gradients have the arrays' shapes."""
    rng = np.random.default_rng(9)
    with tn.Graph().as_default(), tn.Session() as session:
        shapes = [x.shape for x in arrays] if shapes is None else shapes
        fed = [tn.placeholder(x.dtype, shape) for x, shape in zip(arrays, shapes)]
        feed = dict(zip(fed, arrays))
        y = build(*fed)
        loss = weighted_sum(y, rng, session.run(y, feed).shape)
        slopes = tn.gradients(loss, fed)
        for slope, x in zip(session.run(slopes, feed), arrays):
            assert slope.shape == x.shape
        _one_agrees(session, loss, slopes, feed, rng, tolerance)
        if not second:
            return
        total = tn.add_n([weighted_sum(s, rng, x.shape) for s, x in zip(slopes, arrays)])
        # What is linear has no second gradient.
        curves = [tn.zeros_like(t) if c is None else c
                  for t, c in zip(fed, tn.gradients(total, fed))]
        _one_agrees(session, total, curves, feed, rng, tolerance)
