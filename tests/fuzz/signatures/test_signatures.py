# SPDX-License-Identifier: Apache-2.0
"""Every public function and method, called with what its parameters may not be: refused by an
exception as refusal_rule.py asks. Never does the process end.

The calls are the same each time; TREENAIL_SIGNATURE_SEEDS="40" asks for more than 20 of each,
"100-120" for others.
"""

import os
import pickle
import resource
import signal
import sys
import warnings

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import public_calls  # noqa: E402  (the path must be set first)
import refusal_rule  # noqa: E402

FIRST, _, LAST = os.environ.get("TREENAIL_SIGNATURE_SEEDS", "20").rpartition("-")
SEEDS = range(int(FIRST or 0), int(LAST))
MEMORY = 3 << 30  # bytes of addresses: a huge number is refused where memory is asked for


def call_all(calls, folder):
    """In a child: writes down each call before it is made, and what was wrong with it."""
    os.chdir(folder)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if "san.so" not in os.environ.get("LD_PRELOAD", ""):  # sanitizers reserve addresses
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    problems = []
    with open("at", "wb", 0) as at:
        for name in sorted(calls):
            for seed in SEEDS:
                at.seek(0)
                at.write(("%s, seed %d" % (name, seed)).ljust(200).encode())
                problem = public_calls.attempt(calls[name], seed)
                if problem:
                    problems.append(problem)
    with open("problems", "wb") as stream:
        pickle.dump(problems, stream)


def test_there_are_functions_and_methods_to_call():
    calls = public_calls.public_calls().values()
    methods = [call for call in calls if call.cls is not None]
    assert len(calls) - len(methods) > 800 and len(methods) > 200


@pytest.mark.parametrize("error,why", [
    (TypeError("'int' object is not iterable"), "names neither"),
    (TypeError("reduce_sum(): 'int' object is not iterable"), "does not say what was given"),
    (AttributeError("reduce_sum(): axis must be an int, not 'abc'"), "no class"),
    (NotImplementedError("reduce_sum(): axis must be an int, not 'abc'"), "no class"),
    (FileNotFoundError("reduce_sum(): 'abc'"), "no class"),
    (TypeError("reduce_sum(): axis must be an int, not 'abc'"), None),
    (ValueError("axis must be an int, not 'abc'"), None),
    (public_calls.tn.errors.NotFoundError(None, None, "[Sum node \"s\"] x"), None),
])
def test_the_rule_of_refusals(error, why):
    call = public_calls.Call("treenail.reduce_sum", public_calls.tn.reduce_sum)
    wrong = refusal_rule.problem(error, call, {"axis": "abc"})
    assert wrong is None if why is None else wrong.startswith(why)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_every_public_call_is_refused_as_documented(tmp_path):
    calls = public_calls.public_calls()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            call_all(calls, tmp_path)
            status = 0
        finally:
            os._exit(status)
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    at = (tmp_path / "at").read_text(encoding="utf-8").strip()
    how = signal.Signals(-ended).name if ended < 0 else "status %d" % ended
    assert ended == 0, "the process ended (%s) in %s" % (how, at)
    problems = pickle.loads((tmp_path / "problems").read_bytes())
    assert problems == []
