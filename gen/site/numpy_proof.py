# SPDX-License-Identifier: Apache-2.0
"""Proof that NumPy and h5py are built from the archives of PyPI."""

import json

from proving import Failed, proof
from stack_site import Site, built, changes, skipped


@proof
def stack_numpy():
    """Ansible: NumPy and h5py built from PyPI's sources on the distribution's OpenBLAS and HDF5"""
    names = ("numpy", "h5py")
    with Site("stack-numpy", "--chroot", "numpy") as site:
        words = ("-e", json.dumps(dict(
            skipped("openblas", "hdf5", *names), openblas__mode="package", hdf5__mode="package",
            **{name + "__mode": "build" for name in names}, **site.fill("numpy", *names))))
        report = site.play("build", *words)
        if built(report) != set(names):
            raise Failed("built were %s" % ", ".join(sorted(built(report))))
        again = site.play("again", *words)
        if built(again) or changes(again):
            raise Failed("the second run changed %d things" % changes(again))
    return "in %d s; %s" % (report["seconds"], "; ".join(c["says"] for c in report["checks"]))
