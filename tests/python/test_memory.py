# SPDX-License-Identifier: Apache-2.0
"""Running out of memory: an error that says who asked for how much, and a process that goes on."""

import os
import subprocess
import sys

import pytest

_LIMITED = """
import numpy as np
import treenail as tn
%s
with tn.Session() as sess:
    for _ in range(2):
        try:
            run(sess)
        except tn.errors.ResourceExhaustedError as error:
            print(error.message.splitlines()[0])
    print(sess.run(tn.constant(1) + 1))
"""


@pytest.mark.parametrize("program,words", [
    ("p = tn.placeholder(tn.float32, [None, 1], name='p')\n"
     "y = tn.reduce_sum(tn.matmul(p, p, transpose_b=True, name='wide') * 2.0)\n"
     "def run(sess): sess.run(y, {p: np.ones((60000, 1))})",
     ["float32[60000,60000]", "[MatMul node \"wide\"]"]),
    ("v = tn.get_variable('huge', [2 ** 40])\n"
     "def run(sess): sess.run(tn.global_variables_initializer())", ["huge"]),
    ("y = tn.fill([2 ** 20, 2 ** 10], 1.0, name='filled')\n"
     "def run(sess): sess.run(y)", ["[Fill node \"filled\"]"]),
], ids=["arena", "initializer", "fetch"])
def test_out_of_memory_names_the_op(program, words):
    environment = dict(os.environ, TREENAIL_MEMORY_LIMIT="512M")
    done = subprocess.run([sys.executable, "-c", _LIMITED % program], stdout=subprocess.PIPE,
                          env=environment, text=True, timeout=300, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 3 and lines[2] == "2", done.stdout
    for line in lines[:2]:
        for word in ["out of memory", "bytes asked"] + words:
            assert word in line, line
