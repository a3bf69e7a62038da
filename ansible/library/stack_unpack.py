#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ansible module: a source archive unpacked, whole or not at all."""

import os
import shutil
import subprocess
import tempfile

DOCUMENTATION = r"""
module: stack_unpack
short_description: Unpack a source archive or a Debian source package
options:
  archive:
    description: A tar archive or a .dsc with its files beside it.
    type: path
    required: true
  into:
    description: Directory that then holds what is in the archive's only directory.
    type: path
    required: true
author: [Treenail developers]
"""

EXAMPLES = r"""
- name: Unpack
  stack_unpack:
    archive: /var/cache/stack/ab12/fftw3_3.3.10.orig.tar.gz
    into: /opt/stack/build/fftw/source
"""

RETURN = r""" # """


def commands(archive, folder):
    """What unpacks it below `folder`, into a directory of its own."""
    if archive.endswith(".dsc"):
        # The checksum of the .dsc was compared, and it names those of the other files.
        return ["dpkg-source", "--no-check", "-x", archive, os.path.join(folder, "tree")]
    return ["tar", "-x", "-f", archive, "-C", folder, "--no-same-owner"]


def unpacked(archive, into):
    parent = os.path.dirname(into)
    os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix="unpack-") as folder:
        done = subprocess.run(commands(archive, folder), stdout=subprocess.PIPE, check=False,
                              stderr=subprocess.STDOUT)
        if done.returncode:
            raise OSError("%s cannot be unpacked: %s" % (
                archive, done.stdout.decode(errors="replace").strip()[-500:]))
        # dpkg-source puts the original archive beside the tree.
        names = [n for n in os.listdir(folder) if archive[-4:] != ".dsc" or n == "tree"]
        if len(names) != 1 or not os.path.isdir(os.path.join(folder, names[0])):
            raise OSError("%s holds %d things at its top instead of one directory" % (
                archive, len(names)))
        shutil.rmtree(into, ignore_errors=True)
        os.rename(os.path.join(folder, names[0]), into)


def main():
    from ansible.module_utils.basic import AnsibleModule
    module = AnsibleModule(argument_spec={
        "archive": {"type": "path", "required": True},
        "into": {"type": "path", "required": True}}, supports_check_mode=True)
    archive, into = module.params["archive"], module.params["into"]
    if os.path.isdir(into):
        module.exit_json(changed=False)
    if not module.check_mode:
        try:
            unpacked(archive, into)
        except OSError as error:
            module.fail_json(msg=str(error))
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
