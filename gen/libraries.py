# SPDX-License-Identifier: Apache-2.0
"""How one library is found: by pkg-config, else by its usual name, and by linking a program."""

from typing import List, Sequence, Tuple

from gen.deps import Dependency
from gen.distro import Distro
from gen.facts import External
from gen.probe import Prober, split_words
from gen.toolchain import Toolchain


def pkg_config(prober: Prober, program: Sequence[str], modules: str, minimum: str = "") -> External:
    """Ask pkg-config for one set of modules ('jpeg png' is both)."""
    names = modules.split()
    status, out, err = prober.run(list(program) + ["--cflags"] + names)
    if status == 127:
        return External(False, why_not="%s was not found" % program[0], asked=False)
    if status != 0:
        return External(False, why_not="pkg-config does not know %s" % " or ".join(names))
    cflags = split_words(out)
    _, out, _ = prober.run(list(program) + ["--libs"] + names)
    libs = split_words(out)
    _, version, _ = prober.run(list(program) + ["--modversion"] + names)
    version = version.split()[0] if version.split() else ""
    if minimum and version_tuple(version) < version_tuple(minimum):
        return External(False, version=version,
                        why_not="version %s is there, %s or later is needed" % (version, minimum))
    return External(True, tuple(cflags), tuple(libs), version, "pkg-config " + modules)


def version_tuple(text: str) -> Tuple[int, ...]:
    numbers = []
    for part in text.replace("+", ".").replace("-", ".").split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


# Including some of these headers takes a second; whether they exist is what matters.
HEADER_PROGRAM = """#if !__has_include(<%s>)
#error no such header: %s
#endif
int main() { return 0; }
"""


def find_library(prober: Prober, tools: Toolchain, program: Sequence[str],
                 dep: Dependency) -> External:
    """One library by pkg-config, else by its usual name; its header must exist and it must link."""
    result = External(False, why_not="not found")
    for modules in dep.modules:
        result = pkg_config(prober, program, modules, dep.minimum)
        if result.found or result.version:
            break
    asked, why = result.asked, result.why_not
    if not result.found and not result.version and dep.libs:
        result = External(True, (), dep.libs, "", " ".join(dep.libs))
    if result.found and dep.header:
        ok, err = tools.links(HEADER_PROGRAM % (dep.header, dep.header),
                              list(result.cflags) + list(result.libs))
        if not ok:
            reason = "<%s> is not there" % dep.header
            if "no such header" not in err:
                reason = "a program does not link with %s: %s" % (" ".join(result.libs), err)
            if not asked:
                reason = "%s, and %s" % (why, reason)
            result = External(False, version=result.version, why_not=reason, asked=asked)
    return result


LAPACK_PROGRAM = """
extern "C" void dgetrf_(const int*, const int*, double*, const int*, int*, int*);
int main() {
  int n = 1, pivot = 0, info = 1;
  double a = 2;
  dgetrf_(&n, &n, &a, &n, &pivot, &info);
  return info;
}
"""


def find_lapack(tools: Toolchain, blas: External) -> External:
    """LAPACK beside the BLAS that was chosen: FlexiBLAS and OpenBLAS hold their own; where the BLAS
    is the distribution's switchable one, so is LAPACK, whose name is linked even if today's BLAS
    holds it."""
    if not blas.found:
        return External(False, why_not="it needs a BLAS")
    whole = any(name in blas.libs for name in ("-lflexiblas", "-lopenblas"))
    libs = blas.libs if whole else ("-llapack",) + blas.libs
    ok, err = tools.links(LAPACK_PROGRAM, list(libs))
    if ok:
        return External(True, (), libs, "", " ".join(libs))
    return External(False, why_not="a program does not link with %s: %s" % (" ".join(libs), err))


def install_hint(distro: Distro, result: External, name: str, kind: str = "") -> str:
    """What to install for a library that was not found: pkg-config first, without which one that
    is there may not be found."""
    return distro.install_hint(name, kind) if result.asked else distro.install_hint("pkg-config")


BLAS_PROGRAM = """
#include <cblas.h>
int main() {
  float x[1] = {1}, y[1] = {2};
  return cblas_sdot(1, x, 1, y, 1) == 2 ? 0 : 1;
}
"""


def find_blas(prober: Prober, tools: Toolchain, program: Sequence[str], choice: str,
              triplet: str) -> External:
    """CBLAS by the distribution's switchable library first, then by a named one."""
    flexi = ("-lflexiblas",)
    generic = [("libblas", ("-lblas",)), ("libcblas and libblas", ("-lcblas", "-lblas"))]
    candidates: List[Tuple[str, str, Tuple[str, ...]]] = []
    if choice in ("auto", "flexiblas"):
        candidates.append(("flexiblas", "flexiblas", flexi))
    if choice in ("auto", "generic"):
        candidates += [("generic", "", libs) for _, libs in generic]
    if choice in ("auto", "openblas"):
        candidates.append(("openblas", "openblas", ("-lopenblas",)))
    if choice in ("auto", "blis"):
        candidates.append(("blis", "blis", ("-lblis",)))
    include = ["-I/usr/include/" + triplet] if triplet else []
    why, answers = "", True
    for name, module, libs in candidates:
        cflags: Tuple[str, ...] = ()
        if module:
            asked = pkg_config(prober, program, module)
            if asked.found:
                cflags, libs = asked.cflags, asked.libs
            elif not asked.asked:
                why, answers = "; " + asked.why_not, False
        for extra in ([], include):
            ok, err = tools.links(BLAS_PROGRAM, list(cflags) + extra + list(libs))
            if ok:
                return External(True, cflags + tuple(extra), libs, "",
                                "%s (%s)" % (name, " ".join(libs)))
            if module and asked.found:
                why = "; pkg-config knows %s, but: %s" % (module, err)
    return External(False, why_not="no CBLAS of kind '%s' compiles and links%s" % (choice, why),
                    asked=answers)
