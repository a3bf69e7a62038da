# SPDX-License-Identifier: Apache-2.0
"""Images under TensorFlow 1's names: files, sizes, places, turns, colours, boxes,
quality.

An image is [height, width, channels], a batch [batch, height, width, channels]. Pixels of integer
dtype go from 0 to the largest number of the dtype, floats from 0 to 1.
"""

from __future__ import annotations

from treenail import _image_codecs, _image_color, _image_geometry, _image_quality
from treenail._image_codecs import *  # noqa: F401,F403
from treenail._image_color import *  # noqa: F401,F403
from treenail._image_geometry import *  # noqa: F401,F403
from treenail._image_geometry import resize_image_with_crop_or_pad, resize_images
from treenail._image_quality import *  # noqa: F401,F403
from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals

resize = resize_images
resize_with_crop_or_pad = resize_image_with_crop_or_pad

__all__ = ["resize", "resize_with_crop_or_pad"]
__all__ += _image_codecs.__all__
__all__ += _image_color.__all__
__all__ += _image_geometry.__all__
__all__ += _image_quality.__all__


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
