# SPDX-License-Identifier: Apache-2.0
"""Plugins of earlier releases: sources compiled with the headers of their ABI load in this library.

tests/abi/N/include has the headers as they were released; today's are not on the compiler's path.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2]
VERSIONS = sorted(path.parent.name for path in SOURCE.glob("tests/abi/*/plugin.c"))
USE = """
import sys
import numpy as np
import treenail as tn
ops = tn.load_op_library(sys.argv[1])
x = tn.placeholder(tn.float32, [None])
y = ops.abi1_affine(x, scale=3.0)
(slope,) = tn.gradients(y, [x])
values = np.arange(5000, dtype=np.float32)
with tn.Session() as session:
    first, second = session.run([y, slope], {x: values})
np.testing.assert_array_equal(first, 3 * values + 1)
np.testing.assert_array_equal(second, np.full(5000, 3, np.float32))
np.testing.assert_array_equal(tn.execute("Abi1Affine", [np.float32([1, 2])]).numpy(), [3, 5])
try:
    tn.execute("Abi1Affine", [np.float32(1)])
except tn.errors.InvalidArgumentError as error:
    print(error)
"""


def run(*command):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, check=False)


@pytest.fixture(scope="module")
def compiler():
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return name
    pytest.skip("no C compiler is installed")


def test_there_is_a_plugin_of_this_abi():
    import treenail as tn
    assert tn.__version__.split(".")[0] in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plugin_built_with_the_headers_of_its_abi(version, compiler, tmp_path):
    folder = SOURCE / "tests/abi" / version
    library = tmp_path / "plugin.so"
    done = run(compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fPIC", "-shared",
               "-I", folder / "include", folder / "plugin.c", "-o", library)
    assert done.returncode == 0, done.stdout
    done = subprocess.run([sys.executable, "-c", USE, str(library)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, check=False,
                          env=os.environ)
    assert done.returncode == 0, done.stdout
    assert "x is a scalar; at least one dimension is needed" in done.stdout


def test_a_plugin_of_a_later_abi_is_refused(compiler, tmp_path):
    """What the versions are for: without the check it would be called through a table of another
    shape."""
    folder = SOURCE / "tests/abi" / VERSIONS[-1]
    library = tmp_path / "plugin.so"
    shutil.copytree(folder / "include", tmp_path / "include")
    header = tmp_path / "include/treenail/plugin.h"
    text = header.read_text()
    assert "#define TN_PLUGIN_ABI_VERSION 1u" in text
    header.write_text(text.replace("TN_PLUGIN_ABI_VERSION 1u", "TN_PLUGIN_ABI_VERSION 2u"))
    done = run(compiler, "-std=c11", "-fPIC", "-shared", "-I", tmp_path / "include",
               folder / "plugin.c", "-o", library)
    assert done.returncode == 0, done.stdout
    done = run(sys.executable, "-c", USE, library)
    assert done.returncode != 0 and "abi" in done.stdout.lower()
