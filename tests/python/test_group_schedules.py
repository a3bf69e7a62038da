# SPDX-License-Identifier: Apache-2.0
"""Training in groups of processes under random schedules of faults: none hangs; either all ranks
that live end with the bits of one process, or each with an error that names a rank
(group_schedules.py).

TREENAIL_FAULT_SEEDS="200" asks for more than 4 schedules of each transport,
TREENAIL_FAULT_SEED="17" for those from the seed 17 on; -s tells each.
"""

import os
import tempfile
import time

import pytest

import treenail as tn
from group_schedules import LAST, LOST, NAMES_A_RANK, SIZE, Schedule, Training, alone

FIRST = int(os.environ.get("TREENAIL_FAULT_SEED", "0"))
COUNT = int(os.environ.get("TREENAIL_FAULT_SEEDS", "4"))
MODES = ["shared_memory"] + ["grpc"] * ("grpc" in tn.build_info()["features"])


@pytest.fixture(scope="module")
def expected():
    return alone()


def check_values(found, done, expected):
    """A variable moved with the last step that was made, or with the one in which a rank was lost,
    of which some gradients may have been there."""
    for name, value in found.items():
        allowed = expected[done:min(done + 2, LAST + 1)]
        assert any(value.tobytes() == each[name].tobytes() for each in allowed), (name, done)


def check_errors(lost, schedule):
    """Each names a rank, and one of them one to which something was done."""
    for kind, text in lost:
        assert kind in LOST and NAMES_A_RANK.search(text), (kind, text)
    named = {int(rank) for _, text in lost for rank in NAMES_A_RANK.findall(text)}
    assert named & {rank for _, _, _, rank, _ in schedule.faults}, (named, lost)


def outcome(results, schedule, expected):
    """What became of it. Raises AssertionError for what must not."""
    living = [result for rank, result in enumerate(results) if rank not in schedule.killed]
    assert None not in living
    left = [result for result in results if result is not None]  # one may end before it is killed
    for done, _, values in left:
        check_values(values, done, expected)
    steps, lost = [done for done, _, _ in left], [said for _, said, _ in left if said[0]]
    assert max(steps) - min(steps) <= 1, left_words(left)
    if not lost:
        assert steps == [LAST] * len(left)
        return "ended"
    assert not schedule.is_brief, left_words(left)
    check_errors(lost, schedule)
    if len(lost) < len(left):  # who had all of the last step has ended, and said so
        assert max(steps) == LAST, left_words(left)
        return "ended for some"
    return "told"


def left_words(left):
    return [(done, said) for done, said, _ in left]


@pytest.mark.parametrize("mode", MODES)
def test_random_schedules(mode, expected):
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    told = []
    for seed in range(FIRST, FIRST + COUNT):
        schedule = Schedule(seed, over_links=mode == "grpc")
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(dir=memory) as directory:
            print(mode, "seed", seed, schedule, end=": ", flush=True)
            training = Training(directory, seed, schedule, over_links=mode == "grpc")
            results = training.run()
            assert len(results) == SIZE
            told.append(outcome(results, schedule, expected))
        print("%s, %.2f s" % (told[-1], time.monotonic() - begun), flush=True)
    assert COUNT < 4 or {"ended", "told"} <= set(told)
