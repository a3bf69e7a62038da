# SPDX-License-Identifier: Apache-2.0
"""Slurm's short form of host names: "login,cn[01-03,7],gpu[1-2]-ib[0-1]"."""

from __future__ import annotations

import re

MOST = 65536  # hosts: a list is refused that means more, before memory is


def expand(text: str) -> list:
    """The host names, in order. Raises ValueError for what is no such list."""
    hosts: list = []
    for part in _parts(text):
        hosts += _hosts(part, text)
        if len(hosts) > MOST:
            raise ValueError("the node list %r has more than %d hosts" % (text, MOST))
    if not hosts:
        raise ValueError("the node list is empty")
    return hosts


def _parts(text: str) -> list:
    """Split at commas outside brackets."""
    if re.search(r"\[[^\]]*(\[|$)|^[^\[]*\]|\][^\[]*\]", text):
        raise ValueError("the node list %r has a bracket without its partner" % text)
    return [part.strip() for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text)]


def _hosts(part: str, whole: str) -> list:
    hosts = [""]
    for piece in re.findall(r"\[[^\]]*\]|[^\[]+", part):
        ends = _numbers(piece[1:-1], whole) if piece.startswith("[") else [piece]
        if len(hosts) * len(ends) > MOST:
            raise ValueError("the node list %r has more than %d hosts" % (whole, MOST))
        hosts = [host + end for host in hosts for end in ends]
    return hosts


def _numbers(text: str, whole: str) -> list:
    """"01-03,7" as its numbers, of the width in which they begin."""
    found: list = []
    for span in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", span.strip())
        if match is None:
            raise ValueError("the node list %r has %r in brackets; numbers and ranges of numbers "
                             "are needed" % (whole, span))
        first, last = match.group(1), match.group(2) or match.group(1)
        if not 0 <= int(last) - int(first) < MOST:
            raise ValueError("the node list %r has the range %r" % (whole, span))
        found += ["%0*d" % (len(first), n) for n in range(int(first), int(last) + 1)]
    return found
