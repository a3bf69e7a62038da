# SPDX-License-Identifier: Apache-2.0
"""The cells of tn.nn.rnn_cell."""

from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail.rnn._base import LSTMStateTuple, RNNCell
from treenail.rnn._cells import BasicLSTMCell, BasicRNNCell, GRUCell, LSTMCell
from treenail.rnn._wrappers import DeviceWrapper, DropoutWrapper, MultiRNNCell, ResidualWrapper

__all__ = ["BasicLSTMCell", "BasicRNNCell", "DeviceWrapper", "DropoutWrapper", "GRUCell",
           "LSTMCell", "LSTMStateTuple", "MultiRNNCell", "RNNCell", "ResidualWrapper"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
