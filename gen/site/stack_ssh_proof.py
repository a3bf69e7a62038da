# SPDX-License-Identifier: Apache-2.0
"""Proof that the play needs no root to log in: over ssh as a user who may become root by sudo, for
a builder who was there before."""

import json

from proving import Failed, proof
from stack_site import Site, built, changes, skipped

# A user of a directory service has a group that is not named after it.
USERS = (
    "useradd -m admin && echo 'admin ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/admin && "
    "cp -r /root/.ssh ~admin && chown -R admin ~admin/.ssh && useradd -m -g users site && "
    "apt-get -q -y purge acl")
OPTIONS = dict(
    skipped("treenail"), numpy__mode="package", ansible_user="admin", stack__builder="site",
    stack__prefix="/opt/stack/", python__venv="/opt/venv", smoke__entries=["task", "sudo", "su"])


@proof
def stack_ssh():
    """Ansible: over ssh as a user with sudo, for a builder whose group has another name"""
    with Site("stack-ssh", "--ssh", "1", "--internet") as site:
        site.inside("ssh1", USERS)
        whole = site.play("build", "-e", json.dumps(OPTIONS))
        if built(whole) != {"numpy", "treenail"}:  # of NumPy the suite
            raise Failed("built were %s" % ", ".join(sorted(built(whole))))
        again = site.play("again", "-e", json.dumps(OPTIONS))
        if changes(again) or built(again):
            raise Failed("the second run changed %d things" % changes(again))
        owners = site.inside("ssh1", "stat -c %U:%G /opt/stack/manifest.json /opt/venv/pyvenv.cfg")
        if set(owners.split()) != {"site:users"}:
            raise Failed("manifest and environment belong to " + owners)
        site.play("prune", "-e", json.dumps(OPTIONS), playbook="prune.yml")
        said = site.inside("ssh1", "su admin -c '/opt/stack/bin/stack-env treenail-info'")
    return "as admin, built by site, again in %d s without a change: %s" % (
        again["seconds"], said.splitlines()[0])
