# SPDX-License-Identifier: Apache-2.0
"""What holds of each refusal.

Its class is one of treenail.errors, TypeError or ValueError; another one only where the docstring
names it, or OSError where a path was given. Its text names the public function, the op or the
parameter at fault. Where a value is at fault (TypeError, ValueError, InvalidArgumentError), it says
what was given: the value, its type, dtype or shape, or a part of it.
"""

import re

import numpy as np

import treenail as tn

_PATHS = re.compile("path|file|dir|prefix|checkpoint|source")
_OP = re.compile(r"^\[(\w+) node \"|'(\w+)' Op\b|\bof '(\w+)'|\bop '?(\w+)|'(\w+)' cannot run")
_OPS = {op["name"] for op in tn._core.describe_ops()}


def problem(error, call, values):
    """None, or what is wrong. values: {parameter: value} of the call."""
    text = str(error)
    if not _class_is_documented(error, call, values):
        why = "no class that its documentation names"
    elif getattr(error, "filename", None) is not None or isinstance(
            error, tn.errors.ResourceExhaustedError):  # of a file; of all that a run needs
        return None
    elif not (_names_function(text, call) or _names_op(text) or _names_parameter(text, call)):
        why = "names neither the function nor an op nor a parameter"
    elif isinstance(error, (TypeError, ValueError)) and not _says_what_was_given(text, values):
        why = "does not say what was given"
    else:
        return None
    return "%s: %s: %s" % (why, type(error).__name__, text)


def _class_is_documented(error, call, values):
    if str(error).find("Cannot convert a symbolic Tensor") >= 0:
        return type(error) is NotImplementedError  # NumPy asked: Tensor.numpy names it
    if type(error) in (TypeError, ValueError) or isinstance(error, tn.errors.OpError):
        return not isinstance(error, tn.errors.InternalError)
    if isinstance(error, OSError) and any(_PATHS.search(name) for name in values):
        return True
    return any(kind.__name__ in call.documentation for kind in type(error).__mro__[:-2])


def _names_function(text, call):
    return any(re.search(r"(?<!\w)%s\b" % re.escape(name), text) for name in call.names)


def _names_op(text):
    return any(name in _OPS for found in _OP.findall(text) for name in found)


def _names_parameter(text, call):
    return any(re.search(r"['\"`]%s['\"`]|^%s\b|\b%s must\b" % ((re.escape(name),) * 3), text)
               for name in call.parameters)


def _says_what_was_given(text, values):
    said = re.sub(r"^[\w.]+\(\): ", "", text)
    flat = " ".join(said.split()).replace("\\0", "\\x00").lower()
    if not values or _NOTHING_GIVEN.search(flat) or _OP_SAYS_IT.search(flat):
        return True
    return any(trace.lower() in flat for value in values.values() for trace in _traces(value, 3))


# What is at fault is that something was not given, or that two things were.
_NOTHING_GIVEN = re.compile(r"\b(missing|takes|needs|both|specified)\b|no default session|"
                            "cannot create")
# An op within a function speaks of values that the function made of what was given.
_OP_SAYS_IT = re.compile(r"^\[\w+ node \"[^\"]*\"\] .*(\d|\[|float|int|string)")


def _traces(value, depth):
    """Pieces of text by which a message can show this value."""
    yield " ".join(repr(value).split())[:12]
    if type(value) not in (int, str, list, tuple):
        yield type(value).__name__
    if isinstance(value, bytes):
        yield repr(value)[2:6]
    elif isinstance(value, str):
        yield value[:12].split("\x00")[0]
    elif isinstance(value, tn.TensorShape):
        yield from _traces(value.dims, depth)
    elif isinstance(value, (list, tuple, set, dict)):
        yield str(len(value))
        for item in value if depth else ():
            yield from _traces(item, depth - 1)
    yield from _facts_of_tensor(value)


def _facts_of_tensor(value):
    """Dtype, name, shape, extents, rank and first elements of what is a tensor or becomes one."""
    if isinstance(value, (bool, int, float, complex, str, bytes, list)):
        try:
            value = np.array(value)
        except ValueError:  # a ragged list
            return
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        kind = getattr(dtype, "kind", "")
        yield str(getattr(dtype, "str", dtype))
        yield {"U": "string", "S": "string", "O": "string"}.get(kind, str(dtype))
        name = getattr(dtype, "name", None)
        yield {"f": "float", "i": "int", "c": "complex"}.get(kind, name if isinstance(name, str)
                                                             else str(dtype))
    name = getattr(value, "name", None)
    if isinstance(name, str):
        yield name
    known = getattr(value, "_known_value", value)
    if isinstance(known, np.ndarray):
        yield from (str(element) for element in known.ravel()[:4].tolist())
    shape = value if isinstance(value, tn.TensorShape) else getattr(value, "shape", None)
    if isinstance(shape, tn.TensorShape):
        shape = () if shape.ndims is None else tuple(shape.as_list())
    if isinstance(shape, tuple):
        yield from _facts_of_shape(shape)


def _facts_of_shape(shape):
    extents = ["?" if extent is None else str(extent) for extent in shape]
    yield from extents
    yield from ("[%s]" % ",".join(extents), "(%s)" % ", ".join(extents), "a scalar")
    yield from ("rank %d" % len(shape), "rank is %d" % len(shape), "ndim=%d" % len(shape))
