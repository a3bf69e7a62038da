# SPDX-License-Identifier: Apache-2.0
"""Where the tasks of a distributed program run: TensorFlow 1's tf.distribute. Groups of processes
that train one model: treenail.distributed."""

from treenail._names import no_attribute as _no_attribute
from treenail.distribute import cluster_resolver

__all__ = ["cluster_resolver"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)
