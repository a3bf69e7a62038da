# SPDX-License-Identifier: Apache-2.0
"""A dnf 4 for plays on a machine without one: programs and Ansible's module, which record how they
are called and keep which repositories are enabled. What nobody recorded fails."""

import os

DNF = """#!/bin/sh
echo "dnf $*" >> {folder}/calls
case $* in
  '-q repolist') echo 'repo id                repo name'
                 while read -r name; do echo "$name        Its name"; done < {folder}/enabled ;;
  *'--set-enabled '*) echo "${{*##*--set-enabled }}" >> {folder}/enabled ;;
  *) echo "dnf: nobody recorded $*" >&2; exit 1 ;;
esac
"""
MANAGER = """#!/bin/sh
echo "subscription-manager $*" >> {folder}/calls
echo "${{*##*--enable }}" >> {folder}/enabled
"""
MODULE = '''#!/usr/bin/python3
"""The module dnf: records what is installed; epel-release enables EPEL."""
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({{name: {{"type": "raw"}} for name in ("name", "state")}},
                       supports_check_mode=True)
names = module.params["name"]
names = [names] if isinstance(names, str) else sorted(names)
with open("{folder}/calls", "a", encoding="utf-8") as stream:
    stream.write("install %s\\n" % " ".join(names))
if any("epel" in name for name in names) and not module.check_mode:
    with open("{folder}/enabled", "a", encoding="utf-8") as stream:
        stream.write("epel\\n")
module.exit_json(changed=True)
'''


class FakeDnf:
    """In `folder`: bin/ for the PATH, library/ for ANSIBLE_LIBRARY, and what was called."""

    def __init__(self, folder, *enabled):
        self.folder = str(folder)
        for name, text in (("bin/dnf", DNF), ("bin/subscription-manager", MANAGER),
                           ("library/dnf.py", MODULE)):
            self.write(name, text.format(folder=self.folder), 0o755)
        # Tasks of another user call it too.
        self.write("enabled", "".join(name + "\n" for name in enabled), 0o666)
        self.forget()

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(path, mode)

    def forget(self):
        self.write("calls", "", 0o666)

    def calls(self):
        with open(os.path.join(self.folder, "calls"), encoding="utf-8") as stream:
            return stream.read().splitlines()
