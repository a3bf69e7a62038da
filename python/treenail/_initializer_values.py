# SPDX-License-Identifier: Apache-2.0
"""The initializers that stand as defaults in signatures."""

from treenail.initializers import Ones, Zeros

ZEROS = Zeros()
ONES = Ones()
