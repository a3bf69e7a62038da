# SPDX-License-Identifier: Apache-2.0
"""The row of docs/decisions/packaging-cost.md that tells what our own packaging takes."""

import os
import re

import dist
from packaging_files import read_control, relations, tree_file
from proving import SOURCE

PATH = "docs/decisions/packaging-cost.md"
# Of the cells between the bars, these are counted here.
CELLS = {4: "build dependencies", 6: "lines of debian/", 7: "lines of symbols", 8: "lines of rules"}


def counted(source):
    """Cell -> figure, by the rule that the document states."""
    control = tree_file("debian/control", source)
    stanza = read_control(control)[0]
    texts = {}
    for name in dist.debian_files(source):
        if not name.startswith("debian/patches/"):
            with open(os.path.join(source, name), "rb") as stream:
                texts[name] = stream.read().decode(errors="replace").splitlines()
    return {4: sum(len(relations(found)) for name, found in stanza.items()
                   if name.startswith("Build-Depends")),
            6: sum(map(len, texts.values())),
            7: sum(len(lines) for name, lines in texts.items() if ".symbols" in name),
            8: sum(bool(re.match(r"\s*[^\s#]", line)) for line in texts["debian/rules"])}


def packaging_cost(source=SOURCE):
    """docs/decisions/packaging-cost.md counts debian/ as it is"""
    for number, line in enumerate(tree_file(PATH, source).splitlines(), 1):
        cells = [cell.strip().replace(",", "") for cell in line.split("|")]
        if cells[1:2] and cells[1].startswith("treenail "):
            return ["%s:%d: %s %s; debian/ has %d" % (PATH, number, cells[at], CELLS[at], figure)
                    for at, figure in counted(source).items() if cells[at] != str(figure)], cells[1]
    return ["%s:1: no row `| treenail VERSION |`" % PATH], ""
