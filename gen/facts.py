# SPDX-License-Identifier: Apache-2.0
"""What probes find out, as plain records: all that plan knows about the machine."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from gen import distro as distros
from gen.isa import Choice

DISTRIBUTION_PYTHON = "/usr/bin/python3"


@dataclass(frozen=True)
class Compiler:
    """cached: it is run through a compiler cache."""

    command: Tuple[str, ...]
    family: str
    version: str
    triplet: str
    cached: bool = False


@dataclass(frozen=True)
class External:
    """The outcome for one library: flags when found, the reason when not; whether pkg-config was
    there to be asked."""

    found: bool
    cflags: Tuple[str, ...] = ()
    libs: Tuple[str, ...] = ()
    version: str = ""
    how: str = ""
    why_not: str = ""
    asked: bool = True


@dataclass(frozen=True)
class CudaToolkit:
    """architectures: in ascending order, "90" for sm_90; host_compiler: what nvcc preprocesses
    with, one that it takes; majors: what the sonames of its libraries end by, as far as their
    headers are there."""

    nvcc: str
    include: str
    version: str
    architectures: Tuple[str, ...]
    host_compiler: str
    majors: Mapping[str, str]


@dataclass(frozen=True)
class InstalledLibrary:
    """libtreenail as it is installed, for a part that is built alone. path: what is linked; libdir:
    its directory where it runs, without a sysroot; private_abi: gen/private_abi.py."""

    path: str
    libdir: str
    private_abi: str
    how: str


@dataclass(frozen=True)
class Interpreter:
    path: str
    why: str
    facts: Dict[str, Any]

    @property
    def version(self) -> str:
        return ".".join(str(n) for n in self.facts["version"][:2])


@dataclass
class Facts:
    """Everything plan needs to know about the machine."""

    machine: str = ""
    cc: Optional[Compiler] = None
    cxx: Optional[Compiler] = None
    nm: str = "nm"
    strip: str = "strip"
    ar: str = "ar"
    warnings: Tuple[str, ...] = ()
    compile_flags: Tuple[str, ...] = ()
    link_flags: Tuple[str, ...] = ()
    isa_note_flags: Tuple[str, ...] = ()
    isa_note_by_linker: bool = False  # -z x86-64-v3 and the like, where the compiler lacks -mneeded
    isa: Optional[Choice] = None
    refused_levels: List[str] = field(default_factory=list)
    python_flags: Dict[str, Tuple[str, ...]] = field(default_factory=dict)
    externals: Dict[str, External] = field(default_factory=dict)
    cuda: Optional[CudaToolkit] = None
    installed: Optional[InstalledLibrary] = None
    pythons: Tuple[Interpreter, ...] = ()
    build_python: str = DISTRIBUTION_PYTHON
    distro: Optional[distros.Distro] = None
    multiarch: str = ""
    ninja: str = "ninja"
    cores: int = 1
    memory_mib: int = 1024
    cross: bool = False
