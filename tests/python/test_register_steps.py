# SPDX-License-Identifier: Apache-2.0
"""Fused programs on values in vector registers: the bits of the ops one by one on any number of
elements, and steps that jump to each other instead of calling."""

import os
import platform
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import treenail as tn

SIZES = [0, 1, 7, 15, 16, 17, 63, 64, 65, 1000, 1001]
LEVELS = tn.build_info()["installed_kernel_levels"]
ops = tn.raw_ops
FLOAT_UNARY = [
    ops.Relu, ops.Relu6, ops.Softsign, ops.Elu, ops.Selu, ops.Softplus, ops.Abs, ops.Neg, ops.Sign,
    ops.Reciprocal, ops.Square, ops.Sqrt, ops.Rsqrt, ops.Floor, ops.Ceil, ops.Round, ops.Exp,
    ops.Expm1, ops.Log, ops.Tanh, ops.Sigmoid, ops.Erf, ops.Log1p, ops.Sin, ops.Cos, ops.Tan,
    ops.Sinh, ops.Cosh, ops.Asinh, ops.Acosh, ops.Atanh,
    lambda x: ops.Gelu(x, approximate=True), lambda x: ops.Gelu(x, approximate=False),
    lambda x: ops.LeakyRelu(x, alpha=0.3)]
FLOAT_BINARY = [
    ops.Add, ops.Sub, ops.Mul, ops.RealDiv, ops.Maximum, ops.Minimum, ops.SquaredDifference,
    ops.DivNoNan, ops.MulNoNan, ops.Xdivy, ops.Pow]
GRADIENTS = [  # of operands of one shape
    ops.ReluGrad, ops.Relu6Grad, ops.EluGrad, ops.SeluGrad, ops.SoftsignGrad, ops.SoftplusGrad,
    ops.TanhGrad, ops.SigmoidGrad, lambda g, x: ops.LeakyReluGrad(g, x, alpha=0.3),
    lambda g, x: ops.GeluGrad(g, x, approximate=False),
    lambda g, x: ops.GeluGrad(g, x, approximate=True)]
INTEGER_UNARY = [ops.Abs, ops.Neg, ops.Sign, ops.Square, ops.Relu, ops.Relu6]
INTEGER_BINARY = [ops.Add, ops.Sub, ops.Mul, ops.Maximum, ops.Minimum, ops.SquaredDifference]
QUESTIONS = [ops.IsNan, ops.IsInf, ops.IsFinite]
COMPARISONS = [ops.Equal, ops.NotEqual, ops.Less, ops.LessEqual, ops.Greater, ops.GreaterEqual]
SPECIALS = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-45, 1e-310, 3e38, -3e38, 88.8, -104.0,
            1e6]
TYPES = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint16", "uint32"]


def chosen(random, things):
    return things[random.randint(len(things))]


def truth(random, values, floating):
    """A truth value made of numbers in one of several ways."""
    way = random.randint(4)
    first = chosen(random, COMPARISONS)(chosen(random, values), chosen(random, values))
    if way == 0 and floating:
        return ops.LogicalOr(first, chosen(random, QUESTIONS)(chosen(random, values)))
    if way == 1:
        return ops.LogicalAnd(ops.LogicalNot(first), ops.Less(chosen(random, values), values[0]))
    if way == 2:
        return ops.NotEqual(first, ops.Greater(chosen(random, values), values[-1]))
    return first


def program(random, dtype, values, steps):
    """One value that depends on as many of `steps` random ops as one group may have."""
    floating = dtype.is_floating
    unary, binary = ((FLOAT_UNARY, FLOAT_BINARY) if floating else (INTEGER_UNARY, INTEGER_BINARY))
    if dtype.name in ("uint16", "uint32"):
        unary = [ops.Square]
    if dtype.name == "float64":  # others come from the C library, and keep a group from registers
        unary = unary[:3] + unary[6:17] + [ops.Sigmoid]
        binary = [op for op in binary if op is not ops.Pow]
    values = list(values)
    for _ in range(steps):
        way = random.randint(7)
        if way == 0:
            condition = truth(random, values, floating)
            values.append(ops.Select(condition, chosen(random, values), values[-1]))
        elif way == 1:
            limits = [chosen(random, values), chosen(random, values)]
            values.append(ops.ClipByValue(values[-1], ops.Minimum(*limits), ops.Maximum(*limits)))
        elif way == 2:
            values.append(chosen(random, unary)(values[-1]))
        elif way == 3 and floating:
            like = [x for x in values if x.shape.as_list() == values[-1].shape.as_list()]
            gradient = chosen(random, GRADIENTS[:-2] if dtype.name == "float64" else GRADIENTS)
            values.append(gradient(values[-1], chosen(random, like)))
        else:
            pair = [values[-1], chosen(random, values)]
            random.shuffle(pair)
            values.append(chosen(random, binary)(*pair))
    return values[-1]


def numbers(random, dtype, shape):
    count = int(np.prod(shape))
    value = random.standard_normal(count) * (3 if dtype.is_floating else 40)
    if dtype.name.startswith("uint"):
        value = np.abs(value)
    if dtype.is_floating:
        at = random.randint(0, max(1, count), count // 5)
        value[at[at < count]] = [chosen(random, SPECIALS) for _ in at[at < count]]
    with np.errstate(all="ignore"), tn.Graph().as_default(), tn.Session() as session:
        return session.run(tn.cast(tn.constant(value.reshape(shape)), dtype))


def without_payload(value):
    """What is left open: which NaN comes of two."""
    value = np.asarray(value)
    bits = value.tobytes()
    if value.dtype.kind not in "iub":
        wide = value.astype(np.float64)
        value = np.where(np.isnan(wide), value.dtype.type(np.nan), value).astype(value.dtype)
        bits = value.tobytes()
    return bits


def check(seed, name, size):
    random = np.random.RandomState(seed)
    dtype = tn.as_dtype(name)
    shapes = [(3, size), (size,), (3, 1), (3, size)]
    if seed % 2:
        shapes = [(size,), (size,), (), (size,)]
    with tn.Graph().as_default():
        inputs = [tn.placeholder(dtype, shape) for shape in shapes]
        result = program(random, dtype, inputs, 3 + random.randint(14))
        if seed % 3 == 0 and dtype.is_floating:
            result = ops.Less(result, inputs[0])
        feeds = {x: numbers(random, dtype, shape) for x, shape in zip(inputs, shapes)}
        found = []
        for fused in (True, False):
            options = tn.OptimizerOptions(do_elementwise_fusion=fused)
            config = tn.ConfigProto(graph_options=tn.GraphOptions(optimizer_options=options))
            with tn.Session(config=config) as session:
                found.append(session.run(result, feeds))
    assert without_payload(found[0]) == without_payload(found[1]), (seed, name, size)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("size", SIZES)
def test_the_bits_of_the_ops_one_by_one(name, size):
    for seed in range(12):
        check(seed, name, size)


@pytest.mark.parametrize("level", LEVELS[:LEVELS.index(tn.build_info()["kernel_level"])])
def test_and_at_other_levels(level):
    done = subprocess.run([sys.executable, __file__], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False,
                          env=dict(os.environ, TREENAIL_CPU_ISA=level))
    assert done.returncode == 0, done.stdout[-5000:]


def test_what_is_larger_than_the_caches():
    x = tn.placeholder(tn.float32, [None])
    y = tn.tanh(x * 1.5) * x - 0.25
    value = np.random.RandomState(0).standard_normal((20 << 20) + 13).astype(np.float32)
    with tn.Session() as session:
        found = [session.run(y, {x: value}), session.run(y, {x: value[1:]})]
        alone = session.run(x + x, {x: value})
        part = np.concatenate([session.run(y, {x: value[i:i + (1 << 20)]})
                               for i in range(0, len(value), 1 << 20)])
    assert found[0].tobytes() == part.tobytes() and found[1].tobytes() == part[1:].tobytes()
    assert alone.tobytes() == (value + value).tobytes()


def libraries():
    lib = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(tn._core.__file__))), "lib")
    return [os.path.join(folder, name) for folder, _, names in os.walk(lib) for name in names
            if "kernels-cpu" in name]


@pytest.mark.skipif(tn.build_info()["build_type"] == "debug", reason="calls stay calls without -O2")
@pytest.mark.skipif(not shutil.which("objdump"), reason="no objdump (binutils)")
@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="jumps by other names")
@pytest.mark.skipif(not libraries(), reason="not in a build directory")
def test_steps_jump_to_the_next():
    for library in libraries():
        listing = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", library], text=True,
                                 stdout=subprocess.PIPE, check=True).stdout
        steps = re.findall(r"^[0-9a-f]+ <[^\n]*?((?:unary|binary|ternary)_step[^\n]*)>:\n(.*?)\n\n",
                           listing, re.MULTILINE | re.DOTALL)
        if not steps:
            pytest.skip("no symbols in %s" % library)
        assert len(steps) > 200
        for name, code in steps:
            calls = re.search(r"\tcall +\*|\tblr ", code)
            jumps = re.search(r"\t(notrack )?jmp +\*|\tbr ", code)
            assert jumps and not calls, name


def main():
    for name in TYPES:
        for size in SIZES[1::2] + [64]:
            for seed in range(6):
                check(seed, name, size)


if __name__ == "__main__":
    main()
