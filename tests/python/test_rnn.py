# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers: the fused ops against torch, over threads and at their edges."""

import os
import signal
import threading
from time import monotonic

import numpy as np
import pytest

import treenail as tn
from treenail import _treenail as core


def lstm_arguments(rng, time, batch, inputs, cells):
    """Inputs of BlockLSTM, without peepholes."""
    def some(*shape):
        return (rng.rand(*shape) - 0.5).astype(np.float32)
    zeros = np.zeros(cells, np.float32)
    return [np.int64(time), some(time, batch, inputs), some(batch, cells), some(batch, cells),
            some(inputs + cells, 4 * cells), zeros, zeros, zeros, some(4 * cells)]


def gru_arguments(rng, time, batch, inputs, cells):
    """Inputs of BlockGRU."""
    def some(*shape):
        return (rng.rand(*shape) - 0.5).astype(np.float32)
    return [np.int64(time), some(time, batch, inputs), some(batch, cells),
            some(inputs + cells, 2 * cells), some(inputs + cells, cells), some(2 * cells),
            some(cells)]


def test_a_sequence_and_its_gradients_are_those_of_torch(rng, evaluate):
    torch = pytest.importorskip("torch", reason="python3-torch is not installed")
    time, batch, inputs, cells = 7, 5, 6, 9
    arguments = lstm_arguments(rng, time, batch, inputs, cells)
    layer = torch.nn.LSTM(inputs, cells)

    def reordered(columns):  # i, ci, f, o of TensorFlow to i, f, g, o of torch
        i, ci, f, o = np.split(columns.T, 4)
        return torch.from_numpy(np.concatenate([i, f, ci, o]))
    w, b = arguments[4], arguments[8]
    with torch.no_grad():
        layer.weight_ih_l0.copy_(reordered(w[:inputs]))
        layer.weight_hh_l0.copy_(reordered(w[inputs:]))
        layer.bias_ih_l0.copy_(reordered(b))
        layer.bias_hh_l0.zero_()
    x, cs, h = (torch.from_numpy(a).requires_grad_() for a in arguments[1:4])
    outputs, (last_h, last_cs) = layer(x, (h[None], cs[None]))
    weights = rng.rand(time, batch, cells).astype(np.float32)
    (outputs * torch.from_numpy(weights)).sum().backward()

    given = [tn.constant(a) for a in arguments]
    ours = core.op_function("BlockLSTM")(*given, forget_bias=0.0, cell_clip=-1.0)
    loss = tn.reduce_sum(ours[6] * weights)
    found = evaluate([ours[6], ours[6][-1], ours[1][-1]]
                     + tn.gradients(loss, [given[i] for i in (1, 2, 3, 4, 8)]))
    d_w = np.concatenate([layer.weight_ih_l0.grad, layer.weight_hh_l0.grad], 1)

    def back(rows):
        i, f, ci, o = np.split(np.asarray(rows), 4)
        return np.concatenate([i, ci, f, o]).T
    wanted = [outputs, last_h[0], last_cs[0], x.grad, cs.grad, h.grad, back(d_w),
              back(layer.bias_ih_l0.grad)]
    for ours_, torchs in zip(found, wanted):
        torchs = torchs.detach().numpy() if hasattr(torchs, "detach") else torchs
        np.testing.assert_allclose(ours_, torchs, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("op, arguments", [("BlockLSTM", lstm_arguments),
                                           ("BlockGRU", gru_arguments)])
def test_results_do_not_depend_on_the_number_of_threads(rng, op, arguments):
    given = [tn.constant(a) for a in arguments(rng, 20, 70, 40, 50)]
    outputs = core.op_function(op)(*given)
    loss = sum(tn.reduce_sum(y * y) for y in outputs)
    fetches = list(outputs) + [g for g in tn.gradients(loss, given[1:]) if g is not None]
    before, results = core.num_threads(), []
    try:
        for threads in (1, 2, 3, 8):
            core.set_num_threads(threads)
            with tn.Session() as session:
                results.append([a.tobytes() for a in session.run(fetches)])
    finally:
        core.set_num_threads(before)
    assert all(r == results[0] for r in results)


@pytest.mark.parametrize("op, arguments", [("BlockLSTM", lstm_arguments),
                                           ("BlockGRU", gru_arguments)])
def test_the_gradient_of_a_sequences_gradient_is_refused(rng, op, arguments):
    given = [tn.constant(a) for a in arguments(rng, 2, 2, 3, 4)]
    gradient, = tn.gradients(core.op_function(op)(*given)[-1], given[1])
    with pytest.raises(tn.errors.UnimplementedError, match="unroll (LSTM|GRU)BlockCell"):
        tn.gradients(gradient, given[1])


def test_long_sequences_of_nothing_end_at_once(rng, evaluate):
    long = 2**40
    for time, batch, inputs, cells in ((long, 0, 3, 2), (long, 2**15, 0, 0), (0, long, 0, 0)):
        state, w = np.zeros((batch, cells), np.float32), np.zeros((inputs + cells, 4 * cells))
        given = [tn.constant(time, dtype=tn.int64),
                 tn.zeros([time, batch, inputs]), tn.constant(state), tn.constant(state),
                 tn.constant(w.astype(np.float32))] + [tn.zeros([cells])] * 3
        given.append(tn.zeros([4 * cells]))
        h = core.op_function("BlockLSTM")(*given)[6]
        gradients = tn.gradients(h, [given[1], given[4]])
        found = evaluate([h] + gradients)
        assert [a.size for a in found] == [0, 0, w.size]
        assert not found[2].any()


# --- Cells ----------------------------------------------------------------------------------------

UNITS, BATCH, SIZE, STEPS = 5, 3, 4, 6
tanh = np.tanh


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def run_with_weights(fetches, rng, scale=0.5):
    """The fetches' values and those of all variables, which are set to random numbers."""
    variables = tn.global_variables()
    with tn.Session() as session:
        for v in variables:
            session.run(v.assign(rng.uniform(-scale, scale, v.shape.as_list())))
        return session.run(fetches), {v.op.name: session.run(v) for v in variables}


def steps_of(rng, dtype=np.float64):
    return [rng.uniform(-1, 1, (BATCH, SIZE)).astype(dtype) for _ in range(STEPS)]


def lstm_step(x, c, h, kernel, bias, forget_bias=1.0, clip=None, diagonals=(0, 0, 0), proj=None):
    """One step of LSTMCell, by its formulas; diagonals of f, i and o."""
    i, j, f, o = np.split(np.concatenate([x, h], 1) @ kernel + bias, 4, 1)
    w_f, w_i, w_o = diagonals
    c = sigmoid(f + forget_bias + w_f * c) * c + sigmoid(i + w_i * c) * tanh(j)
    c = c if clip is None else np.clip(c, -clip, clip)
    h = sigmoid(o + w_o * c) * tanh(c)
    return c, h if proj is None else h @ proj


def gru_step(x, h, gates, gate_bias, candidate, candidate_bias):
    r, u = np.split(sigmoid(np.concatenate([x, h], 1) @ gates + gate_bias), 2, 1)
    c = tanh(np.concatenate([x, r * h], 1) @ candidate + candidate_bias)
    return u * h + (1 - u) * c


def test_basic_rnn_cell(rng):
    xs = steps_of(rng)
    outputs, state = tn.nn.static_rnn(tn.nn.rnn_cell.BasicRNNCell(UNITS), xs, dtype=tn.float64)
    (found, last), w = run_with_weights([outputs, state], rng)
    h = np.zeros((BATCH, UNITS))
    for x, y in zip(xs, found):
        h = tanh(np.concatenate([x, h], 1) @ w["rnn/basic_rnn_cell/kernel"]
                 + w["rnn/basic_rnn_cell/bias"])
        np.testing.assert_allclose(y, h, rtol=1e-9)
    np.testing.assert_array_equal(last, found[-1])


@pytest.mark.parametrize("cell", [tn.nn.rnn_cell.GRUCell, tn.rnn.GRUBlockCellV2])
def test_gru_cells(rng, cell):
    xs = steps_of(rng)
    outputs, _ = tn.nn.static_rnn(cell(UNITS), xs, dtype=tn.float64)
    found, w = run_with_weights(outputs, rng)
    h = np.zeros((BATCH, UNITS))
    names = ["gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias"]
    for x, y in zip(xs, found):
        h = gru_step(x, h, *[w["rnn/gru_cell/" + name] for name in names])
        np.testing.assert_allclose(y, h, rtol=1e-8)


def test_biases_of_gates_begin_as_one(evaluate, rng):
    for cell, name in ((tn.nn.rnn_cell.GRUCell(2), "gates/bias"),
                       (tn.rnn.GRUBlockCellV2(2), "gates/bias"), (tn.rnn.GRUBlockCell(2), "b_ru")):
        with tn.Graph().as_default():
            cell(tn.zeros([1, 1]), tn.zeros([1, 2]))
            bias, = [v for v in cell.variables if v.op.name.endswith(name)]
            assert evaluate(bias).tolist() == [1] * 4


@pytest.mark.parametrize("make, name", [
    (lambda: tn.nn.rnn_cell.BasicLSTMCell(UNITS, forget_bias=0.5), "basic_lstm_cell"),
    (lambda: tn.nn.rnn_cell.LSTMCell(UNITS, forget_bias=0.5), "lstm_cell"),
    (lambda: tn.rnn.LSTMBlockCell(UNITS, forget_bias=0.5), "lstm_cell")])
def test_lstm_cells(rng, make, name):
    xs = steps_of(rng)
    outputs, state = tn.nn.static_rnn(make(), xs, dtype=tn.float64)
    assert isinstance(state, tn.nn.rnn_cell.LSTMStateTuple)
    (found, (last_c, last_h)), w = run_with_weights([outputs, state], rng)
    c = h = np.zeros((BATCH, UNITS))
    for x, y in zip(xs, found):
        c, h = lstm_step(x, c, h, w["rnn/%s/kernel" % name], w["rnn/%s/bias" % name], 0.5)
        np.testing.assert_allclose(y, h, rtol=1e-8)
    np.testing.assert_allclose(last_c, c, rtol=1e-8)
    np.testing.assert_array_equal(last_h, found[-1])


@pytest.mark.parametrize("make", [
    lambda: tn.nn.rnn_cell.LSTMCell(UNITS, use_peepholes=True, cell_clip=0.25),
    lambda: tn.rnn.LSTMBlockCell(UNITS, use_peephole=True, cell_clip=0.25)])
def test_peepholes_and_clipping(rng, make):
    xs = steps_of(rng)
    outputs, state = tn.nn.static_rnn(make(), xs, dtype=tn.float64)
    (found, last), w = run_with_weights([outputs, state], rng, 1.0)
    c = h = np.zeros((BATCH, UNITS))
    scope = "rnn/lstm_cell/"
    for x, y in zip(xs, found):
        c, h = lstm_step(x, c, h, w[scope + "kernel"], w[scope + "bias"], 1.0, 0.25,
                         [w[scope + "w_%s_diag" % gate] for gate in "fio"])
        np.testing.assert_allclose(y, h, rtol=1e-8)
    assert np.abs(last.c).max() == 0.25


def test_projection(rng):
    xs = steps_of(rng)
    cell = tn.nn.rnn_cell.LSTMCell(UNITS, num_proj=2, proj_clip=10.0)
    assert cell.state_size == (UNITS, 2) and cell.output_size == 2
    outputs, _ = tn.nn.static_rnn(cell, xs, dtype=tn.float64)
    found, w = run_with_weights(outputs, rng)
    c, h, scope = np.zeros((BATCH, UNITS)), np.zeros((BATCH, 2)), "rnn/lstm_cell/"
    for x, y in zip(xs, found):
        c, h = lstm_step(x, c, h, w[scope + "kernel"], w[scope + "bias"],
                         proj=w[scope + "projection/kernel"])
        np.testing.assert_allclose(y, h, rtol=1e-8)


def test_states_joined_in_one_tensor(rng):
    xs = steps_of(rng)
    cells = [tn.nn.rnn_cell.BasicLSTMCell(UNITS, state_is_tuple=False) for _ in range(2)]
    cell = tn.nn.rnn_cell.MultiRNNCell(cells, state_is_tuple=False)
    assert cell.state_size == 4 * UNITS
    outputs, state = tn.nn.static_rnn(cell, xs, dtype=tn.float64)
    (found, joined), _ = run_with_weights([outputs, state], rng)
    np.testing.assert_array_equal(joined[:, 3 * UNITS:], found[-1])


def test_a_stack_names_and_shares_its_variables(rng):
    cell = tn.nn.rnn_cell.MultiRNNCell([tn.nn.rnn_cell.BasicLSTMCell(UNITS),
                                        tn.nn.rnn_cell.GRUCell(2)])
    tn.nn.static_rnn(cell, steps_of(rng, np.float32), dtype=tn.float32)
    inner = "rnn/multi_rnn_cell/cell_%d/"
    assert [v.op.name for v in tn.trainable_variables()] == [
        inner % 0 + "basic_lstm_cell/kernel", inner % 0 + "basic_lstm_cell/bias",
        inner % 1 + "gru_cell/gates/kernel", inner % 1 + "gru_cell/gates/bias",
        inner % 1 + "gru_cell/candidate/kernel", inner % 1 + "gru_cell/candidate/bias"]
    assert cell.trainable_variables == tn.trainable_variables()


def test_names_of_block_cells_are_made_unique():
    x = tn.zeros([2, 3, 4])
    for _ in range(2):
        tn.rnn.LSTMBlockFusedCell(UNITS)(x, dtype=tn.float32)
    assert [v.op.name for v in tn.trainable_variables()][::2] == ["lstm_fused_cell/kernel",
                                                                  "lstm_fused_cell_1/kernel"]


LENGTHS = [0, 4, 6]


def test_sequence_lengths(rng):
    xs = steps_of(rng)
    outputs, state = tn.nn.static_rnn(tn.nn.rnn_cell.BasicLSTMCell(UNITS), xs, dtype=tn.float64,
                                      sequence_length=LENGTHS)
    (found, last), w = run_with_weights([outputs, state], rng)
    c = h = np.zeros((BATCH, UNITS))
    for t, (x, y) in enumerate(zip(xs, found)):
        new = lstm_step(x, c, h, w["rnn/basic_lstm_cell/kernel"], w["rnn/basic_lstm_cell/bias"])
        on = np.array(LENGTHS)[:, None] > t
        c, h = np.where(on, new[0], c), np.where(on, new[1], h)
        np.testing.assert_allclose(y, np.where(on, h, 0), rtol=1e-8)
    np.testing.assert_allclose(last.c, c, rtol=1e-8)
    np.testing.assert_allclose(last.h, h, rtol=1e-8)


@pytest.mark.parametrize("lengths", [None, LENGTHS, [0, 0, 0], [2, 1, 0]])
@pytest.mark.parametrize("unknown", [False, True])
def test_the_fused_layer_is_its_cell_unrolled(rng, lengths, unknown):
    xs = np.stack(steps_of(rng))
    given = tn.placeholder(tn.float64, [None, None, SIZE] if unknown else xs.shape)
    state = [tn.constant(rng.rand(BATCH, UNITS)) for _ in range(2)]
    fused = tn.rnn.LSTMBlockFusedCell(UNITS, use_peephole=True, cell_clip=0.75)
    outputs, last = fused(given, state, sequence_length=lengths)
    with tn.variable_scope(tn.get_variable_scope(), reuse=True):
        cell = tn.rnn.LSTMBlockCell(UNITS, use_peephole=True, cell_clip=0.75, reuse=True,
                                    name="lstm_fused_cell")
        unrolled, wanted = [], None
        steps = tn.unstack(tn.reshape(given, xs.shape))
        # Not static_rnn, which opens a scope of its own.
        from treenail.rnn._given import lengths_of
        from treenail.rnn._unrolled import _unroll
        unrolled, wanted = _unroll(cell, steps, tuple(state), lengths_of(lengths))
    loss = tn.reduce_sum(outputs * 2 + outputs ** 2)
    other = tn.reduce_sum(tn.stack(unrolled) * 2 + tn.stack(unrolled) ** 2)
    variables = tn.trainable_variables()
    assert len(variables) == 5
    with tn.Session() as session:
        for v in variables:
            session.run(v.assign(rng.uniform(-1, 1, v.shape.as_list())))
        a = session.run([outputs, last, tn.gradients(loss, variables)], {given: xs})
        b = session.run([tn.stack(unrolled), wanted, tn.gradients(other, variables)], {given: xs})
    np.testing.assert_allclose(a[0], b[0], rtol=1e-9, atol=1e-12)
    for ours, theirs in zip(list(a[1]) + a[2], list(b[1]) + b[2]):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-11)


def test_the_fused_layer_takes_a_list_and_gives_one(rng):
    xs = steps_of(rng, np.float32)
    outputs, _ = tn.rnn.LSTMBlockFusedCell(UNITS)(xs, dtype=tn.float32)
    assert len(outputs) == STEPS and outputs[0].shape.as_list() == [BATCH, UNITS]


@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_two_directions(rng, lengths):
    xs = steps_of(rng)
    cells = [tn.nn.rnn_cell.GRUCell(UNITS), tn.nn.rnn_cell.GRUCell(2)]
    outputs, fw, bw = tn.nn.static_bidirectional_rnn(*cells, xs, dtype=tn.float64,
                                                     sequence_length=lengths)
    (found, last_fw, last_bw), w = run_with_weights([outputs, fw, bw], rng)
    names = ["gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias"]

    def one(direction, order, units, row):
        h, ys = np.zeros((1, units)), {}
        for t in order:
            h = gru_step(xs[t][row:row + 1], h, *[w["bidirectional_rnn/%s/gru_cell/%s"
                                                    % (direction, name)] for name in names])
            ys[t] = h[0]
        return ys, h[0]
    for row in range(BATCH):
        length = STEPS if lengths is None else lengths[row]
        ys, h = one("fw", range(length), UNITS, row)
        zs, g = one("bw", reversed(range(length)), 2, row)
        np.testing.assert_allclose(last_fw[row], h, rtol=1e-8)
        np.testing.assert_allclose(last_bw[row], g, rtol=1e-8)
        for t in range(STEPS):
            wanted = (np.concatenate([ys[t], zs[t]]) if t < length else np.zeros(UNITS + 2))
            np.testing.assert_allclose(found[t][row], wanted, rtol=1e-8)


CELLS = tn.nn.rnn_cell
SEQUENCE_CELLS = {
    "basic": lambda: CELLS.BasicLSTMCell(UNITS, forget_bias=0.5),
    "basic joined": lambda: CELLS.BasicLSTMCell(UNITS, state_is_tuple=False),
    "lstm": lambda: CELLS.LSTMCell(UNITS, use_peepholes=True, cell_clip=0.5),
    "lstm block": lambda: tn.rnn.LSTMBlockCell(UNITS, use_peephole=True, cell_clip=0.5),
    "gru": lambda: CELLS.GRUCell(UNITS),
    "gru block": lambda: tn.rnn.GRUBlockCell(UNITS),
    "gru block 2": lambda: tn.rnn.GRUBlockCellV2(UNITS),
    "stack": lambda: CELLS.MultiRNNCell([
        CELLS.BasicLSTMCell(UNITS), CELLS.ResidualWrapper(CELLS.GRUCell(UNITS)),
        CELLS.DropoutWrapper(CELLS.DeviceWrapper(CELLS.LSTMCell(3), "/cpu:0"), seed=1)]),
}
STEP_CELLS = {
    "basic": lambda: CELLS.BasicRNNCell(UNITS),
    "relu": lambda: CELLS.GRUCell(UNITS, activation=tn.nn.relu),
    "projection": lambda: CELLS.LSTMCell(UNITS, num_proj=3),
    "joined stack": lambda: CELLS.MultiRNNCell(
        [CELLS.GRUCell(UNITS), CELLS.GRUCell(UNITS)], state_is_tuple=False),
    "of state": lambda: CELLS.ResidualWrapper(CELLS.GRUCell(SIZE), lambda x, y: x * y),
}


def leaves(structure):
    if isinstance(structure, (tuple, list)):
        return [leaf for part in structure for leaf in leaves(part)]
    return [structure]


@pytest.mark.parametrize("name", list(SEQUENCE_CELLS) + ["step " + n for n in STEP_CELLS])
@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("time_major", [False, True])
def test_dynamic_rnn_is_static_rnn(rng, name, lengths, time_major):
    """The same outputs, final states, variables and gradients."""
    whole = name in SEQUENCE_CELLS
    cell = SEQUENCE_CELLS[name]() if whole else STEP_CELLS[name[5:]]()
    axis = 0 if time_major else 1
    xs = np.stack(steps_of(rng), axis)
    given = tn.placeholder(tn.float64, [None, None, SIZE])
    outputs, state = tn.nn.dynamic_rnn(cell, given, lengths, dtype=tn.float64,
                                       time_major=time_major)
    variables = tn.trainable_variables()
    assert cell.trainable_variables == variables
    assert any(op.type in ("BlockLSTM", "BlockGRU")
               for op in tn.get_default_graph().get_operations()) == whole
    steps = tn.unstack(tn.constant(xs), axis=axis)
    parts, last = tn.nn.static_rnn(cell, steps, dtype=tn.float64, sequence_length=lengths)
    parts = tn.stack(parts, axis)
    assert tn.trainable_variables() == variables
    weights = rng.rand(*parts.shape.as_list())
    results = []
    for ys, final in ((outputs, state), (parts, last)):
        loss = tn.reduce_sum(ys * weights) + sum(tn.reduce_sum(s * s) for s in leaves(final))
        results.append([ys] + leaves(final) + tn.gradients(loss, variables))
    with tn.Session() as session:
        for v in variables:
            session.run(v.assign(rng.uniform(-1, 1, v.shape.as_list())))
        found, wanted = session.run(results, {given: xs})
    assert type(state) is type(last) and len(found) == len(wanted)
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-11)


def test_names_of_variables_are_those_of_steps(rng):
    xs = np.stack(steps_of(rng, np.float32))
    for make, names in (("gru", ["gru_cell/gates/kernel", "gru_cell/gates/bias",
                                 "gru_cell/candidate/kernel", "gru_cell/candidate/bias"]),
                        ("basic", ["basic_lstm_cell/kernel", "basic_lstm_cell/bias"])):
        with tn.Graph().as_default():
            tn.nn.dynamic_rnn(SEQUENCE_CELLS[make](), tn.constant(xs), dtype=tn.float32)
            assert [v.op.name for v in tn.trainable_variables()] == ["rnn/" + n for n in names]


def test_dropout_over_a_sequence(evaluate):
    """Noise is drawn for each step, or once for all where it is variational."""
    x = tn.ones([4, 2, 300])
    for variational in (False, True):
        cell = CELLS.DropoutWrapper(CELLS.ResidualWrapper(CELLS.GRUCell(300)), output_keep_prob=0.5,
                                    variational_recurrent=variational, dtype=tn.float32)
        outputs, _ = tn.nn.dynamic_rnn(cell, x, dtype=tn.float32, time_major=True,
                                       scope="v%d" % variational)
        dropped = evaluate(outputs) == 0
        assert 0.4 < dropped.mean() < 0.6
        assert (dropped == dropped[:1, :1]).all() == variational


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("make", [lambda: CELLS.GRUCell(UNITS), lambda: CELLS.BasicRNNCell(UNITS)])
def test_dynamic_rnn_in_two_directions(rng, lengths, make):
    xs = np.stack(steps_of(rng), 1)
    cells = [make(), make()]
    both, last = tn.nn.bidirectional_dynamic_rnn(*cells, xs, lengths, dtype=tn.float64)
    outputs, fw, bw = tn.nn.static_bidirectional_rnn(*cells, list(np.moveaxis(xs, 1, 0)),
                                                     dtype=tn.float64, sequence_length=lengths)
    (a, a_last, b, b_last), _ = run_with_weights([tn.concat(both, 2), list(last),
                                                  tn.stack(outputs, 1), [fw, bw]], rng)
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.array(a_last), np.array(b_last), rtol=1e-9)


def test_a_cell_of_ones_own(evaluate):
    class Counter(tn.nn.rnn_cell.RNNCell):
        state_size = (1, 1)
        output_size = 1

        def call(self, inputs, state):
            step = tn.get_variable("step", [], initializer=tn.constant_initializer(2.0))
            return inputs + state[0], (state[0] + step, state[1])
    outputs, state = tn.nn.static_rnn(Counter(), [tn.zeros([1, 1])] * 3, dtype=tn.float32)
    found = evaluate([outputs, state])
    assert [float(y[0, 0]) for y in found[0]] == [0, 2, 4] and float(found[1][0][0, 0]) == 6
    assert [v.op.name for v in tn.global_variables()] == ["rnn/counter/step"]


# --- Wrappers -------------------------------------------------------------------------------------

def identity_cell(size):
    """A cell whose outputs are its inputs and whose state is counted."""
    class Cell(tn.nn.rnn_cell.RNNCell):
        state_size = tn.nn.rnn_cell.LSTMStateTuple(size, size)
        output_size = size

        def call(self, inputs, state):
            return tn.identity(inputs), tn.nn.rnn_cell.LSTMStateTuple(state[0] + 1, state[1] + 1)
    return Cell()


def test_dropout_of_inputs_and_outputs(evaluate):
    cell = tn.nn.rnn_cell.DropoutWrapper(identity_cell(2000), input_keep_prob=0.5,
                                         output_keep_prob=0.5)
    outputs, _ = tn.nn.static_rnn(cell, [tn.ones([1, 2000])] * 2, dtype=tn.float32)
    a, b = evaluate(outputs)
    assert set(np.unique(a)) == {0.0, 4.0} and abs(np.mean(a > 0) - 0.25) < 0.05
    assert not np.array_equal(a, b)


def test_dropout_leaves_the_cell_of_an_lstm(evaluate):
    cell = tn.nn.rnn_cell.DropoutWrapper(identity_cell(500), state_keep_prob=0.5)
    _, state = tn.nn.static_rnn(cell, [tn.ones([1, 500])], dtype=tn.float32)
    c, h = evaluate(state)
    assert (c == 1).all() and set(np.unique(h)) == {0.0, 2.0}
    everything = tn.nn.rnn_cell.DropoutWrapper(identity_cell(500), state_keep_prob=0.5,
                                               dropout_state_filter_visitor=lambda _: True)
    _, state = tn.nn.static_rnn(everything, [tn.ones([1, 500])], dtype=tn.float32)
    assert set(np.unique(evaluate(state).c)) == {0.0, 2.0}


def test_variational_dropout_drops_the_same_in_each_step(evaluate):
    keep = tn.placeholder_with_default(tn.constant(0.5), [])
    cell = tn.nn.rnn_cell.DropoutWrapper(identity_cell(500), output_keep_prob=keep,
                                         variational_recurrent=True, dtype=tn.float32)
    outputs, _ = tn.nn.static_rnn(cell, [tn.ones([2, 500])] * 3, dtype=tn.float32)
    a, b, c = evaluate(outputs)
    assert set(np.unique(a)) == {0.0, 2.0}
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(b, c)
    np.testing.assert_array_equal(a[0], a[1])


def test_residual_and_device_wrappers(evaluate):
    x = tn.constant([[1.0, 2.0]])
    state = tn.nn.rnn_cell.LSTMStateTuple(x, x)
    cells = tn.nn.rnn_cell
    assert evaluate(cells.ResidualWrapper(identity_cell(2))(x, state)[0]).tolist() == [[2, 4]]
    product = cells.ResidualWrapper(identity_cell(2), lambda i, o: i * o * 3)
    assert evaluate(product(x, state)[0]).tolist() == [[3, 12]]
    output, _ = cells.DeviceWrapper(identity_cell(2), "/cpu:0")(x, state)
    assert "cpu:0" in output.device.lower() and evaluate(output).tolist() == [[1, 2]]


@pytest.mark.parametrize("make, message", [
    (lambda c: c.BasicLSTMCell(0), "num_units must be a positive int, not 0"),
    (lambda c: c.GRUCell(2.5), "num_units must be a positive int, not 2.5"),
    (lambda c: c.LSTMCell(2, num_unit_shards=2), "variables live on one device"),
    (lambda c: c.MultiRNNCell([]), "at least one cell"),
    (lambda c: c.MultiRNNCell([c.LSTMCell(2)], state_is_tuple=False), "state_is_tuple is not set"),
    (lambda c: c.DropoutWrapper(c.GRUCell(2), 1.5), "input_keep_prob must be between 0 and 1"),
    (lambda c: c.DropoutWrapper(c.GRUCell(2), 0.5, variational_recurrent=True), "dtype must be"),
    (lambda c: c.DropoutWrapper(c.GRUCell(2), 0.5, variational_recurrent=True, dtype=tn.float32),
     "input_size must be provided"),
    (lambda c: c.GRUCell(2)(tn.zeros([2, 3, 4]), tn.zeros([2, 2])), "must have rank 2"),
    (lambda c: c.GRUCell(2)(tn.placeholder(tn.float32), tn.zeros([2, 2])), "to be known"),
    (lambda c: c.LSTMCell(2)(tn.zeros([1, 2]), tn.zeros([1, 4])), r"must be a tuple \(c, h\)"),
    (lambda c: tn.nn.static_rnn(c.GRUCell(2), [], dtype=tn.float32), "must not be empty"),
    (lambda c: tn.nn.static_rnn(c.GRUCell(2), [tn.zeros([1, 1])]), "must give a dtype"),
    (lambda c: tn.rnn.LSTMBlockFusedCell(2)(tn.zeros([2, 3])), r"must be \[time, batch, size\]"),
    (lambda c: tn.rnn.LSTMBlockFusedCell(2)(tn.zeros([2, 3, 4])), "initial_state or dtype"),
    (lambda c: tn.rnn.GRUBlockCell(), "one of num_units and cell_size"),
])
def test_misuse(make, message):
    with pytest.raises(ValueError, match=message):
        make(tn.nn.rnn_cell)


@pytest.mark.parametrize("make", [
    lambda: tn.nn.static_rnn("GRU", [tn.zeros([1, 1])], dtype=tn.float32),
    lambda: tn.nn.static_rnn(tn.nn.rnn_cell.GRUCell(2), tn.zeros([1, 1]), dtype=tn.float32),
    lambda: tn.nn.rnn_cell.DropoutWrapper("GRU"),
    lambda: tn.nn.rnn_cell.MultiRNNCell(["GRU"])])
def test_what_is_not_a_cell(make):
    with pytest.raises(TypeError):
        make()


@pytest.mark.parametrize("long", [
    lambda: tn.nn.dynamic_rnn(tn.rnn.LSTMBlockCell(256), tn.fill([40_000, 1, 256], 0.1),
                              dtype=tn.float32, time_major=True)[1].h,
    lambda: tn.nn.log_uniform_candidate_sampler(tn.constant([[0]], dtype=tn.int64), 1, 990_000,
                                                True, 1_000_000)[0]])
def test_what_takes_long_ends_at_ctrl_c(long):
    fetch = long()
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        begin = monotonic()
        with pytest.raises(KeyboardInterrupt):
            session.run(fetch)
        assert monotonic() - begin < 3
