# SPDX-License-Identifier: Apache-2.0
"""What a site sets: the variables <component>__<option>, and the failures that it expects."""

import datetime
import difflib
import glob
import os
import re

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from .records import numbers, refuse

QUARANTINE = {"component", "test", "reason", "link", "expires"}


def interfaces(folder):
    """{variable: what it may be} of the roles in a folder, as their argument_specs.yml have it."""
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "*", "meta", "argument_specs.yml"))):
        with open(path, encoding="utf-8") as stream:
            for part in yaml.safe_load(stream)["argument_specs"].values():
                found.update(part.get("options", {}))
    return found


def _suggestion(key, name, known):
    """The option that was meant, or those that there are."""
    near = difflib.get_close_matches(key, known, 1, 0.8)
    return "did you mean %s?" % near[0] if near else "there are " + ", ".join(
        other for other in known if other.startswith(name + "__"))


def option_names(variables, folder, roles):
    """Those of all variables that are options of these roles, <role>__<option>. Of a role that is
    not among them nothing is asked: what it stands for may not be known here."""
    known = sorted(interfaces(folder))
    every = sorted({option.partition("__")[0] for option in known})
    found = []
    for key in sorted(variables):
        name, mark, option = key.partition("__")
        if not mark or not option or name.startswith("_"):
            continue
        if name not in every:  # another role's, or a component's that is misspelt
            near = difflib.get_close_matches(name, every, 1, 0.7)
            if near:
                refuse("%s is set, but there is no role %r; did you mean %s__%s?", key, name,
                       near[0], option)
        elif key not in known:
            refuse("%s is set, but the role %s has no such option; %s", key, name,
                   _suggestion(key, name, known))
        elif name in roles:
            found.append(key)
    return found


def _checked(key, value, interface):
    """The value of an option in the type that its role asks for, as Ansible converts it: a list may
    be written as text with commas."""
    meant = {word: interface[word] for word in ("type", "elements") if word in interface}
    result = ArgumentSpecValidator({key: meant}).validate({key: value})
    if result.error_messages:
        refuse("%s is %r; it must be of type %s%s", key, value, meant["type"],
               ", each of type %s" % meant["elements"] if "elements" in meant else "")
    found = result.validated_parameters[key]
    for one in found if isinstance(found, list) else [found]:
        if one not in interface.get("choices", [one]):
            refuse("%s is %r; it must be one of %s", key, one, ", ".join(interface["choices"]))
    return found


def stack_options(variables, folder, records):
    """{component: {mode, version, ...}} from the options of all roles, whose values are refused
    here where their role would refuse them later, perhaps behind hours of building."""
    known = interfaces(folder)
    options = {}
    for key, value in variables.items():
        if value in ("", None, []):
            continue
        value = _checked(key, value, known[key])
        name, _, option = key.partition("__")
        if name in records:
            options.setdefault(name, {})[option] = value
    return options


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
