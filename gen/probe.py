# SPDX-License-Identifier: Apache-2.0
"""Facts about the machine: compiler, libraries, interpreters. The only module that runs processes.

Every process is written to build/gen/configure.log, and successful results are kept in
build/gen/probe.json under a key of command, input, environment, the program's identity and the
package manager's last change, so that configuring again costs nothing and never believes old news.
What the probes found becomes one record (facts.py); plan decides from that record alone.
"""

import hashlib
import json
import os
import shlex
import shutil
import subprocess
from typing import Any, Dict, List, Sequence, Set, Tuple

from gen import distro as distros
from gen.deps import Dependency
from gen.errors import ConfigureError
from gen.facts import DISTRIBUTION_PYTHON, Compiler, External, Interpreter
from gen.options import Options

PACKAGE_DATABASES = ("/var/lib/dpkg/status", "/var/lib/rpm/rpmdb.sqlite",
                     "/usr/lib/sysimage/rpm/rpmdb.sqlite")

PYTHON_FACTS = """
import json, site, sys, sysconfig
names = sysconfig.get_scheme_names()
def paths(scheme):
    keep = {'base': '/BASE', 'platbase': '/BASE', 'installed_base': '/BASE'}
    return sysconfig.get_path('platlib', scheme, vars=keep) if scheme in names else ''
try:
    import pybind11
    pybind = pybind11.get_include()
except ImportError:
    pybind = ''
def has(name):
    import importlib.util
    return importlib.util.find_spec(name) is not None
print(json.dumps({
    'version': list(sys.version_info[:3]), 'implementation': sys.implementation.name,
    'ext_suffix': sysconfig.get_config_var('EXT_SUFFIX'),
    'soabi': sysconfig.get_config_var('SOABI'),
    'include': sysconfig.get_path('include'), 'platinclude': sysconfig.get_path('platinclude'),
    'free_threaded': bool(sysconfig.get_config_var('Py_GIL_DISABLED')),
    'deb_system': paths('deb_system'), 'posix_prefix': paths('posix_prefix'),
    'posix_local': paths('posix_local'),
    'own_prefix': sys.prefix, 'own_platlib': sysconfig.get_path('platlib'),
    'pybind11': pybind, 'platform': sysconfig.get_platform(),
    'modules': [m for m in %r if has(m)],
}))
"""


class Prober:
    """Runs processes for configure: logged, memoised, with one environment."""

    def __init__(self, build: str, options: Options, use_cache: bool = True):
        self.options = options
        self.directory = os.path.join(build, "gen")
        os.makedirs(self.directory, exist_ok=True)
        self.log = open(os.path.join(self.directory, "configure.log"), "w", encoding="utf-8")
        self.cache_path = os.path.join(self.directory, "probe.json")
        self.environment = dict(os.environ, LC_ALL="C")
        for name in ("PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR"):
            self.environment.pop(name, None)
            if options.env(name):
                self.environment[name] = options.env(name)
        self.cache: Dict[str, Any] = {}
        self.used: Dict[str, Any] = {}
        if use_cache:
            try:
                with open(self.cache_path, encoding="utf-8") as stream:
                    self.cache = json.load(stream)
            except (OSError, ValueError):
                self.cache = {}
        self.world = [_identity(path) for path in PACKAGE_DATABASES]

    def say(self, text: str) -> None:
        self.log.write(text + "\n")

    def run(self, command: Sequence[str], stdin: str = "") -> Tuple[int, str, str]:
        """(exit status, stdout, stderr); status 127 where the program does not exist."""
        programs = [_identity(shutil.which(word) or word) for word in command[:2]]
        key = hashlib.sha256(json.dumps(
            [list(command), stdin, programs, self.world,
             [self.environment.get(n, "") for n in sorted(self.environment)
              if n.startswith("PKG_CONFIG")]]).encode()).hexdigest()
        self.say("$ " + shlex.join(command) + ("" if not stdin else "  <<'END'\n%s\nEND" % stdin))
        if key in self.cache:
            status, out, err = self.cache[key]
            self.say("[remembered]")
        else:
            try:
                done = subprocess.run(list(command), input=stdin, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, env=self.environment,
                                      universal_newlines=True, timeout=120)
                status, out, err = done.returncode, done.stdout, done.stderr
            except OSError as error:
                status, out, err = 127, "", str(error)
            except subprocess.TimeoutExpired:
                status, out, err = 124, "", "no answer within 120 s"
        if status == 0:
            self.used[key] = [status, out, err]
        if out.strip() and len(out) < 4000:
            self.say(out.rstrip())
        if err.strip():
            self.say(err.rstrip()[:4000])
        self.say("-> %d\n" % status)
        return status, out, err

    def finish(self) -> None:
        text = json.dumps(self.used, sort_keys=True)
        with open(self.cache_path + ".new", "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(self.cache_path + ".new", self.cache_path)
        self.log.close()


def _identity(path: str) -> List[Any]:
    try:
        status = os.stat(path)
        return [os.path.realpath(path), int(status.st_mtime), status.st_size]
    except OSError:
        return [path]


def _words(text: str) -> List[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ConfigureError("cannot split '%s' into words: %s" % (text, error))


def _fails_to_compile(command: Sequence[str], err: str, log: str) -> str:
    last = [line for line in err.strip().splitlines() if line.strip()]
    shown = next((line for line in last if "error" in line), last[-1] if last else "no message")
    return ("the compiler '%s' cannot compile a small program: %s (the whole exchange is in %s)"
            % (" ".join(command), shown.strip(), log))


class Toolchain:
    """Compiler questions: identity, macros, accepted flags, compile and link probes."""

    def __init__(self, prober: Prober, options: Options, triplet: str, distro: distros.Distro):
        self.prober = prober
        self.options = options
        prefix = triplet + "-" if triplet else ""
        self.cxx = _words(options.env("CXX")) or [prefix + "g++"]
        self.cc = _words(options.env("CC")) or self.cxx[:-1] + [
            self._matching_cc(prefix)]
        self.cppflags = _words(options.env("CPPFLAGS"))
        self.cxxflags = _words(options.env("CXXFLAGS"))
        self.cflags = _words(options.env("CFLAGS"))
        self.ldflags = _words(options.env("LDFLAGS"))
        self.distro = distro
        self.triplet = triplet
        self.log = os.path.join(prober.directory, "configure.log")

    def _matching_cc(self, prefix: str) -> str:
        """The C compiler beside the C++ compiler, so that CXX alone selects both."""
        last = self.cxx[-1]
        folder, name = os.path.split(last)
        if "clang++" in name:
            return os.path.join(folder, name.replace("clang++", "clang"))
        if "g++" in name:
            return os.path.join(folder, name.replace("g++", "gcc"))
        return prefix + "gcc"

    def examine(self) -> Tuple[Compiler, Compiler, Set[str]]:
        for flag in self.cxxflags + self.cflags:
            if flag in ("-ffast-math", "-Ofast", "-funsafe-math-optimizations"):
                raise ConfigureError(
                    "CFLAGS/CXXFLAGS hold %s: results must not depend on such licence, and it "
                    "changes the floating point of the whole process; remove it" % flag)
        status, _, err = self.prober.run(self.cxx + ["--version"])
        if status == 127:
            hint = self.distro.install_hint("c++")
            if self.triplet and not self.options.env("CXX"):
                hint = "a cross compiler is needed; Debian's package is g++-" + (
                    self.triplet.replace("_", "-"))
            raise ConfigureError("the C++ compiler '%s' was not found; %s"
                                 % (" ".join(self.cxx), hint))
        status, out, err = self.prober.run(
            self.cxx + self.cppflags + self.cxxflags
            + ["-std=c++20", "-dM", "-E", "-x", "c++", "-"])
        if status != 0:
            raise ConfigureError(_fails_to_compile(self.cxx, err, self.log))
        macros = {}
        for line in out.splitlines():
            words = line.split(" ", 2)
            if len(words) >= 2 and words[0] == "#define":
                macros[words[1]] = words[2] if len(words) == 3 else ""
        family, version = self._family(macros)
        program = "#include <version>\n#include <concepts>\nint main() { return 0; }\n"
        ok, err = self.links(program, [])
        if not ok:
            raise ConfigureError(_fails_to_compile(self.cxx, err, self.log))
        status, triplet, _ = self.prober.run(self.cxx + ["-dumpmachine"])
        status_c, _, err = self.prober.run(
            self.cc + self.cppflags + self.cflags + ["-dM", "-E", "-x", "c", "-"])
        if status_c != 0:
            raise ConfigureError(_fails_to_compile(self.cc, err, self.log))
        cxx = Compiler(tuple(self.cxx), family, version, triplet.strip())
        return Compiler(tuple(self.cc), family, version, triplet.strip()), cxx, set(macros)

    def _family(self, macros: Dict[str, str]) -> Tuple[str, str]:
        if "__clang__" in macros:
            family = "clang"
            version = "%s.%s" % (macros["__clang_major__"], macros["__clang_minor__"])
        elif "__GNUC__" in macros:
            family, version = "gcc", "%s.%s" % (macros["__GNUC__"], macros["__GNUC_MINOR__"])
        else:
            raise ConfigureError("'%s' is neither GCC nor Clang" % " ".join(self.cxx))
        least = 11 if family == "gcc" else 14
        if int(version.split(".")[0]) < least:
            raise ConfigureError("'%s' is %s %s; %d or later is needed"
                                 % (" ".join(self.cxx), family, version, least))
        return family, version

    def machine(self, macros: Set[str], triplet: str) -> str:
        if "__x86_64__" in macros:
            return "x86_64"
        if "__aarch64__" in macros:
            return "aarch64"
        return triplet.split("-")[0] or "unknown"

    def links(self, program: str, flags: Sequence[str]) -> Tuple[bool, str]:
        command = self.cxx + self.cppflags + self.cxxflags + [
            "-std=c++20", "-x", "c++", "-", "-x", "none"] + self.ldflags + list(flags)
        status, _, err = self.prober.run(command + ["-o", "/dev/null"], program)
        return status == 0, err

    def compiles(self, program: str, flags: Sequence[str]) -> Tuple[bool, str]:
        status, _, err = self.prober.run(
            self.cxx + self.cppflags + self.cxxflags + ["-std=c++20"] + list(flags)
            + ["-fsyntax-only", "-x", "c++", "-"], program)
        return status == 0, err

    def accepts(self, flags: Sequence[str]) -> bool:
        status, _, err = self.prober.run(
            self.cxx + ["-Werror"] + list(flags) + ["-c", "-x", "c++", "-", "-o", "/dev/null"],
            "int probe;\n")
        return status == 0

    def accepted(self, candidates: Sequence[str]) -> Tuple[str, ...]:
        """The flags the compiler takes; one process when it takes them all."""
        if self.accepts(candidates):
            return tuple(candidates)
        return tuple(flag for flag in candidates if self.accepts([flag]))


def pkg_config(prober: Prober, program: Sequence[str], modules: str, minimum: str = "") -> External:
    """Ask pkg-config for one set of modules ('fftw3f fftw3' is both)."""
    names = modules.split()
    status, out, err = prober.run(list(program) + ["--cflags"] + names)
    if status == 127:
        return External(False, why_not="pkg-config was not found")
    if status != 0:
        return External(False, why_not="pkg-config does not know %s" % " or ".join(names))
    cflags = _words(out)
    _, out, _ = prober.run(list(program) + ["--libs"] + names)
    libs = _words(out)
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
    if not result.found and not result.version and dep.libs:
        result = External(True, (), dep.libs, "", " ".join(dep.libs))
    if result.found and dep.header:
        ok, err = tools.links(HEADER_PROGRAM % (dep.header, dep.header),
                              list(result.cflags) + list(result.libs))
        if not ok:
            reason = "<%s> is not there" % dep.header
            if "no such header" not in err:
                reason = "a program does not link with %s" % " ".join(result.libs)
            result = External(False, version=result.version, why_not=reason)
    return result


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
    for name, module, libs in candidates:
        cflags: Tuple[str, ...] = ()
        if module:
            asked = pkg_config(prober, program, module)
            if asked.found:
                cflags, libs = asked.cflags, asked.libs
        for extra in ([], include):
            ok, _ = tools.links(BLAS_PROGRAM, list(cflags) + extra + list(libs))
            if ok:
                return External(True, cflags + tuple(extra), libs, "",
                                "%s (%s)" % (name, " ".join(libs)))
    return External(False, why_not="no CBLAS of kind '%s' compiles and links" % choice)


def find_python(prober: Prober, path: str, why: str, needed: Sequence[str]) -> Interpreter:
    status, out, err = prober.run([path, "-I", "-c", PYTHON_FACTS % (list(needed),)])
    try:
        facts = json.loads(out) if status == 0 else None
    except ValueError:
        facts = None
    if facts is None:
        message = (err.strip().splitlines() or ["it gives no sensible answer"])[-1]
        raise ConfigureError("--python=%s: it does not run as a Python interpreter: %s"
                             % (path, message))
    version = ".".join(map(str, facts["version"]))
    if facts["implementation"] != "cpython" or facts["free_threaded"]:
        raise ConfigureError("--python=%s: it is %s %s%s; the module needs CPython with the global "
                             "interpreter lock" % (path, facts["implementation"], version,
                                                   " (free-threaded)" if facts["free_threaded"]
                                                   else ""))
    if facts["version"] < [3, 9]:
        raise ConfigureError("--python=%s: it is %s; 3.9 or later is needed" % (path, version))
    return Interpreter(path, why, facts)


def choose_pythons(prober: Prober, options: Options, needed: Sequence[str]) -> List[Interpreter]:
    if options.pythons:
        found = []
        for name in options.pythons:
            path = shutil.which(name)
            if path is None:
                raise ConfigureError("--python=%s: there is no such program" % name)
            found.append(find_python(prober, path, "--python", needed))
        return found
    if os.access(DISTRIBUTION_PYTHON, os.X_OK):
        return [find_python(prober, DISTRIBUTION_PYTHON, "the distribution's", needed)]
    path = shutil.which("python3")
    if path is None:
        raise ConfigureError("no /usr/bin/python3 and no python3 in PATH; name one with --python")
    return [find_python(prober, path, "first in PATH, for there is no " + DISTRIBUTION_PYTHON,
                        needed)]


def python_headers(prober: Prober, tools: Toolchain, python: Interpreter,
                   hint: str) -> Tuple[str, ...]:
    include = ["-isystem", python.facts["include"]]
    if python.facts["platinclude"] != python.facts["include"]:
        include += ["-isystem", python.facts["platinclude"]]
    ok, _ = tools.compiles("#include <Python.h>\nint main() { return 0; }\n", include)
    if not ok:
        raise ConfigureError("Python.h of %s (%s) was not found in %s; %s"
                             % (python.path, python.version, python.facts["include"], hint))
    return tuple(include)


def memory_mib() -> int:
    """Memory that link jobs may count on: the machine's, below the cgroup's limit."""
    found = 2048
    try:
        with open("/proc/meminfo", encoding="ascii") as stream:
            for line in stream:
                if line.startswith("MemTotal:"):
                    found = int(line.split()[1]) // 1024
    except (OSError, ValueError):
        pass
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path, encoding="ascii") as stream:
                text = stream.read().strip()
            if text.isdigit():
                found = min(found, int(text) >> 20)
        except OSError:
            continue
    return found
