#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ansible module: which prefixes of a plan are there, and what the host has for those that are not.

A prefix is there when it holds its own record, which is written into it before it is renamed into
place: a build that was interrupted leaves nothing under the final name.
"""

import json
import os

DOCUMENTATION = r"""
module: stack_state
short_description: Compare a plan with what is installed
options:
  plan: {description: The plan., type: list, elements: dict, required: true}
  prefix: {description: Root of all prefixes., type: path, required: true}
  least:
    description: >-
      The plan was made without compilers, so no prefix in it is the final one. To be built is then
      what was never built here in that version, for that instruction set, by any compiler.
    type: bool
    default: false
author: [Treenail developers]
"""

EXAMPLES = r"""
- name: Ask what is there already
  stack_state:
    plan: "{{ stack_plan }}"
    prefix: /opt/stack
"""

RETURN = r"""
complete: {description: Prefixes that are there., type: list, returned: always}
to_build: {description: Names of the components that will be built., type: list, returned: always}
needed_mib: {description: Disk space that they need., type: int, returned: always}
free_mib: {description: Disk space below the root of all prefixes., type: int, returned: always}
expected:
  description: >-
    Seconds of each step when a component was last built here, by its name and instruction set, with
    a blank between.
  type: dict
  returned: always
"""

RECORD = ".stack.json"


def record(prefix):
    try:
        with open(os.path.join(prefix, RECORD), encoding="utf-8") as stream:
            return json.load(stream)
    except (OSError, ValueError):
        return None


def free_mib(path):
    """Of the file system that a directory is on, or would be."""
    while not os.path.isdir(path):
        path = os.path.dirname(path) or "/"
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize // (1 << 20)


def records(prefix):
    """Of all prefixes, whatever their recipes are."""
    found = []
    for folder, folders, _ in os.walk(prefix):
        if folder[len(prefix):].count("/") >= 3:
            folders[:] = []
        found.append(record(folder))
    return [content for content in found if content]


def expected(built):
    """Seconds of the newest build of each component, for each instruction set."""
    times = {}
    for found in built:
        name = "%s %s" % (found["name"], found["isa"])
        if found.get("times") and found["built"] > times.get(name, (0, 0))[0]:
            times[name] = (found["built"], found["times"])
    return {name: seconds for name, (_, seconds) in times.items()}


def identity(content):
    return tuple(content.get(key) for key in ("name", "version", "isa"))


def state(plan, prefix, least=False):
    built = records(prefix)
    known = {identity(content) for content in built}
    complete = [i["prefix"] for i in plan if i["prefix"] and record(i["prefix"])]
    missing = [i for i in plan if i["mode"] == "build" and (
        identity(i) not in known if least else i["prefix"] not in complete)]
    return {"complete": complete, "to_build": list(dict.fromkeys(i["name"] for i in missing)),
            "least": least, "needed_mib": sum(i["disk"] for i in missing),
            "free_mib": free_mib(prefix), "expected": expected(built)}


def main():
    from ansible.module_utils.basic import AnsibleModule
    module = AnsibleModule(argument_spec={
        "plan": {"type": "list", "elements": "dict", "required": True},
        "prefix": {"type": "path", "required": True},
        "least": {"type": "bool", "default": False}}, supports_check_mode=True)
    module.exit_json(changed=False, **state(**module.params))


if __name__ == "__main__":
    main()
