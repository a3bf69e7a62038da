# SPDX-License-Identifier: Apache-2.0
"""The benchmark's bookkeeping: who takes part, who is the fastest, and what becomes of a guest that
fails. Frameworks are stood in for by small programs."""

import types

import pytest

SERVES = """
def answer(request):
    if request["what"] == "die":
        os._exit(3)
    if request["what"] == "print":
        print("a framework is talkative")
        os.system("echo and so is its library")
    if request["what"] == "raise":
        raise ValueError("no such\\nthing")
    return {"seconds": SECONDS, "answer": request["what"]}

harness.serve({"version": "1"}, answer)
"""


def serving(seconds=1.0):
    return SERVES.replace("SECONDS", repr(seconds))


@pytest.fixture
def pair(start):
    """Ours and a guest."""
    return [start("treenail", serving(2.0)), start("guest, 1 thread", serving(1.0), guest=True)]


def test_what_a_framework_prints_is_no_answer(start):
    assert start("talkative", serving()).ask(what="print")["answer"] == "print"


@pytest.mark.parametrize("what, reason", [
    ("die", "guest, 1 thread: the process ended with status 3"),
    ("raise", "guest, 1 thread: ValueError: no such thing")])
def test_a_guest_that_fails_is_left_out_with_the_reason(bench, pair, what, reason):
    ours, guest = pair
    left_out = []
    with pytest.raises(bench.harness.Failed):
        guest.ask(what=what)
    assert guest.alive == (what == "raise")
    if what == "die":
        assert bench.harness.ask_all(pair, left_out, what="x")["treenail"]["answer"] == "x"
    else:
        assert bench.harness.ask_all([guest], left_out, what=what) == {}
        pair.remove(guest)
    assert pair == [ours]
    assert left_out == [reason]


@pytest.mark.parametrize("what", ["die", "raise"])
def test_a_failure_of_ours_ends_the_benchmark(bench, start, what):
    with pytest.raises(bench.harness.Failed, match="^treenail: "):
        bench.harness.ask_all([start("treenail", serving())], [], what=what)


def test_a_guest_that_does_not_start_says_why(bench, start):
    with pytest.raises(bench.harness.Failed,
                       match="guest: the process ended with status 1: RuntimeError: no GPU"):
        start("guest", "raise RuntimeError('no GPU')\n", guest=True)


def test_what_is_absent_is_told_from_what_failed(bench, start):
    with pytest.raises(bench.harness.Absent, match="peer: No module named torch"):
        start("peer", "harness.serve({'absent': 'No module named torch'}, None)\n")


def test_interleaved_rounds_go_on_without_a_guest_that_died(bench, pair):
    left_out = []
    with pytest.raises(bench.harness.Failed):
        pair[1].ask(what="die")
    found = bench.harness.interleave(pair, 2, left_out, what="train")
    assert found == {"treenail": 2.0}
    assert len(left_out) == 1 and len(pair) == 1


def member(name, guest=True, counted=True):
    return types.SimpleNamespace(name=name, guest=guest, counted=counted)


def test_the_fastest_peer_is_the_one_to_be_ahead_of(bench):
    workers = [member("treenail", False), member("slow", False), member("fast"), member("middle")]
    found = {"treenail": 0.001, "slow": 0.009, "fast": 0.003, "middle": 0.004}
    row = bench.harness.Best().row("work", found, workers, 2.0)
    assert (row.ours, row.peer, row.peer_name) == (1.0, 3.0, "fast")
    assert row.verdict == "met" and row.ratio == pytest.approx(3)
    assert row.everyone == {"slow": 9.0, "fast": 3.0, "middle": 4.0}
    assert row.progress == "  work: 1.000 ms; fast 3.000 ms"


def test_a_tuned_peer_is_shown_and_not_counted(bench):
    workers = [member("treenail", False), member("usual", False), member("tuned", counted=False)]
    found = {"treenail": 0.001, "usual": 0.009, "tuned": 0.0005}
    row = bench.harness.Best().row("work", found, workers, 2.0)
    assert row.peer_name == "usual" and row.everyone["tuned"] == 0.5


def test_at_two_threads_a_peer_may_be_faster_with_one(bench):
    best = bench.harness.Best()
    best.row("work", {"t": 2.0, "p, 1 thread": 3.0}, [member("t"), member("p, 1 thread")], 1.0)
    row = best.row("work", {"t": 1.0, "p, 2 threads": 4.0}, [member("t"), member("p, 2 threads")],
                   1.0)
    assert row.peer_name == "p, 1 thread" and list(row.everyone) == ["p, 2 threads"]


def test_without_guests_a_row_has_no_table_of_all(bench):
    workers = [member("treenail", False), member("torch", False)]
    row = bench.harness.Best().row("work", {"treenail": 1.0, "torch": 2.0}, workers, 1.0)
    assert row.everyone == {} and bench.run.side_by_side([row]) == []


@pytest.mark.parametrize("values", [[1.0, 2.1], [1.0, float("nan")], [1.0]])
def test_who_computes_something_else_does_not_take_part(bench, values):
    reference = [1.0, 2.0]
    for guest in (True, False):
        workers = [member("treenail", False), member("other", guest), member("good")]
        left_out = []
        answers = {"treenail": reference, "other": values, "good": [1.0, 2.0001]}
        if guest:
            bench.harness.hold_together(workers, "losses", answers, 1e-3, 1.0, left_out)
            assert [worker.name for worker in workers] == ["treenail", "good"]
            assert "other: does not compute the same losses as treenail" in left_out[0]
        else:
            with pytest.raises(RuntimeError, match="does not compute the same losses"):
                bench.harness.hold_together(workers, "losses", answers, 1e-3, 1.0, left_out)


def test_a_work_that_a_framework_does_not_have_is_passed_over(bench, start):
    has = start("treenail", "harness.serve({}, lambda request: {'digests': [1.0]})\n")
    lacks = start("guest", "harness.serve({}, lambda request: {'absent': 'fft'})\n", guest=True)
    workers, left_out = [has, lacks], []
    bench.figure_works.start(bench.figure_works.works.WORKS[0], workers, left_out)
    assert workers == [has] and left_out == [] and lacks.alive


def test_what_is_promised_depends_on_who_runs_beside(bench):
    by_kind = {work.kind: work for work in bench.figure_works.works.WORKS}
    assert [by_kind["chain"].wanted(2, guests) for guests in (False, True)] == [10, 2]
    assert [by_kind["softmax"].wanted(2, guests) for guests in (False, True)] == [1, 1]


def test_inference_engines_do_not_train(bench):
    guests = bench.pypi.Guests({"onnxruntime": "/nowhere/bin/python"})

    def packages(training):
        found = bench.peers.starts("network", [], 1, guests, training)
        return [start.args[0].package for start in found
                if start.func is bench.peers.guest_worker]

    assert packages(True) == [] and packages(False) == ["onnxruntime"]


def test_tuned_allocators_run_only_beside_guests(bench):
    def tuned(guests):
        return [start for start in bench.peers.starts("network", [], 1, guests, True)
                if start.keywords.get("tuned")]

    assert tuned(bench.pypi.NOBODY) == []
    assert tuned(bench.pypi.Guests({"jax": "/nowhere/bin/python"}))


@pytest.mark.parametrize("kind, package, expected", [
    ("works", "jax", {"torch", "numpy"}), ("network", "jax", {"torch"}),
    ("works", None, {"torch"})])
def test_numpy_does_single_operations_beside_guests(bench, kind, package, expected):
    guests = bench.pypi.Guests({package: "/nowhere/bin/python"} if package else {})
    found = {start.args[0] for start in bench.peers.starts(kind, [], 1, guests, False)
             if start.func is bench.peers.packaged_worker}
    assert found == expected


def test_a_missed_promise_is_explained(bench):
    outcome = bench.harness.Outcome()
    for figure, ours in (("CNN, 1 thread", 3.0), ("CNN, 2 threads", 1.0), ("MLP, 1 thread", 1.0)):
        row = bench.harness.Row(figure, ours, "ms", wanted=1.0)
        row.beside({"torch": 2.0})
        outcome.rows.append(row)
    outcome.explain({"CNN": "bounded by products", "MLP": "bounded by memory", "LSTM": "unknown"})
    assert outcome.notes == ["bounded by products"]
