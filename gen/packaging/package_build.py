# SPDX-License-Identifier: Apache-2.0
"""What `ninja deb` and `ninja rpm` have in common: a packaging tool runs for minutes, its words go
to a log, the terminal sees steps and a count; and at the end a table of what was made."""

import concurrent.futures
import hashlib
import os
import re
import shutil
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What this build was given is nothing to the package's.
OF_THIS_BUILD = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "MAKEFLAGS", "DESTDIR",
                 "PYTHONPATH", "SOURCE_DATE_EPOCH")
_COMMAND = re.compile(r"^\[(\d+)/(\d+)\] ")
_TESTS = re.compile(r"\[\d+/\d+\] \d+ passed|\d+ passed, |ok +\w+: test accuracy")


class Unusable(Exception):
    """What is missing or wrong, and what to do."""


def ended(main, refusals):
    """Ends the program with main's status: 1, and the text behind its prefix, for an exception of
    `refusals` (type -> prefix), 130 for Ctrl-C."""
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except tuple(refusals) as reason:
        sys.exit(refusals[type(reason)] + str(reason))


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as stream:
        return stream.read()


def digest(path):
    """SHA-256 of a file."""
    with open(path, "rb") as stream:
        return hashlib.sha256(stream.read()).hexdigest()


def other_locale():
    """One with other rules than C's; the Turkish i first, for it is the best known trap."""
    names = subprocess.run(["locale", "-a"], stdout=subprocess.PIPE, encoding="ascii",
                           errors="replace", check=True).stdout.split()
    found = [name for name in names if re.search(r"(?i)\.utf-?8$", name)
             and not name.startswith(("C.", "en_", "POSIX"))]
    return next((name for name in found if name.startswith("tr_")), found[0] if found else "")


def settings(**more):
    """The environment for a package build."""
    kept = {name: value for name, value in os.environ.items() if name not in OF_THIS_BUILD}
    return dict(kept, **more)


def _show(line, step, width, state):
    """One line of the log, condensed: steps in lines of their own, commands as a count."""
    number = _COMMAND.match(line)
    if step.match(line) or _TESTS.match(line):
        sys.stdout.write("\n" * state.pop("counting", 0) + line.rstrip()[:width] + "\n")
    elif number and sys.stdout.isatty():
        sys.stdout.write("\r    %s of %s commands" % number.groups())
        state["counting"] = 1
    sys.stdout.flush()


def logged(command, log, step, quiet=False, mode="w", **process):
    """Runs the command. step: matches the lines to be shown; mode: "a" adds to the log; process:
    for Popen. Raises Unusable with the end of what was said where it fails."""
    width, state, tail = shutil.get_terminal_size().columns, {}, []
    with open(log, mode, encoding="utf-8") as stream:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
                              **process) as running:
            try:
                for line in running.stdout:
                    stream.write(line)
                    tail = tail[-39:] + [line]
                    if not quiet:
                        _show(line, step, width, state)
            except BaseException:  # Ctrl-C: what runs must not outlive us
                running.terminate()
                raise
    if running.returncode:
        raise Unusable("%s: exit status %d; %s ends with:\n%s" % (
            " ".join(command), running.returncode, log, "".join(tail)))


def judged(*checks):
    """Runs checks, which return a verdict and what is wrong, beside each other, and prints what
    they say in this order; the exit status."""
    with concurrent.futures.ThreadPoolExecutor(len(checks)) as pool:
        running = [pool.submit(check) for check in checks]
        wrong = 0
        for one in running:
            verdict, left = one.result()
            print("\n".join([verdict, *left]), flush=True)
            wrong += len(left)
    return 1 if wrong else 0


def size_table(paths, main, limit):
    """Lines of bytes and name; the packages that a user needs (main: how their names begin) must
    not be larger than the limit together."""
    sizes = {os.path.basename(path): os.path.getsize(path) for path in paths}
    lines = ["%12s  %s" % (format(size, ","), name) for name, size in sorted(sizes.items())]
    total = sum(size for name, size in sizes.items() if re.match("(?:%s)[-_]\\d" % "|".join(main),
                                                                 name))
    lines.append("%s: %s bytes of at most %s" % (" and ".join(main), format(total, ","),
                                                 format(limit, ",")))
    if total > limit:
        raise Unusable("\n".join(lines + ["they are too large"]))
    return lines
