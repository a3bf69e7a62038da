# SPDX-License-Identifier: Apache-2.0
"""Activations, initializers and regularizers that layers and cells take by name, as TensorFlow's
Keras spells them: layers.dense(x, 10, activation="relu", kernel_initializer="he_normal").

A name means what Keras means by it: "random_normal" has a standard deviation of 0.05 and "l2" is
0.01 times the sum of squares.
"""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import convert_to_tensor
from treenail._ops import ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def _linear(x: Any) -> Any:
    return x


def _hard_sigmoid(x: Any) -> Any:
    """0.2 x + 0.5, held to [0, 1]."""
    x = convert_to_tensor(x)
    zero, one = convert_to_tensor(0, x.dtype), convert_to_tensor(1, x.dtype)
    return ops.Minimum(ops.Maximum(x * 0.2 + 0.5, zero), one)


def _activations() -> dict:
    from treenail import _activations as a, _math as m
    known = {name: getattr(a, name, None) or getattr(m, name)
             for name in ("relu", "relu6", "elu", "selu", "crelu", "leaky_relu", "gelu", "swish",
                          "sigmoid", "log_sigmoid", "tanh", "softmax", "log_softmax", "softplus",
                          "softsign")}
    return dict(known, linear=_linear, identity=_linear, exponential=ops.Exp,
                hard_sigmoid=_hard_sigmoid)


def _initializers() -> dict:
    from treenail import initializers as i
    made: dict = {
        "zeros": i.Zeros, "ones": i.Ones, "constant": i.Constant, "identity": i.Identity,
        "random_normal": lambda: i.RandomNormal(stddev=0.05),
        "random_uniform": lambda: i.RandomUniform(-0.05, 0.05),
        "truncated_normal": lambda: i.TruncatedNormal(stddev=0.05),
        "uniform": lambda: i.RandomUniform(-0.05, 0.05),
        "normal": lambda: i.RandomNormal(stddev=0.05),
        "variance_scaling": i.VarianceScaling, "glorot_uniform": i.GlorotUniform,
        "glorot_normal": i.GlorotNormal, "xavier_uniform": i.GlorotUniform,
        "xavier_normal": i.GlorotNormal, "he_normal": i.he_normal, "he_uniform": i.he_uniform,
        "lecun_normal": i.lecun_normal, "lecun_uniform": i.lecun_uniform,
    }
    for name in ("zeros", "ones", "constant", "identity", "random_normal", "random_uniform",
                 "truncated_normal", "variance_scaling", "glorot_uniform", "glorot_normal"):
        made["".join(part.capitalize() for part in name.split("_"))] = made[name]
    return made


def _regularizers() -> dict:
    from treenail import regularizers as r
    # l2(scale) halves the sum of squares, Keras does not.
    return {"l1": lambda: r.l1(0.01), "l2": lambda: r.l2(0.02),
            "l1_l2": lambda: r.l1_l2(0.01, 0.02)}


def _of_name(name: str, known: dict, what: str) -> Any:
    if name in known:
        return known[name]
    near = _core.nearest_name(name, sorted(known))
    raise ValueError("Unknown %s: %r%s; known are %s"
                     % (what, name, "; did you mean %r?" % near if near else "",
                        ", ".join(sorted(known))))


def activation(value: Any) -> Callable | None:
    """`value` itself (a function or None), or the activation of that name. Raises ValueError for
    an unknown name, TypeError for what cannot be called."""
    if isinstance(value, str):
        return _of_name(value, _activations(), "activation function")
    if value is not None and not callable(value):
        raise TypeError("an activation must be a function, its name or None, not %r" % (value,))
    return value


def initializer(value: Any) -> Any:
    """`value` itself, or a new initializer of that name. Raises ValueError for an unknown name."""
    if isinstance(value, str):
        return _of_name(value, _initializers(), "initializer")()
    return value


def regularizer(value: Any) -> Callable | None:
    """`value` itself (a function or None), or the regularizer of that name. Raises ValueError for
    an unknown name, TypeError for what cannot be called."""
    if isinstance(value, str):
        return _of_name(value, _regularizers(), "regularizer")()
    if value is not None and not callable(value):
        raise TypeError("a regularizer must be a function, its name or None, not %r" % (value,))
    return value
