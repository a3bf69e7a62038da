# SPDX-License-Identifier: Apache-2.0
"""What the tests of patches have in common; patching/trial.py says how they are run.

A test is a module with one function per kind of thing that it can look at, and `main` at its end:

    def tree(path): ...      # returns where the defect is gone, else calls failed("what is wrong")
    def prefix(path): ...    # left out where an installation does not show it
    patchtest.main(tree=tree, prefix=prefix)
"""

import os
import shutil
import subprocess
import sys
from typing import Callable, Dict, List, NoReturn, Optional

CANNOT_TELL = 77


def failed(text: str) -> NoReturn:
    """The defect is there."""
    print("failed: " + text)
    sys.exit(1)


def cannot_tell(text: str) -> NoReturn:
    """Something is missing here that the test needs."""
    print("not tested: " + text)
    sys.exit(CANNOT_TELL)


def need(program: str, package: str) -> str:
    """The path of a program."""
    found = shutil.which(program)
    if not found:
        cannot_tell("%s is not installed (%s)" % (program, package))
    return found


def run(command: List[str], status: Optional[int] = 0, cwd: Optional[str] = None,
        environment: Optional[Dict[str, str]] = None) -> "subprocess.CompletedProcess[str]":
    """A finished process, its output one text. Another exit status than `status` is no answer of
    the test's: it raises."""
    done = subprocess.run(command, cwd=cwd, env=dict(os.environ, **(environment or {})),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
                          check=False)
    if status is not None and done.returncode != status:
        raise RuntimeError("%s: exit status %d\n%s" % (
            " ".join(command), done.returncode, done.stdout[-3000:]))
    return done


def main(**kinds: Callable[[str], None]) -> NoReturn:
    """Runs the function for the kind that the command line names."""
    if len(sys.argv) != 3 or sys.argv[1] not in ("tree", "prefix"):
        sys.exit("usage: %s tree SOURCE | prefix INSTALLATION" % sys.argv[0])
    kind, path = sys.argv[1], os.path.abspath(sys.argv[2])
    if kind not in kinds:
        cannot_tell("only a %s shows it" % " or a ".join(sorted(kinds)))
    kinds[kind](path)
    print("the defect is not there")
    sys.exit(0)
