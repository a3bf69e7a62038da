#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ansible's module package_repository: the documentation and the options.

The work is done in module_utils/package_repository.
"""

DOCUMENTATION = r"""
module: package_repository
short_description: Publish packages in a signed repository
description:
  - Publishes Debian or RPM packages in a channel of a repository of files, which apt and dnf read
    through any web server or from a mounted folder.
  - A publication becomes visible in one step, by the replacement of a symbolic link. What
    interrupts it leaves the previous publication as it was.
  - The same packages again change nothing, and nothing is signed again, unless the validity is half
    over or a published file was damaged.
options:
  root:
    description: The folder of the repository on this host.
    type: path
    required: true
  format:
    description: What kind of packages this is about.
    type: str
    choices: [deb, rpm]
    required: true
  state:
    description:
      - V(published) publishes.
      - V(query) only says which of the packages the repository lacks, and which programs the host.
    type: str
    choices: [published, query]
    default: published
  channel:
    description: The channel to publish in. Both share one pool of package files.
    type: str
    choices: [release, nightly]
    default: release
  packages:
    description: The packages of this publication, each a file name with its SHA-256 sum.
    type: list
    elements: dict
    default: []
    suboptions:
      file:
        description: The name of the file, without a folder.
        type: str
        required: true
      sha256:
        description: The SHA-256 sum of the file as it was built, before it is signed.
        type: str
        required: true
  source:
    description: The folder on this host with those of the package files that the repository lacks.
    type: path
  promote:
    description:
      - Lines as sha256sum writes them, naming packages of the channel V(nightly). They are
        published in the channel V(release) instead of O(packages). Every line must be met exactly.
    type: list
    elements: str
    default: []
  withdraw:
    description: Lines as sha256sum writes them, naming packages that leave the channel.
    type: list
    elements: str
    default: []
  replace:
    description: Whether a package may take the place of another with the same name, version and
      architecture but other contents. Clients that have the old one do not notice.
    type: bool
    default: false
  keep:
    description: How many publications the channel holds, V(0) for all.
    type: int
    default: 0
  validity:
    description: How long clients accept the indices, as V(7d) or V(36h), V(0) for ever. They are
      signed anew, at the next run, when half of it is over.
    type: str
    default: '0'
  origin:
    description: The field Origin of Release. Pins of apt name it.
    type: str
    default: Treenail
  label:
    description: The field Label of Release.
    type: str
    default: Treenail
  description:
    description: The field Description of Release.
    type: str
    default: Packages of Treenail
  architectures:
    description: The architectures that Debian's indices are made for.
    type: list
    elements: str
    default: [amd64, arm64]
  gnupg_home:
    description: The GNUPGHOME on this host that holds the secret key. Required to publish.
    type: path
  key_id:
    description: The fingerprint of the key that signs. Required to publish.
    type: str
attributes:
  check_mode:
    support: full
    description: Says what would be published.
  diff_mode:
    support: full
    description: Shows the packages of the channel before and after.
author: Treenail developers
"""

EXAMPLES = r"""
- name: Publish a nightly build
  package_repository:
    root: /srv/treenail
    format: deb
    channel: nightly
    keep: 5
    validity: 7d
    packages:
      - {file: treenail-tools_1.1~20260401-1_amd64.deb, sha256: "{{ sum }}"}
    source: /srv/treenail/.incoming
    gnupg_home: /var/lib/signing/gnupg
    key_id: 0123456789ABCDEF0123456789ABCDEF01234567

- name: Make tested packages a release
  package_repository:
    root: /srv/treenail
    format: deb
    channel: release
    promote: "{{ lookup('ansible.builtin.file', 'tested.sha256').splitlines() }}"
    gnupg_home: /var/lib/signing/gnupg
    key_id: 0123456789ABCDEF0123456789ABCDEF01234567
"""

RETURN = r"""
reason:
  description: Why something was published; empty when nothing was.
  returned: O(state=published)
  type: str
  sample: other packages
packages:
  description: All packages that the channel holds.
  returned: O(state=published)
  type: list
  elements: dict
  sample: [{file: a_1_all.deb, sha256: 9f86d0, name: a, version: '1', architecture: all}]
missing:
  description: The files that the repository lacks.
  returned: O(state=query)
  type: list
  elements: str
lacking:
  description: The programs that a publication needs and the host has not.
  returned: O(state=query)
  type: list
  elements: str
free:
  description: How many bytes are free where the repository is, or is to be.
  returned: O(state=query)
  type: int
snapshot:
  description: The folder that clients of the channel see, relative to O(root).
  returned: O(state=published), not in check mode
  type: str
  sample: deb/snapshots/nightly/20260401T020000Z
valid_until:
  description: When the indices cease to be valid, in seconds since 1970; 0 for never.
  returned: O(state=published), not in check mode
  type: int
fingerprint:
  description: The fingerprint of the key that signed.
  returned: O(state=published), not in check mode
  type: str
public_key:
  description: The public key, armoured.
  returned: O(state=published), not in check mode
  type: str
"""

from ansible.module_utils.basic import AnsibleModule  # noqa: E402  (documentation comes first)
from ansible.module_utils.package_repository.process import RepositoryError  # noqa: E402
from ansible.module_utils.package_repository.publication import sum_line  # noqa: E402
from ansible.module_utils.package_repository.publish import (  # noqa: E402
    Request, published, queried)

OPTIONS = {
    "root": {"type": "path", "required": True},
    "format": {"type": "str", "choices": ["deb", "rpm"], "required": True},
    "state": {"type": "str", "choices": ["published", "query"], "default": "published"},
    "channel": {"type": "str", "choices": ["release", "nightly"], "default": "release"},
    "packages": {"type": "list", "elements": "dict", "default": [], "options": {
        "file": {"type": "str", "required": True}, "sha256": {"type": "str", "required": True}}},
    "source": {"type": "path"},
    "promote": {"type": "list", "elements": "str", "default": []},
    "withdraw": {"type": "list", "elements": "str", "default": []},
    "replace": {"type": "bool", "default": False},
    "keep": {"type": "int", "default": 0},
    "validity": {"type": "str", "default": "0"},
    "origin": {"type": "str", "default": "Treenail"},
    "label": {"type": "str", "default": "Treenail"},
    "description": {"type": "str", "default": "Packages of Treenail"},
    "architectures": {"type": "list", "elements": "str", "default": ["amd64", "arm64"]},
    "gnupg_home": {"type": "path"},
    "key_id": {"type": "str", "no_log": False},
}


def check(options):
    """Refuses what contradicts itself."""
    for one in options["packages"]:
        if "/" in one["file"] or not one["file"].endswith("." + options["format"]):
            raise RepositoryError("%s is no name of a .%s file" % (
                one["file"], options["format"]))
        sum_line(one["sha256"])
    if options["promote"] and (options["packages"] or options["channel"] != "release"):
        raise RepositoryError("a promotion goes from the channel nightly to the channel release, "
                              "without other packages")
    if options["keep"] < 0:
        raise RepositoryError("keep is %d: give 0, for all, or more" % options["keep"])
    for name, value in options.items():
        if isinstance(value, str) and "\n" in value:
            raise RepositoryError("%s has a line break" % name)


def main():
    module = AnsibleModule(OPTIONS, supports_check_mode=True, required_if=[
        ("state", "published", ("gnupg_home", "key_id"))])
    options = {name: module.params[name] for name in OPTIONS}
    try:
        check(options)
        state = options.pop("state")
        request = Request(**dict(options, source=options["source"] or ""))
        module.exit_json(**(queried(request) if state == "query"
                            else published(request, module.check_mode)))
    except RepositoryError as reason:
        module.fail_json(msg=str(reason))
    except OSError as error:
        module.fail_json(msg="%s; what was published before is untouched" % error)


if __name__ == "__main__":
    main()
