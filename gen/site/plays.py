# SPDX-License-Identifier: Apache-2.0
"""Runs roles with ansible-playbook, and reads what came of each host from its report."""

import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
ANSIBLE = os.path.join(TOP, "ansible")


class Report:
    """What a play did on each host."""

    def __init__(self, data):
        self.tasks = [(name.split(" : ")[-1], host, result) for name, host, result in data["tasks"]]
        self.stats = data["stats"]

    def failure(self, host):
        """The message of the task that failed there, and what its command wrote; '' where none
        did."""
        for _, where, result in self.tasks:
            if where == host and result.get("failed"):
                failed = [item for item in result.get("results", ()) if item.get("failed")]
                return " ".join(map(_said, failed or [result]))
        return ""

    def changed(self, host):
        """The names of the tasks that changed something there."""
        return [name for name, where, result in self.tasks
                if where == host and result.get("changed")]


def _said(result):
    written = (result.get("stderr") or result.get("stdout", "")) if "rc" in result else ""
    return " ".join(filter(None, (str(result.get("msg", result)), written)))


def surroundings(folder, **more):
    """Environment variables with which ansible-playbook takes what it needs from ansible/ and
    nothing from the user; its own files go into the folder."""
    config = os.path.join(folder, "ansible.cfg")
    with open(config, "w", encoding="utf-8") as stream:
        stream.write("[defaults]\n")
    return {**os.environ, "LC_ALL": "C.UTF-8", "ANSIBLE_CONFIG": config, "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_ROLES_PATH": os.path.join(ANSIBLE, "roles"),
            "ANSIBLE_LIBRARY": os.path.join(ANSIBLE, "library"),
            "ANSIBLE_FILTER_PLUGINS": os.path.join(ANSIBLE, "filter_plugins"),
            "ANSIBLE_MODULE_UTILS": os.path.join(ANSIBLE, "module_utils"),
            "ANSIBLE_CALLBACK_PLUGINS": ":".join(
                os.path.join(place, "callback_plugins") for place in (ANSIBLE, HERE)),
            "ANSIBLE_LOCAL_TEMP": os.path.join(folder, "local"), "ANSIBLE_PIPELINING": "1",
            "ANSIBLE_RETRY_FILES_ENABLED": "0", "ANSIBLE_LOCALHOST_WARNING": "0",
            "ANSIBLE_GATHER_SUBSET": "min", "ANSIBLE_DEPRECATION_WARNINGS": "0", **more}


def play(folder, role, hosts, *words, environment=None, facts=None, before=(), tasks_from="main"):
    """Runs a role. hosts: {name: variables}. facts: what the hosts are said to be; nothing is
    gathered then. words: more for ansible-playbook; before: what it is started by;
    tasks_from: parts of the role, in order."""
    folder = str(folder)
    pre = [{"name": "Say what the host is", "ansible.builtin.set_fact": dict(
        facts, cacheable=True)}] if facts else []
    with open(os.path.join(folder, "play.yml"), "w", encoding="utf-8") as stream:
        json.dump([{"hosts": "all", "gather_facts": not facts, "tasks": pre + [
            {"name": "Take the role", "ansible.builtin.include_role": {
                "name": role, "tasks_from": part}} for part in tasks_from.split()]}], stream)
    with open(os.path.join(folder, "inventory.json"), "w", encoding="utf-8") as stream:
        json.dump({"all": {"hosts": hosts}}, stream)
    results = os.path.join(folder, "results.json")
    if os.path.exists(results):
        os.remove(results)
    settings = surroundings(folder, ANSIBLE_CALLBACKS_ENABLED="task_results", TASK_RESULTS=results,
                            **(environment or {}))
    done = subprocess.run(
        [*before, "ansible-playbook", "-i", os.path.join(folder, "inventory.json"), *words,
         os.path.join(folder, "play.yml")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, cwd=folder, env=settings, encoding="utf-8", check=False)
    if not os.path.exists(results):
        raise AssertionError("ansible-playbook: exit status %d\n%s\n%s" % (
            done.returncode, done.stdout[-4000:], done.stderr[-4000:]))
    with open(results, encoding="utf-8") as stream:
        return Report(json.load(stream))
