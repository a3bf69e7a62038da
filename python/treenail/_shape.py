# SPDX-License-Identifier: Apache-2.0
"""TensorShape: what is known of a shape. Extents are ints, or None where unknown; so may be the
rank."""

from __future__ import annotations


def _extent(value):
    if value is None:
        return None
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError("an extent must be an int or None, not %r of type '%s'"
                        % (value, type(value).__name__))
    value = value.__index__()
    if value < 0:
        raise ValueError("an extent must be at least 0, not %d" % value)
    return value


def _rank(value) -> int:
    if not hasattr(value, "__index__") or getattr(value, "ndim", 0):
        raise TypeError("a rank must be an int, not %r of type '%s'"
                        % (value, type(value).__name__))
    if not 0 <= value.__index__() <= 254:  # TensorFlow's highest
        raise ValueError("a rank must be between 0 and 254, not %d" % value)
    return value.__index__()


class TensorShape:
    """A possibly partly known shape: TensorShape([2, None]), TensorShape(None) for an unknown
    rank."""

    __slots__ = ("_dims",)

    def __init__(self, dims) -> None:
        if dims is None or isinstance(dims, tuple) and not dims:
            self._dims = dims
        elif isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif hasattr(dims, "__index__") and not hasattr(dims, "__len__"):
            self._dims = (_extent(dims),)
        elif hasattr(dims, "__iter__") or hasattr(dims, "__getitem__"):
            self._dims = tuple(_extent(d) for d in dims)
        else:
            raise TypeError("a shape must be None, an int or a sequence of ints and None, not %r "
                            "of type '%s'" % (dims, type(dims).__name__))

    @property
    def dims(self):
        """The extents as a list, or None when the rank is unknown."""
        return None if self._dims is None else list(self._dims)

    @property
    def rank(self):
        """The number of axes, or None."""
        return None if self._dims is None else len(self._dims)

    ndims = rank

    def as_list(self) -> list:
        """The extents, None where unknown. Raises ValueError when the rank is unknown."""
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def num_elements(self):
        """The product of the extents, or None when one of them is unknown."""
        if not self.is_fully_defined():
            return None
        product = 1
        for d in self._dims:
            product *= d
        return product

    def is_fully_defined(self) -> bool:
        """Whether rank and all extents are known."""
        return self._dims is not None and None not in self._dims

    def assert_is_fully_defined(self) -> None:
        """Raises ValueError unless rank and all extents are known."""
        if not self.is_fully_defined():
            raise ValueError("Shape %s is not fully defined" % self)

    def is_compatible_with(self, other) -> bool:
        """Whether some concrete shape satisfies both."""
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return True
        return len(self._dims) == len(other._dims) and all(
            a is None or b is None or a == b for a, b in zip(self._dims, other._dims))

    def assert_is_compatible_with(self, other) -> None:
        """Raises ValueError unless some concrete shape satisfies both."""
        if not self.is_compatible_with(other):
            raise ValueError("Shapes %s and %s are incompatible" % (self, as_shape(other)))

    def merge_with(self, other) -> TensorShape:
        """What both say together. Raises ValueError when they contradict each other."""
        other = as_shape(other)
        self.assert_is_compatible_with(other)
        if self._dims is None:
            return other
        if other._dims is None:
            return self
        return TensorShape([b if a is None else a for a, b in zip(self._dims, other._dims)])

    def concatenate(self, other) -> TensorShape:
        """The axes of this shape followed by those of `other`."""
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return TensorShape(None)
        return TensorShape(self._dims + other._dims)

    def with_rank(self, rank: int) -> TensorShape:
        """This shape, known to have that rank. Raises ValueError when it has another."""
        return self.merge_with(TensorShape([None] * _rank(rank)))

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """This shape. Raises ValueError when its rank is known and smaller."""
        if self._dims is not None and len(self._dims) < _rank(rank):
            raise ValueError("Shape %s must have rank at least %d" % (self, rank))
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """This shape. Raises ValueError when its rank is known and larger."""
        if self._dims is not None and len(self._dims) > _rank(rank):
            raise ValueError("Shape %s must have rank at most %d" % (self, rank))
        return self

    def assert_has_rank(self, rank: int) -> None:
        """Raises ValueError when the rank is known and another."""
        if self._dims is not None and len(self._dims) != _rank(rank):
            raise ValueError("Shape %s must have rank %d" % (self, rank))

    def assert_same_rank(self, other) -> None:
        """Raises ValueError when both ranks are known and differ."""
        other = as_shape(other)
        if self and other and len(self) != len(other):
            raise ValueError("Shapes %s and %s must have the same rank" % (self, other))

    def __len__(self) -> int:
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __iter__(self):
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter(self._dims)

    def __getitem__(self, key):
        """An extent, or the TensorShape of a slice. Raises IndexError for an axis that is not
        there."""
        if self._dims is not None:
            return TensorShape(self._dims[key]) if isinstance(key, slice) else self._dims[key]
        if not isinstance(key, slice):
            return None
        start, stop = key.start or 0, key.stop
        if key.step is not None or stop is None or start < 0 or stop < 0:
            return TensorShape(None)
        return TensorShape([None] * max(0, stop - start))

    def __add__(self, other) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other) -> TensorShape:
        return as_shape(other).concatenate(self)

    def __eq__(self, other) -> bool:
        try:
            other = as_shape(other)
        except (TypeError, ValueError):
            return NotImplemented
        return self._dims == other._dims

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return "TensorShape(%r)" % (self.dims,)

    def __str__(self) -> str:
        if self._dims is None:
            return "<unknown>"
        if len(self._dims) == 1:
            return "(%s,)" % ("?" if self._dims[0] is None else self._dims[0])
        return "(%s)" % ", ".join("?" if d is None else str(d) for d in self._dims)

    def __reduce__(self):
        return TensorShape, (self.dims,)


def as_shape(shape) -> TensorShape:
    """`shape` as a TensorShape: itself, or what its constructor takes."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def unknown_shape(rank=None) -> TensorShape:
    """A shape of unknown extents; of unknown rank when `rank` is None."""
    return TensorShape(None if rank is None else [None] * rank)


def _from_dims(dims) -> TensorShape:
    """Called by the compiled module with a tuple of valid extents, or None."""
    shape = TensorShape.__new__(TensorShape)
    shape._dims = dims
    return shape


def broadcast_static_shape(shape_x, shape_y) -> TensorShape:
    """The shape that both broadcast to. Raises InvalidArgumentError (a ValueError) when they do
    not."""
    x, y = as_shape(shape_x)._dims, as_shape(shape_y)._dims
    if x is None or y is None:
        return TensorShape(None)
    rank = max(len(x), len(y))
    x, y = (1,) * (rank - len(x)) + x, (1,) * (rank - len(y)) + y
    dims = []
    for a, b in zip(x, y):
        if a == 1 or b == 1 or a == b:
            dims.append(b if a == 1 else a)
        elif a is None or b is None:
            dims.append(b if a is None else a)
        else:
            from treenail import errors
            raise errors.InvalidArgumentError(None, None,
                                              "Incompatible shapes for broadcasting: %s and %s"
                                              % (as_shape(shape_x), as_shape(shape_y)))
    return TensorShape(dims)
