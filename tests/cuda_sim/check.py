# SPDX-License-Identifier: Apache-2.0
"""The tests of the CUDA plugin, which are skipped where there is no GPU: `ninja test-cuda-sim` runs
them on the simulated CUDA, once with warps of 32 threads and once of 64, `ninja test-gpu` on the
GPUs of the machine. Exit status 1 where a test fails, or nothing can be run."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
TESTS = ["tests/cases/test_gpu.py", "tests/cases/test_gpu_arrays.py",
         "tests/cases/test_gpu_counted.py", "tests/cases/test_gpu_images.py",
         "tests/cases/test_gpu_indexing.py", "tests/cases/test_gpu_random.py",
         "tests/cases/test_gpu_sorting.py", "tests/cases/test_gpu_gradients.py",
         "tests/python/test_gpu_chains.py", "tests/python/test_gpu_device.py",
         "tests/python/test_gpu_mixed_precision.py", "tests/python/test_gpu_training.py"]
LONG_TESTS = ["tests/fuzz/graphs/test_gpu_graphs.py", "tests/python/test_gpu_smoke.py"]


def succeeds(build: Path, tests: List[str], environment: Dict[str, str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "--color=no", "--rootdir=.", "-p",
               "no:cacheprovider", "-p", "pytest_shard", *tests]
    paths = [str(SOURCE / "gen/tools"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(command, check=False, cwd=SOURCE, env=dict(
        os.environ, PYTHONDONTWRITEBYTECODE="1", TREENAIL_BUILD_DIR=str(build),
        PYTHONPATH=os.pathsep.join(paths), **environment)).returncode == 0


def on_simulated(build: Path, tests: List[str], warp: int) -> bool:
    libraries = build / "tests" / "cuda_sim"
    if not (libraries / "libcuda.so.1").exists():
        sys.exit("%s has no simulated CUDA: configure found no CUDA toolkit, or `ninja tests` was "
                 "not run" % build)
    print("Warps of %d threads" % warp, flush=True)
    return succeeds(build, tests, {"LD_LIBRARY_PATH": str(libraries),
                                   "TREENAIL_CUDA_SIM_WARP": str(warp)})


def on_gpu(build: Path, tests: List[str]) -> bool:
    import cusim
    if cusim.missing():
        sys.exit("There is no GPU to test: " + cusim.missing())
    if cusim.library() is not None:
        sys.exit("libcuda.so.1 is the simulated one: LD_LIBRARY_PATH names its folder")
    return succeeds(build, tests, {})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--gpu", action="store_true", help="on the GPUs of the machine")
    parser.add_argument("--warp", type=int, action="append", choices=(32, 64), default=[])
    parser.add_argument("--quick", action="store_true", help="without random graphs and trainings")
    parser.add_argument("--part", metavar="I/N", help="every Nth test, from the Ith on (or 0th)")
    options = parser.parse_args()
    if options.part:
        os.environ["TREENAIL_TEST_SHARD"] = options.part
    tests = TESTS if options.quick else TESTS + LONG_TESTS
    if options.gpu:
        passed = [on_gpu(options.build, tests)]
    else:
        passed = [on_simulated(options.build, tests, warp) for warp in options.warp or (32, 64)]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
