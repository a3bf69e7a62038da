#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gradients of one's own: a stable log(1 + exp(x)), gradients that are clipped on their way back
through a loop, and layers that are computed again instead of kept."""

import numpy as np

import treenail as tn


@tn.custom_gradient
def log1pexp(x):
    """log(1 + exp(x)). By the rules of exp and log its gradient fails where exp(x) is infinite."""
    e = tn.exp(x)
    return tn.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


def clipped(limit):
    """A function that hands its argument on, and clips what comes back."""
    @tn.custom_gradient
    def hand_on(x):
        return tn.identity(x), lambda dy: tn.clip_by_norm(dy, limit)
    return hand_on


def stable_gradients(sess):
    x = tn.placeholder(tn.float32, [])
    first = tn.gradients(log1pexp(x), x)[0]
    second = tn.gradients(first, x)[0]
    for value in (0.0, 1.0, 100.0):
        slope, curvature = sess.run([first, second], {x: value})
        print("log1pexp at %5g: slope %.6f, curvature %.6f" % (value, slope, curvature))
    assert sess.run(first, {x: 0.0}) == 0.5 and sess.run(first, {x: 100.0}) == 1.0
    error = tn.test.compute_gradient_error(x, [], log1pexp(x), [], x_init_value=0.3)
    print("largest difference to finite differences: %.1e" % error)
    assert error < 1e-3


def gradients_that_do_not_explode(sess):
    x = tn.constant([1.0, 2.0])

    def grown(hand_on):
        """Thirty steps, each of which doubles its argument."""
        return tn.while_loop(lambda i, _: i < 30, lambda i, y: (i + 1, 2 * hand_on(y)), [0, x])[1]
    plain, held = sess.run([tn.gradients(grown(tn.identity), x)[0],
                            tn.gradients(grown(clipped(1.0)), x)[0]])
    print("through 30 steps: %g plain, %.3f clipped in each step" % (plain[0], held[0]))
    assert plain[0] == 2.0 ** 30 and np.linalg.norm(held) <= 1.0 + 1e-6


def memory_for_time():
    x = tn.placeholder(tn.float32, [512, 256])
    value = np.random.RandomState(0).randn(512, 256).astype(np.float32)
    options, found = tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE), []
    for wrap in (lambda f: f, tn.recompute_grad):
        def layer(h):
            for k in range(6):
                h = tn.nn.dropout(tn.tanh(h * 1.1), 0.9, seed=k)
            return h
        h = x
        for _ in range(8):
            h = wrap(layer)(h)
        gradient = tn.gradients(h, x)[0]
        metadata = tn.RunMetadata()
        with tn.Session() as sess:
            sess.run(gradient, {x: value}, options=options, run_metadata=metadata)
        found.append(max(node.bytes_in_use for node in metadata.nodes) / 2 ** 20)
    print("48 dropouts: %.0f MiB in use, computed again %.0f MiB" % tuple(found))
    assert found[1] < found[0] / 2


if __name__ == "__main__":
    with tn.Session() as session:
        stable_gradients(session)
        gradients_that_do_not_explode(session)
    memory_for_time()
