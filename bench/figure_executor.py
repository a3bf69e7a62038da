# SPDX-License-Identifier: Apache-2.0
"""Overhead of the executor per node, from C++: bench/executor, a Google Benchmark program."""

import os

from harness import Outcome, Row, benchmarks


def medians(program: str, rounds: int) -> dict:
    found = {}
    for entry in benchmarks(program, "--benchmark_min_time=0.1",
                            "--benchmark_repetitions=%d" % rounds,
                            "--benchmark_report_aggregates_only=true",
                            "--benchmark_enable_random_interleaving=true"):
        if entry["aggregate_name"] == "median":
            assert entry["time_unit"] == "ns"
            found[entry["run_name"]] = entry["real_time"]
    return found


def measure(build: str, rounds: int) -> Outcome:
    outcome = Outcome()
    program = os.path.join(build, "bench/executor_bench")
    if not os.path.exists(program):
        outcome.skipped.append("executor: no %s; `ninja bench` builds it where Google Benchmark is "
                               "installed" % program)
        return outcome
    found = medians(program, max(3, rounds))
    outcome.rows.append(Row("Session::run of a one-op graph, from C++", found["run_chain/1"] / 1e3,
                            "µs"))
    per_node = (found["run_chain/1000"] - found["run_chain/1"]) / 999
    outcome.rows.append(Row("each further node of a chain (negate one float)", per_node, "ns"))
    per_node = (found["run_wide/1000"] - found["run_wide/1"]) / 999
    outcome.rows.append(Row("each further independent node", per_node, "ns"))
    at_once = found["execute"] / 1e3
    outcome.rows.append(Row("immediate execution of one op, from C++", at_once, "µs"))
    return outcome
