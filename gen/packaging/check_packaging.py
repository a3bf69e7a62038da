# SPDX-License-Identifier: Apache-2.0
"""Hold debian/, debian-cuda/, rpm/, ansible/ and the built product to the facts that they repeat;
run in a build directory.

What is a fact: gen/deps.py (build dependencies), gen/install.json (files and the parts that they
belong to), gen/identity.py, VERSION, tests/abi. A part whose folder or tool is absent is not run,
and says so. Each finding names file and line, what is there and what is wanted.

  check_packaging.py          every part
  check_packaging.py NAME...  only these
"""

import argparse
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "tools")]
import junit  # noqa: E402  (the path must be set first)
from packaging_contrib import contrib_package, debian_free, rpm_free  # noqa: E402
from packaging_copyright import debian_copyright  # noqa: E402
from packaging_dependencies import (ansible_dependencies,  # noqa: E402
                                    debian_dependencies, documents, rpm_dependencies)
from packaging_identity import (debian_bound, debian_identity, debian_version,  # noqa: E402
                                rpm_identity, rpm_version)
from packaging_manifest import debian_files, debian_symbols, rpm_files, rpm_levels  # noqa: E402
from packaging_product import interface, libraries, paths  # noqa: E402
from proving import Failed, NotRun, run  # noqa: E402

CHECKS = (debian_dependencies, debian_files, debian_symbols, debian_identity, debian_version,
          debian_bound, debian_copyright, rpm_dependencies, rpm_files, rpm_levels, rpm_identity,
          rpm_version, debian_free, rpm_free, contrib_package, documents, libraries, paths,
          interface, ansible_dependencies)


def outcome(check):
    """(verdict, text) of a check."""
    try:
        found, text = check()
    except NotRun as reason:
        return "not run", str(reason)
    except Failed as reason:
        return "FAILED", str(reason)
    return ("FAILED", "\n".join(found)) if found else ("ok", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    known = {check.__name__.replace("_", "-"): check for check in CHECKS}
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--junit", metavar="FILE", help="the verdicts go there, too, as XML")
    options = parser.parse_args()
    for name in options.names:
        if name not in known:
            parser.error("unknown part '%s'; there are %s" % (name, ", ".join(known)))
    run(["ninja", "generated-headers"])
    rows = []
    for name, check in known.items():
        if options.names and name not in options.names:
            continue
        begin = time.monotonic()
        verdict, text = outcome(check)
        rows.append((name, verdict, time.monotonic() - begin, text))
        print("%-20s %-8s %s" % (name, verdict, text if verdict != "FAILED" else ""))
        if verdict == "FAILED":
            print("".join("    %s\n" % line for line in text.splitlines()), end="")
        sys.stdout.flush()
    if options.junit:
        junit.write(options.junit, [junit.verdicts("packaging", rows)])
    verdicts = [row[1] for row in rows]
    print("packaging: %d parts agree, %d do not, %d not run" % tuple(
        verdicts.count(v) for v in ("ok", "FAILED", "not run")))
    return 1 if "FAILED" in verdicts or "ok" not in verdicts else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.SubprocessError as error:
        sys.exit("check-packaging: %s" % error)
