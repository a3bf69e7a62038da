# SPDX-License-Identifier: Apache-2.0
"""Where each file goes: installed directories, package metadata, and the manifest. Pure.

`ninja install` runs gen/tools/install.py on the manifest; the same files, moved below the package,
make the wheel (gen/tools/wheel.py).
"""

import json
import os
import shlex
from typing import Any, Dict, List, Tuple

from gen import records
from gen.errors import ConfigureError
from gen.options import DIRECTORIES, Options, expand_directory
from gen.plan import Context, Installed
from gen.facts import DISTRIBUTION_PYTHON, Facts, Interpreter

PKG_CONFIG = """prefix=%(prefix)s
exec_prefix=%(exec_prefix)s
libdir=%(libdir)s
includedir=%(includedir)s

Name: Treenail
Description: dataflow framework for machine learning
Version: %(version)s
Libs: -L${libdir} -ltreenail
Cflags: -I${includedir}
"""

CMAKE_CONFIG = """# Treenail::treenail is for programs, Treenail::headers for plugins, which
# link nothing. Paths are relative to this file.
# Links first: on a merged /usr, where /lib leads to /usr/lib, this file may be found through /lib.
get_filename_component(_treenail_here "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
get_filename_component(_treenail_libdir "${_treenail_here}/../.." ABSOLUTE)
get_filename_component(_treenail_includedir
                       "${_treenail_here}/%(include_from_cmake)s" ABSOLUTE)
if(NOT TARGET Treenail::treenail)
  add_library(Treenail::treenail SHARED IMPORTED)
  set_target_properties(Treenail::treenail PROPERTIES
    IMPORTED_LOCATION "${_treenail_libdir}/libtreenail.so.%(version)s"
    IMPORTED_SONAME "libtreenail.so.%(soversion)s"
    INTERFACE_INCLUDE_DIRECTORIES "${_treenail_includedir}")
  add_library(Treenail::headers INTERFACE IMPORTED)
  set_target_properties(Treenail::headers PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_treenail_includedir}")
endif()
unset(_treenail_here)
unset(_treenail_libdir)
unset(_treenail_includedir)
"""

CMAKE_VERSION = """# The major version is the ABI's; before 1.0 a minor version may break it, too.
set(PACKAGE_VERSION "%(version)s")
set(PACKAGE_VERSION_COMPATIBLE FALSE)
set(PACKAGE_VERSION_EXACT FALSE)
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
if(PACKAGE_FIND_VERSION_MAJOR EQUAL %(major)s
   AND NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  if(%(major)s GREATER 0 OR PACKAGE_FIND_VERSION_COUNT LESS 2
     OR PACKAGE_FIND_VERSION_MINOR EQUAL %(minor)s)
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
  endif()
endif()
"""

METADATA = """Metadata-Version: 2.1
Name: treenail
Version: %(version)s
Summary: A dataflow framework for machine learning that a distribution can ship
License: Apache-2.0
License-File: LICENSE
Requires-Python: >=3.9
Requires-Dist: numpy
"""


def metadata(version: str) -> str:
    return METADATA % {"version": version}


def default_libdir(prefix: str, facts: Facts) -> str:
    """With prefix /usr the directory of the distribution, else ${exec_prefix}/lib."""
    if prefix == "/usr" and facts.distro is not None:
        if facts.distro.family == "debian" and facts.multiarch:
            return "${exec_prefix}/lib/" + facts.multiarch
        if facts.distro.family == "fedora" and facts.machine in ("x86_64", "aarch64", "ppc64le",
                                                                 "s390x", "riscv64"):
            return "${exec_prefix}/lib64"
    return "${exec_prefix}/lib"


NAMING_A_PLACE = ("prefix", "exec-prefix", "libdir")


def names_a_place(options: Options) -> bool:
    """Do the options say where libraries go?"""
    return any(options.given(name) for name in NAMING_A_PLACE)


def normal(path: str) -> str:
    """normpath, but for the two slashes that POSIX lets stand at the beginning (--prefix=/)."""
    return os.path.normpath("/" + path.lstrip("/") if path.startswith("/") else path)


def directories(options: Options, facts: Facts) -> Dict[str, str]:
    """Every GNU directory, absolute. What is built alone goes beside the library that it is for,
    where nothing else is said: it is looked for there."""
    values = {name: options.get(name) for name, _, _ in DIRECTORIES}
    values["prefix"] = values["prefix"].rstrip("/") or "/"
    if facts.installed and not names_a_place(options):
        values["libdir"] = facts.installed.libdir
    if not values["libdir"]:
        values["libdir"] = default_libdir(values["prefix"], facts)
    result = {name: normal(expand_directory(name, values)) for name in values}
    for name, path in result.items():
        if not path.startswith("/"):
            raise ConfigureError("--%s=%s: it becomes %s, but an absolute directory is needed"
                                 % (name, options.get(name), path))
    return result


def python_directory(prefix: str, python: Interpreter) -> str:
    """The directory that the interpreter searches for packages of this prefix."""
    facts = python.facts
    if prefix == "/usr":
        return (facts["deb_system"] or facts["posix_prefix"]).replace("/BASE", "/usr")
    if prefix == "/usr/local" and facts["posix_local"]:
        return facts["posix_local"].replace("/BASE", "/usr")
    return normal(facts["posix_prefix"].replace("/BASE", prefix))


def is_searched(directory: str, python: Interpreter) -> bool:
    """Does the interpreter, by its own account, find packages there without PYTHONPATH?"""
    return directory in python.facts["searched"]


def distinct_pythons(options: Options, facts: Facts) -> Tuple[Interpreter, ...]:
    """Without those named twice: a build holds one module for each ABI tag."""
    prefix = directories(options, facts)["prefix"]
    kept: Dict[str, Interpreter] = {}
    for python in facts.pythons:
        tag = python.facts.get("soabi", "")
        first = kept.setdefault(tag, python)
        if python.facts and (python_directory(prefix, first), first.facts["include"]) != (
                python_directory(prefix, python), python.facts["include"]):
            raise ConfigureError(
                "--python=%s and --python=%s have one ABI tag, %s, but not the same packages or "
                "headers; give the second one a build directory of its own, with --build-dir" % (
                    first.path, python.path, tag))
    return tuple(kept.values())


def trusted_directories(facts: Facts) -> Tuple[str, ...]:
    """Where the dynamic linker looks without configuration or cache."""
    found = ["/lib", "/usr/lib", "/lib64", "/usr/lib64"]
    if facts.multiarch:
        found += ["/lib/" + facts.multiarch, "/usr/lib/" + facts.multiarch]
    return tuple(found)


SCRIPT = """#!%(first_lines)s
# SPDX-License-Identifier: Apache-2.0
# %(name)s: the function main of %(module)s.
import sys
%(path)sfrom %(module)s import main

sys.exit(main())
"""
# For an interpreter that does not look where the module is: beside this very program, as installed.
SCRIPT_PATH = """import os
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), %r))
"""


def first_lines(interpreter: str) -> str:
    """What follows #!. Where Linux would not take the path, a shell runs the interpreter: it sees a
    command, and Python a string."""
    if " " not in interpreter and len(interpreter) < 126:
        return interpreter
    return "/bin/sh\n'''exec' %s \"$0\" \"$@\"\n' '''" % shlex.quote(interpreter)


def script_text(context: Context, program: records.PythonProgram) -> str:
    """The installed program, for the first of the interpreters."""
    python = context.facts.pythons[0]
    places = directories(context.options, context.facts)
    packages = python_directory(places["prefix"], python)
    path = "" if is_searched(packages, python) else SCRIPT_PATH % (
        os.path.relpath(packages, places["bindir"]),)
    return SCRIPT % {"first_lines": first_lines(python.path or DISTRIBUTION_PYTHON),
                     "name": program.name, "module": program.module, "path": path}


def module_runpath(context: Context, python: Interpreter) -> str:
    """The installed module's run path: none where the linker finds libtreenail by itself."""
    places = directories(context.options, context.facts)
    if places["libdir"] in trusted_directories(context.facts):
        return ""
    start = os.path.join(python_directory(places["prefix"], python), "treenail")
    return "$ORIGIN/" + os.path.relpath(places["libdir"], start)


def program_runpath(context: Context) -> str:
    """The same for what lies in bindir."""
    places = directories(context.options, context.facts)
    if places["libdir"] in trusted_directories(context.facts):
        return ""
    return "$ORIGIN/" + os.path.relpath(places["libdir"], places["bindir"])


def shorten(path: str, directory_name: str, places: Dict[str, str]) -> str:
    """A path below a directory as ${directory}/..., so that the .pc file can be relocated."""
    base = places[directory_name.replace("_", "-")]
    if path == base:
        return "${%s}" % directory_name
    if path.startswith(base + "/") and base != "/":
        return "${%s}%s" % (directory_name, path[len(base):])
    return path


def text_files(context: Context, places: Dict[str, str]) -> Dict[str, str]:
    """Files that exist only to be installed; path in the build directory -> text."""
    version = context.model.version
    major, minor = version.split(".")[:2]
    cmake = os.path.join(places["libdir"], "cmake/Treenail")
    values = {
        "version": version, "major": major, "minor": minor, "soversion": context.soversion,
        "prefix": places["prefix"],
        "exec_prefix": shorten(places["exec-prefix"], "prefix", places),
        "libdir": shorten(places["libdir"], "exec_prefix", places),
        "includedir": shorten(places["includedir"], "prefix", places),
        "include_from_cmake": os.path.relpath(places["includedir"], cmake),
    }
    return {"gen/install/treenail.pc": PKG_CONFIG % values,
            "gen/install/treenail-config.cmake": CMAKE_CONFIG % values,
            "gen/install/treenail-config-version.cmake": CMAKE_VERSION % values,
            "gen/install/METADATA": metadata(version),
            "gen/install/INSTALLER": "ninja\n",
            **{"gen/install/" + program.name: script_text(context, program)
               for program in context.model.of(records.PythonProgram)
               if context.facts.pythons[0].facts}}


def _python_entries(context: Context, prefix: str) -> List[Dict[str, Any]]:
    entries: List[Dict[str, Any]] = []
    done = set()
    for python in context.facts.pythons:
        if not python.facts:
            continue
        base = python_directory(prefix, python)
        for kind, path, name, _ in context.install:
            if kind == "extension" and path.startswith("relinked/%s/" % python.facts["soabi"]):
                entries.append({"from": path, "to": "%s/treenail/%s" % (base, name),
                                "kind": "module", "package": "python"})
        if base in done:
            continue
        done.add(base)
        files = [(context.source(path), "treenail/" + name, "python")
                 for kind, path, name, _ in context.install if kind == "python"]
        info = "treenail-%s.dist-info/" % context.model.version
        files += [(path, info + os.path.basename(path), package) for path, package in (
            ("gen/install/METADATA", "python"), ("gen/install/INSTALLER", "python"),
            (context.source("LICENSE"), "license"))]
        entries += [{"from": path, "to": "%s/%s" % (base, name), "kind": "file",
                     "package": package} for path, name, package in files]
    return entries


def _placed(context: Context, places: Dict[str, str], item: Installed) -> Dict[str, Any]:
    """The entry of one file that is no Python package's."""
    kind, path, where, package = item
    libdir, name = places["libdir"], os.path.basename(path)
    if kind == "library":
        return {"from": path, "to": "%s/%s" % (libdir, name), "kind": "module",
                "package": "runtime"}
    if kind in ("soname", "link"):
        return {"target": "libtreenail.so." + context.model.version,
                "to": "%s/%s" % (libdir, name), "kind": "link",
                "package": "runtime" if kind == "soname" else "development"}
    if kind == "module":
        return {"from": path, "to": "%s/%s" % (where.replace("libdir", libdir, 1), name),
                "kind": "module", "package": package}
    if kind == "header":
        return {"from": context.source(path), "to": "%s/%s" % (places["includedir"], where),
                "kind": "file", "package": "development"}
    if kind in ("program", "script"):
        return {"from": path, "to": "%s/%s" % (places["bindir"], where),
                "kind": "module" if kind == "program" else "script", "package": package}
    folder = "%s/man%s" % (places["mandir"], where.rsplit(".", maxsplit=1)[-1])
    if kind == "completion":
        folder = places["datadir"] + "/bash-completion/completions"
    if kind == "unit":
        folder = places["prefix"] + "/lib/systemd/system"
    return {"from": context.source(path), "to": "%s/%s" % (folder, where), "kind": "file",
            "package": package}


def manifest(context: Context) -> str:
    """JSON: every file of the installation, and the directory that holds ours alone. Each says
    which part it belongs to: runtime, grpc, openmpi, mpich, development, tools, worker, python or
    license. Packages of distributions are made of these parts; cuda depends on what is not free."""
    places = directories(context.options, context.facts)
    libdir = places["libdir"]
    entries = [_placed(context, places, item) for item in context.install
               if item.kind not in ("python", "extension")]
    entries.append({"from": "gen/install/treenail.pc", "kind": "file", "package": "development",
                    "to": libdir + "/pkgconfig/treenail.pc"})
    # In small letters: find_package(Treenail) finds them, and find_package(treenail).
    for name in ("treenail-config.cmake", "treenail-config-version.cmake"):
        entries.append({"from": "gen/install/" + name, "kind": "file", "package": "development",
                        "to": "%s/cmake/Treenail/%s" % (libdir, name)})
    entries.append({"from": context.source("LICENSE"), "kind": "file", "package": "license",
                    "to": places["docdir"] + "/LICENSE"})
    entries += _python_entries(context, places["prefix"])
    return _manifest_text(context, places, entries)


def part_manifest(context: Context) -> str:
    """The same of a part that is built alone: its own files, and nothing of the library's."""
    places = directories(context.options, context.facts)
    return _manifest_text(context, places,
                          [_placed(context, places, item) for item in context.install])


def _manifest_text(context: Context, places: Dict[str, str],
                   entries: List[Dict[str, Any]]) -> str:
    entries.sort(key=lambda entry: str(entry["to"]))
    return json.dumps({"entries": entries, "prefix": places["prefix"],
                       "private": "%s/%s" % (places["libdir"], context.private)}, indent=1,
                      sort_keys=True) + "\n"


WHEEL = """Wheel-Version: 1.0
Generator: treenail %(version)s
Root-Is-Purelib: false
Tag: %(tag)s
Build: %(build)s
"""


def entry_points(context: Context) -> str:
    """From which pip makes the programs."""
    return "[console_scripts]\n" + "".join(
        "%s = %s:main\n" % (program.name, program.module)
        for program in context.model.of(records.PythonProgram))


def wheel(context: Context, python: Interpreter) -> Dict[str, Any]:
    """The same tree below the package: libraries in treenail/lib, headers in treenail/include."""
    facts = python.facts
    version = context.model.version
    abi = "cp%d%d" % tuple(facts["version"][:2])
    tag = "%s-%s-linux_%s" % (abi, abi, context.facts.machine)
    build = "0_" + context.facts.isa.baseline.name.replace("-", "_").replace(".", "_")
    entries: List[Dict[str, str]] = []
    for kind, path, where, _ in context.install:
        name = os.path.basename(path)
        if kind == "library":
            target = "treenail/lib/libtreenail.so." + context.soversion
        elif kind == "module":
            target = "treenail/" + where.replace("libdir", "lib", 1) + "/" + name
        elif kind == "header":
            target = "treenail/include/" + where
        elif kind == "python":
            target = "treenail/" + where
        elif kind == "extension" and path.startswith("relinked/%s/" % facts["soabi"]):
            path, target = "wheel-module/" + path.split("/", 1)[1], "treenail/" + name
        else:
            continue
        native = kind in ("library", "module", "extension")
        entries.append({"from": path if native else context.source(path), "to": target,
                        "kind": "module" if native else "file"})
    info = "treenail-%s.dist-info" % version
    entries.append({"from": context.source("LICENSE"), "to": info + "/LICENSE", "kind": "file"})
    entries.sort(key=lambda entry: entry["to"])
    return {"file": "treenail-%s-%s-%s.whl" % (version, build, tag), "entries": entries,
            "info": info,
            "texts": {"METADATA": metadata(version), "entry_points.txt": entry_points(context),
                      "WHEEL": WHEEL % {"version": version, "tag": tag, "build": build}}}


def plan_install(context: Context) -> None:
    for headers in context.model.of(records.Headers):
        for path in context.model.glob(headers.files):
            context.install.append(Installed("header", path, os.path.relpath(path, headers.root)))
    places = directories(context.options, context.facts)
    context.plan.files.update(text_files(context, places))
    context.plan.files["gen/install.json"] = manifest(context)
    wheels = [wheel(context, python) for python in context.facts.pythons if python.facts]
    context.plan.files["gen/wheel.json"] = json.dumps(wheels, indent=1, sort_keys=True) + "\n"
