# SPDX-License-Identifier: Apache-2.0
"""Write a launcher of the build directory: python3, the configured interpreter with the tree's own
module importable, or a program that is the function main of a module, run by that."""

import argparse
import os
import shlex

PYTHON = """#!/bin/sh
# The interpreter this build is for, with the built module first in its path.
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 1
PYTHONPATH="$here/python${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONPATH
exec %s "$@"
"""
PROGRAM = """#!/bin/sh
# The program as it is in the tree, by the interpreter this build is for.
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 1
exec "$here/../python3" -c 'import sys; from %s import main; sys.exit(main())' "$@"
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--interpreter")
    what.add_argument("--module")
    options = parser.parse_args()
    text = PROGRAM % options.module if options.module else PYTHON % shlex.quote(options.interpreter)
    with open(options.output, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.chmod(options.output, 0o755)


if __name__ == "__main__":
    main()
