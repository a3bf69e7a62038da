# SPDX-License-Identifier: Apache-2.0
"""The libtreenail that is installed, for a part that is built alone (--only).

Where a prefix or a libdir is named, the library there is meant; else the one that pkg-config knows,
and the part is installed beside it, for it is looked for nowhere else.
"""

import os
from typing import List, Sequence, Tuple

from gen import private_abi
from gen.errors import ConfigureError
from gen.facts import Facts, InstalledLibrary
from gen.install import directories, names_a_place
from gen.model import Model
from gen.options import Options
from gen.probe import Prober

FILE = "libtreenail.so"
PACKAGES = {"debian": "apt-get install libtreenail-dev", "fedora": "dnf install treenail-devel"}


def _by_pkg_config(prober: Prober, program: Sequence[str], options: Options) -> str:
    """The libdir that pkg-config says; '' where it knows none."""
    status, out, _ = prober.run([*program, "--variable=libdir", "treenail"])
    return _within(options, out.strip()) if not status and out.strip() else ""


def _within(options: Options, libdir: str) -> str:
    """Where a directory of the system lies that is to run the part: below pkg-config's sysroot."""
    sysroot = options.env("PKG_CONFIG_SYSROOT_DIR")
    return libdir if not sysroot or libdir.startswith(sysroot) else os.path.normpath(
        sysroot + "/" + libdir)


def _places(prober: Prober, program: Sequence[str], options: Options,
            facts: Facts) -> List[Tuple[str, str]]:
    """(libdir, who names it), in the order in which they are looked at."""
    known = _by_pkg_config(prober, program, options)
    by_pkg_config = [(known, "pkg-config treenail")] if known else []
    configured = [(_within(options, directories(options, facts)["libdir"]),
                   "the configured prefix")]
    return configured + by_pkg_config if names_a_place(options) else by_pkg_config + configured


def find(prober: Prober, program: Sequence[str], options: Options,
         facts: Facts) -> InstalledLibrary:
    """Raises ConfigureError where there is none, or a file of that name that is no libtreenail."""
    places = _places(prober, program, options, facts)
    for libdir, how in places:
        path = os.path.join(libdir, FILE)
        if os.path.exists(path):
            sysroot = options.env("PKG_CONFIG_SYSROOT_DIR").rstrip("/")
            return InstalledLibrary(path, libdir[len(sysroot):] or "/",
                                    private_abi.of_library(path), how)
    hint = PACKAGES.get(facts.distro.family, "") if facts.distro else ""
    raise ConfigureError("--only=%s needs an installed libtreenail, but there is no %s in %s%s; "
                         "--prefix=DIR names the place of another one" % (
                             options.only, FILE, " or ".join(libdir for libdir, _ in places),
                             "; install it with: " + hint if hint else ""))


def check(model: Model, library: InstalledLibrary) -> None:
    """Raises ConfigureError where it was built from other headers than this tree's."""
    ours = private_abi.of_tree(model)
    if library.private_abi != ours:
        raise ConfigureError("--only: " + private_abi.differ(
            library.path, library.private_abi, ours))
