# SPDX-License-Identifier: Apache-2.0
"""Branches, loops and calls of which no value is read: what a target or a control edge asks for is
done, as in TensorFlow 1, and what nobody asks for is not."""

import pytest
import treenail as tn


def branch(v, chosen):
    return tn.cond(chosen, lambda: v.assign_add(1.0), lambda: v.assign_sub(1.0))


def branch_with_an_effect_inside(v, chosen):
    def effect(change):
        with tn.control_dependencies([change(1.0)]):
            return tn.constant(5.0)
    return tn.cond(chosen, lambda: effect(v.assign_add), lambda: effect(v.assign_sub))


def inner_branch(v, chosen):
    return tn.cond(chosen, lambda: branch(v, chosen) * 2.0, lambda: tn.identity(branch(v, chosen)))


def inner_branch_awaited(v, chosen):
    def waiting():
        with tn.control_dependencies([branch(v, chosen).op]):
            return tn.constant(0.0)
    return tn.cond(chosen, waiting, waiting)


def case(v, chosen):
    return tn.switch_case(tn.where(chosen, 0, 1),
                          [lambda: v.assign_add(1.0), lambda: v.assign_sub(1.0)])


def call(v, chosen):
    return tn.function(lambda: branch(v, chosen))()


def call_of_what_is_not_returned(v, chosen):
    def change():
        branch(v, chosen)
        return tn.constant(1)
    return tn.function(change)()


def loop(v, chosen):
    def step(i, _):
        return i + 1, tn.identity(branch(v, chosen))
    return tn.while_loop(lambda i, _: i < 1, step, (0, tn.constant(0.0)))[0]


EFFECTS = [branch, branch_with_an_effect_inside, inner_branch, inner_branch_awaited, case, call,
           call_of_what_is_not_returned, loop]


def wait(tensor):
    with tn.control_dependencies([tensor]):
        return tn.no_op()


def wait_for_operation(tensor):
    with tn.control_dependencies([tensor.op]):
        return tn.constant(3.0)


ASKED = {"target": lambda tensor: tensor.op, "control edge": wait,
         "control edge of a value": wait_for_operation, "group": tn.group,
         "tuple": lambda tensor: tn.tuple([tn.constant(0.0)], control_inputs=[tensor.op])}


@pytest.mark.parametrize("asked", sorted(ASKED))
@pytest.mark.parametrize("effect", EFFECTS)
def test_an_effect_that_is_asked_for(effect, asked):
    with tn.Graph().as_default(), tn.Session() as session:
        v = tn.Variable(0.0)
        chosen = tn.placeholder(tn.bool, [])
        fetch = ASKED[asked](effect(v, chosen))
        session.run(tn.global_variables_initializer())
        for given, total in ((True, 1.0), (True, 2.0), (False, 1.0)):
            session.run(fetch, {chosen: given})
            assert session.run(v.read_value()) == total


def test_printing_in_a_branch(capfd):
    with tn.Graph().as_default(), tn.Session() as session:
        chosen = tn.placeholder(tn.bool, [])
        y = tn.cond(chosen, lambda: tn.Print(1.0, ["chosen"]), lambda: tn.constant(0.0))
        session.run(y.op, {chosen: True})
        assert "chosen" in capfd.readouterr().err
        session.run(y.op, {chosen: False})
        assert "chosen" not in capfd.readouterr().err


def two_results(v):
    return tn.cond(tn.placeholder_with_default(True, []),
                   lambda: (tn.constant(1.0), v.assign_add(1.0)),
                   lambda: (tn.constant(2.0), tn.constant(0.0)))


def test_an_effect_on_the_way_to_no_value_that_is_fetched():
    with tn.Graph().as_default(), tn.Session() as session:
        v = tn.Variable(0.0)
        first, second = two_results(v)
        session.run(tn.global_variables_initializer())
        assert session.run(first) == 1.0
        assert session.run(v.read_value()) == 0.0
        # Beside a read, which is put in order with the branch: by no edge of the program.
        session.run([first, v.read_value()])
        assert session.run(v.read_value()) == 0.0
        session.run([first, second])
        assert session.run(v.read_value()) == 1.0
        session.run([first, first.op])
        assert session.run(v.read_value()) == 2.0
