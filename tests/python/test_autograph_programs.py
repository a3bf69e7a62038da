# SPDX-License-Identifier: Apache-2.0
"""Random programs, converted: on Python values and on tensors they give what the plain ones give.

TREENAIL_PROGRAM_SEEDS="400" asks for more than 40, "100-120" for others.
"""

import os

import pytest

import treenail as tn
from random_programs import Program
from treenail.autograph._entry import converted

FIRST, _, LAST = os.environ.get("TREENAIL_PROGRAM_SEEDS", "40").rpartition("-")
ARGUMENTS = [(n, a, b) for n in (0, 1, 2, 4) for a in (-2, 3) for b in (0, 5)]


@pytest.mark.parametrize("seed", range(int(FIRST or 0), int(LAST)))
def test_a_random_program(seed):
    program = Program(seed)
    plain = program.function()
    function = converted(plain)
    wanted = [plain(*arguments) for arguments in ARGUMENTS]
    assert [function(*arguments) for arguments in ARGUMENTS] == wanted, program.source
    with tn.Graph().as_default():
        feeds = [tn.placeholder(tn.int32, []) for _ in range(3)]
        result = tn.convert_to_tensor(function(*feeds))
        with tn.Session() as session:
            for arguments, want in zip(ARGUMENTS, wanted):
                got = session.run(result, dict(zip(feeds, arguments)))
                assert got == want or abs(want) >= 2 ** 31, (program.source, arguments)
