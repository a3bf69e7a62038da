# SPDX-License-Identifier: Apache-2.0
"""The laws of the tree and of the plan, as functions that return sentences about what breaks them.

Ownership of sources is checked when the model is loaded; what stands here is asked by
`ninja check-laws`, by ci/lint and by tests/gen, which also shows that each law can fail.
"""

import os
import re
from typing import Dict, List, Set, Tuple

from gen import records
from gen.deps import BY_NAME
from gen.model import Model
from gen.ninja import Plan

# Lowest first. A component may need components that stand before it, never one that stands after:
# python -> capi -> (eager, distributed) -> runtime -> placement -> graph -> op -> tensor -> base.
LAYERS = ("base", "device", "tensor", "io", "op", "ops", "graph", "placement", "kernel_api",
          "runtime", "eager", "collectives", "rpc_interface", "distributed", "capi",
          "extension", "info_tool", "worker_tool", "binding")

EXTERNAL_HEADERS = {
    "pybind11/": "pybind11", "Python.h": "python-dev", "hdf5.h": "hdf5",
    "frameobject.h": "python-dev", "structmember.h": "python-dev", "datetime.h": "python-dev",
    "H5": "hdf5", "dnnl": "onednn", "oneapi/": "onednn", "cblas": "blas", "openblas": "blas",
    "re2/": "re2", "jpeglib.h": "jpeg", "jerror.h": "jpeg", "png.h": "png",
    "Eigen/": "eigen", "grpcpp/": "grpc", "grpc/": "grpc", "openssl/": "grpc",
    "gtest/": "gtest", "gmock/": "gtest", "benchmark/": "benchmark",
    "mpi.h": "mpi",  # of any of the rows mpi-...
    "cuda.h": "cuda", "cuda_fp16.h": "cuda", "cuda_bf16.h": "cuda", "cublas": "cuda",
    "cudnn.h": "cuda", "library_types.h": "cuda",
}
SYSTEM_HEADERS = {
    "assert.h", "complex.h", "ctype.h", "dirent.h", "dlfcn.h", "elf.h", "errno.h", "execinfo.h",
    "fcntl.h", "features.h", "fenv.h", "float.h", "inttypes.h", "limits.h", "link.h", "locale.h",
    "malloc.h", "math.h", "poll.h", "pthread.h", "sched.h", "semaphore.h", "setjmp.h", "signal.h",
    "spawn.h", "stdalign.h", "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h",
    "stdio.h", "stdlib.h", "string.h", "strings.h", "time.h", "ucontext.h", "unistd.h", "wchar.h",
    "cpuid.h", "arm_neon.h", "arm_sve.h", "arm_fp16.h", "cxxabi.h",
}
SYSTEM_FOLDERS = ("sys/", "linux/", "asm/", "arpa/", "netinet/", "net/", "bits/")
FORBIDDEN_IN_HEADERS = ("iostream", "regex", "functional")
GENERATED_HEADERS = ("build_info.h",)
SANITIZER_HEADERS = "sanitizer/"
COMPILER_HEADERS = ("hip/hip_runtime.h",)  # of hipcc, under a macro that it alone defines
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def read_includes(text: str) -> List[Tuple[bool, str]]:
    """(quoted, name) of each include in the text; comments are not examined."""
    return [(mark == '"', name) for mark, name in _INCLUDE.findall(text)]


def _header_owner(model: Model) -> Dict[str, str]:
    return {path: name for name, paths in model.headers.items() for path in paths}


def _external_of(name: str) -> str:
    """The dependency whose header this is; empty for standard and system headers, '?' otherwise."""
    for start, dependency in EXTERNAL_HEADERS.items():
        if name.startswith(start):
            return dependency
    if "." not in name and "/" not in name:
        return ""
    if name in SYSTEM_HEADERS or name.startswith(SYSTEM_FOLDERS + (SANITIZER_HEADERS,)):
        return ""
    if name.endswith("intrin.h") or name in COMPILER_HEADERS:
        return ""
    return "?"


def _check_quoted(model: Model, owners: Dict[str, str], path: str, component: str,
                  name: str) -> str:
    if name in GENERATED_HEADERS:
        return ""
    target = name
    for headers in model.of(records.Headers):
        if os.path.join(headers.root, name) in owners:
            target = os.path.join(headers.root, name)
    if target not in owners:
        return "%s includes \"%s\", which is no file of the tree (paths begin at its top)" % (
            path, name)
    allowed = (component,) + model.components[component].needs
    if owners[target] not in allowed:
        return "%s includes %s, but %s does not need %s (targets.py)" % (
            path, target, component, owners[target])
    return ""


def _check_angled(model: Model, path: str, component: str, name: str) -> str:
    if path.endswith(".h") and name in FORBIDDEN_IN_HEADERS and path.startswith(
            ("framework/", "kernels/")):
        return "%s includes <%s>, which is too dear for a header" % (path, name)
    for headers in model.of(records.Headers):
        if os.path.join(headers.root, name) in model.owner:
            return _check_quoted(model, _header_owner(model), path, component, name)
    external = _external_of(name)
    if external == "?":
        return "%s includes <%s>, which no dependency of gen/deps.py covers" % (path, name)
    named = model.components[component].external
    if external and not any((one + "-").startswith(external + "-") for one in named):
        return "%s includes <%s>, but %s does not name %s as external" % (
            path, name, component, external)
    return ""


def check_includes(model: Model) -> List[str]:
    """Every include is covered by a declared dependency of the including component."""
    owners = _header_owner(model)
    model.owner.update(owners)
    problems = []
    for component in sorted(model.components):
        for path in sorted(set(model.sources[component]) | set(model.headers[component])):
            with open(os.path.join(model.source, path), encoding="utf-8") as stream:
                text = stream.read()
            for quoted, name in read_includes(text):
                if quoted:
                    problem = _check_quoted(model, owners, path, component, name)
                else:
                    problem = _check_angled(model, path, component, name)
                if problem:
                    problems.append(problem)
    return problems


# What device code may not say, since one source is compiled for GPUs of two makers and for the
# host, with warps of 32 and of 64: (pattern, what is wrong with it).
DEVICE_LANGUAGE = "kernels/cuda/language/gpu.h"
DEVICE_FOLDER = "kernels/cuda/"
FORBIDDEN_IN_DEVICE_CODE = tuple((re.compile(pattern), why) for pattern, why in (
    (r"<<<", "a launch, which is the host's, by the driver"),
    (r"\bcub(?:/|::)", "CUB, which the host cannot compile"),
    (r"\bthrust\b", "Thrust, which the host cannot compile"),
    (r"\bcooperative_groups\b", "cooperative groups, which only CUDA has"),
    (r"\bwmma\b", "wmma: tensor cores are used through libraries"),
    (r"\btex[123]D\w*|\btexture\s*<", "textures, which kernels do without"),
    (r"\b(?:asm|__asm|__asm__)\b", "inline assembly, which one compiler takes"),
    (r"\bcuda_runtime(?:_api)?\.h", "the CUDA runtime, which is not linked"),
))
FORBIDDEN_BUT_IN_LANGUAGE = tuple((re.compile(pattern), why) for pattern, why in (
    (r"\b0[xX][fF]{8}[uUlL]*\b", "a mask of 32 lanes, where warps may have 64"),
    (r"\b__(?:shfl|ballot|any|all|activemask|sync(?:threads|warp))\w*",
     "an intrinsic that %s has a name for" % DEVICE_LANGUAGE),
))
_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.DOTALL)


def without_comments(text: str) -> str:
    """The text with as many lines, and string literals as they are."""
    return _COMMENT.sub(lambda found: found.group(1) or "\n" * found.group().count("\n"), text)


def forbidden_in_device_code(path: str, text: str) -> List[str]:
    """Sentences about what device code says and may not, each with its line."""
    rules = FORBIDDEN_IN_DEVICE_CODE
    if path != DEVICE_LANGUAGE:
        rules += FORBIDDEN_BUT_IN_LANGUAGE
    return ["%s:%d: '%s' is %s" % (path, number, found.group(), why)
            for number, line in enumerate(without_comments(text).splitlines(), 1)
            for pattern, why in rules for found in [pattern.search(line)] if found]


def device_code(model: Model) -> List[str]:
    """Sources that nvcc compiles, and what they include of the plugin's folder."""
    todo = [path for paths in model.sources.values() for path in paths if path.endswith(".cu")]
    found: Set[str] = set()
    while todo:
        path = todo.pop()
        if path in found or path not in model.files:
            continue
        found.add(path)
        with open(os.path.join(model.source, path), encoding="utf-8") as stream:
            todo += [name for quoted, name in read_includes(stream.read())
                     if quoted and name.startswith(DEVICE_FOLDER)]
    return sorted(found)


def check_device_code(model: Model) -> List[str]:
    """Kernels keep to the names of gpu.h."""
    problems = []
    for path in device_code(model):
        with open(os.path.join(model.source, path), encoding="utf-8") as stream:
            problems += forbidden_in_device_code(path, stream.read())
    return problems


def check_layers(model: Model) -> List[str]:
    """Needs point one way, and the framework never names a kernel."""
    problems = []
    rank = {name: index for index, name in enumerate(LAYERS)}
    framework = {r.name for r in model.of(records.Component)
                 if any(p.startswith("framework/") for p in r.sources + r.headers)}
    for name, component in sorted(model.components.items()):
        for need in component.needs:
            if name in rank and need in rank and rank[need] >= rank[name]:
                problems.append("component '%s' needs '%s', which stands above it" % (name, need))
            if name in framework and need not in framework:
                problems.append("component '%s' of framework/ needs '%s', which is outside"
                                % (name, need))
        for external in component.external:
            if external not in BY_NAME:
                problems.append("component '%s' names '%s', which gen/deps.py does not know"
                                % (name, external))
        if name in framework and name not in rank:
            problems.append("component '%s' has no place in gen/check.py's LAYERS" % name)
    return problems


def check_plan(plan: Plan) -> List[str]:
    """Every compile edge has deps = gcc, generators restat, links a pool and a response file."""
    problems = []
    rules = {rule.name: dict(rule.variables) for rule in plan.rules}
    for edge in plan.edges:
        rule = rules.get(edge.rule, {})
        shown = edge.outputs[0]
        if any(out.startswith(("/", "..")) for out in edge.outputs + edge.implicit_outputs):
            if edge.rule != "phony":
                problems.append("%s: an output outside the build directory" % shown)
        compiled = shown.endswith((".o", ".gch", ".fatbin"))
        if compiled and (rule.get("deps") != "gcc" or "depfile" not in rule):
            problems.append("%s: a compile edge without deps = gcc" % shown)
        if edge.rule in ("generate", "tool") and rule.get("restat") != "1":
            problems.append("%s: a generating edge without restat" % shown)
        if shown.endswith((".so", "_test", "_bench")) or ".so." in shown:
            if edge.rule == "link" and (rule.get("pool") != "link" or "rspfile" not in rule):
                problems.append("%s: a link without pool or response file" % shown)
            if edge.rule not in ("link", "symlink", "phony"):
                problems.append("%s: linked by the rule '%s'" % (shown, edge.rule))
    if "link" not in {name for name, _ in plan.pools}:
        problems.append("there is no pool for links")
    return problems


def unused_components(model: Model) -> List[str]:
    """A component with sources that no target takes up would silently not be built."""
    used: Set[str] = set()
    for record in model.records:
        used.update(getattr(record, "components", ()))
        if not isinstance(record, records.Component):
            used.update((getattr(record, "component", ""), getattr(record, "device_code", "")))
    return ["component '%s' has sources, but no target takes it up" % name
            for name in sorted(model.components) if model.sources[name] and name not in used]


def all_laws(model: Model) -> List[str]:
    return (check_layers(model) + unused_components(model) + check_includes(model)
            + check_device_code(model))
