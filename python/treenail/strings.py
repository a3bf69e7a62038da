# SPDX-License-Identifier: Apache-2.0
"""Tensors of strings: joined, cut, measured, converted, matched: tn.strings.join and others.

A string is bytes; where characters are meant, it is UTF-8.
"""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._array import _one_of
from treenail._convert import convert_to_tensor, scope_of
from treenail._names import no_attribute as _no_attribute
from treenail._ops import ops
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail._sparse import SparseTensor
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def join(inputs: Sequence, separator: str = "", name: str | None = None) -> Tensor:
    """The strings of all inputs at each place one after the other, with `separator` between them.
    Inputs have one shape; scalars go with each place."""
    return ops.StringJoin(list(inputs), separator=separator, name=name)


def reduce_join(inputs: Any, axis: Any = None, keep_dims: bool | None = None, separator: str = "",
                name: str | None = None, reduction_indices: Any = None,
                keepdims: bool | None = None) -> Tensor:
    """Strings joined along axes, with `separator` between them; the first axis named is joined
    first. axis None: all of them, the last one first. keepdims: they stay, with extent 1.

    keep_dims and reduction_indices are the older names of keepdims and axis.
    """
    keepdims = _one_of(keepdims, keep_dims, "keepdims", "keep_dims")
    axis = _one_of(axis, reduction_indices, "axis", "reduction_indices")
    inputs = convert_to_tensor(inputs, _core.string)
    with scope_of(name, "ReduceJoin", [inputs, axis]) as scope:
        if axis is None:
            rank = inputs.shape.ndims
            axis = (list(range(rank - 1, -1, -1)) if rank is not None else
                    ops.Range(ops.Rank(inputs) - 1, -1, -1))
        axis = convert_to_tensor(axis, _core.int32, name="reduction_indices")
        return ops.ReduceJoin(inputs, axis, keep_dims=bool(keepdims), separator=separator,
                              name=scope)


def _sparse(parts: Any) -> SparseTensor:
    indices, values, shape = parts
    return SparseTensor(indices, values, shape)


def _check_result_type(result_type: str) -> None:
    if result_type == "RaggedTensor":
        raise NotImplementedError("there are no ragged tensors; result_type must be "
                                  "\"SparseTensor\"")
    if result_type != "SparseTensor":
        raise ValueError("result_type must be \"SparseTensor\", not %r" % (result_type,))


def split(input: Any = None, sep: Any = None, maxsplit: int = -1,
          result_type: str = "SparseTensor", source: Any = None,
          name: str | None = None) -> SparseTensor:
    """The parts of each string of a vector, as Python's str.split finds them: a SparseTensor
    [strings, most parts].

    sep: what stands between parts; None or "": runs of whitespace. maxsplit: of each string, split
    only so often; -1: wherever possible. source is the older name of input.
    """
    _check_result_type(result_type)
    input = _one_of(input, source, "input", "source")
    if input is None:
        raise ValueError("split() needs an input")
    return _sparse(ops.StringSplit(input, "" if sep is None else sep, maxsplit=maxsplit, name=name))


def string_split(source: Any, sep: Any = None, skip_empty: bool = True, delimiter: Any = None,
                 result_type: str = "SparseTensor", name: str | None = None) -> SparseTensor:
    """The parts of each string of a vector, between characters: a SparseTensor [strings, most
    parts].

    sep: each of its characters stands between parts; by default the blank; "": every byte is a
    part. skip_empty: empty parts are left out. delimiter is the older name of sep.
    """
    _check_result_type(result_type)
    sep = _one_of(sep, delimiter, "sep", "delimiter")
    return _sparse(ops.StringSplit(source, " " if sep is None else sep, any_of=True,
                                   skip_empty=skip_empty, name=name))


def length(input: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """The length of each string, int32, in bytes or, with unit="UTF8_CHAR", in characters."""
    return ops.StringLength(input, unit=unit, name=name)


def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """Of each string `len` bytes (unit="UTF8_CHAR": characters) from `pos` on, fewer where it ends
    before, all that follow where len is negative.

    A negative pos counts from the end. pos and len have one shape, which broadcasts with the
    input's. Raises InvalidArgumentError where pos lies outside a string.
    """
    return ops.Substr(input, pos, len, unit=unit, name=name)


def lower(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Each string in lower case: its ASCII letters, or with encoding="utf-8" all of Unicode's."""
    return ops.StringLower(input, encoding=encoding, name=name)


def upper(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Each string in upper case: its ASCII letters, or with encoding="utf-8" all of Unicode's."""
    return ops.StringUpper(input, encoding=encoding, name=name)


def strip(input: Any, name: str | None = None) -> Tensor:
    """Each string without ASCII whitespace at either end."""
    return ops.StringStrip(input, name=name)


def to_number(string_tensor: Any = None, out_type: Any = _core.float32, name: str | None = None,
              input: Any = None) -> Tensor:
    """The number that each string spells, as float32, float64, int32 or int64. Raises
    InvalidArgumentError for what is no number. input is another name of string_tensor."""
    string_tensor = _one_of(string_tensor, input, "string_tensor", "input")
    return ops.StringToNumber(string_tensor, out_type=out_type, name=name)


def as_string(input: Any, precision: int = -1, scientific: bool = False, shortest: bool = False,
              width: int = -1, fill: str = "", name: str | None = None) -> Tensor:
    """Each number as text, as C's printf writes it: with %d or %f (scientific: %e, shortest: %g),
    complex ones as (re,im), bool as true or false.

    precision: digits behind the point. width: at least so many characters. fill: one of printf's
    flags, like "0".
    """
    return ops.AsString(input, precision=precision, scientific=scientific, shortest=shortest,
                        width=width, fill=fill, name=name)


def to_hash_bucket(string_tensor: Any = None, num_buckets: int | None = None,
                   name: str | None = None, input: Any = None) -> Tensor:
    """A number in [0, num_buckets) for each string, by TensorFlow's older hash. New programs take
    to_hash_bucket_fast or to_hash_bucket_strong. input is another name of string_tensor."""
    string_tensor = _one_of(string_tensor, input, "string_tensor", "input")
    if string_tensor is None or num_buckets is None:
        raise ValueError("to_hash_bucket() needs strings and num_buckets")
    return ops.StringToHashBucket(string_tensor, num_buckets=num_buckets, name=name)


def to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """A number in [0, num_buckets) for each string, by FarmHash's Fingerprint64, which never
    changes."""
    return ops.StringToHashBucketFast(input, num_buckets=num_buckets, name=name)


def to_hash_bucket_strong(input: Any, num_buckets: int, key: Sequence[int],
                          name: str | None = None) -> Tensor:
    """A number in [0, num_buckets) for each string, by SipHash under a key of two integers, without
    which nobody can choose buckets."""
    return ops.StringToHashBucketStrong(input, num_buckets=num_buckets, key=key, name=name)


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """Whether the pattern (RE2's syntax) matches the whole of each string. Raises
    InvalidArgumentError for what is no pattern, UnimplementedError without RE2."""
    if isinstance(pattern, (str, bytes)):  # compiled once
        return ops.StaticRegexFullMatch(input, pattern=pattern, name=name)
    return ops.RegexFullMatch(input, pattern, name=name)


def regex_replace(input: Any, pattern: Any, rewrite: Any, replace_global: bool = True,
                  name: str | None = None) -> Tensor:
    """Each string with every match of a pattern (RE2's syntax), or the first alone, replaced by
    `rewrite`, where \\1 to \\9 stand for the groups of the match and \\0 for all of it.

    Raises InvalidArgumentError for what is no pattern or names a group it lacks,
    UnimplementedError without RE2.
    """
    if isinstance(pattern, (str, bytes)) and isinstance(rewrite, (str, bytes)):
        return ops.StaticRegexReplace(input, pattern=pattern, rewrite=rewrite,
                                      replace_global=replace_global, name=name)
    return ops.RegexReplace(input, pattern, rewrite, replace_global=replace_global, name=name)


__all__ = ["join", "reduce_join", "split", "length", "substr", "lower", "upper", "strip",
           "to_number", "as_string", "to_hash_bucket", "to_hash_bucket_fast",
           "to_hash_bucket_strong", "regex_full_match", "regex_replace"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
