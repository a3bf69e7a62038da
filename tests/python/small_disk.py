# SPDX-License-Identifier: Apache-2.0
"""A file system that is soon full, for what is written there."""

import contextlib
import os
import shutil
import subprocess

import pytest


@contextlib.contextmanager
def small_disk(folder, size):
    """One of `size` ("400k") in that directory; skips the test where it cannot be had."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts a file system of %s" % size)
    if shutil.which("mount") is None:
        pytest.skip("there is no mount")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", str(folder)],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no tmpfs can be mounted here: " + done.stderr.strip())
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)
