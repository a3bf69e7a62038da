# SPDX-License-Identifier: Apache-2.0
"""What a site sets: the variables <component>__<option>, and the failures that it expects."""

import datetime
import difflib
import re

from .records import numbers, refuse

OPTIONS = ("mode", "version", "sources", "flags", "isas", "module", "module_root")
QUARANTINE = {"component", "test", "reason", "link", "expires"}


def option_names(variables, records):
    """The role variables <component>__<option> among all variables."""
    found = []
    for key in sorted(variables):
        name, mark, option = key.partition("__")
        if not mark or name.startswith("_") or option not in OPTIONS:
            continue
        if name not in records:
            near = difflib.get_close_matches(name, records, 1)
            if near:
                refuse("%s is set, but there is no component %r; did you mean %s__%s?", key, name,
                       near[0], option)
            continue  # another role's
        found.append(key)
    return found


def stack_options(variables, records):
    """{component: {mode, version, ...}} from those variables."""
    options = {name: {} for name in records}
    for key in option_names(variables, records):
        name, _, option = key.partition("__")
        if variables[key] not in ("", None, []):
            options[name][option] = variables[key]
    return {name: found for name, found in options.items() if found}


def stack_newest(results):
    """Options that choose the newest versions, from the results of stack_source."""
    options = {}
    for result in results:
        if result.get("skipped"):
            continue
        found = result["source"]
        version = ".".join(map(str, numbers(found["version"])))
        options[result["item"]["name"]] = {"version": version, "sources": [
            {found["kind"]: "%s %s %s" % (found["name"], found["version"], found["sha256"])}]}
    return options


def stack_quarantine(content, records):
    """The known failures, as quarantine.yml has them, each with all that is asked of it."""
    found = []
    for number, entry in enumerate(content["failures"] or [], 1):
        entry = {key: str(value) for key, value in dict(entry).items()}
        where = "quarantine.yml, entry %d (%s)" % (number, entry.get("test", "no test"))
        if set(entry) != QUARANTINE:
            refuse("%s: it has %s, and needs %s", where, ", ".join(sorted(entry)),
                   ", ".join(sorted(QUARANTINE)))
        if entry["component"] not in records:
            refuse("%s: there is no component %r; there are %s", where, entry["component"],
                   ", ".join(sorted(records)))
        if not re.match(r"https?://\S+$", entry["link"]):
            refuse("%s: link is %r; it must lead to where the failure is dealt with", where,
                   entry["link"])
        try:
            datetime.date.fromisoformat(entry["expires"])
        except ValueError:
            refuse("%s: expires is %r; it must be a day, as 2027-01-31", where, entry["expires"])
        found.append(entry)
    return found
