# SPDX-License-Identifier: Apache-2.0
"""What configure prints: the help page and the summary at the end."""

import textwrap
from typing import List

from gen.options import ENVIRONMENT, TABLE
from gen.plan import Context


def help_page() -> str:
    lines = ["usage: ./configure.py [OPTION]... [VARIABLE=VALUE]...", ""]
    sections: List[str] = []
    for row in TABLE.values():
        if row.section not in sections:
            sections.append(row.section)
    for section in sections:
        lines.append(section)
        for row in TABLE.values():
            if row.section != section:
                continue
            head = "  --" + row.name + ("=" + row.metavar if row.metavar else "")
            text = row.text + (" [%s]" % row.default if row.default else "")
            body = textwrap.wrap(text, 60)
            if len(head) > 26:
                lines.append(head)
                head = ""
            for index, part in enumerate(body):
                lines.append("%-28s%s" % (head if index == 0 else "", part))
        lines.append("")
    lines.append("Variables")
    for name, text in ENVIRONMENT.items():
        lines.append("  %-26s%s" % (name, text))
    return "\n".join(lines) + "\n"


def summary(context: Context, build: str) -> str:
    facts = context.facts
    lines = ["", "Treenail %s" % context.model.version]

    def row(name: str, text: str) -> None:
        lines.append("  %-14s%s" % (name, text))

    row("compiler", "%s (%s %s)" % (" ".join(facts.cxx.command), facts.cxx.family,
                                    facts.cxx.version))
    row("baseline", "%s (%s)" % (facts.isa.baseline.name, facts.isa.reason))
    row("kernels for", ", ".join(level.name for level in facts.isa.all))
    for python in facts.pythons:
        row("python", "%s %s (%s)" % (python.path, python.version if python.facts else "",
                                      python.why))
    for name, external in sorted(facts.externals.items()):
        if external.found:
            row(name, ("%s %s" % (external.how, external.version)).strip())
        else:
            row(name, "left out: " + external.why_not)
    lines += ["", "Now run: ninja -C %s" % build, ""]
    return "\n".join(lines)
