# SPDX-License-Identifier: Apache-2.0
"""A recurrent cell stepped over a sequence, in every framework: sizes, weights and data.

The kernel meets [x, h] and has the columns of i, g, f and o. The loss is the mean square of the
last output; training is plain SGD.
"""

import numpy as np

STEPS, BATCH, UNITS = 100, 32, 128
RATE = 0.1
TITLE = "LSTM cell of %d units stepped %d times, batch %d" % (UNITS, STEPS, BATCH)


def inputs() -> np.ndarray:
    return np.random.RandomState(2).standard_normal((STEPS, BATCH, UNITS)).astype(np.float32)


def kernel() -> np.ndarray:
    random = np.random.RandomState(1)
    return (random.standard_normal((2 * UNITS, 4 * UNITS)) * UNITS ** -0.5).astype(np.float32)
