# SPDX-License-Identifier: Apache-2.0
"""Start a program as a group of processes of its own, and end the whole group."""

import os
import signal
import subprocess
from contextlib import contextmanager
from typing import Any, Iterator, Sequence, Tuple

# As Ctrl-C would, then firmly, then for good; with the seconds to wait after each.
GENTLY = ((signal.SIGINT, 20.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, None))


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C takes effect at the end of the block, so that what it starts is known by then."""
    seen = []
    previous = {number: signal.signal(number, lambda number, _: seen.append(number))
                for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if seen:
        raise KeyboardInterrupt


@contextmanager
def group(words: Sequence[str], ending: Sequence[Tuple[int, Any]] = GENTLY,
          **more: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """The running program, its output in a pipe; what is left of it is ended with the block."""
    process = None
    try:
        with interrupts_held():
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, start_new_session=True, **more)
        yield process
    finally:
        if process is not None:
            end(process, ending)
            process.stdout.close()  # type: ignore


def end(process: "subprocess.Popen[bytes]", ending: Sequence[Tuple[int, Any]]) -> None:
    """Sends these signals, one after another, until no process of the group is left."""
    for number, seconds in ending:
        try:
            os.killpg(process.pid, number)
            process.wait(seconds)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait()
