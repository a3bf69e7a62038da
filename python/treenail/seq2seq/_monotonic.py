# SPDX-License-Identifier: Apache-2.0
"""Attention that goes through its memory from the beginning to the end and never back (Raffel and
others 2017, arXiv:1704.00784)."""

from __future__ import annotations

from treenail._activations import sigmoid
from treenail._array import concat, one_hot, ones, shape_of, transpose, zeros
from treenail._clip import clip_by_value
from treenail._convert import convert_to_tensor, scope_of
from treenail._functional import scan
from treenail._math import cast, cumprod, cumsum
from treenail._ops import ops
from treenail._random import random_normal
from treenail._treenail import Tensor, int32
from treenail._variable_scope import get_variable
from treenail.initializers import Constant
from treenail.rnn._base import batch_of
from treenail.seq2seq._attention import AdditiveScore, Mechanism, MultiplicativeScore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MODES = ("recursive", "parallel", "hard")


def safe_cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False,
                 name: str | None = None) -> Tensor:
    """cumprod of probabilities by way of logarithms, whose gradient stays finite at zeros: elements
    are taken as at least the smallest normal number, and at most 1."""
    with scope_of(name, "SafeCumprod", [x]):
        import numpy
        x = convert_to_tensor(x)
        tiny = float(numpy.finfo(x.dtype.as_numpy_dtype).tiny)
        logs = ops.Log(clip_by_value(x, tiny, 1))
        return ops.Exp(cumsum(logs, axis, exclusive=exclusive, reverse=reverse))


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Tensor:
    """The probability of each row of the memory, [batch, memory time], in equation 11 of Raffel and
    others 2017.

    p_choose_i: [batch, memory time], the probability of stopping at a row that is reached.
    previous_attention: alike, of the step before; in the first step 1 at the first row. mode:
    "recursive" is exact and takes memory time steps; "parallel" is one sweep, of fewer digits
    where probabilities are near 0 or 1 for long; "hard" is for 0 and 1 alone.

    Raises ValueError for another mode.
    """
    if mode not in _MODES:
        raise ValueError("mode must be 'recursive', 'parallel', or 'hard', not %r" % (mode,))
    p = convert_to_tensor(p_choose_i)
    previous = convert_to_tensor(previous_attention, p.dtype)
    if mode == "hard":
        # Only rows at or behind the one of the step before may be chosen.
        p = p * cumsum(previous, axis=1)
        return p * cumprod(1 - p, axis=1, exclusive=True)
    if mode == "parallel":
        passed = safe_cumprod(1 - p, axis=1, exclusive=True)
        return p * passed * cumsum(previous / clip_by_value(passed, 1e-10, 1.0), axis=1)
    passing = concat([ones(ops.Pack([batch_of(p), 1]), p.dtype), 1 - p[:, :-1]], 1)
    reached = scan(lambda x, row: row[0] * x + row[1],
                   (transpose(passing), transpose(previous)), zeros([batch_of(p)], p.dtype))
    attention = p * transpose(reached)
    attention.set_shape(p.shape)
    return attention


def _probabilities(sigmoid_noise: float, mode: str, seed: int | None) -> Any:
    if mode not in _MODES:
        raise ValueError("mode must be 'recursive', 'parallel', or 'hard', not %r" % (mode,))

    def of(score: Tensor, previous: Tensor) -> Tensor:
        if sigmoid_noise > 0:
            score = score + sigmoid_noise * random_normal(shape_of(score), dtype=score.dtype,
                                                          seed=seed)
        p = cast(ops.Greater(score, convert_to_tensor(0, score.dtype)),
                 score.dtype) if mode == "hard" else sigmoid(score)
        return monotonic_attention(p, previous, mode)
    return of


class _Monotonic(Mechanism):
    """Begins at the first row; the score has a bias that is learned."""

    _score_bias_init: float

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Tensor:
        """1 at the first row, [batch_size, memory time]."""
        return one_hot(zeros(ops.Pack([batch_size]), int32), self._alignments_size, dtype=dtype)

    def _score(self, query: Tensor) -> Tensor:
        score = super()._score(query)
        return score + get_variable("attention_score_bias", [], query.dtype,
                                    Constant(self._score_bias_init))


class BahdanauMonotonicAttention(_Monotonic, AdditiveScore):
    """Monotonic attention with the additive score (Raffel and others 2017, arXiv:1704.00784).

    sigmoid_noise: standard deviation of noise added to scores before the sigmoid, which drives
    probabilities towards 0 and 1 in training; sigmoid_noise_seed: its seed. score_bias_init: where
    attention_score_bias begins; for long memories well below 0. mode: as for monotonic_attention.
    The rest, and what is raised, as for BahdanauAttention; ValueError also for another mode.
    """

    def __init__(self, num_units: int, memory: Any, memory_sequence_length: Any = None,
                 normalize: bool = False, score_mask_value: Any = None,
                 sigmoid_noise: float = 0.0, sigmoid_noise_seed: int | None = None,
                 score_bias_init: float = 0.0, mode: str = "parallel", dtype: Any = None,
                 name: str = "BahdanauMonotonicAttention") -> None:
        self._normalize, self._score_bias_init = normalize, score_bias_init
        super().__init__(num_units, memory, memory_sequence_length,
                         _probabilities(sigmoid_noise, mode, sigmoid_noise_seed),
                         score_mask_value, dtype, True, None, name)

    def _scope(self) -> str:
        return "bahdanau_monotonic_attention"


class LuongMonotonicAttention(_Monotonic, MultiplicativeScore):
    """Monotonic attention with the multiplicative score (Raffel and others 2017, arXiv:1704.00784).

    The parameters are those of LuongAttention and BahdanauMonotonicAttention.
    """

    def __init__(self, num_units: int, memory: Any, memory_sequence_length: Any = None,
                 scale: bool = False, score_mask_value: Any = None, sigmoid_noise: float = 0.0,
                 sigmoid_noise_seed: int | None = None, score_bias_init: float = 0.0,
                 mode: str = "parallel", dtype: Any = None,
                 name: str = "LuongMonotonicAttention") -> None:
        self._scale, self._score_bias_init = scale, score_bias_init
        super().__init__(num_units, memory, memory_sequence_length,
                         _probabilities(sigmoid_noise, mode, sigmoid_noise_seed),
                         score_mask_value, dtype, False, None, name)

    def _scope(self) -> str:
        return "luong_monotonic_attention"
