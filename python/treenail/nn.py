# SPDX-License-Identifier: Apache-2.0
"""Neural-network operations: activations, convolution, pooling, normalisation, losses, embeddings.

Images are [batch, height, width, channels] ("NHWC", the default and the faster layout here) or
[batch, channels, height, width] ("NCHW").
"""

from __future__ import annotations

from treenail import _treenail as _core
from treenail import _activations, _cross_entropy, _ctc, _normalization, _windows
from treenail._activations import *  # noqa: F401,F403
from treenail._convert import convert_to_tensor, scope_of
from treenail._cross_entropy import *  # noqa: F401,F403
from treenail._ctc import *  # noqa: F401,F403
from treenail._embedding import embedding_lookup, embedding_lookup_sparse  # noqa: F401
from treenail._math import log_sigmoid, reduce_mean, tanh  # noqa: F401
from treenail._names import no_attribute as _no_attribute
from treenail._normalization import *  # noqa: F401,F403
from treenail._ops import ops
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail._treenail import Tensor
from treenail._windows import *  # noqa: F401,F403

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from treenail._candidates import (all_candidate_sampler,  # noqa: F401
                                      compute_accidental_hits, fixed_unigram_candidate_sampler,
                                      learned_unigram_candidate_sampler,
                                      log_uniform_candidate_sampler, nce_loss,
                                      sampled_softmax_loss, uniform_candidate_sampler)
    from treenail.rnn import (bidirectional_dynamic_rnn, dynamic_rnn, raw_rnn,  # noqa: F401
                              rnn_cell, static_bidirectional_rnn, static_rnn)

# What is seldom needed, or needs layers: loaded when first asked for.
_ELSEWHERE = {
    "all_candidate_sampler": "_candidates", "compute_accidental_hits": "_candidates",
    "fixed_unigram_candidate_sampler": "_candidates",
    "learned_unigram_candidate_sampler": "_candidates",
    "log_uniform_candidate_sampler": "_candidates", "nce_loss": "_candidates",
    "sampled_softmax_loss": "_candidates", "uniform_candidate_sampler": "_candidates",
    "bidirectional_dynamic_rnn": "rnn", "dynamic_rnn": "rnn", "raw_rnn": "rnn",
    "rnn_cell": "rnn", "static_bidirectional_rnn": "rnn", "static_rnn": "rnn",
}


def __getattr__(name: str) -> Any:
    if name not in _ELSEWHERE:
        raise _no_attribute(__name__, name, __all__)
    import importlib
    value = getattr(importlib.import_module("treenail." + _ELSEWHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list:
    return sorted(__all__)


def top_k(input: Any, k: Any = 1, sorted: bool = True, name: str | None = None):
    """(values, indices) of the k largest elements along the last axis, largest first; equal ones by
    index."""
    return ops.TopK(input, k, sorted=sorted, name=name)


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether predictions[i, targets[i]] is among the k largest of row i."""
    return ops.InTopK(predictions, targets, k, name=name)


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The fraction of elements that are zero, a float32 scalar."""
    with scope_of(name, "zero_fraction", [value]):
        value = convert_to_tensor(value)
        return reduce_mean(ops.Cast(ops.Equal(value, ops.ZerosLike(value)), _core.float32))


__all__ = ["tanh", "log_sigmoid", "embedding_lookup", "embedding_lookup_sparse", "top_k",
           "in_top_k", "zero_fraction"]
__all__ += _activations.__all__ + _normalization.__all__ + _cross_entropy.__all__
__all__ += _ctc.__all__ + _windows.__all__ + list(_ELSEWHERE)


_name_in_refusals(globals())
