#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks one component of a stack from inside: does it compute right, and is it the one that was
meant?

    stack-env python3 smoke/stack_check.py blas < components.json

Standard input holds {"instance": component, "needs": [components it stands on]} of the stack's
plan. Results are compared with sums and transforms written out here; the process's own memory map
says which libraries it really has. Exit status 0, or 1 with a sentence.
"""

from __future__ import annotations

import cmath
import contextlib
import ctypes
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import libraries  # noqa: E402  (the path must be set first)
import served  # noqa: E402


class Wrong(Exception):
    """What is not as it should be."""


# Which component a kind of library must come from; None: always from the distribution.
PROVIDERS = {"BLAS": "openblas", "HDF5": "hdf5", "FFTW": "fftw", "treenail": "treenail",
             "kernels": "treenail", "oneDNN": None}
DISTRIBUTION = ("/usr/lib", "/lib")
# What Fedora and RHEL link with; it opens the BLAS that the environment variable FLEXIBLAS names.
SWITCH = "libflexiblas"


def placed(kind: str, path: str, component: dict) -> None:
    """Refuses a library that is not where the plan has it."""
    prefix = component["prefix"] or component.get("module_root", "")
    if prefix and not os.path.realpath(path).startswith(os.path.realpath(prefix) + "/"):
        raise Wrong("%s is %s, but the plan %s %s" % (
            kind, path, "built it in" if component["prefix"] else "has its module in", prefix))
    if component["mode"] == "module" and not prefix and path.startswith(DISTRIBUTION):
        raise Wrong("%s is the distribution's %s, but the plan takes the module %s" % (
            kind, path, component["module"]))
    if component["mode"] == "package" and not path.startswith(DISTRIBUTION):
        raise Wrong("%s is %s, but the plan takes the distribution's" % (kind, path))


def versioned(component: dict, found: str) -> str:
    """Refuses a library that tells another version than the plan, which may have fewer numbers."""
    wanted = component["version"].split(".")
    if component["mode"] in ("build", "module") and component["version"] and (
            found.split(".")[:len(wanted)] != wanted):
        raise Wrong("it is version %s, but the plan has %s" % (
            found, component["module"] if component["mode"] == "module" else component["version"]))
    return found


def exported(lib: ctypes.CDLL, *names: str) -> None:
    """Refuses a library that lacks one of these functions."""
    missing = [name for name in names if not hasattr(lib, name)]
    if missing:
        raise Wrong("%s has no %s" % (lib._name, ", ".join(missing)))


def provenance(components: dict, needed: tuple) -> str:
    """Every library of those kinds in this process comes from where the plan says."""
    found, words = libraries.loaded(), []
    for kind, name in PROVIDERS.items():
        if kind in needed and not found[kind]:
            raise Wrong("no %s library is loaded; LD_LIBRARY_PATH is %s" % (
                kind, os.environ.get("LD_LIBRARY_PATH", "not set")))
        component = {"mode": "package", "prefix": ""} if name is None else components.get(name)
        words += ["%s %s" % (kind, path) for path in found[kind]]
        if component is not None and component["mode"] != "skip":
            behind = [path for path in found[kind] if SWITCH not in os.path.basename(path)]
            for path in behind or found[kind]:
                placed(kind, path, component)
    return ", ".join(words)


def under(components: dict, name: str) -> dict:
    """The components that this one really stands on: as the distribution's package it takes the
    distribution's HDF5, whose library has another name than the stack's."""
    if components[name]["mode"] != "package":
        return components
    return dict(components, hdf5={"mode": "package", "prefix": ""})


def library(*names: str) -> ctypes.CDLL:
    """The first of these that the loader finds."""
    reasons = []
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError as reason:
            reasons.append(str(reason))
    raise Wrong("; ".join(reasons))


def close(got: float, wanted: float, tolerance: float = 1e-12) -> bool:
    return abs(got - wanted) <= tolerance * max(1.0, abs(wanted))


def blas(components: dict) -> str:
    """A product of 33 x 47 and 47 x 29 numbers against sums written out; the build's target."""
    lib = library(*libraries.OPENBLAS, "libflexiblas.so.3", "libblas.so.3")
    exported(lib, "cblas_dgemm", "sgemm_", "dgesv_", "zheevd_")
    rows, inner, columns = 33, 47, 29
    random.seed(1)
    a = [[random.uniform(-1, 1) for _ in range(inner)] for _ in range(rows)]
    b = [[random.uniform(-1, 1) for _ in range(columns)] for _ in range(inner)]
    flat_a = (ctypes.c_double * (rows * inner))(*[x for row in a for x in row])
    flat_b = (ctypes.c_double * (inner * columns))(*[x for row in b for x in row])
    result = (ctypes.c_double * (rows * columns))()
    lib.cblas_dgemm(101, 111, 111, rows, columns, inner, ctypes.c_double(1), flat_a, inner, flat_b,
                    columns, ctypes.c_double(0), result, columns)
    for i in range(rows):
        for j in range(columns):
            wanted = sum(a[i][k] * b[k][j] for k in range(inner))
            if not close(result[i * columns + j], wanted):
                raise Wrong("a product of matrices has %r where the sum is %r" % (
                    result[i * columns + j], wanted))
    words = provenance(components, ("BLAS",))
    if hasattr(lib, "openblas_get_config"):  # another BLAS tells no version
        lib.openblas_get_config.restype = ctypes.c_char_p
        config = lib.openblas_get_config().decode()
        versioned(components["openblas"], config.split()[1])
        target = [f[len("TARGET="):] for f in components["openblas"]["flags"]
                  if f.startswith("TARGET=")]
        if target and target[0].upper() not in config.upper().replace("_", ""):
            raise Wrong("OpenBLAS says %r, but was to be built for %s" % (config, target[0]))
        words += "; " + config
    return words


def fft(components: dict) -> str:
    """Transforms of 1,024 numbers in both precisions against the sum that defines them."""
    count = 1024
    random.seed(2)
    values = [complex(random.uniform(-1, 1), random.uniform(-1, 1)) for _ in range(count)]
    turns = [cmath.exp(-2j * cmath.pi * k / count) for k in range(count)]
    for letter, real, tolerance in (("", ctypes.c_double, 1e-9), ("f", ctypes.c_float, 1e-2)):
        lib = library("libfftw3%s.so.3" % letter)
        exported(lib, *("fftw%s_%s" % (letter, name) for name in (
            "plan_many_dft", "plan_many_dft_r2c", "plan_many_dft_c2r", "export_wisdom_to_string")))
        if components["fftw"]["mode"] == "build":  # in the distribution's place for Fortran, too
            exported(lib, (letter or "d").replace("f", "s") + "fftw_plan_dft_1d_")
        # fftw-3.3.10-sse2-avx
        told = (ctypes.c_char * 16).in_dll(lib, "fftw%s_version" % letter).value.decode()
        versioned(components["fftw"], told.split("-")[1])
        flat = (real * (2 * count))(*[x for v in values for x in (v.real, v.imag)])
        result = (real * (2 * count))()
        plan = getattr(lib, "fftw%s_plan_dft_1d" % letter)
        plan.restype = ctypes.c_void_p
        handle = plan(count, flat, result, -1, 1 << 6)
        getattr(lib, "fftw%s_execute" % letter)(ctypes.c_void_p(handle))
        for k in range(0, count, 37):
            wanted = sum(v * turns[k * n % count] for n, v in enumerate(values))
            got = complex(result[2 * k], result[2 * k + 1])
            if abs(got - wanted) > tolerance * count ** 0.5:
                raise Wrong("fftw%s has %r at %d where the sum is %r" % (letter, got, k, wanted))
    return provenance(components, ("FFTW",))


C_PROGRAM = r"""
#include <hdf5.h>
#include <stdio.h>
#include <string.h>
/* write FILE: 6 numbers; read FILE DATASET: prints them; alone: the library's version */
int main(int count, char** words) {
  if (count == 1) {
    unsigned major, minor, release;
    if (H5get_libversion(&major, &minor, &release) < 0) return 1;
    return printf("%u.%u.%u", major, minor, release) < 0;
  }
  hsize_t shape[2] = {2, 3};
  double values[6] = {0.5, 1.5, 2.5, 3.5, 4.5, 5.5};
  if (count == 3 && !strcmp(words[1], "write")) {
    hid_t file = H5Fcreate(words[2], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(2, shape, NULL);
    hid_t set = H5Dcreate2(file, "x", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) return 1;
    return H5Dclose(set) < 0 || H5Sclose(space) < 0 || H5Fclose(file) < 0;
  }
  hid_t file = H5Fopen(words[2], H5F_ACC_RDONLY, H5P_DEFAULT);
  hid_t set = H5Dopen2(file, words[3], H5P_DEFAULT);
  if (H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) return 1;
  for (int i = 0; i < 6; ++i) printf("%.17g ", values[i]);
  return H5Fclose(file) < 0;
}
"""
VALUES = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]


def c_program(folder: str) -> str:
    """The program above, compiled with what pkg-config or the module's variables say."""
    source, program = os.path.join(folder, "hdf5.c"), os.path.join(folder, "hdf5")
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(C_PROGRAM)
    root, flags = os.environ.get("HDF5_DIR", ""), []
    if root:
        flags = ["-I%s/include" % root, "-L%s/lib" % root, "-Wl,-rpath,%s/lib" % root, "-lhdf5"]
    else:
        for module in ("hdf5", "hdf5-serial"):
            done = subprocess.run(["pkg-config", "--cflags", "--libs", module], check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            if done.returncode == 0:
                flags = done.stdout.decode().split() + ["-lhdf5"]
                break
    command = [os.environ.get("CC", "cc"), source, "-o", program, *flags]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise Wrong("%s:\n%s" % (" ".join(command), done.stdout.decode(errors="replace")))
    return program


def output(*command: str) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        raise Wrong("%s: exit status %d\n%s" % (" ".join(command), done.returncode, text))
    return text


def hdf5(components: dict) -> str:
    """A file goes from C to h5dump and back to C."""
    with tempfile.TemporaryDirectory() as folder:
        program, path = c_program(folder), os.path.join(folder, "c.h5")
        output(program, "write", path)
        read = [float(word) for word in output(program, "read", path, "x").split()]
        if read != VALUES:
            raise Wrong("C wrote %s and reads %s" % (VALUES, read))
        dumped = output("h5dump", "-d", "/x", path)
        if "( 2, 3 )" not in dumped or "3.5, 4.5, 5.5" not in dumped:
            raise Wrong("h5dump does not show what C wrote:\n" + dumped)
        linked, version = output("ldd", program), output(program)
    mine = [line.split()[2] for line in linked.splitlines() if "libhdf5" in line]
    for path in mine:
        placed("a C program's HDF5", path, components["hdf5"])
    folder = os.path.dirname(os.path.realpath(mine[0]))
    if not any(name.startswith("libhdf5") and "_hl.so" in name for name in os.listdir(folder)):
        raise Wrong("%s has no high-level library, which h5py needs" % folder)
    return "C and h5dump agree; %s; %s" % (versioned(components["hdf5"], version), ", ".join(mine))


def numpy(components: dict) -> str:
    """Products, solutions and singular values; the BLAS under them."""
    import numpy as np
    generator = np.random.RandomState(3)
    a, b = generator.standard_normal((60, 60)), generator.standard_normal((60, 5))
    wanted = [[sum(float(a[i, k]) * float(b[k, j]) for k in range(60)) for j in range(5)]
              for i in range(60)]
    if not np.allclose(a @ b, wanted, rtol=1e-12, atol=1e-12):
        raise Wrong("a product of matrices differs from the sums")
    if not np.allclose(a @ np.linalg.solve(a, b), b, atol=1e-8):
        raise Wrong("numpy.linalg.solve does not solve")
    u, s, v = np.linalg.svd(a)
    if not np.allclose((u * s) @ v, a, atol=1e-10):
        raise Wrong("the singular values do not give the matrix back")
    component = components["numpy"]
    versioned(component, np.__version__)
    if component["prefix"] and not np.__file__.startswith(component["prefix"] + "/"):
        raise Wrong("numpy is %s, but the plan built it in %s" % (np.__file__, component["prefix"]))
    return "numpy %s; %s" % (np.__version__, provenance(components, ("BLAS",)))


def scipy(components: dict) -> str:
    """A factorisation by LAPACK, on the same BLAS."""
    import numpy as np
    import scipy.linalg
    a = np.random.RandomState(4).standard_normal((40, 40))
    p, lower, upper = scipy.linalg.lu(a)
    if not np.allclose(p @ lower @ upper, a, atol=1e-12):
        raise Wrong("the factors do not give the matrix back")
    return "scipy %s; %s" % (versioned(components["scipy"], scipy.__version__),
                             provenance(components, ("BLAS",)))


def h5py(components: dict) -> str:
    """The library that runs is the one it was built with, and reads what C writes."""
    import h5py as module
    versioned(components["h5py"], module.__version__)
    runs = module.version.hdf5_version_tuple
    theirs = getattr(module.version, "hdf5_built_version_tuple", None)
    if theirs and tuple(theirs) != tuple(runs):
        raise Wrong("h5py was built with HDF5 %s and runs with %s" % (theirs, runs))
    with tempfile.TemporaryDirectory() as folder:
        program, path = c_program(folder), os.path.join(folder, "c.h5")
        output(program, "write", path)
        with module.File(path, "r") as file:
            if list(file["x"][...].reshape(-1)) != VALUES:
                raise Wrong("h5py reads %s of what C wrote" % file["x"][...])
        with module.File(path, "w") as file:
            file["y"] = [VALUES[:3], VALUES[3:]]
        if [float(w) for w in output(program, "read", path, "y").split()] != VALUES:
            raise Wrong("C does not read what h5py wrote")
    return "h5py %s, HDF5 %s; %s" % (module.__version__, ".".join(map(str, runs)),
                                     provenance(under(components, "h5py"), ("HDF5",)))


H5PY_PROGRAM = """
import sys
import h5py
with h5py.File(sys.argv[2], sys.argv[1]) as file:
    values = [float(word) for word in sys.argv[3:]]
    if values:
        file["x"] = [values[:3], values[3:]]
    print(*file["x"][...].reshape(-1))
"""


def round_trips(folder: str) -> str:
    """Between C, h5py and Treenail, each reads what the others write."""
    import numpy as np
    import treenail as tn
    program = c_program(folder)
    paths = {name: os.path.join(folder, name + ".h5") for name in ("C", "h5py", "Treenail")}
    output(program, "write", paths["C"])
    with tn.Graph().as_default(), tn.Session() as session:
        tn.Variable(tn.constant(np.reshape(VALUES, (2, 3))), name="x")
        session.run(tn.global_variables_initializer())
        tn.train.Saver().save(session, paths["Treenail"])
    # In a process of its own: the distribution's h5py brings the distribution's HDF5.
    there = subprocess.run([sys.executable, "-c", "import h5py"], stderr=subprocess.DEVNULL,
                           check=False).returncode == 0
    readers = {"C": lambda path: output(program, "read", path, "x").split(),
               "Treenail": lambda path: tn.train.load_checkpoint(
                   path, allow_foreign=True).get_tensor("x").reshape(-1)}
    if there:
        output(sys.executable, "-c", H5PY_PROGRAM, "w", paths["h5py"], *map(str, VALUES))
        readers["h5py"] = lambda path: output(
            sys.executable, "-c", H5PY_PROGRAM, "r", path).split()
    for reader, read in readers.items():
        for writer in readers:
            found = [float(word) for word in read(paths[writer])]
            if found != VALUES:
                raise Wrong("%s wrote %s and %s reads %s" % (writer, VALUES, reader, found))
    return "%s read what the others write" % ", ".join(sorted(readers))


def opened(components: dict, features: list) -> str:
    """The libraries under Treenail, of which it opens each when it is first needed. oneDNN is no
    component; whether there is to be one Treenail's build says."""
    needed = ["treenail", "kernels"] + [kind for kind, name in (
        ("HDF5", "hdf5"), ("BLAS", "openblas")) if name in components]
    if "onednn" in features:
        needed.append("oneDNN")
    return provenance(under(components, "treenail"), tuple(needed))


def treenail(components: dict) -> str:
    """A training on real digits, its checkpoint read by h5py, and the libraries of that process."""
    import models
    import train
    import treenail as tn
    component = components["treenail"]
    versioned(component, tn.__version__)
    if component["prefix"] and not tn.__file__.startswith(component["prefix"] + "/"):
        raise Wrong("treenail is %s, but the plan built it in %s" % (
            tn.__file__, component["prefix"]))
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        # Without HDF5 it has no checkpoints.
        kept = ["--checkpoint-dir", folder] if "hdf5" in components else []
        with contextlib.redirect_stdout(sys.stderr):  # what is said of it is said below
            reached = train.main(["mlp", "--quiet", "--report", report, *kept]) == 0
        if not reached:
            raise Wrong("the training did not reach %.2f" % models.NEEDED["mlp"])
        with open(report, encoding="utf-8") as stream:
            accuracy = json.load(stream)["accuracy"]
        read = "HDF5 is left out" if "hdf5" not in components else round_trips(folder)
    signal = tn.signal.rfft(tn.constant([1.0, 2.0, 3.0, 4.0]), [4])
    # Of this shape oneDNN computes it at every instruction set level, where it is there.
    sums = tn.nn.conv2d(tn.ones([2, 16, 16, 64]), tn.ones([1, 1, 64, 64]), [1, 1, 1, 1], "SAME")
    with tn.Session() as session:
        first = complex(session.run(signal)[0])
        low, high = session.run([tn.reduce_min(sums), tn.reduce_max(sums)])
    if abs(first - 10) > 1e-5:
        raise Wrong("the Fourier transform of 1 2 3 4 begins with %r" % first)
    if not low == high == 64:
        raise Wrong("a convolution whose results are all 64 has %r to %r" % (low, high))
    return "accuracy %.4f; %s; %s" % (
        accuracy, read, opened(components, tn.build_info()["features"]))


CHECKS = {check.__name__: check for check in (blas, fft, hdf5, numpy, scipy, h5py, treenail)}


def serves(component: dict) -> None:
    """Refuses directories for LD_LIBRARY_PATH in which the distribution's own libraries find less
    than they want."""
    words = component.get("environment", {}).get("LD_LIBRARY_PATH", {"values": []})
    for path, missed in served.unserved(words["values"])[:1]:
        raise Wrong("the distribution's %s finds in LD_LIBRARY_PATH libraries that do not serve "
                    "it: %s" % (path, "; ".join(missed[:3])))


def first_cause(reason: BaseException) -> BaseException:
    """NumPy tells a failed import in a page of advice."""
    while isinstance(reason, ImportError) and reason.__context__ is not None:
        reason = reason.__context__
    return reason


def main() -> int:
    """Runs one check; the exit status."""
    if len(sys.argv) != 2 or sys.argv[1] not in CHECKS:
        print(__doc__ + "\nchecks: " + ", ".join(CHECKS), file=sys.stderr)
        return 2
    given = json.load(sys.stdin)
    components = {c["name"]: c for c in given["needs"] + [given["instance"]]}
    try:
        said = CHECKS[sys.argv[1]](components)
        serves(given["instance"])
        print(said)
    except (Wrong, ImportError, OSError) as reason:
        print("%s: %s" % (given["instance"]["name"], first_cause(reason)), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
