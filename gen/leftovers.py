# SPDX-License-Identifier: Apache-2.0
"""What earlier configurations built here and this one does not: it must go.

The core opens every kernel library and adapter that lies in its directories, so one that is no
longer planned would be loaded, with other flags or another version's symbols. What ninja has made
is in .ninja_log; nothing else is touched. `ninja -t cleandead` would do the same, but a
regeneration runs inside a ninja that has the log open.
"""

import os
from typing import List

from gen.ninja import Plan


def dead(log: str, plan: Plan) -> List[str]:
    """The outputs that the text of a .ninja_log names and that the plan neither makes nor reads."""
    known = set(plan.files)
    for edge in plan.edges:
        known.update(edge.outputs + edge.implicit_outputs + edge.inputs + edge.implicit)
    made = set()
    for line in log.splitlines():
        fields = line.split("\t")
        if len(fields) >= 4 and fields[0].isdigit():
            made.add(fields[3])
    return sorted(path for path in made - known
                  if not os.path.isabs(path) and not path.startswith("../"))


def remove_dead(build: str, plan: Plan) -> List[str]:
    """Remove them, with the folders that they leave empty; returns what was there."""
    try:
        with open(os.path.join(build, ".ninja_log"), encoding="utf-8") as stream:
            log = stream.read()
    except (OSError, UnicodeError):
        return []
    removed = []
    for path in dead(log, plan):
        target = os.path.join(build, path)
        if not os.path.islink(target) and not os.path.isfile(target):
            continue  # a target such as dist, whose folder has its name
        os.unlink(target)
        removed.append(path)
        folder = os.path.dirname(path)
        while folder and not os.listdir(os.path.join(build, folder)):
            os.rmdir(os.path.join(build, folder))
            folder = os.path.dirname(folder)
    return removed
