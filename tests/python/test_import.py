# SPDX-License-Identifier: Apache-2.0
"""What importing the package does and does not do; who may import it."""

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

import treenail as tn
from treenail import _library


def run(program, **environment):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=120,
                          env=dict(os.environ, **environment))


def test_importing_is_frugal():
    result = run("""
        import os, sys
        import treenail as tn
        assert "numpy" not in sys.modules
        assert len(os.listdir("/proc/self/task")) == 1
        maps = open("/proc/self/maps").read()
        for name in ("adapters", "kernels", "blas", "hdf5", "dnnl"):
            assert "/" + name not in maps and "lib" + name not in maps, name
        tn.nn, tn.layers, tn.train, tn.losses, tn.errors, tn.float32, tn.Session, tn.placeholder
        x = tn.placeholder(tn.float32, [None, 3])
        tn.layers.dense(x, 4)
        assert "numpy" not in sys.modules
        """)
    assert result.returncode == 0, result.stderr


def test_a_python_without_numpy():
    """Graphs are built; the first array gets a sentence."""
    result = run("""
        import sys
        sys.modules["numpy"] = None
        import treenail as tn
        y = tn.placeholder(tn.float32, [3]) * 2.0
        try:
            with tn.Session() as session:
                session.run(y, {"Placeholder:0": [1.0, 2.0, 3.0]})
        except ImportError as error:
            print(error)
        """)
    assert result.stdout == (
        "arrays need NumPy, which %r cannot import (import of numpy halted; None in sys.modules); "
        "install it (Debian, Fedora: python3-numpy, PyPI: numpy)\n" % sys.executable), result


def explained(library_path):
    """What an import says where the dynamic linker finds libtreenail in that folder."""
    result = run("""
        try:
            import treenail
        except ImportError as error:
            assert error.__suppress_context__ and error.path.endswith(".so"), error.path
            print(error)
        """, LD_LIBRARY_PATH=str(library_path))
    said = result.stdout
    assert said.startswith("the Python module of Treenail %s (%s) needs the libtreenail of that "
                           "version; " % (tn.__version__, tn._core.__file__)), result
    number = tn.__version__.split(".")[0]
    assert said.endswith("; install both in one version (Debian: python3-treenail and "
                         "libtreenail%s, Fedora: python3-treenail and treenail-libs)\n" % number)
    return said


def test_a_libtreenail_of_another_version(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    name = "libtreenail.so." + tn.__version__.split(".")[0]
    (tmp_path / "stub.map").write_text("TREENAIL_1 { };\nTREENAIL_PRIVATE_0.0.7 { };\n")
    subprocess.run([compiler, "-shared", "-nostdlib", "-x", "c", "/dev/null", "-o",
                    str(tmp_path / name), "-Wl,-soname," + name,
                    "-Wl,--version-script=" + str(tmp_path / "stub.map")], check=True)
    said = explained(tmp_path)
    assert "; found is %s of version 0.0.7; the dynamic linker says: " % (tmp_path / name) in said
    assert "`TREENAIL_PRIVATE_%s' not found" % tn.__version__ in said


def test_a_libtreenail_that_is_none(tmp_path):
    (tmp_path / ("libtreenail.so." + tn.__version__.split(".")[0])).write_text("")
    assert "of version unknown; the dynamic linker says: " in explained(tmp_path)


def test_no_libtreenail(tmp_path):
    """A copy of the module that lies nowhere near a library."""
    package = tmp_path / "treenail"
    package.mkdir()
    for path in (tn.__file__, tn._core.__file__, _library.__file__):
        shutil.copy(path, str(package))
    result = run("import treenail", PYTHONPATH=str(tmp_path))
    if result.returncode == 0 or "circular" in result.stderr:
        pytest.skip("the system has a libtreenail")
    last = result.stderr.splitlines()[-1]
    assert last.startswith("ImportError: the Python module of Treenail %s (%s) needs" % (
        tn.__version__, package / os.path.basename(tn._core.__file__))), result.stderr
    assert "; the dynamic linker says: libtreenail.so." in last and "found is" not in last
    assert last.endswith("and treenail-libs)")


def test_another_import_error_stays():
    error = ImportError("treenail runs in the main interpreter only")
    assert _library.explained(error) is error


@pytest.mark.parametrize("said", [
    "libtreenail.so.1: failed to map segment from shared object",
    "libstdc++.so.6: cannot create shared object descriptor: Cannot allocate memory"])
def test_memory_that_is_short_is_no_missing_package(said):
    error = _library.explained(ImportError(said))
    assert type(error) is MemoryError
    assert str(error) == ("Treenail cannot be loaded: %s; the process is short of memory or of "
                          "address space (ulimit -v)" % said)


def test_sub_interpreters_are_refused():
    try:
        import _xxsubinterpreters  # noqa: F401
    except ImportError:
        pytest.skip("this Python has no _xxsubinterpreters")
    result = run("""
        import _xxsubinterpreters as interpreters
        import treenail
        inner = interpreters.create()
        interpreters.run_string(inner, '''
        try:
            import treenail
        except ImportError as error:
            print(error)
        '''.replace("        ", ""))
        """)
    assert "treenail runs in the main interpreter only" in result.stdout, result


def test_importing_again_gives_the_same():
    result = run("""
        import sys
        import treenail
        first = treenail._core.Tensor
        for name in [n for n in sys.modules if n.startswith("treenail")]:
            del sys.modules[name]
        import treenail
        assert treenail._core.Tensor is first
        print(treenail.Session().run(treenail.constant(3)))
        """)
    assert result.stdout.split() == ["3"], result.stderr


def test_what_the_package_tells_about_itself():
    info = tn.build_info()
    assert info["version"] == tn.__version__
    assert info["kernel_level"] in info["installed_kernel_levels"]
    assert info["num_threads"] >= 1 and set(info) >= {
        "build_id", "build_type", "machine", "isa_baseline", "kernel_levels", "features",
        "cpu_features"}
    text = repr(info)
    for path in (os.path.dirname(tn.__file__), os.path.expanduser("~")):
        assert path == "/" or path not in text


def test_every_level_that_runs_here_can_be_asked_for():
    for level in tn.build_info()["installed_kernel_levels"]:
        result = run("import treenail as tn; print(tn.build_info()['kernel_level'], "
                     "tn.Session().run(tn.constant(1.0) + 2.0))", TREENAIL_CPU_ISA=level)
        if result.returncode == 0:
            assert result.stdout.split() == [level, "3.0"]
        else:
            assert "FailedPreconditionError" in result.stderr


def test_an_unknown_level_is_a_sentence():
    result = run("import treenail as tn; tn.Session().run(tn.constant(1.0) + 2.0)",
                 TREENAIL_CPU_ISA="x87")
    assert result.returncode == 1 and "x87" in result.stderr and "Traceback" in result.stderr


def test_names():
    listed = dir(tn)
    for name in tn.__all__:
        assert name in listed and hasattr(tn, name)
    for name in ("matmul", "exp", "maximum", "nn", "float32", "zeros_initializer"):
        assert name in listed
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        tn.nothing
    assert tn.exp is tn.raw_ops.Exp and tn.math.exp is tn.exp and tn.sigmoid is tn.nn.sigmoid
    assert "log" in dir(tn.math)


def test_every_public_name_has_a_docstring():
    import types
    bare = []
    modules = [tn, tn.nn, tn.layers, tn.train, tn.losses, tn.errors, tn.initializers,
               tn.regularizers, tn.audio, tn.signal, tn.sparse, tn.spectral]
    for module in modules:
        for name in getattr(module, "__all__", None) or dir(module):
            if name.startswith("_"):
                continue
            value = getattr(module, name)
            if (isinstance(value, (type, types.FunctionType))
                    or type(value).__name__ == "PublicFunction") and not value.__doc__:
                bare.append(module.__name__ + "." + name)
            if isinstance(value, type) and value.__module__.startswith("treenail"):
                bare += ["%s.%s.%s" % (module.__name__, name, m) for m, f in vars(value).items()
                         if not m.startswith("_") and callable(f) and not f.__doc__
                         and name not in ("Tensor", "Operation")]
    assert bare == []


def test_a_public_name_comes_from_one_module():
    """Else the module that is imported last hides what the other meant."""
    origins = {}
    for name, module in sorted(vars(tn).items()):
        if name.startswith("_") and name != "_core" and hasattr(module, "__all__"):
            for public in module.__all__:
                origins.setdefault(public, []).append(name)
    assert len(origins) > 100
    assert {name: found for name, found in origins.items() if len(found) > 1} == {}


@pytest.mark.parametrize("name,value,said", [
    ("TREENAIL_NUM_THREADS", "abc", "needed is an integer from 1 to 1024"),
    ("TREENAIL_NUM_THREADS", "0", "needed is an integer from 1 to 1024"),
    ("TREENAIL_MEMORY_LIMIT", "much", "needed is a positive number of bytes"),
    ("TREENAIL_LIBRARY_DIR", "/nowhere", "needed is a directory in which kernels/ holds kernel")])
def test_a_wrong_environment_is_refused_at_once(name, value, said):
    result = run("import treenail", **{name: value})
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    kind = "NotFoundError" if value == "/nowhere" else "InvalidArgumentError"
    assert last.startswith('treenail.errors.%s: environment variable %s is "%s"; %s'
                           % (kind, name, value, said)), result.stderr


def test_a_wrong_level_of_log_is_said_at_once():
    result = run("import treenail", TREENAIL_LOG="loud")
    assert result.returncode == 0
    assert result.stderr.startswith('treenail warning: environment variable TREENAIL_LOG is "loud"')
