# SPDX-License-Identifier: Apache-2.0
"""Errors: the corpus of mistakes, the classes, and where an operation was created."""

import os
import pickle
import re

import pytest
from error_corpus import CORPUS

import treenail as tn


@pytest.mark.parametrize("name,call,error,text", CORPUS, ids=[entry[0] for entry in CORPUS])
def test_mistakes(name, call, error, text):
    with tn.Session() as sess:
        with pytest.raises(error) as info:
            call(sess)
        message = getattr(info.value, "message", str(info.value))
        assert re.search(text, message, re.DOTALL), message
        assert "\\x" not in message and len(message) < 2000
    # Whatever happened, the process goes on.
    with tn.Graph().as_default(), tn.Session() as sess:
        assert sess.run(tn.constant(1) + 1) == 2


@pytest.mark.parametrize("code,name,base", [(1, "Cancelled", Exception), (2, "Unknown", Exception),
                                            (3, "InvalidArgument", ValueError),
                                            (4, "DeadlineExceeded", TimeoutError),
                                            (5, "NotFound", LookupError),
                                            (6, "AlreadyExists", Exception),
                                            (7, "PermissionDenied", PermissionError),
                                            (8, "ResourceExhausted", MemoryError),
                                            (9, "FailedPrecondition", RuntimeError),
                                            (10, "Aborted", Exception),
                                            (11, "OutOfRange", Exception),
                                            (12, "Unimplemented", NotImplementedError),
                                            (13, "Internal", Exception),
                                            (14, "Unavailable", Exception),
                                            (15, "DataLoss", Exception),
                                            (16, "Unauthenticated", Exception)])
def test_classes(code, name, base):
    cls = getattr(tn.errors, name + "Error")
    error = cls(None, None, "what happened")
    assert isinstance(error, (base, tn.errors.OpError)) and issubclass(cls, base)
    assert (error.message, error.error_code, error.op, str(error)) == (
        "what happened", code, None, "what happened")
    assert tn.errors.exception_type_from_error_code(code) is cls
    assert tn.errors.error_code_from_exception_type(cls) == code
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls and again.message == error.message
    assert tn.OpError is tn.errors.OpError


def _helper():
    return tn.placeholder(tn.float32, [3], name="input")  # THE PLACE


def test_an_error_tells_where_the_operation_was_created():
    y = tn.exp(_helper())
    with tn.Session() as sess, pytest.raises(tn.errors.InvalidArgumentError) as info:
        sess.run(y)
    error = info.value
    assert error.op is tn.get_default_graph().get_operation_by_name("input")
    assert error.node_def == "input" and "created at" not in error.message
    text = str(error)
    assert "op 'input' was created at:" in text and "# THE PLACE" in text
    assert "test_errors.py" in text and "in _helper" in text
    # Outermost first, and no frame of the package.
    assert text.index("test_an_error_tells") < text.index("in _helper")
    assert os.path.dirname(tn.__file__) not in text.split("created at:")[1]


def test_the_place_is_kept_for_every_operation():
    def deep(n):
        return deep(n - 1) if n else tn.constant(1)
    op = deep(40).op
    assert len(op._creation) == 16 and all(f[2] == "deep" for f in op._creation)
    assert tn.Graph().create_op("NoOp")._creation[-1][2] == (
        "test_the_place_is_kept_for_every_operation")


def test_an_error_while_building_points_at_the_caller():
    with pytest.raises(tn.errors.InvalidArgumentError) as info:
        tn.matmul(tn.zeros([2, 3]), tn.zeros([2, 3]), name="product")
    assert info.value.op is None and info.value.message.startswith('[MatMul node "product"] ')


def test_the_lowest_failing_operation_is_reported():
    x = tn.placeholder(tn.int32, [])
    first = tn.floordiv(1, x, name="first")
    outcome = set()
    fetches = [tn.floordiv(first + i, x, name="later%d" % i) for i in range(20)] + [first]
    with tn.Session() as sess:
        for _ in range(20):
            with pytest.raises(ValueError) as info:
                sess.run(fetches, {x: 0})
            outcome.add(info.value.message)
    assert len(outcome) == 1 and '"first"' in outcome.pop()
