# SPDX-License-Identifier: Apache-2.0
"""Each law of gen/check.py holds for the tree, and each one can be broken."""

import ast

import pytest
from small_tree import SOURCE
from gen import check
from gen.configure import make_plan
from gen.model import load
from gen.ninja import Plan, Rule
from gen.options import parse


def problems(tree):
    return check.all_laws(load(str(tree.root)))


def test_this_tree_keeps_its_laws():
    assert check.all_laws(load(str(SOURCE))) == []


def test_the_small_tree_keeps_them(small_tree):
    assert problems(small_tree) == []


@pytest.mark.parametrize("path, line, message", [
    ("framework/base/base.cc", '#include "framework/tensor/tensor.h"', "base does not need tensor"),
    ("framework/base/base.cc", '#include "framework/tensor/absent.h"', "no file of the tree"),
    ("framework/base/base.cc", '#include "registry.h"', "no file of the tree"),
    ("framework/base/base.cc", "#include <zlib.h>", "no dependency of gen/deps.py covers"),
    ("framework/base/base.cc", "#include <pybind11/cast.h>", "does not name pybind11"),
    ("framework/base/base.cc", "#include <gtest/gtest.h>", "does not name gtest as external"),
    ("framework/base/registry.h", "#include <iostream>", "too dear for a header"),
    ("framework/base/registry.h", "#include <functional>", "too dear for a header"),
    ("kernels/cpu/level.cc", '#include "framework/tensor/tensor.h"', "cpu does not need tensor"),
    ("framework/base/base.cc", '#include "treenail/treenail.h"', "base does not need capi"),
    ("framework/base/base.cc", "#include <treenail/treenail.h>", "base does not need capi"),
])
def test_an_include_that_nothing_declares(small_tree, path, line, message):
    small_tree.write("framework/tensor/tensor.h", "#pragma once\n")
    text = (small_tree.root / path).read_text()
    small_tree.write(path, text + line + "\n")
    found = problems(small_tree)
    assert len(found) == 1 and message in found[0] and path in found[0]


def test_standard_and_system_headers_are_free(small_tree):
    small_tree.write("framework/base/more.cc", "".join(
        "#include <%s>\n" % n for n in ("vector", "iostream", "sys/mman.h", "unistd.h",
                                        "immintrin.h", "linux/futex.h")))
    assert problems(small_tree) == []


def test_needs_must_point_down(small_tree):
    small_tree.edit("framework/targets.py",
                    'headers=["framework/base/*.h"])',
                    'headers=["framework/base/*.h"], needs=["tensor"])')
    assert any("'base' needs 'tensor', which stands above it" in p for p in problems(small_tree))


def test_the_framework_never_names_a_kernel(small_tree):
    small_tree.edit("framework/targets.py", 'needs=["tensor", "base"]',
                    'needs=["tensor", "base", "cpu"]')
    assert any("of framework/ needs 'cpu', which is outside" in p for p in problems(small_tree))


def test_a_component_that_nothing_builds(small_tree):
    small_tree.write("framework/eager/x.cc", "")
    text = (small_tree.root / "framework/targets.py").read_text()
    small_tree.write("framework/targets.py", text + (
        'Component(name="eager", sources=["framework/eager/*.cc"])\n'))
    assert any("'eager' has sources, but no target takes it up" in p for p in problems(small_tree))


def plan_of(tree, facts):
    return make_plan(load(str(tree.root)), parse([], {}), facts, "..", ["configure.py"]).plan


def test_the_plan_keeps_its_laws(small_tree, facts):
    assert check.check_plan(plan_of(small_tree, facts)) == []


def test_the_plan_of_this_tree_keeps_them(facts):
    plan = make_plan(load(str(SOURCE)), parse([], {}), facts, "..", ["configure.py"]).plan
    assert check.check_plan(plan) == []
    assert len(plan.edges) > 50


def without(plan, rule, variable):
    plan.rules = [Rule(r.name, tuple(v for v in r.variables
                                     if r.name != rule or v[0] != variable)) for r in plan.rules]
    return plan


@pytest.mark.parametrize("rule, variable, message", [
    ("cxx", "deps", "without deps = gcc"), ("cxx", "depfile", "without deps = gcc"),
    ("generate", "restat", "without restat"), ("link", "pool", "without pool or response file"),
    ("link", "rspfile", "without pool or response file")])
def test_each_rule_of_the_plan_can_be_broken(small_tree, facts, rule, variable, message):
    found = check.check_plan(without(plan_of(small_tree, facts), rule, variable))
    assert found and all(message in p for p in found)


def test_outputs_in_the_source_tree_are_found(small_tree, facts):
    plan = plan_of(small_tree, facts)
    plan.edge("generate", ["../framework/base/made.h"])
    assert any("outside the build directory" in p for p in check.check_plan(plan))


def test_a_plan_without_link_pool():
    assert check.check_plan(Plan()) == ["there is no pool for links"]


DEVICE_CODE = """#include "kernels/cuda/language/gpu.h"
#include "kernels/cuda/language/more.h"
// no asm(), no <<<>>>, no cub/cub.cuh
const char* kUrl = "http://x";  /* __syncthreads()
thrust:: */
"""


@pytest.fixture
def device_tree(small_tree):
    small_tree.write("kernels/cuda/language/gpu.h", "void sync() { __syncthreads(); }\n"
                     "int all() { return __ballot_sync(0xffffffffu, 1); }\n")
    small_tree.write("kernels/cuda/language/more.h", "")
    small_tree.write("kernels/cuda/data/fill.cu", DEVICE_CODE)
    small_tree.write("kernels/cuda/host.cc", "")
    text = (small_tree.root / "kernels/targets.py").read_text()
    small_tree.write("kernels/targets.py", text + '''
Component(name="language", headers=["kernels/cuda/language/*.h"])
Component(name="device_code", sources=["kernels/cuda/**/*.cu"], needs=["language"])
Component(name="plugin", sources=["kernels/cuda/*.cc"], needs=["language"])
DeviceLibrary(name="cuda", component="plugin", device_code="device_code", images="images",
              feature="cuda", part="cuda")
''')
    return small_tree


def test_device_code_that_keeps_to_its_language(device_tree):
    assert problems(device_tree) == []


@pytest.mark.parametrize("line, message", [
    ("fill<<<1, 2>>>();", "'<<<' is a launch"), ("using cub::Sum;", "'cub::' is CUB"),
    ("#define X <cub/cub.cuh>", "'cub/' is CUB"), ("thrust::sort();", "'thrust' is Thrust"),
    ("namespace cg = cooperative_groups;", "'cooperative_groups' is"),
    ("using nvcuda::wmma::load;", "'wmma' is"), ("tex1Dfetch(t, 0);", "'tex1Dfetch' is textures"),
    ("texture <float> t;", "'texture <' is textures"), ('asm("bar");', "'asm' is inline assembly"),
    ("asm volatile(x);", "'asm' is inline"), ("__asm__(x);", "'__asm__' is inline assembly"),
    ("#define H <cuda_runtime.h>", "'cuda_runtime.h' is the CUDA runtime"),
    ("f(0xffffffff);", "'0xffffffff' is a mask of 32 lanes"),
    ("f(0xFFFFFFFFu);", "'0xFFFFFFFFu' is a mask"),
    ("__syncthreads();", "'__syncthreads' is an intrinsic that kernels/cuda/language/gpu.h has"),
    ("__syncwarp();", "is an intrinsic"), ("__shfl_down_sync(1, x, 2);", "is an intrinsic"),
    ("__ballot_sync(1, x);", "is an intrinsic")])
@pytest.mark.parametrize("path", ["kernels/cuda/data/fill.cu", "kernels/cuda/language/more.h"])
def test_device_code_that_does_not(device_tree, path, line, message):
    text = (device_tree.root / path).read_text()
    device_tree.write(path, text + line + "\n")
    (found,) = problems(device_tree)
    assert found.startswith("%s:%d: " % (path, text.count("\n") + 1)) and message in found


@pytest.mark.parametrize("line", ["f(0xffffffff0, 0xfffffffu);", "int thrusted;",
                                  "subcub::x; retexture <1; basm(x);"])
def test_what_only_looks_like_it(device_tree, line):
    device_tree.write("kernels/cuda/data/fill.cu", DEVICE_CODE + line + "\n")
    assert problems(device_tree) == []


def test_the_language_itself_may_use_intrinsics_and_nothing_else(device_tree):
    device_tree.edit("kernels/cuda/language/gpu.h", "void sync()", "thrust::x; void sync()")
    (found,) = problems(device_tree)
    assert found.startswith("kernels/cuda/language/gpu.h:1: 'thrust'")


def test_host_code_of_the_plugin_is_no_device_code(device_tree):
    device_tree.write("kernels/cuda/host.cc", "int mask = 0xffffffff;\n")
    assert problems(device_tree) == []


@pytest.mark.parametrize("line, message", [
    ("#include <cuda.h>", "device_code does not name cuda as external"),
    ("#include <curand_kernel.h>", "no dependency of gen/deps.py covers"),
    ('#include "framework/base/registry.h"', "device_code does not need base")])
def test_includes_of_device_code_are_declared(device_tree, line, message):
    device_tree.write("kernels/cuda/data/fill.cu", DEVICE_CODE + line + "\n")
    (found,) = problems(device_tree)
    assert message in found


def test_device_code_that_no_library_embeds(device_tree):
    device_tree.edit("kernels/targets.py", 'device_code="device_code"', 'device_code="other"')
    (found,) = problems(device_tree)
    assert "'device_code' has sources, but no target takes it up" in found


PYTHON_3_9 = sorted(path for folder in ("gen", "python", "smoke", "tests", "bench")
                    for path in (SOURCE / folder).rglob("*.py")) + [SOURCE / "configure.py"]


@pytest.mark.parametrize("path", PYTHON_3_9, ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_oldest_python_reads_it(path):
    """Enterprise Linux 9 has 3.9; what newer grammar there is would be a SyntaxError here."""
    ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 9))
