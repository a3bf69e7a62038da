# SPDX-License-Identifier: Apache-2.0
"""python3 -m treenail.benchmark is treenail-bench, where the program itself is not installed."""

import sys

from treenail.benchmark import main

sys.exit(main())
