#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ansible module: stack-env and the module files of one run take the place of those before.

Each run writes its own below <prefix>/environments. Users come by <prefix>/bin/stack-env and
<prefix>/modulefiles, which lead through the link <prefix>/current: one rename of that link moves
all of them together.
"""

import hashlib
import os
import re
import shutil

DOCUMENTATION = r"""
module: stack_publish
short_description: Let users have the environment of this run
description:
  - Module files of the environment before that this one does not have are taken over, so that
    other versions can still be loaded. What they load stays what they were built on, beside what
    this run has under the same name, in a hidden module file.
options:
  prefix: {description: Root of all prefixes., type: path, required: true}
  environment: {description: Directory with bin and modulefiles., type: path, required: true}
author: [Treenail developers]
"""

EXAMPLES = r"""
- name: Let users have it
  stack_publish: {prefix: /opt/stack, environment: /opt/stack/environments/0a1b2c3d}
"""

RETURN = r""" # """

WORD = r"[^\s\[\]{}]+"


def module_files(root):
    """{name: text} of the module files below a directory."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as stream:
                found[os.path.relpath(path, root)] = stream.read()
    return found


def hidden(name, text):
    """Another name for a module file: Lmod and environment-modules load it by its whole name, and
    list it and choose it by no other."""
    folder, base = os.path.split(name)
    return os.path.join(folder, ".%s-%s" % (base, hashlib.sha256(text.encode()).hexdigest()[:8]))


def taken_over(old, new):
    """Module files of `old` that `new` lacks, and what they load where `new` has another under the
    same name."""
    aside = {name: hidden(name, text) for name, text in old.items()
             if name in new and new[name] != text}
    found, left = {}, [name for name in old if name not in new]
    while left:
        name = left.pop()
        found[aside.get(name, name)] = re.sub(
            WORD, lambda word: aside.get(word.group(), word.group()), old[name])
        left += [word for word in re.findall(WORD, old[name])
                 if word in aside and aside[word] not in found]
    return found


def links(prefix, environment):
    """{path: what it leads to}; the one that all others go through first."""
    return {os.path.join(prefix, "current"): os.path.relpath(environment, prefix),
            os.path.join(prefix, "modulefiles"): "current/modulefiles",
            os.path.join(prefix, "bin/stack-env"): "../current/bin/stack-env"}


def publish(prefix, environment, really):
    """Whether anything was, or would be, another."""
    stale = {path: target for path, target in links(prefix, environment).items()
             if not os.path.islink(path) or os.readlink(path) != target}
    if not stale or not really:
        return bool(stale)
    into = os.path.join(environment, "modulefiles")
    before = os.path.join(prefix, "modulefiles")
    for name, text in taken_over(module_files(before), module_files(into)).items():
        path = os.path.join(into, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
    for path, target in stale.items():
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)  # of a play that knew no environments; its files were taken over
        if os.path.lexists(path + ".new"):
            os.remove(path + ".new")
        os.symlink(target, path + ".new")
        os.replace(path + ".new", path)
    return True


def main():
    from ansible.module_utils.basic import AnsibleModule
    module = AnsibleModule(argument_spec={
        "prefix": {"type": "path", "required": True},
        "environment": {"type": "path", "required": True}}, supports_check_mode=True)
    try:
        changed = publish(module.params["prefix"], module.params["environment"],
                          not module.check_mode)
    except OSError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed)


if __name__ == "__main__":
    main()
