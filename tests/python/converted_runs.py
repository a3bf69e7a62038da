# SPDX-License-Identifier: Apache-2.0
"""Runs of converted functions: on tensors, in a graph of their own, beside the plain function."""

import numpy as np

import treenail as tn
from treenail.autograph._entry import converted

NUMBERS = [(n,) for n in (-7, -1, 0, 1, 2, 3, 5, 8, 13)]
COUNTS = [(n,) for n in (1, 2, 3, 6, 9)]


def placeholder_for(value):
    """A placeholder for arrays and numbers like `value`, first extents unknown."""
    array = np.asarray(value)
    dtype = {"i": tn.int32, "f": tn.float32, "b": tn.bool}[array.dtype.kind] if not isinstance(
        value, np.ndarray) else tn.as_dtype(array.dtype)
    return tn.placeholder(dtype, [None] * min(array.ndim, 1) + list(array.shape[1:]))


def on_tensors(function, *calls):
    """What a session gives for each call's arguments, the function converted and traced once."""
    with tn.Graph().as_default():
        feeds = [placeholder_for(value) for value in calls[0]]
        result = converted(function)(*feeds)
        with tn.Session() as session:
            session.run(tn.global_variables_initializer())
            return [session.run(result, dict(zip(feeds, values))) for values in calls]


def agrees(function, *calls):
    """Holds the converted function, on tensors and on Python values, to the plain one."""
    wanted = [function(*values) for values in calls]
    for values, want in zip(calls, wanted):
        got = converted(function)(*values)
        assert type(got) is type(want)
        np.testing.assert_array_equal(got, want)
    for values, got, want in zip(calls, on_tensors(function, *calls), wanted):
        np.testing.assert_allclose(got, want, rtol=1e-5, err_msg=repr(values))
