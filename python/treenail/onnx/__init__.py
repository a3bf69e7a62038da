# SPDX-License-Identifier: Apache-2.0
"""Models in ONNX files as graphs.

    model = tn.onnx.load("model.onnx")
    print(model.inputs, model.outputs)
    result = model.run({"x": images})

Operator sets 6 to 17 of the standard domain are understood, and functions that a model brings
along. Source: the ONNX specification, version 1.12 (IR version 8).
"""

from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail.onnx._model import Model, load
from treenail.onnx._registry import op_types as supported_ops

__all__ = ["Model", "load", "supported_ops"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
