# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 1.14's place for strategies over several processes."""

from treenail._names import no_attribute as _no_attribute
from treenail.distribute._cross_device_ops import CollectiveCommunication
from treenail.distribute._multi_worker import MultiWorkerMirroredStrategy
from treenail.distribute._parameter_server import ParameterServerStrategy

__all__ = ["CollectiveCommunication", "MultiWorkerMirroredStrategy", "ParameterServerStrategy"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)
