# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/slicing.cc. Oracle: NumPy's basic indexing."""

import numpy as np

from harness import ALL_NUMBERS, EVERYTHING, no_case, op

moves = dict(dtypes=EVERYTHING, domain=(-9, 9), grad=2)


def part(x, begin, size):
    return x[tuple(slice(b, None if s == -1 else b + s) for b, s in zip(begin, size))]


op("Slice", part, **moves).case((4, 5), [1, 2], [2, 3]).case((4, 5), [0, 4], [-1, -1]).case(
    (3,), [3], [0]
).case((), [], []).case(
    (2, 3, 4), np.array([1, 0, 1], np.int64), np.array([1, 3, 2], np.int64)
).case(
    (0, 3), [0, 1], [0, 2]
).case(
    (300, 400), [7, 3], [290, 391], options={"dtypes": ("float32", "uint8")}
).error(
    "InvalidArgument", r"Expected begin\[1\] in \[0, 5\], but got 6", (4, 5), [0, 6], [1, 1]
).error(
    "InvalidArgument", r"Expected size\[0\] in \[0, 1\], but got 2", (4, 5), [3, 0], [2, 1]
).error(
    "InvalidArgument", r"Expected begin\[0\] in \[0, [4?]\], but got -1", (4, 5), [-1, 0], [1, 1]
).error(
    "InvalidArgument",
    "Expected begin and size arguments to be 1-D tensors of size 2",
    (4, 5),
    [0],
    [1],
)


def entries(
    begin,
    end,
    strides,
    begin_mask=0,
    end_mask=0,
    ellipsis_mask=0,
    new_axis_mask=0,
    shrink_axis_mask=0,
):
    """The index that the inputs of StridedSlice spell."""
    index = []
    for i, (b, e, s) in enumerate(zip(begin, end, strides)):
        bit = 1 << i
        if ellipsis_mask & bit:
            index.append(Ellipsis)
        elif new_axis_mask & bit:
            index.append(None)
        elif shrink_axis_mask & bit:
            index.append(int(b))
        else:
            index.append(
                slice(
                    None if begin_mask & bit else int(b), None if end_mask & bit else int(e), int(s)
                )
            )
    return tuple(index)


def strided(x, begin, end, strides, **masks):
    return x[entries(begin, end, strides, **masks)]


def spelled(index):
    """Inputs and attributes of StridedSlice for an index."""
    begin, end, strides = [], [], []
    masks = dict.fromkeys(
        ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0
    )
    for i, entry in enumerate(index):
        b, e, s = 0, 0, 1
        if entry is Ellipsis:
            masks["ellipsis_mask"] |= 1 << i
        elif entry is None:
            masks["new_axis_mask"] |= 1 << i
        elif isinstance(entry, slice):
            masks["begin_mask"] |= (entry.start is None) << i
            masks["end_mask"] |= (entry.stop is None) << i
            b, e, s = entry.start or 0, entry.stop or 0, entry.step or 1
        else:
            masks["shrink_axis_mask"] |= 1 << i
            b, e = entry, entry + 1
        begin.append(b)
        end.append(e)
        strides.append(s)
    return [np.array(v, np.int32) for v in (begin, end, strides)], {
        k: v for k, v in masks.items() if v
    }


S = slice
INDICES = [
    (),
    (Ellipsis,),
    (S(None),),
    (S(1, 3),),
    (S(3, 1),),
    (S(None, None, -1), S(None), 2),
    (Ellipsis, -1),
    (0, Ellipsis, None),
    (None, S(3, 0, -2), Ellipsis, S(-100, 100, 3)),
    (S(None, None, 2), None, S(-3, -1), 1),
    (-1, -1, -1),
    (S(100, None),),
    (S(None, -2, -1), S(4, None, -3), S(None, None, 5)),
    (S(1, 2, 7),),
    (None, None, Ellipsis),
    (1, None, 2, Ellipsis),
    (S(0, 0),),
    (S(-1, None, -1), S(None, 2)),
]
slices = op("StridedSlice", strided, **moves)
gradients = op(
    "StridedSliceGrad",
    lambda shape, begin, end, strides, dy, **masks: placed(shape, begin, end, strides, dy, masks),
    **moves
)

sums = op(
    "TensorStridedSliceAdd",
    lambda x, begin, end, strides, value, **masks: added(x, begin, end, strides, value, masks),
    dtypes=ALL_NUMBERS, domain=(-9, 9), grad=2
)


def added(x, begin, end, strides, value, masks):
    out = x.copy()
    out[entries(begin, end, strides, **masks)] += value
    return out


def placed(shape, begin, end, strides, dy, masks):
    out = np.zeros(shape, dy.dtype)
    out[entries(begin, end, strides, **masks)] = dy
    return out


for index in INDICES:
    arguments, attributes = spelled(index)
    slices.case((4, 5, 3), *arguments, **attributes)
    part_shape = np.empty((4, 5, 3))[index].shape
    gradients.case([4, 5, 3], *arguments, part_shape, **attributes)
    sums.case((4, 5, 3), *arguments, part_shape, **attributes)
slices.case((0, 3), [0], [5], [2]).case(
    (6,), np.array([4], np.int64), np.array([0], np.int64), np.array([-2], np.int64)
).case(
    (500, 301), [490, 0], [3, 301], [-3, 2], options={"dtypes": ("float32", "complex128", "int16")}
)
slices.error(
    "InvalidArgument", r"strides\[1\] must be non-zero", (4, 5), [0, 0], [1, 1], [1, 0]
).error(
    "InvalidArgument",
    r"slice index 4 of dimension 0 out of bounds",
    (4, 5),
    [4],
    [5],
    [1],
    shrink_axis_mask=1,
).error(
    "InvalidArgument",
    r"slice index -6 of dimension 1 out of bounds",
    (4, 5),
    [0, -6],
    [1, 1],
    [1, 1],
    shrink_axis_mask=2,
).error(
    "InvalidArgument", "Index out of range using input dim 1", (4,), [0, 0], [1, 1], [1, 1]
).error(
    "InvalidArgument",
    "Multiple ellipses in slice spec not allowed",
    (4,),
    [0, 0],
    [1, 1],
    [1, 1],
    ellipsis_mask=3,
).error(
    "InvalidArgument",
    "only stride 1 allowed on non-range indexing",
    (4,),
    [0],
    [1],
    [-1],
    shrink_axis_mask=1,
).error(
    "InvalidArgument",
    "Expected begin, end, and strides to be 1D equal size",
    (4,),
    [0, 1],
    [1],
    [1],
)
gradients.error(
    "InvalidArgument", r"shape of dy was \[3\] instead of \[2\]", [4], [0], [2], [1], (3,)
)
sums.error("InvalidArgument", r"has shape \[2\], the value to add has shape \[3\]", (4,), [0], [2], [1],
           (3,))

no_case("ResourceStridedSliceAssign", "works on a variable; test_variable_parts.py")
