# SPDX-License-Identifier: Apache-2.0
"""What `import treenail` costs over a bare interpreter, in time and in resident memory.

Bytecode is there, as in an installation: the first, uncounted import writes it.
"""

import os
import subprocess
import sys
import tempfile
import time
from typing import Dict, Tuple

from harness import Outcome, Row, alternate

PROGRAM = """import sys
%s
sys.stdout.write(next(l.split()[1] for l in open("/proc/self/status") if l.startswith("VmRSS")))
"""
IMPORTS = {"bare": "", "treenail": "import treenail", "torch": "import torch"}


def start(statement: str, bytecode: str) -> Tuple[float, float]:
    """Seconds from start to end of a process, and its resident MiB after the import."""
    environment = dict(os.environ, PYTHONPYCACHEPREFIX=bytecode)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", PROGRAM % statement], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, env=environment)
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        raise ImportError(done.stderr.decode(errors="replace").strip().splitlines()[-1])
    return seconds, int(done.stdout) / 1024


def measure(rounds: int) -> Outcome:
    with tempfile.TemporaryDirectory() as bytecode:
        return measure_with(bytecode, rounds)


def measure_with(bytecode: str, rounds: int) -> Outcome:
    outcome = Outcome()
    statements = dict(IMPORTS)
    resident: Dict[str, float] = {}
    for name, statement in IMPORTS.items():  # files come into the cache; what is absent shows
        try:
            resident[name] = start(statement, bytecode)[1]
        except ImportError as error:
            if name != "torch":
                raise
            outcome.skipped.append("torch: %s" % error)
            del statements[name]
    seconds = alternate({name: (lambda s=statement: start(s, bytecode)[0])  # type: ignore[misc]
                         for name, statement in statements.items()}, 2 * rounds + 1)

    def over(values: Dict[str, float], name: str) -> float:
        return values[name] - values["bare"]

    rows = [Row("import treenail, over a bare Python", over(seconds, "treenail") * 1e3, "ms", 40.0),
            Row("resident memory after it, over a bare Python", over(resident, "treenail"), "MiB",
                30.0)]
    if "torch" in statements:
        rows[0].peer, rows[0].peer_name = over(seconds, "torch") * 1e3, "import torch"
        rows[1].peer, rows[1].peer_name = over(resident, "torch"), "import torch"
    rows[0].note = "bare Python: %.1f ms" % (seconds["bare"] * 1e3)
    outcome.rows = rows
    return outcome
