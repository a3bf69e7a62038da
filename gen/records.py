# SPDX-License-Identifier: Apache-2.0
"""What a targets.py may say: plain records, constructor calls with literals.

Patterns are relative to the top of the tree; `*` stays in one folder, `**/` spans folders. Naming a
pattern twice is an error, for every source belongs to exactly one target. A record whose patterns
match nothing describes a part that is not there, and is left out.
"""

from dataclasses import dataclass
from typing import Optional, Tuple


@dataclass(frozen=True)
class Component:
    """A layer: sources compiled together, headers owned, and the layers its includes may name.

    needs: names of components; the rule is direct, an include of anything else is an error.
    external: names from gen/deps.py whose headers may be included (standard headers are free).
    features: without which a test program is left out.
    interface: True for headers that other components may use although the rest of the folder is
    closed to them (the kernel-side header of runtime/); such a component has no sources.
    debug_variables: False where a debugger could tell little of variables: loops that became vector
    instructions, templates, tables. A distribution's debug information then has functions and
    lines alone, and a precompiled header saves time (docs/decisions/debug-information.md).
    """

    name: str
    sources: Tuple[str, ...] = ()
    headers: Tuple[str, ...] = ()
    needs: Tuple[str, ...] = ()
    external: Tuple[str, ...] = ()
    features: Tuple[str, ...] = ()
    debug_variables: bool = True


@dataclass(frozen=True)
class SharedLibrary:
    """The versioned library that programs link: components plus generated sources.

    precompiled: house headers that nearly every source includes, beside the standard ones; the
    modules and adapters that link the library share them.
    """

    name: str
    components: Tuple[str, ...]
    generated: Tuple[str, ...] = ()
    precompiled: Tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelLibrary:
    """A component compiled once per ISA level: a library each, with one exported symbol.

    compact: sources that more optimisation (-O3) makes larger and no faster: loops of few and
    unknown turns, over vectors already.
    precompiled: as for SharedLibrary.
    """

    name: str
    component: str
    export: str
    generated: Tuple[str, ...] = ()
    compact: Tuple[str, ...] = ()
    precompiled: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Adapter:
    """A component linked with one external library, opened on first use. part: of the installation
    that it belongs to."""

    name: str
    component: str
    feature: str
    export: str
    part: str = "runtime"


@dataclass(frozen=True)
class Plugin:
    """A component that becomes a library in plugins/, speaking the C ABI only, or, where `own`, the
    C++ of libtreenail, whose build it belongs to.

    export: its one symbol; empty for a library that exports all it defines. components: others that
    it is made of, beside the one that gives its name.
    """

    name: str
    component: str
    components: Tuple[str, ...] = ()
    export: str = "tn_plugin_init"
    install: bool = True
    own: bool = False


@dataclass(frozen=True)
class DeviceLibrary:
    """A library in devices/ that brings a kind of device with its kernels
    (framework/runtime/kernel/device_library.h): a component, C++ of libtreenail, with the sources
    of another one, device_code, which are compiled for the device and embedded, each as an image of
    its own, in the table `images`. part: of the installation that it belongs to."""

    name: str
    component: str
    device_code: str
    images: str
    feature: str
    part: str
    export: str = "treenail_device_library"
    generated: Tuple[str, ...] = ()


@dataclass(frozen=True)
class SimulatedLibrary:
    """For tests: a stand-in for a library that another one opens by its soname, in which {library}
    is the major version of one of gen/cuda.py's LIBRARIES. It is left out where the headers of
    header_of are not there, or the first of its components has no sources.
    Device code is compiled for the host. exports: patterns of what it exports, and nothing else;
    libraries: sonames of those in the same folder that it is linked with."""

    folder: str
    soname: str
    components: Tuple[str, ...]
    exports: Tuple[str, ...]
    feature: str
    libraries: Tuple[str, ...] = ()
    header_of: Optional[str] = None


@dataclass(frozen=True)
class Registration:
    """A table generated from file names: one call per family file that defines the function.

    A source <stem>.cc counts when its text contains function.replace('*', stem) + '('. `namespace`
    is that of the functions, `table` the qualified name of the function that calls them, `finish` a
    method of the registry to call after each family.
    """

    output: str
    sources: str
    function: str
    namespace: str
    table: str
    argument: str
    include: str
    finish: str = ""


@dataclass(frozen=True)
class PythonExtension:
    """The compiled module, once per interpreter."""

    name: str
    component: str


@dataclass(frozen=True)
class PythonPackage:
    """Files of the Python package; `root` is the folder that becomes the package."""

    name: str
    root: str
    files: Tuple[str, ...]


@dataclass(frozen=True)
class Headers:
    """Installed headers; `root` becomes includedir."""

    root: str
    files: Tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """An installed program that links the library. manual: its page; completion: its words for
    bash; unit: systemd's, where it has one; all are committed files. feature: without which it is
    left out; part: of the installation that it belongs to."""

    name: str
    component: str
    manual: str
    completion: str
    unit: str = ""
    feature: str = ""
    part: str = "tools"


@dataclass(frozen=True)
class PythonProgram:
    """An installed program that is the function `main` of a module, whose result is the exit
    status. manual, completion: as of Program. It belongs to the part "python", whose module it
    needs."""

    name: str
    module: str
    manual: str
    completion: str


@dataclass(frozen=True)
class TestProgram:
    """A GoogleTest program, and the same linked with nothing but the layers that it needs.

    checks: the sanitizer runs that include it. adapters: those that these layers open; the program
    of the layers alone has its own in tests/<name>_layer/adapters (TREENAIL_LIBRARY_DIR).
    """

    name: str
    component: str
    checks: Tuple[str, ...] = ("address-undefined",)
    adapters: Tuple[str, ...] = ()


@dataclass(frozen=True)
class BenchProgram:
    """A Google Benchmark program, run by `ninja bench`."""

    name: str
    component: str


@dataclass(frozen=True)
class PythonTests:
    """Folders that pytest collects for `ninja test`. shards: split one folder over several runs."""

    folders: Tuple[str, ...]
    shards: int = 1


@dataclass(frozen=True)
class Script:
    """A ninja target that runs a Python program of the tree with the built module importable.

    `arguments` may contain {build} and {source}. `present` is the file that must exist.
    """

    name: str
    help: str
    present: str
    arguments: Tuple[str, ...] = ()
    needs: Tuple[str, ...] = ("all",)


@dataclass(frozen=True)
class Excluded:
    """Sources that no target owns, and why."""

    files: Tuple[str, ...]
    reason: str


KINDS = (Component, SharedLibrary, KernelLibrary, Adapter, Plugin, DeviceLibrary, SimulatedLibrary,
         Registration, PythonExtension, PythonPackage, Headers, Program, PythonProgram, TestProgram,
         BenchProgram, PythonTests, Script, Excluded)
