# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers: cells (also as tn.nn.rnn_cell), the functions that run them over sequences
(also in tn.nn), and cells and layers of one op, as in TensorFlow 1's contrib.rnn.

    outputs, state = tn.rnn.LSTMBlockFusedCell(128)(inputs, dtype=tn.float32)  # [time, batch, n]
    outputs, state = tn.nn.static_rnn(tn.nn.rnn_cell.GRUCell(128), list_of_inputs,
                                      dtype=tn.float32)
"""

from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail.rnn import rnn_cell
from treenail.rnn._dynamic import bidirectional_dynamic_rnn, dynamic_rnn
from treenail.rnn._fused import GRUBlockCell, GRUBlockCellV2, LSTMBlockCell, LSTMBlockFusedCell
from treenail.rnn._raw import raw_rnn
from treenail.rnn._unrolled import static_bidirectional_rnn, static_rnn
from treenail.rnn.rnn_cell import *  # noqa: F401,F403

__all__ = ["GRUBlockCell", "GRUBlockCellV2", "LSTMBlockCell", "LSTMBlockFusedCell",
           "bidirectional_dynamic_rnn", "dynamic_rnn", "raw_rnn", "rnn_cell",
           "static_bidirectional_rnn", "static_rnn"]
__all__ += rnn_cell.__all__


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
