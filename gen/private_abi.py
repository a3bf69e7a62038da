# SPDX-License-Identifier: Apache-2.0
"""The identity of what libtreenail shares with libraries of its own: their internal headers.

A kernel library, an adapter or a device library uses C++ objects of libtreenail, so it must have
been compiled with the very headers that libtreenail was. A hash of these headers is in both; it
tells another build when a library is opened, when a device library is built for an installed
libtreenail (--only=cuda), and in the names of packages. Shared by configure and gen/tools.
"""

import hashlib
import os
import re
from typing import List, Sequence, Set

from gen import records
from gen.errors import ConfigureError
from gen.model import Model

# Before the identity in every library; packages of this name are what plugins depend on.
NAME = "treenail-private-abi-"
_MARK = re.compile(NAME.encode() + rb"(\d+\.\d+\.\d+-[0-9a-f]{12})\0")
# What all of them include, whatever their records say.
ALWAYS = ("base", "tensor", "op", "kernel_api")


def _closure(model: Model, names: Sequence[str]) -> Set[str]:
    """The components and all that they need, directly or not."""
    found: Set[str] = set()
    todo = [name for name in names if name in model.components]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += model.components[name].needs
    return found


def shared_headers(model: Model) -> List[str]:
    """Headers that both libtreenail and libraries that it opens may include, sorted: a hash of them
    is the same for every choice of options."""
    core = _closure(model, [name for library in model.of(records.SharedLibrary)
                            for name in library.components])
    opened = _closure(model, [library.component for kind in (
        records.KernelLibrary, records.Adapter, records.DeviceLibrary)
        for library in model.of(kind)])
    return sorted(path for name in {*ALWAYS, *(core & opened)}
                  for path in model.headers.get(name, ()))


def identity(version: str, paths: Sequence[str]) -> str:
    """VERSION-HASH of the files' contents, in this order."""
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as stream:
            digest.update(stream.read() + b"\0")
    return "%s-%s" % (version, digest.hexdigest()[:12])


def of_tree(model: Model) -> str:
    """What a build of this source tree has."""
    return identity(model.version, [os.path.join(model.source, path)
                                    for path in shared_headers(model)])


def of_library(path: str) -> str:
    """What stands in a shared library; raises ConfigureError where none or several do."""
    with open(path, "rb") as stream:
        found = {mark.decode() for mark in _MARK.findall(stream.read())}
    if len(found) != 1:
        raise ConfigureError("%s says %s; a library of Treenail says one" % (
            path, "of no build that it is" if not found else
            "of several builds that it is: " + ", ".join(sorted(found))))
    return found.pop()


def differ(path: str, theirs: str, ours: str) -> str:
    """The sentence about an installed library of another build."""
    return ("%s is of build %s, but this source tree makes plugins for build %s: build from the "
            "source that the library was built from" % (path, theirs, ours))
