# SPDX-License-Identifier: Apache-2.0
"""Proof that NumPy and h5py are built from the archives of PyPI."""

import json
import os

from proving import Failed, proof
from stack_site import ANSIBLE, Site, built, changes, skipped


@proof
def stack_numpy():
    """Ansible: NumPy and h5py built from PyPI's sources on the distribution's OpenBLAS and HDF5"""
    from stack_fixture import module, stack  # Ansible's packages
    names = ("numpy", "h5py")
    records = stack.stack_records(os.path.join(ANSIBLE, "roles"))
    fetch = module("library/stack_source.py").fetched
    with Site("stack-numpy", "--chroot", "numpy") as site:
        options = dict(skipped("openblas", "hdf5", *names), openblas__mode="package",
                       hdf5__mode="package")
        for name in names:
            record = records[name]
            sources = [s for s in record["versions"][record["version"]]["sources"] if "pypi" in s]
            # By this machine, whose pip knows where its index is.
            fetch(name, stack.sources(name, sources), os.path.join(
                site.state, "roots/numpy/var/cache/treenail-stack"))
            options.update({name + "__mode": "build", name + "__sources": sources})
        words = ("-e", json.dumps(options))
        report = site.play("build", *words)
        if built(report) != set(names):
            raise Failed("built were %s" % ", ".join(sorted(built(report))))
        again = site.play("again", *words)
        if built(again) or changes(again):
            raise Failed("the second run changed %d things" % changes(again))
    return "in %d s; %s" % (report["seconds"], "; ".join(c["says"] for c in report["checks"]))
