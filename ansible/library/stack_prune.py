#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ansible module: removes the prefixes of a stack that nothing refers to any more."""

import glob
import json
import os
import re
import shutil

DOCUMENTATION = r"""
module: stack_prune
short_description: Remove unreferenced prefixes
description:
  - Environments (stack-env and module files of one run) are kept where a manifest names them or
    C(current) leads to them.
  - Kept are the prefixes and build trees that C(manifest.json) and C(manifest.previous.json) name,
    and the prefixes given. In the build tree of a package lies the word that its suite has passed.
    Only directories with the record of a prefix are touched; without a manifest, or with one that
    names prefixes of which none is there, nothing is.
options:
  prefix: {description: Root of all prefixes., type: path, required: true}
  keep: {description: Prefixes to keep beside those., type: list, elements: path, default: []}
author: [Treenail developers]
"""

EXAMPLES = r"""
- name: Prune
  stack_prune: {prefix: /opt/stack}
"""

RETURN = r"""
removed: {description: "What was removed, or would be.", type: list, returned: always}
"""

RECORD = ".stack.json"


class Unusable(Exception):
    """What is there cannot be judged; the text says why."""


def named(root):
    """(prefixes, build trees and environments) that a manifest names, as real paths: it was written
    when the root may have been spelled in another way."""
    built, more = set(), set()
    for name in ("manifest.json", "manifest.previous.json"):
        path = os.path.join(root, name)
        try:
            with open(path, encoding="utf-8") as stream:
                content = json.load(stream)
            for component in content["components"]:
                built.add(component["prefix"])
                more.add(component.get("build_directory", ""))
            more.add(content.get("environment", ""))
        except FileNotFoundError:
            if name == "manifest.json":
                raise Unusable("%s has no manifest.json: has site.yml run to its end there? "
                               "Nothing was removed" % root) from None
        except (OSError, ValueError, KeyError) as error:
            raise Unusable("%s cannot be read (%s); nothing was removed" % (path, error)) from None
    return tuple({os.path.realpath(path) for path in paths if path} for paths in (built, more))


def prefixes(root):
    """<root>/<toolchain>/<component>/<version> with a record."""
    found = []
    for toolchain in sorted(os.scandir(root), key=lambda e: e.name):
        if not toolchain.is_dir(follow_symlinks=False) or (
                toolchain.name in ("build", "environments")):
            continue
        for folder, folders, names in os.walk(toolchain.path):
            if RECORD in names:
                found.append(folder)
                folders[:] = []
            elif folder[len(toolchain.path):].count("/") >= 2:
                folders[:] = []
    return found


def module_files(environment, root, gone):
    """Module files that lead into one of the prefixes that go, however they spell the root."""
    leads = re.compile("(%s)(/|$)" % "|".join(
        re.escape("/" + os.path.relpath(path, root)) for path in gone), re.MULTILINE)
    found = []
    for folder, _, names in os.walk(os.path.join(environment, "modulefiles")):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8", errors="replace") as stream:
                text = stream.read()
            if gone and leads.search(text):
                found.append(path)
    return found


def environments(root, kept):
    """(those that a manifest names or users come to, those that go)."""
    current = os.path.realpath(os.path.join(root, "current"))
    found = sorted(glob.glob(os.path.join(root, "environments", "*")))
    used = [path for path in found if os.path.realpath(path) in kept | {current}]
    return used, [path for path in found if path not in used]


def prune(root, keep, really):
    built, more = named(root)
    there = prefixes(root)
    if built and built.isdisjoint(map(os.path.realpath, there)):
        raise Unusable("the manifests in %s name prefixes, as %s, and none of them is below it: "
                       "prune it by the path that it was built by. Nothing was removed" % (
                           root, min(built)))
    kept = built | more | set(map(os.path.realpath, keep))
    gone = [path for path in there if os.path.realpath(path) not in kept]
    trees = os.path.join(root, "build")
    left = [os.path.join(trees, name) for name in sorted(os.listdir(trees))] if (
        os.path.isdir(trees)) else []
    left = [path for path in left if os.path.realpath(path) not in kept]
    used, unused = environments(root, kept)
    stale = [file for path in used for file in module_files(path, root, gone)]
    removed = gone + stale + unused + left
    if really:
        for path in removed:
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.remove(path)
    return removed


def main():
    from ansible.module_utils.basic import AnsibleModule
    module = AnsibleModule(argument_spec={
        "prefix": {"type": "path", "required": True},
        "keep": {"type": "list", "elements": "path", "default": []}}, supports_check_mode=True)
    try:
        removed = prune(module.params["prefix"], module.params["keep"], not module.check_mode)
    except (Unusable, OSError) as reason:
        module.fail_json(msg=str(reason))
    module.exit_json(changed=bool(removed), removed=removed)


if __name__ == "__main__":
    main()
