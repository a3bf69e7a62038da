# SPDX-License-Identifier: Apache-2.0
"""What the compiled module calls back: errors, shapes, default graphs, conversions that are simpler
in Python."""

from __future__ import annotations

import os

from treenail import _treenail as _core
from treenail._convert import _pack
from treenail._feeds import flat_feed
from treenail._framework import Graph
from treenail._function_graph import GradientBody, _capture, _capture_concrete
from treenail._gradient_rules import _call_gradient
from treenail._math import matmul, truediv
from treenail._py_func import call as call_py_func
from treenail._refusals import complete_refusal
from treenail._refusals import completed as _operator
from treenail._shape import _from_dims
from treenail._slicing import get_item
from treenail._tape import call_recorded_gradient
from treenail.errors import _make_error


def _make_result_type(op_name: str, fields: tuple):
    from collections import namedtuple
    return namedtuple(op_name, fields, module="treenail.raw_ops")


def _make_signature(function):
    from inspect import Parameter, Signature
    return Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=Parameter.empty
                                if required else default) for name, required,
                      default in function.parameters])


_core.register_hooks(make_error=_make_error, make_shape=_from_dims, make_default_graph=Graph,
                     make_result_type=_make_result_type, pack=_pack,
                     get_item=_operator(get_item, "Tensor.__getitem__"),
                     matmul=_operator(matmul, "Tensor.__matmul__"),
                     truediv=_operator(truediv, "Tensor.__truediv__"), call_gradient=_call_gradient,
                     complete_refusal=complete_refusal,
                     call_recorded_gradient=call_recorded_gradient,
                     capture=_capture, capture_concrete=_capture_concrete,
                     gradient_body=GradientBody,
                     make_signature=_make_signature, flat_feed=flat_feed,
                     call_py_func=call_py_func,
                     package_directory=os.path.dirname(os.path.abspath(__file__)) + os.sep)
