# SPDX-License-Identifier: Apache-2.0
"""What some tests need that a build may lack."""

import pytest

import treenail as tn


def _has_hdf5():
    try:
        return bool(tn._core.hdf5_version())
    except tn.errors.UnimplementedError:
        return False


needs_hdf5 = pytest.mark.skipif(not _has_hdf5(), reason="this build has no HDF5")
