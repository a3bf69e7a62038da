#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Configure a build of Treenail: read the options, look at the machine, write build.ninja.

`./configure.py --help` lists every option. The work is done by the package `gen`, beside this file.
"""

import os
import sys

if sys.version_info < (3, 9):
    sys.exit("configure.py: Python 3.9 or later is needed, this is Python %d.%d; "
             "run it with another one: /usr/bin/python3 configure.py" % sys.version_info[:2])

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from gen.configure import main  # noqa: E402  (the path must be set first)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
