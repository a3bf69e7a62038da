# SPDX-License-Identifier: Apache-2.0
"""Finding a CUDA toolkit: its compiler, headers, architectures, and a host compiler that it takes.

Only nvcc and headers are wanted: the plugin links no library of CUDA
(docs/decisions/cuda-build.md).
"""

import os
import re
import shutil
from typing import Dict, List, Optional, Sequence, Tuple

from gen.distro import Distro
from gen.errors import ConfigureError
from gen.facts import Compiler, CudaToolkit, External
from gen.libraries import version_tuple
from gen.options import Options
from gen.probe import Prober
from gen.toolchain import CACHES, complaint

MINIMUM = "12.0"  # the first with C++20 in device code, and with cuLibraryLoadData
HEADERS = ("cuda.h", "cublasLt.h", "cufft.h")
USUAL = "/usr/local/cuda"
# Libraries that the plugin opens: where its headers say of which major version they are.
LIBRARIES = {"cublasLt": ("cublas_api.h", "CUBLAS_VER_MAJOR"),
             "cufft": ("cufft.h", "CUFFT_VER_MAJOR"),
             "cudnn": ("cudnn_version.h", "CUDNN_MAJOR")}
# Real code for these, as far as nvcc knows them: the GPUs of data centres (70 Volta, 80 and 90,
# 100) and those that are common elsewhere. Each one costs time and room: for what lies between
# them, code of the same major version runs, and for what comes later PTX of the newest.
COMMON = ("70", "75", "80", "86", "89", "90", "100", "120")
# What kernels include, in the least time: a host compiler that is too new fails here.
PROGRAM = """#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
extern "C" __global__ void probe(float* x) { *x = std::is_same_v<int, int32_t> ? *x : 0; }
"""
CODE_FLAGS = ("-fatbin", "-std=c++20", "-fmad=false")


class _NotThere(Exception):
    """Why there is no CUDA, in words that follow "cuda: "."""


def _places(options: Options) -> List[Tuple[str, str]]:
    """(nvcc, who says so) in the order in which they are looked at; a variable that is set decides
    alone."""
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if options.env(name):
            folder = os.path.normpath(options.env(name))
            if not os.path.isabs(folder):
                raise _NotThere("%s=%s is no absolute directory" % (name, options.env(name)))
            return [(os.path.join(folder, "bin", "nvcc"), "%s=%s" % (name, options.env(name)))]
    in_path = shutil.which("nvcc")
    found = [(in_path, "PATH")] if in_path else []
    return found + [(os.path.join(USUAL, "bin", "nvcc"), USUAL)]


def _folder(nvcc: str) -> str:
    """The toolkit of an nvcc, under the name that leads there as long as its headers lie there."""
    given = os.path.dirname(os.path.dirname(nvcc))
    real = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
    return given if os.path.exists(os.path.join(given, "include", HEADERS[0])) else real


def _include(nvcc: str, machine: str) -> str:
    """The folder of the headers. That of Debian's toolkit is /usr/include, wherever nvcc is."""
    folder = _folder(nvcc)
    places = [os.path.join(folder, "include"),
              os.path.join(folder, "targets", machine + "-linux", "include")]
    if folder.startswith("/usr/lib/"):
        places.append("/usr/include")
    lacking = HEADERS
    for place in places:
        absent = tuple(h for h in HEADERS if not os.path.exists(os.path.join(place, h)))
        if not absent:
            return place
        lacking = min(lacking, absent, key=len)
    raise _NotThere("%s is there, but not <%s> in %s" % (nvcc, "> and <".join(lacking),
                                                         " or ".join(places)))


def _nvcc(options: Options) -> str:
    """The first that can be run."""
    places = _places(options)
    for nvcc, _ in places:
        if os.access(nvcc, os.X_OK) and not os.path.isdir(nvcc):
            return nvcc
    nvcc, said_by = places[0]
    if said_by.startswith("CUDA_"):
        raise _NotThere("%s has no bin/nvcc" % said_by)
    raise _NotThere("there is no nvcc in PATH or %s/bin, and neither CUDA_HOME nor CUDA_PATH names "
                    "a toolkit" % USUAL)


def _version(prober: Prober, nvcc: str, include: str) -> str:
    """That of nvcc, which must be that of the headers: the sonames that the plugin opens and the
    code that it brings come from one toolkit."""
    status, out, err = prober.run([nvcc, "--version"])
    said = re.search(r"release (\d+\.\d+)", out)
    if status or not said:
        raise _NotThere("%s --version says no release: %s" % (nvcc, complaint(status, err)))
    version = said.group(1)
    if version_tuple(version) < version_tuple(MINIMUM):
        raise _NotThere("%s is of CUDA %s; %s or later is needed" % (nvcc, version, MINIMUM))
    with open(os.path.join(include, "cuda.h"), encoding="utf-8", errors="replace") as stream:
        number = re.search(r"#define CUDA_VERSION (\d+)", stream.read())
    value = int(number.group(1)) if number else 0  # 12040 for 12.4
    of_header = "%d.%d" % (value // 1000, value % 1000 // 10)
    if of_header != version:
        raise _NotThere("%s is of CUDA %s, but %s/cuda.h of %s" % (
            nvcc, version, include, of_header))
    return version


def _majors(include: str) -> Dict[str, str]:
    """Of the libraries whose headers are there."""
    found = {}
    for library, (header, macro) in LIBRARIES.items():
        path = os.path.join(include, header)
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as stream:
                said = re.search(r"#define\s+%s\s+(\d+)" % macro, stream.read())
            if said:
                found[library] = said.group(1)
    return found


def known_architectures(prober: Prober, nvcc: str) -> Tuple[str, ...]:
    """In ascending order: "75" for compute_75."""
    status, out, err = prober.run([nvcc, "--list-gpu-arch"])
    names = {word[len("compute_"):] for word in out.split() if word.startswith("compute_")}
    if status or not names:
        raise _NotThere("%s --list-gpu-arch lists none: %s" % (nvcc, complaint(status, err)))
    return tuple(sorted(names, key=_order))


def _order(architecture: str) -> Tuple[int, str]:
    digits = re.match(r"\d+", architecture)
    return int(digits.group()) if digits else 0, architecture


def choose_architectures(asked: str, known: Sequence[str], nvcc: str = "nvcc") -> Tuple[str, ...]:
    """Those of --cuda-arch, in ascending order; ConfigureError for what nvcc does not know."""
    if asked == "auto":
        return tuple(a for a in COMMON if a in known) or tuple(known[-1:])
    words = [word for word in re.split(r"[,;\s]+", asked) if word]
    found = {re.sub(r"\A(?:sm_|compute_)", "", word.replace(".", "")) for word in words}
    unknown = sorted(found - set(known), key=_order)
    if unknown or not found:
        raise ConfigureError(
            "--cuda-arch=%s: %s%s knows %s; give some of these, as in --cuda-arch=%s" % (
                asked, "'%s' is no architecture; " % unknown[0] if unknown else "", nvcc,
                ", ".join(known), ",".join(known[-2:])))
    return tuple(sorted(found, key=_order))


def code_flags(architectures: Sequence[str]) -> Tuple[str, ...]:
    """Machine code for each, and for the newest PTX, which later GPUs' drivers compile."""
    *others, newest = architectures
    flags = ["-gencode=arch=compute_%s,code=sm_%s" % (a, a) for a in others]
    return (*flags, "-gencode=arch=compute_%s,code=[sm_%s,compute_%s]" % (newest, newest, newest))


def _host_compilers(cxx: Compiler) -> List[str]:
    """The configured one, then every g++-N that is installed, the newest first."""
    words = [w for w in cxx.command if os.path.basename(w) not in CACHES and not w.startswith("-")]
    found: Dict[int, str] = {}
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            numbered = re.fullmatch(r"g\+\+-(\d+)", name)
            if numbered and os.access(os.path.join(folder, name), os.X_OK):
                found.setdefault(int(numbered.group(1)), name)
    return words[:1] + [found[number] for number in sorted(found, reverse=True)]


def _host_compiler(prober: Prober, nvcc: str, cxx: Compiler, architecture: str) -> str:
    """The first with which a small kernel compiles."""
    path = os.path.join(prober.directory, "probe.cu")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(PROGRAM)
    tried = _host_compilers(cxx)
    said = ""
    for name in tried:
        status, out, err = prober.run([nvcc, *CODE_FLAGS, *code_flags([architecture]),
                                       "-ccbin", name, "-o", "/dev/null", path], PROGRAM)
        if status == 0:
            return name
        said = said or complaint(status, err or out)
    raise _NotThere("%s takes none of the host compilers that are here (%s): %s" % (
        nvcc, ", ".join(tried), said))


def _toolkit(prober: Prober, options: Options, cxx: Compiler, machine: str) -> CudaToolkit:
    nvcc = _nvcc(options)
    include = _include(nvcc, machine)
    version = _version(prober, nvcc, include)
    known = known_architectures(prober, nvcc)
    architectures = choose_architectures(options.get("cuda-arch"), known, nvcc)
    host = _host_compiler(prober, nvcc, cxx, architectures[-1])
    return CudaToolkit(nvcc, include, version, architectures, host, _majors(include))


def find_cuda(prober: Prober, options: Options, cxx: Compiler, machine: str, distro: Distro,
              cross: bool) -> Tuple[External, Optional[CudaToolkit]]:
    """The toolkit, or why there is none; raises ConfigureError where it must be there."""
    state = options.feature("cuda")
    if state == "no":
        asked = "--with-cuda=no" if options.get("with-cuda") == "no" else (
            "--auto-features=%s; --with-cuda=yes takes it" % options.get("auto-features"))
        return External(False, why_not="not wanted (%s)" % asked), None
    found = None
    needed = "a cross build has no code for GPUs"
    try:
        found = None if cross else _toolkit(prober, options, cxx, machine)
    except _NotThere as reason:
        needed = "%s; a toolkit with nvcc, %s and %s is needed, CUDA_HOME=DIR names one; %s" % (
            reason, ", ".join(HEADERS[:-1]), HEADERS[-1], distro.install_hint("cuda"))
    if found is None and state == "yes":
        raise ConfigureError("--%s, but cuda: %s" % (
            "only=cuda" if options.only == "cuda" else "with-cuda=yes", needed))
    if found is None:
        return External(False, why_not=needed), None
    dnn = "cuDNN %s" % found.majors["cudnn"] if "cudnn" in found.majors else "no cuDNN (no cudnn.h)"
    how = "CUDA %s (%s) with %s, for %s, with host compiler %s" % (
        found.version, found.nvcc, dnn, " ".join(found.architectures), found.host_compiler)
    return External(True, ("-I" + found.include,), (), "", how), found
