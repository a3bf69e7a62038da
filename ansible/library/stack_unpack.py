#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ansible module: a source archive unpacked, whole or not at all."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time

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

from ansible.module_utils import debian_source  # noqa: E402  (documentation comes first)


def done(command, archive, **more):
    """Runs what takes the archive apart."""
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                           **more)
    if ended.returncode:
        raise OSError("%s cannot be unpacked: %s" % (
            archive, ended.stdout.decode(errors="replace").strip()[-500:]))


def only_directory(archive, folder):
    """What tar unpacks below the folder must be one directory: its path."""
    done(["tar", "-x", "-f", archive, "-C", folder, "--no-same-owner"], archive)
    names = os.listdir(folder)
    if len(names) != 1 or not os.path.isdir(os.path.join(folder, names[0])):
        raise OSError("%s holds %d things at its top instead of one directory" % (
            archive, len(names)))
    return os.path.join(folder, names[0])


def parts(dsc):
    """[path] of the files that a .dsc names, each as its checksum says."""
    with open(dsc, encoding="utf-8", errors="replace") as stream:
        text = stream.read()
    form = re.search(r"^Format:\s*(.+?)\s*$", text, re.MULTILINE)
    if not form or form.group(1) != "3.0 (quilt)":
        raise OSError("%s has the format %s: only 3.0 (quilt) is known" % (
            dsc, form.group(1) if form else "of no source package"))
    found = []
    for name, sha256 in debian_source.named(text):
        path = os.path.join(os.path.dirname(dsc), name)
        with open(path, "rb") as stream:
            if hashlib.sha256(stream.read()).hexdigest() != sha256:
                raise OSError("%s has not the checksum that %s tells" % (path, dsc))
        found.append(path)
    return found


def source_package(dsc, folder):
    """The tree of a Debian source package as dpkg-source makes it, whose package cannot be
    installed beside another architecture's compilers: the original archive, those of components,
    debian/, and its patches without fuzz."""
    archives = [path for path in parts(dsc) if re.search(r"\.tar\.\w+$", path)]
    first = [path for path in archives if re.search(r"\.orig\.tar\.\w+$", path)]
    debian = [path for path in archives if re.search(r"\.debian\.tar\.\w+$", path)]
    if len(first) != 1 or len(debian) != 1:
        raise OSError("%s names no original archive with one of debian/" % dsc)
    top = os.path.join(folder, "top")
    os.mkdir(top)
    tree = only_directory(first[0], top)
    for path in archives:
        component = re.search(r"\.orig-([\w-]+)\.tar\.\w+$", path)
        if component:
            part = os.path.join(folder, component.group(1))
            os.mkdir(part)
            shutil.rmtree(os.path.join(tree, component.group(1)), ignore_errors=True)
            os.rename(only_directory(path, part), os.path.join(tree, component.group(1)))
    shutil.rmtree(os.path.join(tree, "debian"), ignore_errors=True)
    done(["tar", "-x", "-f", debian[0], "-C", tree, "--no-same-owner"], debian[0])
    patched(dsc, tree)
    return tree


def patched(dsc, tree):
    """Applies the series. What it changes gets one time: else make, seeing generated files older
    than their sources, would call autotools."""
    series = os.path.join(tree, "debian/patches/series")
    if not os.path.exists(series):
        return
    begin = time.time()
    with open(series, encoding="utf-8") as stream:
        names = [line.split("#")[0].split() for line in stream]
    for name in (words[0] for words in names if words):
        with open(os.path.join(tree, "debian/patches", name), "rb") as stream:
            done(["patch", "-p1", "-F0", "-s", "-t", "-N", "-E", "-u", "--no-backup-if-mismatch"],
                 "%s, %s" % (dsc, name), stdin=stream, cwd=tree)
    for here, _, leaves in os.walk(tree):
        for path in (os.path.join(here, leaf) for leaf in leaves):
            # A clock of files is coarser than that of processes.
            if not os.path.islink(path) and os.stat(path).st_mtime > begin - 1:
                os.utime(path, (begin, begin))


def unpacked(archive, into):
    parent = os.path.dirname(into)
    os.makedirs(parent, exist_ok=True)
    take = source_package if archive.endswith(".dsc") else only_directory
    with tempfile.TemporaryDirectory(dir=parent, prefix="unpack-") as folder:
        tree = take(archive, folder)
        shutil.rmtree(into, ignore_errors=True)
        os.rename(tree, into)


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
