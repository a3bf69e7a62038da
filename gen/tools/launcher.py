# SPDX-License-Identifier: Apache-2.0
"""Write build/python3: the configured interpreter with the tree's own module importable."""

import argparse
import os
import shlex

TEXT = """#!/bin/sh
# The interpreter this build is for, with the built module first in its path.
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 1
PYTHONPATH="$here/python${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONPATH
exec %s "$@"
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", required=True)
    parser.add_argument("--interpreter", required=True)
    options = parser.parse_args()
    with open(options.output, "w", encoding="utf-8") as stream:
        stream.write(TEXT % shlex.quote(options.interpreter))
    os.chmod(options.output, 0o755)


if __name__ == "__main__":
    main()
