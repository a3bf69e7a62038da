#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes kernels/host/strings/letter_case_table.h from Python's Unicode data.

    letter_case.py > kernels/host/strings/letter_case_table.h

Run by hand when the table is to know a newer Unicode; a test compares where the interpreter's
version is the table's.
"""

import sys
import unicodedata

EVERYTHING = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
SIGMA, FINAL = "\u03a3", "\u03c2"
HEADER = """// SPDX-License-Identifier: Apache-2.0
// Written by python/tools/letter_case.py from Unicode %s: do not edit.
#pragma once

#include <cstdint>

namespace treenail::host {

// Characters first, first + step, ... up to last, each of which becomes itself + delta.
struct CaseRange {
  char32_t first, last;
  uint32_t step;
  int32_t delta;
};
// What becomes several characters; zeros fill up.
struct CaseSpecial {
  char32_t from, to[3];
};
struct CharacterRange {
  char32_t first, last;
};

// clang-format off
"""


def single_mappings(convert):
    """(first, last, step, delta) of characters that become one other."""
    ranges = []
    for c in EVERYTHING:
        mapped = convert(c)
        if mapped == c or len(mapped) != 1:
            continue
        code, delta = ord(c), ord(mapped) - ord(c)
        if ranges and ranges[-1][3] == delta:
            first, last, step, _ = ranges[-1]
            gap = code - last
            if gap in (1, 2) and (first == last or gap == step):
                ranges[-1] = (first, code, gap, delta)
                continue
        ranges.append((code, code, 1, delta))
    return ranges


def specials(convert):
    found = []
    for c in EVERYTHING:
        mapped = convert(c)
        if len(mapped) > 1:
            found.append((ord(c), [ord(m) for m in mapped] + [0] * (3 - len(mapped))))
    return found


def runs(holds):
    """(first, last) of characters for which `holds` is true."""
    found = []
    for c in EVERYTHING:
        if holds(c):
            if found and found[-1][1] == ord(c) - 1:
                found[-1] = (found[-1][0], ord(c))
            else:
                found.append((ord(c), ord(c)))
    return found


def is_cased(c):
    """By the rule of the final sigma, which alone asks for it: letters that are not ignored."""
    return (c + SIGMA).lower()[-1] == FINAL


def is_ignorable(c):
    return ("a" + c + SIGMA).lower()[-1] == FINAL and not is_cased(c)


def table(kind, name, items):
    lines, line = [], " "
    for item in items:
        if len(line) + len(item) + 2 > 100:
            lines.append(line)
            line = " "
        line += " " + item + ","
    return "inline constexpr %s %s[] = {\n%s\n};\n" % (kind, name, "\n".join(lines + [line]))


def text():
    out = [HEADER % unicodedata.unidata_version]
    for name, convert in (("Lower", str.lower), ("Upper", str.upper)):
        out.append(table("CaseRange", "k%sRanges" % name, (
            "{%#x, %#x, %d, %d}" % r for r in single_mappings(convert))))
        out.append(table("CaseSpecial", "k%sSpecials" % name, (
            "{%#x, {%#x, %#x, %#x}}" % (c, *to) for c, to in specials(convert))))
    for name, holds in (("Cased", is_cased), ("CaseIgnorable", is_ignorable)):
        out.append(table("CharacterRange", "k" + name, ("{%#x, %#x}" % r for r in runs(holds))))
    return "".join(out) + "// clang-format on\n\n}  // namespace treenail::host\n"


if __name__ == "__main__":
    sys.stdout.write(text())
