# SPDX-License-Identifier: Apache-2.0
"""Treenail: dataflow graphs, sessions and gradients in the style of TensorFlow 1."""

from treenail import _treenail as _core  # noqa: F401
