# SPDX-License-Identifier: Apache-2.0
"""tn.device with immediate execution on the simulated devices: tn.function, whose plans keep memory
of the devices, and what tn.enable_eager_execution says for a whole process."""

import os
import subprocess
import sys

import numpy as np
import pytest
import treenail as tn

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(SOURCE, "tests", "simulated"))
import simulated  # noqa: E402  (the path must be set first)

pytestmark = simulated.needs_library
SIM, OTHER = "/device:SIM:0", "/device:SIM:1"
THERE, BESIDE = simulated.DEVICES
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


@pytest.fixture(autouse=True)
def at_once():
    simulated.library().sim_seed(1)
    with tn.eager():
        yield


def on(device, value):
    with tn.device(device):
        return tn.identity(value)


# --- tn.function


def test_functions_are_planned_on_the_devices():
    with tn.device(SIM):
        v = tn.Variable([1.0, 2.0])
    here = tn.Variable(2.0)

    @tn.function
    def f(x):
        with tn.device(SIM):
            y = tn.exp(x) * v * here
        with tn.device(OTHER):
            v.assign_add([1.0, 1.0])
        return tn.reduce_sum(y)
    ran = simulated.library().sim_kernels_run(0)
    for value in (on(SIM, [0.0, 0.0]), tn.constant([0.0, 0.0])):
        v.assign([1.0, 2.0])
        result = f(value)
        assert result.device == CPU and float(result) == 6.0  # results come to the host
        np.testing.assert_array_equal(v.numpy(), [2, 3])
    assert simulated.library().sim_kernels_run(0) >= ran + 6


def test_functions_take_the_device_around_them():
    traces = []

    @tn.function
    def f(x):
        traces.append(1)
        return tn.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, tn.tanh(x) * 2.0),
                             [tn.constant(0), x])[1]
    x = tn.constant([0.5, 1.0])
    ran = simulated.library().sim_kernels_run(0)
    here = f(x).numpy()
    assert simulated.library().sim_kernels_run(0) == ran
    with tn.device(SIM):
        there = f(x).numpy()
    assert simulated.library().sim_kernels_run(0) >= ran + 6 and len(traces) == 2
    np.testing.assert_array_equal(here, there)


def test_gradients_through_functions():
    with tn.device(SIM):
        v = tn.Variable([1.0, 2.0])

    @tn.function
    def f(x):
        with tn.device(SIM):
            return tn.reduce_sum(tn.square(v) * x)
    x = on(SIM, [3.0, 4.0])
    with tn.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    by_x, by_v = tape.gradient(y, [x, v])
    np.testing.assert_array_equal(by_x.numpy(), [1, 4])
    np.testing.assert_array_equal(by_v.numpy(), [6, 16])
    tn.train.GradientDescentOptimizer(0.5).apply_gradients([(by_v, v)])
    np.testing.assert_array_equal(v.numpy(), [-2, -6])


def test_functions_refuse_devices_that_are_not_there():
    @tn.function
    def f(x):
        with tn.device("/gpu:3"):
            return x + 1.0
    with pytest.raises(tn.errors.InvalidArgumentError, match='cannot be placed on "/gpu:3"'):
        f(tn.constant(1.0))


def test_variables_made_in_functions():
    made = []

    @tn.function
    def f(x):
        with tn.device(SIM):
            if not made:
                made.append(tn.Variable([1.0, 2.0]))
        return x + made[0]
    np.testing.assert_array_equal(f(tn.constant([1.0, 1.0])).numpy(), [2, 3])
    assert made[0].device == THERE


# --- Options of the process

PROGRAM = """
import sys
sys.path.append(%r)
import numpy as np
import simulated
import treenail as tn
simulated.library()
tn.enable_eager_execution(%s)
x = tn.constant([1.0, 2.0])
with tn.device("/device:SIM:0"):
    y = tn.identity(x)
%s
print("done")
"""


def run_program(options, body):
    program = PROGRAM % (os.path.join(SOURCE, "tests", "simulated"), options, body)
    return subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, timeout=120)


def check_program(options, body):
    done = run_program(options, body)
    assert done.stdout == "done\n", done.stdout + done.stderr
    return done.stderr


def test_soft_placement_and_counts_of_devices():
    check_program("""tn.ConfigProto(
    device_count={"CPU": 3, "SIM": 1}, allow_soft_placement=True)""", """
with tn.device("/device:SIM:0"):
    assert tn.as_string(y).numpy()[0] == b"1.000000" and (y + y).device == y.device
with tn.device("/gpu:4"):
    assert (x + x).device.endswith("CPU:0")
with tn.device("/cpu:2"):
    assert float((x + x)[1]) == 4.0
with tn.device("/device:SIM:1"):  # another of that kind
    assert (x + x).device == y.device
@tn.function
def f(x):
    with tn.device("/gpu:4"):
        return x + x
assert f(x).numpy()[1] == 4.0
""")
    check_program('tn.ConfigProto(device_count={"CPU": 2, "SIM": 1})', """
with tn.device("/cpu:1"):
    assert float((x + x)[1]) == 4.0
    v = tn.Variable(1.0)
    v.assign_add(1.0)
for name in ("/cpu:2", "/device:SIM:1"):
    try:
        with tn.device(name):
            x + x
    except tn.errors.InvalidArgumentError as error:
        assert "CPU:1" in str(error) and "SIM:0," not in str(error), error
    else:
        raise AssertionError(name)
""")


@pytest.mark.parametrize("policy", [0, 3])
def test_copies_that_the_policy_forbids(policy):
    check_program("device_policy=%d" % policy, """
def refused(f):
    try:
        f()
    except tn.errors.InvalidArgumentError as error:
        return "Tensors on conflicting devices: cannot compute Add as input #1" in str(error)
    return False
assert refused(lambda: y + x)
assert float((y * 2.0)[1]) == 4.0 and float(tn.reduce_sum(y + y)) == 6.0
n = tn.constant([1, 2])
with tn.device("/device:SIM:0"):
    m = tn.cast(y, tn.int32)
assert refused(lambda: m + n) == %r
""" % (policy == 0))


def test_a_policy_that_warns():
    said = check_program("device_policy=1", "assert (y + x).numpy()[0] == 2.0")
    assert "before copying a tensor to another device" in said and "input #1" in said
    assert check_program("device_policy=2", "assert (y + x).numpy()[0] == 2.0") == ""


def test_options_do_not_change_later():
    check_program("tn.ConfigProto(allow_soft_placement=True)", """
tn.enable_eager_execution()
tn.enable_eager_execution(tn.ConfigProto(allow_soft_placement=True))
for arguments in ({"config": tn.ConfigProto()}, {"device_policy": 0}, {"device_policy": 7}):
    try:
        tn.enable_eager_execution(**arguments)
    except ValueError:
        continue
    raise AssertionError(arguments)
""")
