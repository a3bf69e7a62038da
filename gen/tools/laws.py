# SPDX-License-Identifier: Apache-2.0
"""Say which laws of gen/check.py the source tree breaks; exit status 1 when there are any."""

import os
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, SOURCE)
from gen.check import all_laws  # noqa: E402  (the path must be set first)
from gen.errors import ConfigureError  # noqa: E402
from gen.model import load  # noqa: E402


def main():
    try:
        problems = all_laws(load(SOURCE))
    except ConfigureError as error:
        problems = [str(error)]
    for problem in problems:
        print(problem)
    print("%d places break a law of the tree" % len(problems) if problems
          else "the tree keeps its laws")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
