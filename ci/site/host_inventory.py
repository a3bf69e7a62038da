# SPDX-License-Identifier: Apache-2.0
"""What other programs read about the hosts: Ansible's inventory, and ssh's configuration."""

import json
import os
import shlex

PYTHON = "/usr/bin/python3"


def inventory(hosts: list, ssh_config: str, control: str) -> str:
    """YAML with groups per kind and per architecture, and all of them in the group `stack`, which
    ansible/site.yml builds on. Strings are written as JSON, which YAML reads. control: a directory
    of this run's own: else a connection that an earlier run keeps open would answer in the place of
    a new host with the same address."""
    groups = {"chroot": [h for h in hosts if h["kind"] == "chroot"],
              "ssh": [h for h in hosts if h["kind"] == "ssh"]}
    lines = ["# Written by ci/hosts; gone after `ci/hosts down`.", "all:", "  children:"]
    for group, members in groups.items():
        if not members:
            continue
        lines += ["    %s:" % group, "      hosts:"]
        for host in members:
            lines += ["        %s:" % host["name"]] + [
                "          %s: %s" % (key, json.dumps(value))
                for key, value in variables(host, ssh_config, control).items()]
    for arch in sorted({h["arch"] for members in groups.values() for h in members}):
        lines += ["    %s:" % arch, "      hosts:"]
        lines += ["        %s:" % h["name"] for members in groups.values() for h in members
                  if h["arch"] == arch]
    lines += ["    stack:", "      children:"] + [
        "        %s:" % group for group, members in groups.items() if members]
    return "\n".join(lines if any(groups.values()) else lines[:1] + ["all: {}"]) + "\n"


def variables(host: dict, ssh_config: str, control: str) -> dict:
    """Ansible's variables of one host."""
    common = {"ansible_python_interpreter": PYTHON}
    if host["kind"] == "chroot":
        return dict(common, ansible_connection="community.general.chroot",
                    ansible_host=host["root"])
    return dict(common, ansible_connection="ssh", ansible_host=host["address"],
                ansible_ssh_common_args="-F " + shlex.quote(ssh_config),
                ansible_control_path_dir=control)


def ssh_config(hosts: list, key: str, known_hosts: str) -> str:
    """For `ssh -F`."""
    text = "# Written by ci/hosts: ssh -F THIS_FILE HOST\n"
    for host in hosts:
        if host["kind"] == "ssh":
            text += ("Host %s %s\n  HostName %s\n  User root\n  IdentityFile \"%s\"\n"
                     "  IdentitiesOnly yes\n  UserKnownHostsFile \"%s\"\n"
                     "  StrictHostKeyChecking yes\n  PasswordAuthentication no\n" % (
                         host["name"], host["address"], host["address"], key, known_hosts))
    return text


def known_hosts(hosts: list) -> str:
    return "".join("%s,%s %s\n" % (host["name"], host["address"], host["public"])
                   for host in hosts if host["kind"] == "ssh")


def write(state, hosts: list) -> None:
    """All of these files."""
    control = os.path.join(state.run, "cp")
    state.record("tree", path=control)
    state.record("masters", path=control)
    os.makedirs(control, mode=0o700)
    config = state.at("ssh_config")
    if any(host["kind"] == "ssh" for host in hosts):
        state.write("ssh_config", ssh_config(hosts, state.at("key"), state.at("known_hosts")))
        state.write("known_hosts", known_hosts(hosts))
    state.write("inventory.yml", inventory(hosts, config, control))
