# SPDX-License-Identifier: Apache-2.0
"""Static shapes against TensorFlow 1.15's, for every public function that gives tensors.

Whole programs that need them: test_shape_idioms.py.
"""

import pytest

import shape_rows_array  # noqa: F401
import shape_rows_distributed  # noqa: F401
import shape_rows_image  # noqa: F401
import shape_rows_linalg  # noqa: F401
import shape_rows_math  # noqa: F401
import shape_rows_metrics  # noqa: F401
import shape_rows_nn  # noqa: F401
import shape_rows_seq2seq  # noqa: F401
import shape_rows_signal  # noqa: F401
import treenail as tn
from static_shapes import (EXCUSED, ROWS, Placeholders, as_shapes, flattened, knows_at_least,
                           public_functions, resolve)


def identity_of(name):
    return id(resolve(name))


@pytest.mark.parametrize("number", range(len(ROWS)), ids=lambda i: "%s-%d" % (ROWS[i][0], i))
def test_static_shape(number):
    name, build, shape, runs = ROWS[number]
    placeholders = Placeholders()
    results = flattened(build(placeholders))
    for result, wanted in zip(results, as_shapes(shape, len(results))):
        assert knows_at_least(result.shape, wanted), "%s: %s instead of %s" % (name, result.shape,
                                                                               wanted)
    if not runs:
        return
    with tn.Session() as session:
        session.run([tn.global_variables_initializer(), tn.local_variables_initializer()])
        values = session.run(results, placeholders.feeds)
    for result, value in zip(results, values):
        got = getattr(value, "shape", ())
        assert result.shape.is_compatible_with(got), "%s: %s, but a run gives %s" % (
            name, result.shape, got)


def test_every_public_function_has_a_row_or_a_reason():
    covered = {identity_of(name) for name, *_ in ROWS} | {identity_of(n) for n in EXCUSED}
    missing = sorted(name for name, function in public_functions().items()
                     if id(function) not in covered)
    assert not missing, "state a row, or excuse() with the reason: %s" % " ".join(missing)


def test_no_function_is_excused_that_has_rows():
    covered = {identity_of(name) for name, *_ in ROWS}
    assert not [name for name in EXCUSED if identity_of(name) in covered]
