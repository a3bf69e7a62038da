# SPDX-License-Identifier: Apache-2.0
"""Which Python interpreters the module is built for, and what configure asks them."""

import json
import os
import shutil
from typing import List, Sequence, Tuple

from gen.errors import ConfigureError
from gen.facts import DISTRIBUTION_PYTHON, Interpreter
from gen.options import Options
from gen.probe import Prober
from gen.toolchain import Toolchain

PYTHON_FACTS = """
import json, os, site, sys, sysconfig
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
searched = [p for p in site.getsitepackages() + sys.path if p]
print(json.dumps({
    'searched': sorted(set(searched) | {os.path.realpath(p) for p in searched}),
    'version': list(sys.version_info[:3]), 'implementation': sys.implementation.name,
    'ext_suffix': sysconfig.get_config_var('EXT_SUFFIX'),
    'soabi': sysconfig.get_config_var('SOABI'),
    'include': sysconfig.get_path('include'), 'platinclude': sysconfig.get_path('platinclude'),
    'free_threaded': bool(sysconfig.get_config_var('Py_GIL_DISABLED')),
    'deb_system': paths('deb_system'), 'posix_prefix': paths('posix_prefix'),
    'posix_local': paths('posix_local'),
    'pybind11': pybind, 'platform': sysconfig.get_platform(),
    'modules': [m for m in %r if has(m)],
}))
"""


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
        of = python.path or "the host system's Python"
        raise ConfigureError("Python.h of %s (%s) was not found in %s; %s"
                             % (of, python.version, python.facts["include"], hint))
    return tuple(include)
