# SPDX-License-Identifier: Apache-2.0
"""Every public function at once on the simulated device: the rows of the tables of static shapes
under tn.device give the bits of the CPU. What has no kernel there is left to the CPU."""

import os
import sys

import numpy as np
import pytest
import treenail as tn
from static_shapes import ROWS
from test_immediate_functions import GRAPHS_ONLY, UNSEEDED, at_once

import shape_rows_array  # noqa: F401
import shape_rows_image  # noqa: F401
import shape_rows_math  # noqa: F401
import shape_rows_nn  # noqa: F401
import shape_rows_signal  # noqa: F401

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(SOURCE, "tests", "simulated"))
import simulated  # noqa: E402  (the path must be set first)

pytestmark = simulated.needs_library
SILENT = 2


@pytest.fixture(autouse=True, scope="module")
def soft_placement():
    simulated.library().sim_seed(1)
    tn._core.set_immediate_options({}, True, SILENT)
    yield
    tn._core.set_immediate_options({}, False, SILENT)


def under(device, build):
    def built(values):
        with tn.device(device):
            return build(values)
    return built


@pytest.mark.parametrize("number", [
    n for n in range(len(ROWS)) if ROWS[n][3] and ROWS[n][0] not in GRAPHS_ONLY],
                         ids=lambda n: "%s-%d" % (ROWS[n][0], n))
def test_row_on_a_device(number):
    name, build, _, _ = ROWS[number]
    for value, wanted in zip(at_once(under("/device:SIM:0", build)), at_once(build)):
        if name in UNSEEDED:
            assert np.shape(value) == np.shape(wanted)
        else:
            np.testing.assert_array_equal(value, wanted, err_msg=name)


def test_rows_are_built_there():
    before = simulated.library().sim_kernels_run(0)
    at_once(under("/device:SIM:0", lambda values: [tn.exp(tn.ones([2]))]))
    assert simulated.library().sim_kernels_run(0) > before
