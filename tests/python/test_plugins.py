# SPDX-License-Identifier: Apache-2.0
"""tn.load_op_library with the plugins of tests/capi/plugin, and the pages that tell of it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import treenail as tn

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TREENAIL_BUILD_DIR", ""))
PLUGINS = BUILD / "tests/plugins"
needs_plugins = pytest.mark.skipif(not (PLUGINS / "libtreenail-example.so").exists(),
                                   reason="TREENAIL_BUILD_DIR names no build: run by ninja test")


def in_new_process(program, **environment):
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, check=False,
                          env=dict(os.environ, **environment), cwd=str(SOURCE))
    return done.returncode, done.stdout, done.stderr


@needs_plugins
def test_ops_of_a_plugin_are_functions():
    ops = tn.load_op_library(PLUGINS / "libtreenail-example.so")
    assert ops is tn.load_op_library(str(PLUGINS / "libtreenail-example.so"))
    x = tn.placeholder(tn.float64, [None])
    y = ops.cube(x, name="cubed")
    assert y.op.type == "Cube" and y.op.name.startswith("cubed")
    (dx,) = tn.gradients(y, [x])
    with tn.Session() as session:
        value, slope, first = session.run([y, dx, tn.zero_out(x)], {x: [2.0, -1.0]})
    np.testing.assert_array_equal(value, [8, -1])
    np.testing.assert_array_equal(slope, [12, 3])
    np.testing.assert_array_equal(first, [2, 0])
    assert tn.raw_ops.ZeroOut is not None
    np.testing.assert_array_equal(tn.execute("Cube", [np.float32([3])]).numpy(), [27])


@needs_plugins
def test_a_plugin_that_clashes_is_refused():
    tn.load_op_library(PLUGINS / "libtreenail-example.so")
    with pytest.raises(tn.errors.AlreadyExistsError, match='op "Cube" is registered already'):
        tn.load_op_library(PLUGINS / "libtreenail-clash.so")
    assert not hasattr(tn, "clash_fresh")


def test_a_file_that_is_not_there():
    with pytest.raises(tn.errors.NotFoundError, match="/nonexistent/ops.so"):
        tn.load_op_library("/nonexistent/ops.so")


@needs_plugins
def test_plugins_of_the_environment_are_there_after_the_import():
    program = ("import treenail as tn; "
               "print(tn.execute('Affine', [[1.0, 2.0]], scale=3.0).numpy().tolist())")
    plugin = str(PLUGINS / "libtreenail-features.so")
    status, out, error = in_new_process(program, TREENAIL_PLUGIN_PATH=plugin)
    assert status == 0, error
    assert out == "[3.0, 6.0]\n"
    status, out, error = in_new_process("import treenail", TREENAIL_PLUGIN_PATH="/nonexistent.so")
    assert status != 0 and "TREENAIL_PLUGIN_PATH names /nonexistent.so" in error


def code_blocks(page, language):
    text = (SOURCE / page).read_text(encoding="utf-8")
    return re.findall(r"```%s\n(.*?)```" % language, text, re.DOTALL)


def test_the_plugin_of_the_guide_compiles_and_loads(tmp_path):
    (tmp_path / "zero_out.c").write_text(code_blocks("docs/custom-ops.md", "c")[0])
    done = subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2",
                           "-fPIC", "-shared", "-I%s" % (SOURCE / "framework/capi/include"),
                           "zero_out.c", "-o", "zero_out.so"], cwd=str(tmp_path),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, check=False)
    assert done.returncode == 0, done.stdout
    program = code_blocks("docs/custom-ops.md", "python")[0]
    program = program.replace("./zero_out.so", str(tmp_path / "zero_out.so"))
    status, out, error = in_new_process(program)
    assert status == 0, error
    assert out.splitlines() == re.findall(r"# (\[.*\])", program)


def test_the_plugin_of_the_guide_to_cpp_compiles_and_loads(tmp_path):
    (tmp_path / "zero_out.cc").write_text(code_blocks("docs/custom-ops-cpp.md", "cpp")[0])
    done = subprocess.run(["c++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1",
                           "-fPIC", "-shared", "-I%s" % (SOURCE / "framework/capi/include"),
                           "zero_out.cc", "-o", "zero_out.so"], cwd=str(tmp_path),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, check=False)
    assert done.returncode == 0, done.stdout
    program = code_blocks("docs/custom-ops-cpp.md", "python")[0]
    program = program.replace("./zero_out.so", str(tmp_path / "zero_out.so"))
    status, out, error = in_new_process(program)
    assert status == 0, error
    assert out.splitlines() == re.findall(r"# (\[.*\])", program)


def test_the_program_of_the_readme_gives_its_output():
    (program,) = code_blocks("README.md", "python")
    (wanted,) = code_blocks("README.md", "text")
    status, out, error = in_new_process(program)
    assert status == 0, error
    # The library that multiplies matrices may differ, so the last digits may.
    np.testing.assert_allclose(np.array(out.split(), float), np.array(wanted.split(), float),
                               rtol=0.02)
