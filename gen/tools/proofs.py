# SPDX-License-Identifier: Apache-2.0
"""Proofs that are too slow or too special for `ninja test`; run in a build directory.

  --quick    those of a minute or two; ci/test runs them
  --slow     all of them; results go to proofs.md in the build directory, for docs/proofs.md
  --list     names and what each one shows
  NAME...    only these

A proof says 'ok', 'FAILED' or, where the machine lacks something, 'not run' with what is missing.
Only a failure, or no proof that ran at all, makes the exit status 1.
"""

import argparse
import datetime
import difflib
import importlib
import os
import platform
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
TOOLS = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(TOOLS))
FOLDERS = tuple(os.path.join(SOURCE, "gen", name) for name in ("tools", "packaging", "site"))
sys.path[:0] = [*FOLDERS, SOURCE]
from gen.distro import this_distro  # noqa: E402  (the path must be set first)
import junit  # noqa: E402
from proving import PROOFS, Failed, NotRun  # noqa: E402


def gathered():
    """{name: function} of every function of those folders that is marked as a proof."""
    for folder in FOLDERS:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), encoding="utf-8") as stream:
                    if re.search(r"^@proof\b", stream.read(), re.MULTILINE):
                        importlib.import_module(name[:-3])
    return PROOFS


def prove(function):
    begin = time.monotonic()
    try:
        verdict, text = "ok", function()
    except NotRun as reason:
        verdict, text = "not run", str(reason)
    except Failed as reason:
        verdict, text = "FAILED", str(reason)
    return function.__name__.replace("_", "-"), verdict, time.monotonic() - begin, text


def record(rows):
    """A dated table, for docs/proofs.md."""
    done = subprocess.run(["git", "-C", SOURCE, "rev-parse", "--short", "HEAD"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    commit = done.stdout.decode().strip() or "an unpacked archive"
    lines = ["%s, commit %s, %s, %s, %d cores" % (
        datetime.date.today().isoformat(), commit, this_distro().name, platform.machine(),
        os.cpu_count() or 1), "", "| proof | what it shows | result | s |", "|---|---|---|---|"]
    for name, verdict, seconds, text in rows:
        lines.append("| %s | %s | %s: %s | %.0f |" % (
            name, PROOFS[name].__doc__, verdict, text.splitlines()[0] if text else "", seconds))
    with open("proofs.md", "w", encoding="utf-8") as stream:
        stream.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--junit", metavar="FILE", help="the verdicts go there, too, as XML")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    known = gathered()
    if options.list:
        for name, function in known.items():
            print("%-22s %s" % (name, function.__doc__))
        return 0
    for name in options.names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 3)
            parser.error("unknown proof '%s'; %s" % (
                name, "did you mean %s?" % " or ".join(near) if near else "--list names them"))
    chosen = [known[n] for n in options.names] or [
        f for f in known.values() if f.quick or options.slow]
    os.environ.update(TREENAIL_SOURCE_DIR=SOURCE, TREENAIL_BUILD_DIR=os.getcwd())
    rows = []
    for function in chosen:
        row = prove(function)
        rows.append(row)
        print("%-22s %-8s %6.1f s  %s" % row)
        sys.stdout.flush()
    if options.slow:
        record(rows)
        print("wrote %s" % os.path.abspath("proofs.md"))
    if options.junit:
        junit.write(options.junit, [junit.verdicts("proofs", rows)])
    failed = sum(row[1] == "FAILED" for row in rows)
    ran = sum(row[1] == "ok" for row in rows)
    print("%d proofs hold, %d failed, %d not run" % (ran, failed, len(rows) - ran - failed))
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
