# SPDX-License-Identifier: Apache-2.0
"""Other programs, and the one exception that a user sees as a sentence."""

import os
import shutil
import subprocess


class RepositoryError(Exception):
    """Something that the user or the host must change; the text says what."""


def missing(programs):
    """Those of the programs that PATH does not have, sorted."""
    return sorted(name for name in programs if not shutil.which(name))


def output(command, cwd=None, environment=None, what=""):
    """What the command wrote to its standard output, as bytes. `what` says what it was to do."""
    done = subprocess.run(
        command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=dict(os.environ, LC_ALL="C.UTF-8", **(environment or {})),
        check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise RepositoryError("cannot %s: %s %s %d and said: %s" % (
            what or "go on", command[0],
            "was ended by signal" if done.returncode < 0 else "ended with status",
            abs(done.returncode), said[-2000:] or "nothing"))
    return done.stdout
