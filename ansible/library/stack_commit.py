#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ansible module: a staged installation becomes a prefix, by one rename."""

import hashlib
import json
import os
import shutil
import time

DOCUMENTATION = r"""
module: stack_commit
short_description: Put a staged installation into place
description:
  - Writes the record of the prefix into it (what it was made from, checksums of its files), then
    renames it to its final name. Before the rename nothing is there under that name, after it
    everything is.
options:
  instance: {description: Its entry of the plan., type: dict, required: true}
  stage:
    description: Directory below which the installation lies under its final path.
    type: path
    required: true
  details: {description: "More for the record (compiler, source, times).", type: dict, default: {}}
author: [Treenail developers]
"""

EXAMPLES = r"""
- name: Put it into place
  stack_commit: {instance: "{{ component_instance }}", stage: /opt/stack/build/fftw/stage}
"""

RETURN = r""" # """

RECORD = ".stack.json"


def checksums(prefix):
    found = {}
    for folder, _, names in os.walk(prefix):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                with open(path, "rb") as stream:
                    found[os.path.relpath(path, prefix)] = hashlib.sha256(stream.read()).hexdigest()
    return found


def commit(instance, stage, details):
    prefix = instance["prefix"]
    staged = stage + prefix
    if not os.path.isdir(staged) or not os.listdir(staged):
        raise OSError("%s: the installation wrote nothing to %s" % (instance["name"], prefix))
    content = {key: instance[key] for key in (
        "name", "version", "mode", "isa", "variant", "recipe", "sources", "patches", "flags",
        "steps", "license", "module", "prefix")}
    content.update(details, built=int(time.time()), files=checksums(staged))
    with open(os.path.join(staged, RECORD), "w", encoding="utf-8") as stream:
        json.dump(content, stream, indent=1, sort_keys=True)
    if os.path.isdir(prefix):  # without a record: not one of ours, or an older play's remains
        shutil.rmtree(prefix)
    os.makedirs(os.path.dirname(prefix), exist_ok=True)
    os.rename(staged, prefix)


def main():
    from ansible.module_utils.basic import AnsibleModule
    module = AnsibleModule(argument_spec={
        "instance": {"type": "dict", "required": True},
        "stage": {"type": "path", "required": True},
        "details": {"type": "dict", "default": {}}}, supports_check_mode=True)
    if os.path.exists(os.path.join(module.params["instance"]["prefix"], RECORD)):
        module.exit_json(changed=False)
    if not module.check_mode:
        try:
            commit(module.params["instance"], module.params["stage"], module.params["details"])
        except OSError as error:
            module.fail_json(msg=str(error))
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
