# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms in one library. Arguments: treenail, fftw, numpy, scipy or torch; threads.

FFTW is called through ctypes with plans that it measured, each within two seconds; its results go
into one array, over and over.
"""

import ctypes
import os
import sys
from dataclasses import dataclass
from typing import Any, Callable, Tuple

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402


@dataclass(frozen=True)
class Transform:
    """Over the last axes of an array of this shape; a real one gives the half spectrum."""

    shape: Tuple[int, ...]
    axes: int = 1
    real: bool = False
    double: bool = False

    @property
    def title(self) -> str:
        lengths = "x".join(str(n) for n in self.shape[-self.axes:])
        batch = self.shape[:-self.axes]
        return "%s%s, %s %s" % ("%d of " % batch[0] if batch else "", lengths,
                                "real" if self.real else "complex",
                                "float64" if self.double else "float32")

    def inputs(self) -> Any:
        import numpy as np
        random = np.random.RandomState(3)
        x = random.standard_normal(self.shape)
        if not self.real:
            x = x + 1j * random.standard_normal(self.shape)
        names = ("float32", "float64") if self.real else ("complex64", "complex128")
        return x.astype(names[self.double])


# Powers of two, products of 3, 5 and 7, primes: in batches and alone.
SHAPES = [((65536, 8), 1), ((16384, 64), 1), ((4096, 256), 1), ((1024, 1024), 1), ((128, 8192), 1),
          ((1 << 16,), 1), ((1 << 20,), 1), ((1 << 22,), 1),
          ((8192, 105), 1), ((64, 8505), 1), ((1134000,), 1),
          ((8192, 101), 1), ((1024, 1009), 1), ((65537,), 1), ((1000003,), 1),
          ((64, 64, 64), 2), ((512, 512), 2), ((2048, 2048), 2), ((64, 64, 64), 3),
          ((128, 128, 128), 3)]
TRANSFORMS = [Transform(shape, axes, real, double) for double in (False, True)
              for real in (False, True) for shape, axes in SHAPES]
BY_TITLE = {transform.title: transform for transform in TRANSFORMS}


def treenail(threads: int) -> Tuple[str, Callable[[Transform], Callable[[], Any]]]:
    import treenail as tn
    session = tn.Session(config=tn.ConfigProto(intra_op_parallelism_threads=threads))

    def call_of(work: Transform) -> Callable[[], Any]:
        x = tn.Variable(work.inputs())
        name = ("R" if work.real else "") + "FFT" + ("" if work.axes == 1 else "%dD" % work.axes)
        more = {}
        if work.real:
            more = {"fft_length": list(work.shape[-work.axes:]),
                    "Tcomplex": "complex128" if work.double else "complex64"}
        fetched = getattr(tn.raw_ops, name)(tn.identity(x), **more)
        session.run(x.initializer)
        return lambda: session.run(fetched)

    return tn.__version__, call_of


def fftw(threads: int) -> Tuple[str, Callable[[Transform], Callable[[], Any]]]:
    import numpy as np
    measure = 0
    libraries = {}
    for double, letter in ((False, "f"), (True, "")):
        try:
            lib = ctypes.CDLL("libfftw3%s_threads.so.3" % letter, ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise ImportError(str(error)) from None
        libraries[double] = lib, "fftw%s_" % letter
        plain = ctypes.CDLL("libfftw3%s.so.3" % letter)
        getattr(lib, "fftw%s_init_threads" % letter)()
        getattr(lib, "fftw%s_plan_with_nthreads" % letter)(threads)
        getattr(plain, "fftw%s_set_timelimit" % letter)(ctypes.c_double(2.0))

    def call_of(work: Transform) -> Callable[[], Any]:
        lib, prefix = libraries[work.double]
        given = work.inputs()
        x = np.empty_like(given)
        n, half = work.shape[-work.axes:], work.shape[-1] // 2 + 1
        y = np.empty(work.shape[:-1] + (half if work.real else work.shape[-1],),
                     "complex128" if work.double else "complex64")
        batch = int(np.prod(work.shape[:-work.axes]))
        source, target = (ctypes.c_void_p(array.ctypes.data) for array in (x, y))
        arguments = [work.axes, (ctypes.c_int * work.axes)(*n), batch, source, None, 1,
                     x.size // batch, target, None, 1, y.size // batch]
        make = getattr(lib, prefix + "plan_many_dft" + ("_r2c" if work.real else ""))
        make.restype = ctypes.c_void_p
        plan = ctypes.c_void_p(make(*arguments, *([] if work.real else [-1]), measure))
        x[...] = given  # measuring overwrites it
        execute = getattr(lib, prefix + "execute")

        def transform() -> Any:
            execute(plan)
            return y

        transform.keeps = x  # type: ignore[attr-defined]
        return transform

    version = (ctypes.c_char * 16).in_dll(libraries[False][0], "fftwf_version").value
    return version.decode(), call_of


def numpy(threads: int) -> Tuple[str, Callable[[Transform], Callable[[], Any]]]:
    import numpy as np

    def call_of(work: Transform) -> Callable[[], Any]:
        x, axes = work.inputs(), tuple(range(-work.axes, 0))
        transform = np.fft.rfftn if work.real else np.fft.fftn
        return lambda: transform(x, axes=axes)

    return np.__version__, call_of


def scipy(threads: int) -> Tuple[str, Callable[[Transform], Callable[[], Any]]]:
    import scipy.fft

    def call_of(work: Transform) -> Callable[[], Any]:
        x, axes = work.inputs(), tuple(range(-work.axes, 0))
        transform = scipy.fft.rfftn if work.real else scipy.fft.fftn
        return lambda: transform(x, axes=axes, workers=threads)

    return scipy.__version__, call_of


def torch(threads: int) -> Tuple[str, Callable[[Transform], Callable[[], Any]]]:
    import torch as library
    library.set_num_threads(threads)

    def call_of(work: Transform) -> Callable[[], Any]:
        x, axes = library.from_numpy(work.inputs()), tuple(range(-work.axes, 0))
        transform = library.fft.rfftn if work.real else library.fft.fftn
        return lambda: transform(x, dim=axes)

    return library.__version__, call_of


LIBRARIES = {"treenail": treenail, "fftw": fftw, "numpy": numpy, "scipy": scipy, "torch": torch}


def main() -> None:
    try:
        version, call_of = LIBRARIES[sys.argv[1]](int(sys.argv[2]))
    except ImportError as error:
        harness.serve({"absent": str(error)}, lambda request: {})
        return
    harness.serve_works({"version": version}, BY_TITLE, call_of)


if __name__ == "__main__":
    main()
