# SPDX-License-Identifier: Apache-2.0
"""Images in other sizes and places: what tn.image does with the geometry of images."""

from __future__ import annotations

from operator import index

from treenail import _treenail as _core
from treenail._array import as_scalar, extents_of, tile
from treenail._convert import convert_to_tensor, scope_of
from treenail._math import cast
from treenail._ops import ops
from treenail._random import random_uniform
from treenail._shape import TensorShape
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def extents(image: Tensor) -> list:
    """The extents of an image or a batch of them: ints where they are known, else scalar tensors.

    Raises ValueError unless the rank is known.
    """
    if image.shape.ndims is None:
        raise ValueError("the rank of an image must be known")
    return extents_of(image)


def as_image(image: Any, ranks: tuple = (3, 4)) -> Tensor:
    """A tensor of one of these ranks. Raises ValueError for another, or an unknown one."""
    image = convert_to_tensor(image)
    if image.shape.ndims not in ranks:
        raise ValueError("'image' must have %s dimensions, got shape %s"
                         % (" or ".join(map(str, ranks)), image.shape))
    return image


def _pack(numbers: list) -> Any:
    """A list of ints, or an int32 vector where one is a tensor."""
    if all(isinstance(n, int) for n in numbers):
        return numbers
    return ops.Pack([cast(convert_to_tensor(n), _core.int32) for n in numbers])


def _smaller(a: Any, b: Any) -> Any:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else ops.Minimum(a, b)


def _positive(a: Any) -> Any:
    return max(a, 0) if isinstance(a, int) else ops.Maximum(a, 0)


def _batched(image: Tensor, function: Callable) -> Tensor:
    """function on a batch of images, for one image or a batch."""
    if image.shape.ndims == 4:
        return function(image)
    return ops.Squeeze(function(ops.ExpandDims(image, 0)), squeeze_dims=[0])


# --- Size -----------------------------------------------------------------------------------------

class ResizeMethod:
    """The methods of resize_images."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


def resize_bilinear(images: Any, size: Any, align_corners: bool = False, name: str | None = None,
                    half_pixel_centers: bool = False) -> Tensor:
    """[batch, height, width, channels] in another size by bilinear interpolation, float32."""
    return ops.ResizeBilinear(images, _size(size), align_corners=align_corners,
                              half_pixel_centers=half_pixel_centers, name=name)


def resize_nearest_neighbor(images: Any, size: Any, align_corners: bool = False,
                            name: str | None = None, half_pixel_centers: bool = False) -> Tensor:
    """[batch, height, width, channels] in another size by the nearest pixel, of the same dtype."""
    return ops.ResizeNearestNeighbor(images, _size(size), align_corners=align_corners,
                                     half_pixel_centers=half_pixel_centers, name=name)


def resize_bicubic(images: Any, size: Any, align_corners: bool = False, name: str | None = None,
                   half_pixel_centers: bool = False) -> Tensor:
    """[batch, height, width, channels] in another size by bicubic interpolation, float32."""
    return ops.ResizeBicubic(images, _size(size), align_corners=align_corners,
                             half_pixel_centers=half_pixel_centers, name=name)


def resize_area(images: Any, size: Any, align_corners: bool = False,
                name: str | None = None) -> Tensor:
    """[batch, height, width, channels] in another size by the mean over areas, float32."""
    return ops.ResizeArea(images, _size(size), align_corners=align_corners, name=name)


def _size(size: Any) -> Any:
    return _pack(list(size)) if isinstance(size, (list, tuple)) else size


_RESIZES = {ResizeMethod.BILINEAR: resize_bilinear,
            ResizeMethod.NEAREST_NEIGHBOR: resize_nearest_neighbor,
            ResizeMethod.BICUBIC: resize_bicubic, ResizeMethod.AREA: resize_area}


def resize_images(images: Any, size: Any, method: int = ResizeMethod.BILINEAR,
                  align_corners: bool = False, preserve_aspect_ratio: bool = False,
                  name: str | None = None) -> Tensor:
    """An image or a batch of them in another size (height, width).

    The result is float32, but for NEAREST_NEIGHBOR, and for images that have that size already:
    those are given back as they are. preserve_aspect_ratio: the largest size within `size` of the
    images' own ratio.
    """
    with scope_of(name, "resize", [images, size]):
        images = as_image(images)
        if method not in _RESIZES:
            raise ValueError("Resize method is not implemented: %r" % (method,))
        known = _known_size(size)
        height, width = extents(images)[-3:-1]
        if preserve_aspect_ratio:
            if known is None:
                size = convert_to_tensor(size, _core.int32)
                known = [size[0], size[1]]
            size = _within(known, height, width)
            known = size if all(isinstance(n, int) for n in size) else None
        if known is not None and known == [height, width]:
            return images
        return _batched(images, lambda batch: _RESIZES[method](batch, size, align_corners))


def _known_size(size: Any) -> list | None:
    if isinstance(size, (list, tuple, TensorShape)) or hasattr(size, "tolist"):
        numbers = list(size.tolist() if hasattr(size, "tolist") else size)
        if len(numbers) != 2:
            raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
        return numbers
    return None


def _within(size: list, height: Any, width: Any) -> list:
    """The largest extents of the ratio height : width that fit into size, one at least."""
    if all(isinstance(n, int) for n in (*size, height, width)):
        scale = min(size[0] / height, size[1] / width)
        return [max(round(scale * height), 1), max(round(scale * width), 1)]
    real = [cast(convert_to_tensor(n), _core.float64) for n in (*size, height, width)]
    scale = ops.Minimum(ops.RealDiv(real[0], real[2]), ops.RealDiv(real[1], real[3]))
    return [ops.Maximum(cast(ops.Rint(ops.Mul(scale, n)), _core.int32), 1) for n in real[2:]]


def resize_image_with_pad(image: Any, target_height: Any, target_width: Any,
                          method: int = ResizeMethod.BILINEAR,
                          align_corners: bool = False) -> Tensor:
    """An image or a batch of them as large as its ratio allows, in the middle of zeros."""
    with scope_of(None, "resize_image_with_pad", [image]):
        image = as_image(image)
        resized = resize_images(image, [target_height, target_width], method, align_corners,
                                preserve_aspect_ratio=True)
        return resize_image_with_crop_or_pad(resized, target_height, target_width)


# --- Place ----------------------------------------------------------------------------------------

def crop_to_bounding_box(image: Any, offset_height: Any, offset_width: Any, target_height: Any,
                         target_width: Any) -> Tensor:
    """The part of an image or of a batch that begins at the offsets."""
    with scope_of(None, "crop_to_bounding_box", [image]):
        image = as_image(image)
        sizes = extents(image)
        for what, offset, target, size in (("height", offset_height, target_height, sizes[-3]),
                                           ("width", offset_width, target_width, sizes[-2])):
            if isinstance(offset, int) and offset < 0:
                raise ValueError("offset_%s must be >= 0, got %d" % (what, offset))
            if isinstance(target, int) and target <= 0:
                raise ValueError("target_%s must be > 0, got %d" % (what, target))
            if all(isinstance(n, int) for n in (offset, target, size)) and offset + target > size:
                raise ValueError("%s must be >= target + offset: %d < %d + %d"
                                 % (what, size, target, offset))
        begin, size = [offset_height, offset_width, 0], [target_height, target_width, -1]
        if len(sizes) == 4:
            begin, size = [0] + begin, [-1] + size
        return _of_size(ops.Slice(image, _pack(begin), _pack(size)), image, target_height,
                        target_width)


def _as_extent(value: Any) -> Any:
    """An int, or a tensor."""
    try:
        return index(value)
    except TypeError:
        return convert_to_tensor(value)


def pad_to_bounding_box(image: Any, offset_height: Any, offset_width: Any, target_height: Any,
                        target_width: Any) -> Tensor:
    """An image or a batch of them at the offsets in zeros of the target's size."""
    with scope_of(None, "pad_to_bounding_box", [image]):
        image = as_image(image)
        sizes = extents(image)
        pads = []
        for what, offset, target, size in (("height", offset_height, target_height, sizes[-3]),
                                           ("width", offset_width, target_width, sizes[-2])):
            offset, target = _as_extent(offset), _as_extent(target)
            after = target - offset - size
            for side, n in (("offset_" + what, offset), ("target_%s - offset - %s" % (what, what),
                                                         after)):
                if isinstance(n, int) and n < 0:
                    raise ValueError("%s must be >= 0, got %d" % (side, n))
            pads.append([offset, after])
        pads = [[0, 0]] * (len(sizes) - 3) + pads + [[0, 0]]
        if not all(isinstance(n, int) for pair in pads for n in pair):
            pads = ops.Pack([_as_vector(pair) for pair in pads])
        return _of_size(ops.Pad(image, pads, convert_to_tensor(0, image.dtype)), image,
                        target_height, target_width)


def _of_size(result: Tensor, image: Tensor, height: Any, width: Any) -> Tensor:
    """`result`, known to have the batch and channels of `image`, and that height and width where
    they are ints."""
    known = image.shape.as_list()
    known[-3:-1] = [n if isinstance(n, int) else None for n in (height, width)]
    result.set_shape(TensorShape(known))
    return result


def _as_vector(pair: list) -> Tensor:
    return ops.Pack([cast(convert_to_tensor(n), _core.int32) for n in pair])


def resize_image_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """The middle of an image or of a batch, cut off or with zeros around it, in the target's
    size."""
    with scope_of(None, "resize_image_with_crop_or_pad", [image]):
        image = as_image(image)
        for what, target in (("height", target_height), ("width", target_width)):
            if isinstance(target, int) and target <= 0:
                raise ValueError("target_%s must be > 0, got %d" % (what, target))
        height, width = extents(image)[-3:-1]
        part = crop_to_bounding_box(image, _half(_positive(height - target_height)),
                                    _half(_positive(width - target_width)),
                                    _smaller(target_height, height), _smaller(target_width, width))
        return pad_to_bounding_box(part, _half(_positive(target_height - height)),
                                   _half(_positive(target_width - width)), target_height,
                                   target_width)


def _half(n: Any) -> Any:
    return n // 2 if isinstance(n, int) else ops.FloorDiv(n, 2)


def central_crop(image: Any, central_fraction: float) -> Tensor:
    """The middle of an image or of a batch, that fraction of its height and width."""
    with scope_of(None, "central_crop", [image]):
        image = as_image(image)
        if not 0.0 < central_fraction <= 1.0:
            raise ValueError("central_fraction must be within (0, 1], got %r" % (central_fraction,))
        if central_fraction == 1.0:
            return image
        begins, sizes = [], []
        for n in extents(image)[-3:-1]:
            if isinstance(n, int):
                begin = int((n - n * central_fraction) / 2)
            else:
                real = cast(n, _core.float64)
                begin = cast(ops.RealDiv(ops.Sub(real, ops.Mul(real, central_fraction)), 2.0),
                             _core.int32)
            begins.append(begin)
            sizes.append(n - begin * 2)
        return crop_to_bounding_box(image, *begins, *sizes)


def crop_and_resize(image: Any, boxes: Any, box_ind: Any = None, crop_size: Any = None,
                    method: str = "bilinear", extrapolation_value: float = 0,
                    name: str | None = None, box_indices: Any = None) -> Tensor:
    """Boxes [n, 4] (y1, x1, y2, x2 in [0, 1]) of the images that box_ind names, each resized to
    crop_size, float32."""
    return ops.CropAndResize(image, boxes, box_indices if box_ind is None else box_ind,
                             _size(crop_size), method=method,
                             extrapolation_value=extrapolation_value, name=name)


def extract_image_patches(images: Any, ksizes: Any = None, strides: Any = None, rates: Any = None,
                          padding: str | None = None, name: str | None = None,
                          sizes: Any = None) -> Tensor:
    """The pixels of each window side by side: [batch, windows down, windows across, rows * columns
    * channels]. ksizes, strides, rates: four ints each."""
    return ops.ExtractImagePatches(images, ksizes=sizes if ksizes is None else ksizes,
                                   strides=strides, rates=rates, padding=padding, name=name)


# --- Turns ----------------------------------------------------------------------------------------

def flip_left_right(image: Any) -> Tensor:
    """An image or a batch of them, mirrored: the last column first."""
    image = as_image(image)
    return ops.Reverse(image, [image.shape.ndims - 2])


def flip_up_down(image: Any) -> Tensor:
    """An image or a batch of them upside down."""
    image = as_image(image)
    return ops.Reverse(image, [image.shape.ndims - 3])


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """flip_left_right or not, each with probability 1/2, for each image of a batch."""
    return _random_flip(image, flip_left_right, "random_flip_left_right", seed)


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """flip_up_down or not, each with probability 1/2, for each image of a batch."""
    return _random_flip(image, flip_up_down, "random_flip_up_down", seed)


def _random_flip(image: Any, flip: Callable, name: str, seed: int | None) -> Tensor:
    with scope_of(None, name, [image]):
        image = as_image(image)
        count = [] if image.shape.ndims == 3 else _pack(extents(image)[:1] + [1, 1, 1])
        turned = ops.Less(random_uniform(count, 0, 1.0, seed=seed), 0.5)
        return ops.Select(turned, flip(image), image)


def transpose_image(image: Any) -> Tensor:
    """An image or a batch of them with rows and columns exchanged."""
    image = as_image(image)
    return ops.Transpose(image, [1, 0, 2] if image.shape.ndims == 3 else [0, 2, 1, 3])


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """An image or a batch of them turned counter-clockwise by k quarter turns, an int or an integer
    scalar tensor."""
    with scope_of(name, "rot90", [image]):
        image = as_image(image)
        if isinstance(k, Tensor):
            return _turned(image, as_scalar(k, "k"))
        if not isinstance(k, int):
            raise ValueError("k must be an int or an integer tensor, not %r" % (k,))
        quarter = k % 4
        if quarter == 0:
            return image
        if quarter == 2:
            return flip_up_down(flip_left_right(image))
        if quarter == 1:
            return transpose_image(flip_left_right(image))
        return flip_left_right(transpose_image(image))


def _turned(image: Tensor, k: Tensor) -> Tensor:
    """rot90 by a number of turns that a run tells: both axes as they go, then exchanged or not."""
    quarter = ops.FloorMod(cast(k, _core.int32), 4)
    down = ops.Select(ops.GreaterEqual(quarter, 2), -1, 1)
    across = ops.Select(ops.Equal(ops.FloorDiv(quarter + 1, 2), 1), -1, 1)
    mirrored = image[..., ::down, ::across, :]
    plain = list(range(image.shape.ndims))
    turned = plain[:-3] + [plain[-2], plain[-3], plain[-1]]
    odd = ops.Equal(ops.FloorMod(quarter, 2), 1)
    result = ops.Transpose(mirrored, ops.Select(odd, turned, plain))
    height, width = image.shape[-3], image.shape[-2]
    return _of_size(result, image, *([height, width] if height == width else [None, None]))


# --- Boxes ----------------------------------------------------------------------------------------

def non_max_suppression(boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any = 0.5,
                        score_threshold: Any = float("-inf"), name: str | None = None) -> Tensor:
    """Numbers of boxes [n, 4], best score first, none of which overlaps a better one by more than
    iou_threshold (shared area by area covered together)."""
    return ops.NonMaxSuppression(boxes, scores, convert_to_tensor(max_output_size, _core.int32),
                                 convert_to_tensor(iou_threshold, _core.float32),
                                 convert_to_tensor(score_threshold, _core.float32), name=name)


def non_max_suppression_padded(boxes: Any, scores: Any, max_output_size: Any,
                               iou_threshold: Any = 0.5, score_threshold: Any = float("-inf"),
                               pad_to_max_output_size: bool = False,
                               name: str | None = None) -> tuple:
    """(selected indices, how many): non_max_suppression, filled up with zeros to max_output_size
    where pad_to_max_output_size says so."""
    with scope_of(name, "non_max_suppression_padded", [boxes, scores]):
        selected = non_max_suppression(boxes, scores, max_output_size, iou_threshold,
                                       score_threshold)
        count = ops.Size(selected)
        if pad_to_max_output_size:
            missing = ops.Sub(convert_to_tensor(max_output_size, _core.int32), count)
            zero = convert_to_tensor(0, _core.int32)
            selected = ops.Pad(selected, ops.Pack([ops.Pack([zero, missing])]), zero)
            if isinstance(max_output_size, int):
                selected.set_shape([max_output_size])
        return selected, count


# The colors of draw_bounding_boxes: yellow, blue, red, lime, purple, olive, maroon, navy, aqua,
# fuchsia.
_COLORS = [[1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1],
           [0.5, 0.5, 0, 1], [0.5, 0, 0, 1], [0, 0, 0.5, 1], [0, 1, 1, 1], [1, 0, 1, 1]]


def draw_bounding_boxes(images: Any, boxes: Any, name: str | None = None,
                        colors: Any = None) -> Tensor:
    """Images with the outlines of boxes [batch, n, 4] (y_min, x_min, y_max, x_max in [0, 1]), in
    ten colors by turns, white in images of one channel, or in `colors` [m, channels]."""
    with scope_of(name, "draw_bounding_boxes", [images, boxes]) as scope:
        images = as_image(images, (4,))
        if colors is None:
            gray = images.shape[3] == 1
            colors = convert_to_tensor([[1.0] * 4] if gray else _COLORS, _core.float32)
        return ops.DrawBoundingBoxes(images, boxes, colors, name=scope)


def sample_distorted_bounding_box(image_size: Any, bounding_boxes: Any, seed: int | None = None,
                                  seed2: int | None = None, min_object_covered: Any = 0.1,
                                  aspect_ratio_range: Any = None, area_range: Any = None,
                                  max_attempts: int | None = None,
                                  use_image_if_no_bounding_boxes: bool | None = None,
                                  name: str | None = None) -> tuple:
    """(begin, size, boxes) of a random part of an image that keeps enough of one of its boxes: for
    tn.slice and draw_bounding_boxes. See the op SampleDistortedBoundingBox."""
    attrs = {"aspect_ratio_range": aspect_ratio_range, "area_range": area_range,
             "max_attempts": max_attempts,
             "use_image_if_no_bounding_boxes": use_image_if_no_bounding_boxes}
    result = ops.SampleDistortedBoundingBox(
        image_size, bounding_boxes, convert_to_tensor(min_object_covered, _core.float32),
        seed=seed or 0, seed2=seed2 or 0, name=name,
        **{key: value for key, value in attrs.items() if value is not None})
    return tuple(result)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """[..., 1] as [..., 3], three equal channels."""
    with scope_of(name, "grayscale_to_rgb", [images]):
        images = convert_to_tensor(images)
        ndims = images.shape.ndims
        if ndims is None:
            raise ValueError("the rank of an image must be known")
        if ndims == 0 or images.shape[-1] not in (None, 1):
            raise ValueError("the last axis of a grayscale image must be 1, got %s" % images.shape)
        return tile(images, [1] * (ndims - 1) + [3])


__all__ = ["ResizeMethod", "resize_bilinear", "resize_nearest_neighbor", "resize_bicubic",
           "resize_area", "resize_images", "resize_image_with_pad", "crop_to_bounding_box",
           "pad_to_bounding_box", "resize_image_with_crop_or_pad", "central_crop",
           "crop_and_resize", "extract_image_patches", "flip_left_right", "flip_up_down",
           "random_flip_left_right", "random_flip_up_down", "transpose_image", "rot90",
           "non_max_suppression", "non_max_suppression_padded", "draw_bounding_boxes",
           "sample_distorted_bounding_box", "grayscale_to_rgb"]
