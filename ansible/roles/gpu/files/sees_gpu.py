# SPDX-License-Identifier: Apache-2.0
"""Does a session see a GPU? One line: what it computed there, or what is missing. Exit status 1 for
the latter."""

import re
import sys

try:
    import treenail as tn
except ImportError as error:
    sys.exit("the Python module of Treenail cannot be imported: %s" % error)

with tn.device("/gpu:0"):
    total = tn.reduce_sum(tn.ones([8]))
try:
    with tn.Session() as session:
        found = session.run(total)
        devices = [name for name in map(str, session.list_devices()) if "GPU" in name]
except tn.errors.OpError as error:
    line = str(error).partition("\n")[0]
    reason = re.search(r"this session has .*? \((.*)\); allow_soft_placement", line)
    sys.exit(reason.group(1) if reason else line)
if found != 8:
    sys.exit("the sum of eight ones on the GPU is %s" % found)
print("a session computes on %d GPU(s)" % len(devices))
