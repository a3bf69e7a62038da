# SPDX-License-Identifier: Apache-2.0
"""The kernels of kernels/cuda as an AMD GPU's compiler reads them."""

import concurrent.futures
import functools
import os
import subprocess

from proving import SOURCE, Failed, need, proof

# Of a data centre (MI200), whose warps have 64 threads, and of desktops, whose warps have 32.
ARCHITECTURES = ("gfx90a", "gfx1030")
FLAGS = ["-std=c++20", "-w", "-ffp-contract=off", "--cuda-device-only", "-x", "hip", "-I", SOURCE]


def kernel_files():
    for folder, _, names in os.walk(os.path.join(SOURCE, "kernels", "cuda")):
        yield from (os.path.join(folder, name) for name in names if name.endswith(".cu"))


def complaint(command, path):
    """What the compiler says of a file that it refuses, else ""."""
    done = subprocess.run(["hipcc", *FLAGS, *command, path], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=dict(os.environ, HIP_PLATFORM="amd"),
                          check=False)
    return "" if done.returncode == 0 else "%s:\n%s" % (
        os.path.relpath(path, SOURCE), done.stdout.decode(errors="replace")[-2000:])


def compiled(*command):
    need("hipcc", "hipcc")
    files = sorted(kernel_files())
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = [text for text in pool.map(functools.partial(complaint, command), files) if text]
    if found or not files:
        raise Failed("\n".join([*found, "%d of %d files" % (len(found), len(files))]))
    return "%d files" % len(files)


@proof(quick=True)
def amd_kernels():
    """hipcc takes all kernels for code of AMD's GPUs"""
    return compiled("-fsyntax-only", "--offload-arch=" + ARCHITECTURES[0])


@proof
def amd_device_code():
    """hipcc makes device code for AMD's GPUs of all kernels"""
    for architecture in ARCHITECTURES:
        text = compiled("-O2", "-c", "-o", os.devnull, "--offload-arch=" + architecture)
    return "%s for %s" % (text, " and ".join(ARCHITECTURES))
